#include "run_command.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "image/elf_file.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "memory/preload/plan.hpp"
#include "memory/preload/rules.hpp"

namespace warren::tools {

const char* const run_usage =
    "usage: warren run [--memory CRITERIA] [--rules FILE] [--children] [--report] [--]\n"
    "                  PROGRAM [ARGUMENT…]\n"
    "Runs an unmodified program with its heap (malloc, operator new) where criteria say:\n"
    "  --memory CRITERIA  as in warren/memory.h: \"bandwidth\", \"latency,capacity full=strict\"\n"
    "  --rules FILE       rules by size and place, before those of --memory; a rule per line:\n"
    "                       size>=1M function=solve* -> bandwidth,capacity\n"
    "                       library=libblas* size>64k -> bandwidth\n"
    "                       file=grid.cpp -> capacity from=core:0\n"
    "                       size<4k -> system\n"
    "                     the first that fits counts; 'system' is the system's malloc, which also\n"
    "                     serves what no rule fits; 'default' fits everything, # begins a comment\n"
    "  --children         also in the programs that the program starts\n"
    "  --report           at its end, how many blocks and bytes each rule has served, on the\n"
    "                     standard error that it began with, which stays open; not if it ends by\n"
    "                     _exit or a signal\n"
    "Where the first memory is full the next in order serves; with full=strict malloc fails.\n"
    "Ranks: mpiexec -n 4 warren run --memory bandwidth ./program\n";

namespace {

constexpr int exit_usage = 2;
constexpr int exit_not_executable = 126; // as shells have it
constexpr int exit_not_found = 127;

int failed(const std::string& reason, int code = 1) {
    std::fprintf(stderr, "warren run: %s\n", reason.c_str());
    return code;
}

std::string text_of(Error& error) {
    return std::unique_ptr<ErrorRecord>(error.take())->text;
}

// The program's file, as execvp finds it; "" if there is none.
std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return access(name.c_str(), F_OK) == 0 ? name : "";
    }
    const char* path = std::getenv("PATH");
    std::string folders = path != nullptr ? path : "/bin:/usr/bin";
    for (std::size_t begin = 0; begin <= folders.size();) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        const std::string folder = end == begin ? "." : folders.substr(begin, end - begin);
        std::string file = folder;
        file += "/";
        file += name;
        struct stat status {};
        if (access(file.c_str(), X_OK) == 0 && stat(file.c_str(), &status) == 0 &&
            S_ISREG(status.st_mode)) {
            return file;
        }
        begin = end + 1;
    }
    return "";
}

// Reason why nothing can be preloaded into the program; "" if it can. A file that is not ELF may be
// a script, whose interpreter may do.
std::string no_preload(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
        return "it changes its user or group, and the system loads nothing into such programs";
    }
    if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
        return "its file has capabilities, and the system loads nothing into such programs";
    }
    std::ifstream file(path, std::ios::binary);
    char magic[4] = {};
    if (!file.read(magic, sizeof magic) || std::memcmp(magic, ELFMAG, SELFMAG) != 0) {
        return "";
    }
    std::shared_ptr<const image::ElfFile> program;
    if (Error error = image::ElfFile::open(path, program)) {
        error.drop(); // something that the kernel may know better
        return "";
    }
    if (program->dynamic().needed.empty()) {
        return "it is linked statically, so its malloc is its own";
    }
    for (const char* needed : program->dynamic().needed) {
        const std::string name = needed;
        if (name.starts_with("libasan.so") || name.starts_with("libtsan.so")) {
            return "it is built with a sanitizer (" + name + "), which has a malloc of its own";
        }
    }
    return "";
}

struct Given {
    std::string criteria;
    std::string rules;
    memory::PlanOptions options;
    std::size_t program = 0; // of the arguments
};

