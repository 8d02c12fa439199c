// The part of a job that gives its ranks the node's topology: in hwloc's forms, with --hwloc-shmem.
#include "launch/job.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/socket.h>
#include <unistd.h>

#include "image/elf_file.hpp"
#include "launch/own_place.hpp"

namespace warren::launch {

namespace {

constexpr const char* stand_in = "warren/libwarren-hwloc.so";

// Sanitizers want to be the first library of their program.
std::string first_library_of(const std::string& program) {
    std::shared_ptr<const image::ElfFile> file;
    if (Error error = image::ElfFile::open(program, file)) {
        error.drop(); // a script, say
        return "";
    }
    for (std::string name : file->dynamic().needed) {
        if (name.starts_with("libasan.so") || name.starts_with("libtsan.so")) {
            return name;
        }
    }
    return "";
}

// What a rank reports is text of a program's: one line, and nothing that a terminal obeys.
std::string plain(const char* text, std::size_t limit) {
    std::string made(text, strnlen(text, limit));
    for (char& letter : made) {
        if (letter < ' ' || letter > '~') {
            letter = '?';
        }
    }
    return made;
}

// Ranks' own discovery of --topology's source, as if it was their machine.
EnvironmentSetting discovery_of(const std::string& source) {
    constexpr std::string_view synthetic = "synthetic:";
    if (source.starts_with(synthetic)) {
        return {"HWLOC_SYNTHETIC", source.substr(synthetic.size())};
    }
    return {is_folder(source) ? "HWLOC_FSROOT" : "HWLOC_XMLFILE", source};
}

} // namespace

// False when what the user wants can't be had.
bool Job::publish_topology(RankEnvironment& environment) {
    if (!line_.hwloc.asked) {
        return true;
    }
    HwlocSharing wanted = line_.hwloc;
    if (has_host() && wanted.way == HwlocWay::automatic) {
        explain("hwloc maps a shared topology once per process: ranks that are threads read XML");
        wanted.way = HwlocWay::xml;
    }
    if (Error error = hwloc_.make(wanted, line_.topology)) {
        if (line_.hwloc.way != HwlocWay::automatic || !line_.topology.empty()) {
            fail_with(1, error);
            return false;
        }
        const std::unique_ptr<ErrorRecord> record(error.take());
        say("ranks discover hwloc's topology by themselves: " + record->text);
        return true;
    }
    for (const std::string& note : hwloc_.notes()) {
        explain(note);
    }
    if (wanted.way == HwlocWay::native && !line_.topology.empty()) {
        environment.more.push_back(discovery_of(line_.topology));
    }
    const HwlocOffer& offer = hwloc_.offer();
    if (has_host()) {
        // hwloc asks for the process's descriptors, but each thread has its own.
        if (offer.xml >= 0 && std::getenv("HWLOC_XMLFILE") == nullptr) {
            environment.more.push_back(
                {"HWLOC_XMLFILE", "/proc/thread-self/fd/" + std::to_string(offer.xml)});
            environment.more.push_back({"HWLOC_THISSYSTEM", offer.is_this_system ? "1" : "0"});
        }
        return true;
    }
    return offer_hwloc(offer, environment);
}

// What processes that are ranks get of it: the files, and the stand-in that knows how to use them.
bool Job::offer_hwloc(HwlocOffer offer, RankEnvironment& environment) {
    environment.preload = own_folder() + library_folder + stand_in;
    if (access(environment.preload.c_str(), R_OK) != 0) {
        fail_with(1, "--hwloc-shmem needs " + environment.preload + ": " + std::strerror(errno));
        return false;
    }
    if (environment.preload.find_first_of(" :") != std::string::npos) {
        fail_with(1, "--hwloc-shmem: nothing can be preloaded from a folder with a space or a "
                     "colon in its name: " +
                         environment.preload);
        return false;
    }
    int ends[2] = {-1, -1};
    if (line_.verbose && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0) {
        topology_reports_ = ends[0];
        offer.report = ends[1];
        reports_for_ranks_ = ends[1];
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        fcntl(ends[1], F_SETFD, 0);
        watch_descriptor(events_, topology_reports_, Source::topology, 0);
    }
    environment.more.push_back({"WARREN_HWLOC", hwloc_text(offer).data()});
    if (offer.shmem >= 0) {
        environment.more.push_back({"WARREN_HWLOC_SHMEM", hwloc_shmem_text(offer).data()});
    }
    if (offer.xml >= 0) {
        environment.more.push_back({"WARREN_HWLOC_XML", std::to_string(offer.xml)});
    }
    return true;
}

std::string Job::preloaded_before(const ResolvedProgram& program) {
    const std::string first = first_library_of(program.full_path());
    return first.empty() ? "" : first + ":";
}

void Job::read_topology_reports() {
    HwlocReport report;
    ssize_t got = 0;
    while ((got = recv(topology_reports_, &report, sizeof report, 0)) > 0) {
        if (got != static_cast<ssize_t>(sizeof report) ||
            report.magic != HwlocReport::magic_number || report.way >= topologies_loaded_.size()) {
            continue;
        }
        ++topologies_loaded_[report.way];
        const auto way = static_cast<HwlocWay>(report.way);
        const std::string reason = plain(report.reason.data(), report.reason.size());
        if (way != HwlocWay::shmem && !reason.empty()) {
            explain("rank " + std::to_string(report.rank) + ": hwloc's topology " +
                    (way == HwlocWay::xml      ? "is read from XML"
                     : way == HwlocWay::native ? "is discovered by itself"
                                               : "can't be had") +
                    ": " + reason);
        }
    }
}

void Job::report_topologies() {
    if (topology_reports_ < 0) {
        return;
    }
    read_topology_reports();
    const auto count = [&](HwlocWay way) {
        return std::to_string(topologies_loaded_[static_cast<std::size_t>(way)]);
    };
    explain("hwloc's topology was loaded from shared memory " + count(HwlocWay::shmem) +
            " times, from XML " + count(HwlocWay::xml) + " times, discovered " +
            count(HwlocWay::native) + " times, and could not be had " + count(HwlocWay::automatic) +
            " times");
}

} // namespace warren::launch
