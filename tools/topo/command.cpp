#include "topo/command.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs.hpp"
#include "launch/mpiexec/cpu_set.hpp"
#include "launch/mpiexec/running_jobs.hpp"
#include "topo/forms.hpp"
#include "topology/discovery/hwloc_xml.hpp"
#include "topology/discovery/named_source.hpp"
#include "topology/handle.hpp"

extern char** environ;

namespace warren::tools {

namespace {

using Topology = std::unique_ptr<warren_topology, decltype(&warren_topology_close)>;

struct Request {
    std::string source;
    std::string output; // empty: standard output
    std::string format;
    bool shows_job = false;
    std::string job; // its mpiexec or a rank of it; empty: the only one
};

bool mistake(const std::string& text) {
    std::fprintf(stderr, "warren: topo: %s\n", text.c_str());
    return false;
}

bool is_number(const std::string& word) {
    return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

bool read_words(const std::vector<std::string>& words, Request& request) {
    bool has_source = false;
    for (std::size_t at = 0; at < words.size(); ++at) {
        std::string word = words[at];
        std::string value;
        const std::size_t equals = word.find('=');
        const bool joined = word.starts_with("--") && equals != std::string::npos;
        if (joined) {
            value = word.substr(equals + 1);
            word.erase(equals);
        }
        if (word == "--job") {
            request.shows_job = true;
            if (!joined && at + 1 < words.size() && is_number(words[at + 1])) {
                value = words[++at];
            }
            if (joined && !is_number(value)) {
                return mistake("--job needs the number of a process, not '" + value + "'");
            }
            request.job = value;
        } else if (word == "-o" || word == "--output" || word == "--format") {
            if (!joined && ++at >= words.size()) {
                return mistake(word + " needs a value");
            }
            value = joined ? value : words[at];
            if (value.empty()) {
                return mistake(word + " needs a value");
            }
            (word == "--format" ? request.format : request.output) = value;
        } else if (word.starts_with("-")) {
            return mistake("unknown option '" + word + "'; warren help lists the options");
        } else if (has_source) {
            return mistake("one source at a time: '" + request.source + "' or '" + words[at] + "'");
        } else {
            request.source = words[at];
            has_source = true;
        }
    }
    if (has_source && request.source.empty()) {
        return mistake("the name of the source is empty");
    }
    return true;
}

bool choose_format(Request& request) {
    constexpr const char* known[] = {"text", "json", "xml", "svg", "png"};
    if (request.format.empty()) {
        const std::size_t dot = request.output.rfind('.');
        const std::string ending =
            dot == std::string::npos ? "txt" : request.output.substr(dot + 1);
        request.format = ending == "txt" ? "text" : ending;
    }
    for (const char* one : known) {
        if (request.format == one) {
            return true;
        }
    }
    return mistake("the format is text, json, xml, svg or png, not '" + request.format + "'");
}

Topology open_source(const std::string& source) {
    warren_topology* topology = nullptr;
    std::vector<std::byte> image;
    topology::ImageMemory memory;
    std::string note;
    Error error = discovery::named_image(source, true, image, note);
    if (!error) {
        error = topology::ImageMemory::copy(image, memory);
    }
    if (!error) {
        error = topology::make_handle(std::move(memory), WARREN_TOPOLOGY_FILE, topology);
    }
    if (error) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        mistake(record->text);
    }
    if (!note.empty()) {
        mistake("note: " + note);
    }
    return {topology, warren_topology_close};
}

// Puts each rank at the smallest object that has all its processors.
bool find_ranks(const Request& request, const warren_topology* topology, BoundRanks& ranks) {
    node::Segment segment;
    if (!attach_job(request.job, "topo --job", segment)) {
        return false;
    }
    const std::vector<pid_t> tasks = launch::tasks_of_ranks(segment);
    for (std::uint32_t rank = 0; rank < tasks.size(); ++rank) {
        const pid_t task = tasks[rank];
        std::vector<std::uint64_t> words(launch::CpuSet::bytes() / sizeof(std::uint64_t));
        if (task == 0 || sched_getaffinity(task, launch::CpuSet::bytes(),
                                           reinterpret_cast<cpu_set_t*>(words.data())) != 0) {
            continue; // ended
        }
        const warren_set all = warren_object_cpus(topology, 0);
        for (std::uint32_t word = 0; word < words.size(); ++word) {
            words[word] &=
                word >= all.first && word - all.first < all.count ? all.words[word - all.first] : 0;
        }
        const warren_object place = warren_topology_covering(
            topology, {words.data(), 0, static_cast<std::uint32_t>(words.size())});
        if (place != WARREN_NO_OBJECT) {
            ranks[place].push_back(rank);
        }
    }
    return true;
}

bool write_text(const std::string& text, const std::string& path) {
    std::FILE* file = path.empty() ? stdout : std::fopen(path.c_str(), "w");
    if (file == nullptr) {
        return mistake(path + ": " + std::strerror(errno));
    }
    bool done = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    done = (path.empty() ? std::fflush(file) : std::fclose(file)) == 0 && done;
    return done || mistake((path.empty() ? "standard output" : path) + ": " + std::strerror(errno));
}

// Draws the picture by librsvg, which every distribution has.
bool write_png(const std::string& svg, const std::string& path) {
    const int input = memfd_create("warren-picture", MFD_CLOEXEC);
    if (input < 0 || write(input, svg.data(), svg.size()) != static_cast<ssize_t>(svg.size()) ||
        lseek(input, 0, SEEK_SET) != 0) {
        return mistake(std::string("a memory file: ") + std::strerror(errno));
    }
    const int output = path.empty()
                           ? STDOUT_FILENO
                           : open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (output < 0) {
        close(input);
        return mistake(path + ": " + std::strerror(errno));
    }
    char name[] = "rsvg-convert";
    char format[] = "--format=png";
    char* arguments[] = {name, format, nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t pid = -1;
    const int error = posix_spawnp(&pid, name, &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(input);
    if (!path.empty()) {
        close(output);
    }
    int status = 0;
    if (error == 0 && waitpid(pid, &status, 0) == pid && status == 0) {
        return true;
    }
    if (!path.empty()) {
        unlink(path.c_str());
    }
    return mistake(
        error != 0 ? "PNG needs rsvg-convert (Debian's package librsvg2-bin), which does "
                     "not run: " +
                         std::string(std::strerror(error)) + "; SVG (--format svg) needs nothing"
                   : "rsvg-convert failed");
}

int show(const std::vector<std::string>& words) {
    Request request;
    if (!read_words(words, request) || !choose_format(request)) {
        return 2;
    }
    const Topology topology = open_source(request.source);
    BoundRanks ranks;
    if (!topology || (request.shows_job && !find_ranks(request, topology.get(), ranks))) {
        return 1;
    }
    bool done = false;
    if (request.format == "png") {
        done = write_png(as_svg(topology.get(), ranks), request.output);
    } else {
        done = write_text(request.format == "json"  ? as_json(topology.get(), ranks)
                          : request.format == "xml" ? discovery::hwloc_xml(topology.get())
                          : request.format == "svg" ? as_svg(topology.get(), ranks)
                                                    : as_text(topology.get(), ranks),
                          request.output);
    }
    return done ? 0 : 1;
}

int publish(const std::vector<std::string>& words) {
    if (words.empty() || words.size() > 2 || words[0].empty() || words[0][0] == '-') {
        mistake("publish needs a FILE, and perhaps a SOURCE");
        return 2;
    }
    const Topology topology = open_source(words.size() == 2 ? words[1] : "");
    if (!topology) {
        return 1;
    }
    errno = 0;
    if (warren_topology_save(topology.get(), words[0].c_str()) != WARREN_TOPOLOGY_SUCCESS) {
        mistake(words[0] + " can't be written" +
                (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
        return 1;
    }
    return 0;
}

} // namespace

int topology_command(const std::vector<std::string>& words) {
    return !words.empty() && words[0] == "publish" ? publish({words.begin() + 1, words.end()})
                                                   : show(words);
}

} // namespace warren::tools