// False: the mistake has been printed.
bool read(const std::vector<std::string>& arguments, Given& given) {
    std::size_t at = 0;
    for (; at < arguments.size() && arguments[at].starts_with("-"); ++at) {
        const std::string& word = arguments[at];
        if (word == "--") {
            ++at;
            break;
        }
        std::string* value = word.starts_with("--memory")  ? &given.criteria
                             : word.starts_with("--rules") ? &given.rules
                                                           : nullptr;
        const std::size_t name = value == &given.criteria ? 8 : 7;
        if (value != nullptr && word.size() > name + 1 && word[name] == '=') {
            *value = word.substr(name + 1);
        } else if (value != nullptr && word.size() == name && at + 1 < arguments.size()) {
            *value = arguments[++at];
        } else if (word == "--children") {
            given.options.children = true;
        } else if (word == "--report") {
            given.options.report = true;
        } else {
            failed(value != nullptr ? word + " wants a value" : "there is no option " + word);
            return false;
        }
    }
    given.program = at;
    return true;
}

Error rules_of(const Given& given, std::vector<memory::Rule>& rules) {
    if (!given.rules.empty()) {
        std::ifstream file(given.rules, std::ios::binary);
        // Rules are written by hand, so their files are small.
        constexpr std::size_t most_bytes = 1024 * 1024;
        std::string text(most_bytes + 1, '\0');
        file.read(text.data(), static_cast<std::streamsize>(text.size()));
        text.resize(static_cast<std::size_t>(file.gcount()));
        if (!file.eof() || text.size() > most_bytes) {
            return fail(WARREN_MEM_ERR_FILE, "%s %s", given.rules.c_str(),
                        text.size() > most_bytes ? "is too large for rules" : "can't be read");
        }
        if (Error error = memory::parse_rules(text, given.rules, rules)) {
            return error;
        }
    }
    if (!given.criteria.empty()) {
        memory::Rule all;
        all.criteria = given.criteria;
        rules.push_back(all);
    }
    return {};
}

} // namespace

int run_command(const std::vector<std::string>& arguments) {
    if (!arguments.empty() && (arguments[0] == "help" || arguments[0] == "--help")) {
        std::fputs(run_usage, stdout);
        return 0;
    }
    Given given;
    if (!read(arguments, given) || given.program == arguments.size() ||
        (given.criteria.empty() && given.rules.empty())) {
        std::fputs(run_usage, stderr);
        return exit_usage;
    }
    const std::string library =
        launch::own_folder() + launch::library_folder + "warren/libwarren-malloc.so";
    char whole[PATH_MAX];
    if (realpath(library.c_str(), whole) == nullptr) {
        return failed(library + " is missing: " + std::strerror(errno));
    }
    if (std::strpbrk(whole, " :") != nullptr) {
        return failed(std::string("the path ") + whole +
                      " has a blank or a colon, with which nothing can be preloaded");
    }
    const std::string& name = arguments[given.program];
    const std::string path = find_program(name);
    if (path.empty()) {
        return failed(name + " is not found", exit_not_found);
    }
    if (const std::string why = no_preload(path); !why.empty()) {
        return failed(name + ": " + why, exit_not_executable);
    }
    std::vector<memory::Rule> rules;
    if (Error error = rules_of(given, rules)) {
        return failed(text_of(error));
    }
    memory::Machine* machine = nullptr;
    if (Error error = memory::Machine::here(machine)) {
        return failed(text_of(error));
    }
    std::string plan;
    if (Error error = memory::make_plan(*machine, rules, given.rules, given.options, plan)) {
        return failed(text_of(error));
    }
    const char* before = std::getenv("LD_PRELOAD");
    std::string preload = whole;
    if (before != nullptr && *before != '\0') {
        preload += std::string(":") + before;
    }
    setenv("LD_PRELOAD", preload.c_str(), 1);
    setenv(memory::plan_variable, plan.c_str(), 1);
    std::vector<char*> words;
    for (std::size_t at = given.program; at < arguments.size(); ++at) {
        words.push_back(const_cast<char*>(arguments[at].c_str()));
    }
    words.push_back(nullptr);
    execv(path.c_str(), words.data());
    if (errno == ENOEXEC) { // a script without a first line that says whose
        words.insert(words.begin(), const_cast<char*>("/bin/sh"));
        words[1] = const_cast<char*>(path.c_str());
        execv("/bin/sh", words.data());
    }
    return failed(path + ": " + std::strerror(errno), exit_not_executable);
}

} // namespace warren::tools
