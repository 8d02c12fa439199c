#include "launch/mpiexec/job_topology.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/socket.h>
#include <unistd.h>

#include "image/elf_file.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "topology/discovery/named_source.hpp"
#include "topology/request.hpp"

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

// Makes a rank's text safe to print, since a program wrote it: one line, without control characters
// that a terminal obeys.
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
Error discovery_of(const std::string& text, EnvironmentSetting& setting) {
    discovery::NamedSource named;
    if (Error error = discovery::name_source(text, named)) {
        return error;
    }
    const std::string& source = named.source.text;
    if (named.is_image) {
        return fail(exit_failure,
                    "--topology %s: hwloc discovers nothing from an image; it does "
                    "from XML (warren topo --format xml)",
                    text.c_str());
    }
    if (named.source.kind == discovery::SourceKind::synthetic) {
        setting = {"HWLOC_SYNTHETIC", source};
        return {};
    }
    // Ranks may be in another folder.
    const std::unique_ptr<char, decltype(&std::free)> path(realpath(source.c_str(), nullptr),
                                                           std::free);
    if (!path) {
        return fail(exit_failure, "--topology %s: %s", text.c_str(), std::strerror(errno));
    }
    setting = {named.source.kind == discovery::SourceKind::dump ? "HWLOC_FSROOT" : "HWLOC_XMLFILE",
               path.get()};
    return {};
}

} // namespace

// Publishes the node's topology to the ranks. False: the topology that the user asked for can't be
// had.
bool JobTopology::publish(RankEnvironment& environment) {
    return publish_image(environment) && publish_hwloc(environment);
}

bool JobTopology::publish_image(RankEnvironment& environment) {
    if (Error error = topology_.open()) {
        job_.report.fail(1, error);
        return false;
    }
    job_.events.watch(topology_.socket(), Source::topology);
    environment.more.push_back({"WARREN_TOPOLOGY", std::to_string(topology_.file_of_ranks())});
    environment.more.push_back(
        {topology::socket_variable, std::to_string(topology_.socket_of_ranks())});
    return job_.line.topology.empty() || make_image();
}

// False when what the user named is wrong; ranks discover by themselves else.
bool JobTopology::make_image() {
    std::string note;
    if (Error error = topology_.make(job_.line.topology, note)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        if (!job_.line.topology.empty()) {
            job_.report.fail(1, "--topology " + job_.line.topology + ": " + record->text);
            return false;
        }
        note = "there is no topology image, ranks discover by themselves: " + record->text;
    }
    job_.report.explain(note);
    return true;
}

bool JobTopology::publish_hwloc(RankEnvironment& environment) {
    if (!job_.line.hwloc.asked) {
        return true;
    }
    HwlocSharing wanted = job_.line.hwloc;
    if (job_.has_host() && wanted.way == HwlocWay::automatic) {
        job_.report.explain(
            "hwloc maps a shared topology once per process: ranks that are threads read XML");
        wanted.way = HwlocWay::xml;
    }
    if (Error error = hwloc_.make(wanted, job_.line.topology)) {
        if (job_.line.hwloc.way != HwlocWay::automatic || !job_.line.topology.empty()) {
            job_.report.fail(1, error);
            return false;
        }
        const std::unique_ptr<ErrorRecord> record(error.take());
        job_.report.say("ranks discover hwloc's topology by themselves: " + record->text);
        return true;
    }
    for (const std::string& note : hwloc_.notes()) {
        job_.report.explain(note);
    }
    if (wanted.way == HwlocWay::native && !job_.line.topology.empty() &&
        job_.line.topology != "native") {
        if (Error error = discovery_of(job_.line.topology, environment.more.emplace_back())) {
            job_.report.fail(1, error);
            return false;
        }
    }
    const HwlocOffer& offer = hwloc_.offer();
    if (job_.has_host()) {
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

// Gives process ranks hwloc's topology: the files, and the stand-in library that reads them.
bool JobTopology::offer_hwloc(HwlocOffer offer, RankEnvironment& environment) {
    environment.preload = own_folder() + library_folder + stand_in;
    if (access(environment.preload.c_str(), R_OK) != 0) {
        job_.report.fail(1, "--hwloc-shmem needs " + environment.preload + ": " +
                                std::strerror(errno));
        return false;
    }
    if (environment.preload.find_first_of(" :") != std::string::npos) {
        job_.report.fail(1,
                         "--hwloc-shmem: nothing can be preloaded from a folder with a space or a "
                         "colon in its name: " +
                             environment.preload);
        return false;
    }
    offer.report = job_.line.verbose ? topology_.socket_of_ranks() : -1;
    environment.more.push_back({"WARREN_HWLOC", hwloc_text(offer).data()});
    if (offer.shmem >= 0) {
        environment.more.push_back({"WARREN_HWLOC_SHMEM", hwloc_shmem_text(offer).data()});
    }
    if (offer.xml >= 0) {
        environment.more.push_back({"WARREN_HWLOC_XML", std::to_string(offer.xml)});
    }
    return true;
}

std::string JobTopology::preloaded_before(const ResolvedProgram& program) {
    const std::string first = first_library_of(program.full_path());
    return first.empty() ? "" : first + ":";
}

// Requests for the image, and with -v reports of what hwloc did.
void JobTopology::read_socket() {
    union {
        HwlocReport report;
        topology::ImageRequest request;
    } message = {};
    const HwlocReport& report = message.report;
    const topology::ImageRequest& request = message.request;
    ssize_t got = 0;
    while ((got = recv(topology_.socket(), &message, sizeof message, 0)) > 0) {
        if (got == static_cast<ssize_t>(sizeof request)) {
            if (request.magic == topology::ImageRequest::magic_number && !topology_.is_made()) {
                job_.report.explain("rank " + std::to_string(request.rank) +
                                    " asks for the topology");
                make_image();
            }
            continue;
        }
        if (got != static_cast<ssize_t>(sizeof report) ||
            report.magic != HwlocReport::magic_number || report.way >= loaded_.size()) {
            continue;
        }
        ++loaded_[report.way];
        const auto way = static_cast<HwlocWay>(report.way);
        const std::string reason = plain(report.reason.data(), report.reason.size());
        if (way != HwlocWay::shmem && !reason.empty()) {
            job_.report.explain("rank " + std::to_string(report.rank) + ": hwloc's topology " +
                                (way == HwlocWay::xml      ? "is read from XML"
                                 : way == HwlocWay::native ? "is discovered by itself"
                                                           : "can't be had") +
                                ": " + reason);
        }
    }
    if (got == 0) { // all ranks have closed their end
        job_.events.forget(topology_.socket());
    }
}

void JobTopology::report() {
    if (!job_.line.hwloc.asked || job_.has_host() || topology_.socket() < 0) {
        return;
    }
    read_socket();
    const auto count = [&](HwlocWay way) {
        return std::to_string(loaded_[static_cast<std::size_t>(way)]);
    };
    job_.report.explain("hwloc's topology was loaded from shared memory " + count(HwlocWay::shmem) +
                        " times, from XML " + count(HwlocWay::xml) + " times, discovered " +
                        count(HwlocWay::native) + " times, and could not be had " +
                        count(HwlocWay::automatic) + " times");
}

std::vector<int> JobTopology::descriptors() const {
    std::vector<int> all = hwloc_.descriptors();
    all.insert(all.end(), {topology_.file_of_ranks(), topology_.socket_of_ranks()});
    return all;
}

} // namespace warren::launch
