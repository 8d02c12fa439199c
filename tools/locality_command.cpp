#include "locality_command.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analyser/recorder/recorder.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "locality_counts.hpp"
#include "locality_hooks.hpp"
#include "locality_report.hpp"

namespace warren::tools {

const char* const locality_usage =
    "usage: warren locality record [OPTION …] [--] PROGRAM [ARGUMENT …]\n"
    "       warren locality report …     what a recording says: warren locality report --help\n"
    "       warren locality flags …      for compiling programs that count: warren locality flags "
    "--help\n"
    "\n"
    "Runs PROGRAM and records which thread places each page of its memory (first touch), where "
    "its\n"
    "allocations come from, and its threads' processor time, with all processes that it starts.\n"
    "Alone, in front of a launcher (`warren locality record -- mpiexec -n 4 ./a.out`) or behind "
    "it\n"
    "(`mpiexec -n 4 warren locality record -- ./a.out`): ranks have folders by their numbers.\n"
    "Needs no privileges, and no more of the system than kernel.perf_event_paranoid up to 2.\n"
    "\n"
    "  --mode MODE            first-touch (this one); counts: each thread's reads and writes of "
    "each\n"
    "                         page; sample: estimates of them, for long runs; hooks: counts of "
    "programs\n"
    "                         that are compiled for it (warren locality flags). Those have other\n"
    "                         options: warren locality record --mode counts --help\n"
    "  -o, --output FOLDER    where the recording goes (warren-locality); must be empty or new\n"
    "  --threshold BYTES      record heap blocks from this size on (4096); K, M, G may follow\n"
    "  --limit BYTES          most that a process may take on the disk (4G), at least 1M: half "
    "for\n"
    "                         touches, half for allocations; what comes later is lost, and "
    "counted\n"
    "  --stack-depth CALLS    deepest call stacks (32, at most 64)\n"
    "  -q, --quiet            say nothing at the end\n"
    "\n"
    "Programs can say more by warren/locality.h and MPI_Pcontrol. The exit status is the\n"
    "program's; 125 if it could not be recorded. A recording is kept whatever is killed.\n";

namespace {

constexpr int status_usage = 2;
constexpr int status_failed = 125; // as env and timeout: the program's own are below

// Reads a size such as "64K" in bytes.
bool size_in(const std::string& text, std::uint64_t& bytes) {
    char* end = nullptr;
    errno = 0;
    if (text.empty() || text[0] < '0' || text[0] > '9') {
        return false;
    }
    bytes = std::strtoull(text.c_str(), &end, 10);
    unsigned shift = 0;
    switch (*end) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    case 'T':
        shift = 40;
        break;
    default:
        break;
    }
    end += shift == 0 ? 0 : 1;
    return errno == 0 && *end == 0 && bytes <= UINT64_MAX >> shift && (bytes <<= shift, true);
}

int usage_error(const std::string& text) {
    std::fprintf(stderr, "warren locality record: %s\n", text.c_str());
    return status_usage;
}

// Returns 0, or the exit status of a wrong command line.
int read_options(const std::vector<std::string>& words, locality::RecordOptions& options) {
    constexpr std::uint64_t least_limit = 1 << 20;
    constexpr std::uint64_t most_calls = 64;
    std::size_t at = 1;
    for (; at < words.size() && words[at].size() > 1 && words[at][0] == '-'; ++at) {
        std::string name = words[at];
        if (name == "--") {
            ++at;
            break;
        }
        if (name == "-q" || name == "--quiet") {
            options.quiet = true;
            continue;
        }
        const std::size_t equals = name.rfind("--", 0) == 0 ? name.find('=') : std::string::npos;
        std::string value;
        if (equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.resize(equals);
        }
        if (name != "-o" && name != "--output" && name != "--threshold" && name != "--limit" &&
            name != "--stack-depth" && name != "--mode") {
            return usage_error("there is no option " + name + "; warren locality help lists them");
        }
        if (equals == std::string::npos) {
            if (++at == words.size()) {
                return usage_error(name + " needs a value");
            }
            value = words[at];
        }
        if (name == "--mode") {
            continue; // known already
        }
        std::uint64_t number = 0;
        if (name == "-o" || name == "--output") {
            if (value.empty()) {
                return usage_error("the name of the folder is empty");
            }
            options.folder = value;
        } else if (!size_in(value, number) || number == 0) {
            std::string problem = name;
            problem += ": '" + value + "' is no number of ";
            return usage_error(problem += name == "--stack-depth" ? "calls" : "bytes");
        } else if (name == "--threshold") {
            options.threshold = number;
        } else if (name == "--limit") {
            if (number < least_limit) {
                return usage_error("--limit: " + value + " is less than 1M");
            }
            options.limit_bytes = number;
        } else {
            if (number > most_calls) {
                return usage_error("--stack-depth: " + value + " is more than 64");
            }
            options.calls = static_cast<std::uint32_t>(number);
        }
    }
    options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    return options.command.empty() ? usage_error("no program is given") : 0;
}

// Ends as the program did, for the waiting parent, without a core file of this process.
int end_as(int status, int signal) {
    if (signal != 0) {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_CORE, &none);
        std::signal(signal, SIG_DFL);
        sigset_t only;
        sigemptyset(&only);
        sigaddset(&only, signal);
        sigprocmask(SIG_UNBLOCK, &only, nullptr);
        std::raise(signal);
    }
    return status;
}

// Whether this is a private image in a rank's thread. Asks the kernel itself: the C library of a
// rank answers with the rank's program.
bool is_rank_of_host_process() {
    char path[4096];
    const long bytes = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path);
    return bytes > 0 &&
           std::string_view(path, static_cast<std::size_t>(bytes)).ends_with("/warren-rank-host");
}

} // namespace

int locality_command(const std::vector<std::string>& words) {
    const std::string command = words.empty() ? "" : words[0];
    if (command == "help" || command == "--help") {
        std::fputs(locality_usage, stdout);
        return 0;
    }
    if (command == "report") {
        return locality_report(words);
    }
    if (command == "flags") {
        return locality_flags(words);
    }
    if (command != "record") {
        std::fputs(locality_usage, stderr);
        return status_usage;
    }
    const std::vector<std::string> behind(words.begin() + 1, words.end());
    const Asked asked = asked_of(behind);
    const bool counts = asked.mode == "counts" || asked.mode == "sample" || asked.mode == "hooks";
    if (asked.mode != "first-touch" && !counts) {
        return usage_error("there is no mode '" + asked.mode +
                           "', but first-touch, counts, sample and hooks");
    }
    if (asked.help) {
        if (counts) {
            std::fputs(counts_usage, stdout);
        } else {
            std::fputs(locality_usage, stdout);
        }
        return 0;
    }
    if (is_rank_of_host_process()) {
        std::fputs(
            "warren locality record: the ranks of this job are threads of one process: record "
            "that whole, by warren locality record -- mpiexec …\n",
            stderr);
        return status_failed;
    }
    if (counts) {
        int signal = 0;
        const int status = record_counts(behind, signal);
        return end_as(status, signal);
    }
    locality::RecordOptions options;
    if (const int wrong = read_options(words, options)) {
        return wrong;
    }
    options.tracker = launch::own_folder() + launch::library_folder + "warren/libwarren-tracker.so";
    int status = 0;
    int signal = 0;
    if (Error error = locality::record(options, status, signal)) {
        ErrorRecord* record = error.take();
        std::fprintf(stderr, "warren locality record: %s\n", record->text.c_str());
        delete record;
        return status_failed;
    }
    return end_as(status, signal);
}

} // namespace warren::tools
