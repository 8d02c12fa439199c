#include "locality_counts.hpp"

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <memory>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyser/counts/settings.hpp"
#include "analyser/recorder/format.hpp"
#include "analyser/recorder/rank_environment.hpp"
#include "analyser/recorder/recorder.hpp"
#include "analyser/recorder/recording_folder.hpp"
#include "launch/mpiexec/own_place.hpp"
#include "locality_hooks.hpp"

namespace warren::tools {
const char* const counts_usage =
    "usage: warren locality record --mode counts|sample|hooks [OPTION …] [--] PROGRAM [ARGUMENT "
    "…]\n"
    "\n"
    "Runs PROGRAM and counts each thread's reads and writes, and their bytes, per unit of memory;\n"
    "which thread and instruction touched a unit first; each thread's instructions. For programs "
    "as\n"
    "they are, alone or behind a launcher (`mpiexec -n 4 warren locality record --mode counts "
    "…`),\n"
    "with all processes that they start. Needs DynamoRIO, which analyser/dynamorio/build builds.\n"
    "\n"
    "Mode counts has every access, and takes two to six times the program's time. Mode sample is "
    "for\n"
    "long runs: it counts in short bursts at random places of each thread's instructions, so "
    "often\n"
    "that they cost up to 2 % of its processor time. With DynamoRIO that makes 1.1 to 1.2 times "
    "the\n"
    "time of loops with long blocks, 2 to 4 times that of code that branches all the time, and "
    "two\n"
    "to three tenths of a second at the start, so that a program of two seconds takes up to 1.4\n"
    "times its time, and five microseconds per page. What it writes are estimates\n"
    "of all accesses but the dynamic linker's, without bias; the report says how sure they are. "
    "Its\n"
    "first burst begins with the program: what else runs for a moment is counted exactly. First\n"
    "touches are what the kernel tells of page faults, all of them, where\n"
    "kernel.perf_event_paranoid is at most 2; else those in bursts of pages that were not there.\n"
    "\n"
    "  -o, --output FOLDER     where the recording goes (warren-locality); must be empty or new\n"
    "  --granularity BYTES     of a unit: 64 (a cache line) to 2M, a power of two (4096, a page)\n"
    "  --communication         which thread gets units that another has written: with "
    "--granularity\n"
    "                          64 what caches without limits would transfer (costs time; not in\n"
    "                          mode sample)\n"
    "  --interval SECONDS      counts per interval of time (none: of the whole run)\n"
    "  --save SECONDS          how often what is counted is written, while the program runs, for\n"
    "                          the case that it is killed (10, but at first after 1, 2, 4 and 8\n"
    "                          seconds; 0: at the end only)\n"
    "  --threshold BYTES       record heap blocks from this size on (4096)\n"
    "  --stack-depth CALLS     deepest call stacks of allocations (32, at most 64)\n"
    "  --limit BYTES           most that a process may take on the disk (4G), at least 1M. A "
    "quarter\n"
    "                          is for counts, one for allocations and phases, and the half "
    "between\n"
    "                          for what comes first; in mode sample a quarter of all is for first\n"
    "                          touches, which leave the rest its part of the disk, too, or half "
    "of\n"
    "                          what is free if that is less. While there is room for two more\n"
    "                          saves, also on the disk, counts are saved, also of memory that is\n"
    "                          freed, and intervals end; if at the end not all fits, the units\n"
    "                          that threads have accessed most are kept, with their first\n"
    "                          touches. What is lost is counted, and the report says so\n"
    "\n"
    "--mode hooks has the same options and needs no DynamoRIO, but programs that are compiled with "
    "what\n"
    "warren locality flags prints: it counts what has been compiled so.\n"
    "\n"
    "Memory: up to 80 B per unit and thread that touches it. The exit status is the program's;\n"
    "125 if it could not be recorded.\n"
    "\n"
    "Programs can mark phases by warren/locality.h and MPI_Pcontrol, which begin new intervals.\n"
    "What it doesn't record: accesses within system calls; allocations of programs that are "
    "linked\n"
    "statically or have a malloc of their own. Modes counts and sample save in system calls and\n"
    "where the program uses memory: if it is killed while it does neither for long, what it did\n"
    "since the last save is lost. Mode hooks saves whatever it does. In mode counts a signal that\n"
    "comes while its thread counts may be handled only when the thread leaves the loop that it is "
    "in:\n"
    "a program whose loop waits for a single signal, without calls, may not end; modes sample and\n"
    "hooks record it. Don't move the folder meanwhile: mode hooks loses what comes, others the "
    "files\n"
    "that are to be made or lengthened, and all say so. In mode sample kill -9 of `warren` leaves "
    "the program running, and its "
    "first\n"
    "touches unrecorded from then on.\n";

namespace {

using locality::counts::Settings;

constexpr int status_usage = 2;
constexpr int status_failed = 125; // as env and timeout: the program's own are below

bool bytes_in(const std::string& text, std::uint64_t& bytes) {
    static constexpr char letters[] = "KMGT";
    char* end = nullptr;
    errno = 0;
    if (text.empty() || text[0] < '0' || text[0] > '9') {
        return false;
    }
    bytes = std::strtoull(text.c_str(), &end, 10);
    if (const char* letter = *end != 0 ? std::strchr(letters, *end) : nullptr) {
        const auto shift = static_cast<unsigned>(10 * (letter - letters + 1));
        if (bytes > UINT64_MAX >> shift) {
            return false;
        }
        bytes <<= shift;
        ++end;
    }
    return errno == 0 && *end == 0;
}

bool number_in(const std::string& text, std::uint64_t& number) {
    char* end = nullptr;
    errno = 0;
    number = std::strtoull(text.c_str(), &end, 10);
    return !text.empty() && text[0] >= '0' && text[0] <= '9' && errno == 0 && *end == 0;
}

bool seconds_in(const std::string& text, std::uint64_t& ns) {
    constexpr double most = 1e9;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !std::isfinite(value) || value < 0 || value > most) {
        return false;
    }
    ns = static_cast<std::uint64_t>(value * 1e9);
    return true;
}

int failed(const std::string& text, int status = status_failed) {
    std::fprintf(stderr, "warren locality record: %s\n", text.c_str());
    return status;
}

struct Option {
    const char* name;
    bool (*parse)(const std::string&, std::uint64_t&);
    std::uint64_t Settings::*value;
};

constexpr Option options[] = {
    {"--granularity", bytes_in, &Settings::granularity},
    {"--limit", bytes_in, &Settings::limit_bytes},
    {"--interval", seconds_in, &Settings::interval_ns},
    {"--save", seconds_in, &Settings::save_ns},
    {"--threshold", bytes_in, &Settings::threshold},
    {"--stack-depth", number_in, &Settings::stack_depth},
};

// Reads one option with its value at words[at]; `at` moves to its last word. Returns 0 or the exit
// status.
int read_option(const std::vector<std::string>& words, std::size_t& at, Settings& settings) {
    std::string name = words[at];
    if (name == "--communication") {
        settings.communication = 1;
        return 0;
    }
    std::string value;
    const std::size_t equals = name.rfind("--", 0) == 0 ? name.find('=') : std::string::npos;
    if (equals != std::string::npos) {
        value = name.substr(equals + 1);
        name.resize(equals);
    } else if (at + 1 < words.size()) {
        value = words[++at];
    } else {
        return failed(name + " needs a value", status_usage);
    }
    if (name == "-o" || name == "--output") {
        settings.folder = value;
        return value.empty() ? failed("the name of the folder is empty", status_usage) : 0;
    }
    if (name == "--mode") {
        settings.mode = value;
        return 0;
    }
    const Option* known = nullptr;
    for (const Option& option : options) {
        known = name == option.name ? &option : known;
    }
    if (known != nullptr) {
        return known->parse(value, settings.*known->value)
                   ? 0
                   : failed(name + ": '" + value + "' is no number of " +
                                (known->parse == bytes_in    ? "bytes"
                                 : known->parse == number_in ? "calls"
                                                             : "seconds"),
                            status_usage);
    }
    return failed("mode " + settings.mode + " has no option " + name, status_usage);
}

// 0, or the exit status.
int read_words(const std::vector<std::string>& words, Settings& settings,
               std::vector<std::string>& command) {
    constexpr std::uint64_t least_limit = std::uint64_t{1} << 20;
    settings.folder = "warren-locality";
    settings.limit_bytes = std::uint64_t{4} << 30;
    std::size_t at = 0;
    for (; at < words.size() && words[at].size() > 1 && words[at][0] == '-'; ++at) {
        if (words[at] == "--") {
            ++at;
            break;
        }
        if (words[at] == "-q" || words[at] == "--quiet") {
            continue; // it says nothing anyway
        }
        if (const int wrong = read_option(words, at, settings)) {
            return wrong;
        }
    }
    command.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    if (command.empty()) {
        return failed("no program is given", status_usage);
    }
    if (settings.limit_bytes < least_limit) {
        return failed("--limit: less than 1M", status_usage);
    }
    std::string problem;
    return locality::counts::check(settings, problem) ? 0 : failed(problem, status_usage);
}

// The path where a shell would find the program; empty: nowhere.
std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return name;
    }
    const char* const path = std::getenv("PATH");
    const std::string folders = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
    for (std::size_t at = 0; at <= folders.size();) {
        std::size_t end = folders.find(':', at);
        end = end == std::string::npos ? folders.size() : end;
        std::string candidate = folders.substr(at, end - at);
        if (candidate.empty()) {
            candidate = ".";
        }
        candidate.append("/").append(name);
        struct stat about {};
        if (access(candidate.c_str(), X_OK) == 0 && stat(candidate.c_str(), &about) == 0 &&
            S_ISREG(about.st_mode)) {
            return candidate;
        }
        at = end + 1;
    }
    return "";
}

