#include "doctor_command.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <ios>
#include <memory>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.hpp"
#include "launch/mpiexec/foreign_abi.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "launch/mpiexec/request.hpp"
#include "locality_report.hpp"
#include "warren/image.h"

namespace warren::tools {

namespace {

void print(const Finding& finding) {
    static constexpr const char* words[] = {"ok", "note", "hinders", "prevents"};
    std::printf("%-9s %-15s %s\n", words[finding.weight], finding.subject.c_str(),
                finding.what.c_str());
    if (!finding.remedy.empty()) {
        std::printf("%25s remedy: %s\n", "", finding.remedy.c_str());
    }
}

bool is_there(const std::string& path) {
    return access(path.c_str(), R_OK) == 0;
}

Finding part(const char* subject, const std::string& file, const char* there, const char* remedy) {
    if (is_there(file)) {
        return {Finding::good, subject, there};
    }
    return {Finding::hinders, subject, "not there: " + file, remedy};
}

bool has_numpy(const std::string& python) {
    posix_spawn_file_actions_t quietly;
    posix_spawn_file_actions_init(&quietly);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
        if (access("/dev/null", W_OK) == 0) {
            posix_spawn_file_actions_addopen(&quietly, stream, "/dev/null", O_WRONLY, 0);
        }
    }
    const char* words[] = {python.c_str(), "-c", "import numpy", nullptr};
    pid_t child = 0;
    int status = 0;
    const bool ran = posix_spawnp(&child, words[0], &quietly, nullptr,
                                  const_cast<char* const*>(words), environ) == 0 &&
                     waitpid(child, &status, 0) == child;
    posix_spawn_file_actions_destroy(&quietly);
    return ran && status == 0;
}

// Collects what warren_image_check says.
void add_finding(void* context, int weight, const char* file, const char* what,
                 const char* remedy) {
    static constexpr Finding::Weight weights[] = {Finding::hinders, Finding::note, Finding::note};
    auto* findings = static_cast<std::vector<Finding>*>(context);
    findings->push_back({weights[std::clamp(weight, 0, 2)], "as an image",
                         std::string(file) + ": " + what, remedy});
}

std::string first_bytes(const std::string& path, std::size_t count) {
    std::string bytes(count, '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(bytes.data(), static_cast<std::streamsize>(count));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return bytes;
}

} // namespace

std::vector<Finding> examine_variables() {
    launch::CommandLine line;
    if (Error error = launch::read_request({"true"}, line)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        return {{Finding::prevents, "variables", record->text, "unset it"}};
    }
    return {};
}

std::vector<Finding> examine_installation() {
    const std::string own = launch::own_folder();
    const std::string libraries = own + launch::library_folder;
    std::vector<Finding> findings;
    findings.push_back(part("threads, fibres", own + launch::libexec_folder + "warren-rank-host",
                            "ranks can be threads and fibres", "install all of Warren"));
    findings.push_back(part("MPICH's ABI", libraries + "mpich-abi/libmpi.so.12",
                            "programs that were built for MPICH and its kin run",
                            "install all of Warren"));
    findings.push_back(part("Open MPI's ABI", libraries + "openmpi-abi/libmpi.so.40",
                            "programs that were built for Open MPI run", "install all of Warren"));
    findings.push_back(part("Fortran", libraries + "libmpifort_abi.so.1",
                            "programs in Fortran for the standard ABI run",
                            "install all of Warren"));
    findings.push_back(part("touches", libraries + "warren/libwarren-tracker.so",
                            "warren locality record finds out who touches a page first",
                            "install all of Warren"));
    if (is_there(libraries + "warren/dynamorio/libdynamorio.so")) {
        findings.push_back(
            {Finding::good, "counts", "warren locality record --mode counts counts every access"});
    } else {
        findings.push_back({Finding::note, "counts", "no DynamoRIO: --mode counts is left out",
                            "./quickstart in a source tree builds it"});
    }
    const std::string python = python_of_reports();
    if (has_numpy(python)) {
        findings.push_back({Finding::good, "reports", python + " has numpy"});
    } else {
        const bool of_wheel = python == own + "/python3";
        findings.push_back({Finding::hinders, "reports",
                            python + " has no numpy: warren locality report can't run",
                            of_wheel ? python + " -m pip install 'warren-mpi[analyser]'"
                                     : "apt-get install python3-numpy, or name the Python of a "
                                       "virtual environment with numpy in WARREN_PYTHON"});
    }
    return findings;
}

std::vector<Finding> examine_program(const std::string& path) {
    if (access(path.c_str(), R_OK | X_OK) != 0) {
        return {{Finding::prevents, "program", path + ": " + std::strerror(errno),
                 "name an executable file by its path"}};
    }
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) { // folders are executable
        return {{Finding::prevents, "program", path + " is no regular file",
                 "name an executable file by its path"}};
    }
    std::vector<Finding> findings;
    const std::string own = launch::own_folder();
    const launch::ForeignNeed need = launch::foreign_need(path, own);
    switch (need.abi) {
    case launch::Abi::standard:
        findings.push_back(
            {Finding::good, "ABI", "the standard's: " + need.needed_by + " needs " + need.library});
        break;
    case launch::Abi::mpich:
    case launch::Abi::openmpi:
        findings.push_back({Finding::good, "ABI", launch::foreign_account(need, own, path)});
        break;
    case launch::Abi::unknown:
        findings.push_back({Finding::note, "ABI",
                            "no file of the program names an MPI library: it is a script, is "
                            "linked statically, or "
                            "opens its library when it runs"});
    }
    if (first_bytes(path, 2) == "#!") {
        findings.push_back({Finding::note, "as an image",
                            "it is a script: its ranks are processes, unless its interpreter is "
                            "named as the program"});
        return findings;
    }
    std::vector<Finding> as_image;
    const int code = warren_image_check(path.c_str(), add_finding, &as_image);
    if (code == WARREN_IMAGE_SUCCESS) {
        findings.push_back({Finding::good, "as an image", "its ranks can be threads or fibres"});
    } else if (code == WARREN_IMAGE_ERR_DAMAGED && first_bytes(path, 4) == "\177ELF") {
        findings.push_back(
            {Finding::prevents, "program", "it is damaged, see below", "make or copy it again"});
    } else {
        findings.push_back({Finding::hinders, "as an image", "its ranks can be processes only"});
    }
    findings.insert(findings.end(), as_image.begin(), as_image.end());
    return findings;
}

int doctor_command(const std::vector<std::string>& words) {
    if (words.size() > 1 || (!words.empty() && words[0].starts_with("-"))) {
        return wrong_words;
    }
    std::vector<Finding> findings;
    const auto add = [&](const std::vector<Finding>& more) {
        findings.insert(findings.end(), more.begin(), more.end());
    };
    if (const std::optional<Finding> finding = missing_proc()) {
        add({*finding});
    } else {
        add(examine_system());
        add(examine_variables());
        add(examine_installation());
        if (!words.empty()) {
            add(examine_program(words[0]));
        }
    }
    unsigned hindering = 0;
    unsigned preventing = 0;
    for (const Finding& finding : findings) {
        print(finding);
        hindering += finding.weight == Finding::hinders ? 1 : 0;
        preventing += finding.weight == Finding::prevents ? 1 : 0;
    }
    std::printf("\n%u prevent jobs, %u hinder them\n", preventing, hindering);
    return preventing == 0 ? 0 : 1;
}

} // namespace warren::tools