// Replaces a script's command by that of its interpreter, as the kernel does, and refuses programs
// that can't be recorded.
int resolve(std::string& program, std::vector<std::string>& command) {
    constexpr int most_interpreters = 4;
    for (int turn = 0; turn < most_interpreters; ++turn) {
        struct stat about {};
        if (access(program.c_str(), X_OK) != 0 || stat(program.c_str(), &about) != 0) {
            return failed(program + ": " + std::strerror(errno));
        }
        if (!S_ISREG(about.st_mode)) {
            return failed(program + " is no program");
        }
        if ((about.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0) {
            return failed(program + " changes its user or group when it starts, which a recorded "
                                    "program can't");
        }
        char head[256] = "";
        const int file = open(program.c_str(), O_RDONLY | O_CLOEXEC);
        const ssize_t got = file < 0 ? -1 : read(file, head, sizeof head - 1);
        if (file >= 0) {
            close(file);
        }
        if (got < 0) {
            return failed(program + " can't be read: " + std::strerror(errno));
        }
        if (got > 2 && head[0] == '#' && head[1] == '!') {
            std::string line(head + 2, std::strcspn(head + 2, "\n"));
            line.erase(0, line.find_first_not_of(" \t"));
            line.erase(line.find_last_not_of(" \t\r") + 1);
            const std::size_t blank = line.find_first_of(" \t");
            std::vector<std::string> words = {line.substr(0, blank)};
            if (blank != std::string::npos) {
                words.push_back(line.substr(line.find_first_not_of(" \t", blank)));
            }
            words.push_back(program);
            words.insert(words.end(), command.begin() + 1, command.end());
            command = words;
            program = command[0];
            continue;
        }
        Elf64_Ehdr header;
        if (got < static_cast<ssize_t>(sizeof header)) {
            return failed(program + " is no program");
        }
        std::memcpy(&header, head, sizeof header);
        if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
            header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
            return failed(program + " is no 64-bit x86 program");
        }
        return 0;
    }
    return failed(command[0] + ": too many interpreters of interpreters");
}

int make_folder(std::string& folder) {
    const locality::RankEnvironment rank =
        locality::rank_in([](const char* name) -> const char* { return std::getenv(name); });
    std::string absolute;
    if (Error error = locality::make_folder(folder, rank.rank, absolute)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        return failed(record->text);
    }
    folder = absolute;
    return 0;
}

// Mode sample: the limit of counts and allocations, without that of first touches.
std::uint64_t limit_beside_faults(const Settings& settings) {
    return settings.mode == "sample" ? settings.limit_bytes - settings.limit_bytes / 4
                                     : settings.limit_bytes;
}

void set_engine_options(const std::string& client, const Settings& settings) {
    setenv("DYNAMORIO_OPTIONS",
           ("-code_api -client_lib '" + client + ";0;" + write_settings(settings) + "'").c_str(),
           1);
}

// Mode sample: records first touches by the kernel's page faults, as bursts miss most of them.
// Starts the program as a child. False: page faults are not available, and nothing is done.
bool record_faults(const Settings& settings, const std::string& engine,
                   const std::vector<std::string>& command, int& status, int& signal) {
    locality::RecordOptions wanted;
    wanted.folder = settings.folder + "/" + locality::faults_folder;
    wanted.limit_bytes = settings.limit_bytes - limit_beside_faults(settings);
    wanted.beside_another = true;
    wanted.reserve_bytes = limit_beside_faults(settings);
    wanted.quiet = true;
    wanted.program = engine;
    wanted.command = command;
    if (mkdir(wanted.folder.c_str(), 0777) != 0 && errno != EEXIST) {
        status = failed(wanted.folder + " can't be made: " + std::strerror(errno));
        return true;
    }
    if (Error error = locality::record(wanted, status, signal)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        failed("first touches are known of bursts only: " + record->text);
        rmdir(wanted.folder.c_str()); // if it is empty
        return false;
    }
    return true;
}

} // namespace

Asked asked_of(const std::vector<std::string>& words) {
    Asked asked;
    for (std::size_t at = 0;
         at < words.size() && words[at].size() > 1 && words[at][0] == '-' && words[at] != "--";
         ++at) {
        const std::string& word = words[at];
        const bool has_value = word.rfind("--", 0) == 0
                                   ? word.find('=') == std::string::npos && word != "--quiet" &&
                                         word != "--help" && word != "--communication"
                                   : word == "-o";
        if (word == "--help") {
            asked.help = true;
        } else if (word.rfind("--mode=", 0) == 0) {
            asked.mode = word.substr(std::strlen("--mode="));
        } else if (word == "--mode") {
            asked.mode = at + 1 < words.size() ? words[at + 1] : "";
        }
        at += has_value ? 1 : 0; // which is the next word
    }
    return asked;
}

namespace {

// The parts that record, beside this program.
struct Parts {
    std::string client;
    std::string engine;
    std::string tracker;
};

// 0, or the exit code when one can't be used.
int find_parts(const std::string& mode, Parts& parts) {
    const std::string folder = launch::own_folder() + launch::library_folder + "warren/";
    parts = {folder + "libwarren-counts.so", folder + "dynamorio/libdynamorio.so",
             folder + "libwarren-tracker.so"};
    for (const std::string& part : {parts.client, parts.engine, parts.tracker}) {
        // libdynamorio.so is executed, the other files are only read.
        const bool executed = part == parts.engine;
        if (access(part.c_str(), executed ? R_OK | X_OK : R_OK) != 0) {
            if (errno == EACCES) {
                return failed(part + " can't be " + (executed ? "executed" : "read") + ": " +
                              std::strerror(EACCES));
            }
            std::string text = "mode ";
            text.append(mode).append(" needs DynamoRIO, and there is no ").append(part);
            text += ". ./quickstart in Warren's source builds both, or "
                    "analyser/dynamorio/build and then cmake --preset release and a build of "
                    "the target product. Without it mode first-touch works, and for programs "
                    "that can be compiled anew mode hooks counts: see warren locality flags "
                    "--help.";
            return failed(text);
        }
        if (part.find_first_of(";'\"` ") != std::string::npos) {
            return failed(part + ": DynamoRIO can't be told of a name with a quote, a blank or a "
                                 "semicolon");
        }
    }
    return 0;
}

// What the program's process is to be like when it starts.
void prepare_process(const Parts& parts, const std::string& program) {
    char* const real = realpath(program.c_str(), nullptr);
    // Without randomisation programs and libraries have the same addresses in each run, with heap
    // and libraries far apart. Addresses in recordings can be compared, and counters don't clash
    // (counters.hpp).
    personality(ADDR_NO_RANDOMIZE);
    const char* const others = std::getenv("LD_PRELOAD");
    const std::string& tracker = parts.tracker;
    setenv("LD_PRELOAD", others != nullptr ? (tracker + ":" + others).c_str() : tracker.c_str(), 1);
    setenv("DYNAMORIO_EXE_PATH", real != nullptr ? real : program.c_str(), 1);
    setenv("DYNAMORIO_RUNUNDER", "1", 1);
}

} // namespace

int record_counts(const std::vector<std::string>& words, int& signal) {
    Settings settings;
    std::vector<std::string> command;
    if (const int wrong = read_words(words, settings, command)) {
        return wrong;
    }
    if (settings.mode == "hooks") {
        std::string program = find_program(command[0]);
        if (program.empty()) {
            return failed(command[0] + ": there is no such program");
        }
        if (const int wrong = resolve(program, command)) {
            return wrong;
        }
        const int wrong = make_folder(settings.folder);
        return wrong != 0 ? wrong : record_hooks(settings, program, command);
    }
    Parts parts;
    if (const int wrong = find_parts(settings.mode, parts)) {
        return wrong;
    }
    std::string program = find_program(command[0]);
    if (program.empty()) {
        return failed(command[0] + ": there is no such program");
    }
    if (const int wrong = resolve(program, command)) {
        return wrong;
    }
    if (const int wrong = make_folder(settings.folder)) {
        return wrong;
    }
    prepare_process(parts, program);
    Settings within = settings;
    within.limit_bytes = limit_beside_faults(settings);
    if (settings.mode == "sample") {
        within.faults = 1;
        set_engine_options(parts.client, within);
        int status = 0;
        if (record_faults(settings, parts.engine, command, status, signal)) {
            return status;
        }
        within.faults = 0;
    }
    set_engine_options(parts.client, within);
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string& word : command) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    execv(parts.engine.c_str(), arguments.data());
    return failed(parts.engine + " can't be started: " + std::strerror(errno) +
                  ". Mode hooks works without, for programs that can be compiled anew: see warren "
                  "locality flags --help.");
}

} // namespace warren::tools
