#include "launch/mpiexec/command_line.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kind_list.hpp"
#include "launch/mpiexec/cpu_set.hpp"
#include "mpi.h"
#include "mpi/job/segment.hpp"
#include "runtime/balance/balancer.hpp"

namespace warren::launch {

namespace {

enum class Option : std::uint8_t {
    ranks,
    rank_kind,
    workers,
    stack_size,
    ranks_per_process,
    library,
    directory,
    memory_kinds,
    environment, // NAME VALUE or NAME=VALUE, this program
    global_environment,
    exported, // NAME or NAME=VALUE, all programs
    bind_to,
    hwloc_shmem, // its value comes with '=' only
    topology,
    report_bindings,
    tag_output,
    timeout,
    load_summary,
    balance,
    balance_at,
    balance_record,
    migrate_pages,
    no_stealing,
    verbose,
    keep_going,
    help,
    version,
    always_so, // asks for what Warren does anyway
    several_nodes
};

struct OptionName {
    std::string_view name;
    Option option;
    bool takes_value;
};

constexpr std::array option_names{
    OptionName{"n", Option::ranks, true},
    OptionName{"np", Option::ranks, true},
    OptionName{"ranks", Option::rank_kind, true},
    OptionName{"workers", Option::workers, true},
    OptionName{"stack-size", Option::stack_size, true},
    OptionName{"ranks-per-process", Option::ranks_per_process, true},
    OptionName{"library", Option::library, true},
    OptionName{"wdir", Option::directory, true},
    OptionName{"wd", Option::directory, true},
    OptionName{"memory-alloc-kinds", Option::memory_kinds, true},
    OptionName{"memory-allocation-kinds", Option::memory_kinds, true},
    OptionName{"env", Option::environment, true},
    OptionName{"genv", Option::global_environment, true},
    OptionName{"x", Option::exported, true},
    OptionName{"bind-to", Option::bind_to, true},
    OptionName{"hwloc-shmem", Option::hwloc_shmem, false},
    OptionName{"topology", Option::topology, true},
    OptionName{"report-bindings", Option::report_bindings, false},
    OptionName{"l", Option::tag_output, false},
    OptionName{"tag-output", Option::tag_output, false},
    OptionName{"prepend-rank", Option::tag_output, false},
    OptionName{"timeout", Option::timeout, true},
    OptionName{"load-summary", Option::load_summary, false},
    OptionName{"balance", Option::balance, true},
    OptionName{"balance-at", Option::balance_at, true},
    OptionName{"balance-record", Option::balance_record, true},
    OptionName{"migrate-pages", Option::migrate_pages, false},
    OptionName{"no-stealing", Option::no_stealing, false},
    OptionName{"keep-going", Option::keep_going, false},
    OptionName{"disable-auto-cleanup", Option::keep_going, false},
    OptionName{"v", Option::verbose, false},
    OptionName{"verbose", Option::verbose, false},
    OptionName{"h", Option::help, false},
    OptionName{"help", Option::help, false},
    OptionName{"V", Option::version, false},
    OptionName{"version", Option::version, false},
    OptionName{"oversubscribe", Option::always_so, false},
    OptionName{"allow-run-as-root", Option::always_so, false},
    OptionName{"envall", Option::always_so, false},
    OptionName{"genvall", Option::always_so, false},
    OptionName{"host", Option::several_nodes, false},
    OptionName{"hosts", Option::several_nodes, false},
    OptionName{"hostfile", Option::several_nodes, false},
    OptionName{"machinefile", Option::several_nodes, false},
    OptionName{"f", Option::several_nodes, false},
    OptionName{"ppn", Option::several_nodes, false},
    OptionName{"npernode", Option::several_nodes, false},
};

struct BindToName {
    std::string_view name;
    BindTo bind_to;
};

constexpr std::array bind_to_names{
    BindToName{"auto", BindTo::automatic},    BindToName{"none", BindTo::none},
    BindToName{"hwthread", BindTo::hwthread}, BindToName{"core", BindTo::core},
    BindToName{"l3cache", BindTo::l3cache},   BindToName{"numa", BindTo::numa},
    BindToName{"socket", BindTo::socket},     BindToName{"package", BindTo::socket},
};

bool whole_number(const std::string& text, std::uint32_t limit, std::uint32_t& number) {
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
        return false;
    }
    const unsigned long long value = std::strtoull(text.c_str(), nullptr, 10);
    number = static_cast<std::uint32_t>(value);
    return value >= 1 && value <= limit;
}

std::string names_of_balancers() {
    std::string names;
    for (const balance::Balancer& one : balance::balancers()) {
        names += (names.empty() ? " " : ", ") + std::string(one.name);
    }
    return names;
}

// Walks the words once; knows the program that is being described.
class Parser {
  public:
    Parser(const std::vector<std::string>& words, CommandLine& made) : words_(words), made_(made) {}

    Error parse();

  private:
    Error option(const std::string& word);
    Error with_value(Option option, const std::string& word, const std::string& value);
    Error take_value(const std::string& word, std::string& value);
    Error setting(Option option, const std::string& word, const std::string& value);
    Error balance_at(const std::string& word, const std::string& value);
    Error balance_record(const std::string& word, const std::string& value);
    Error finish_program();

    const std::vector<std::string>& words_;
    CommandLine& made_;
    Program program_;
    std::size_t next_ = 0;
};

Error Parser::take_value(const std::string& word, std::string& value) {
    if (next_ >= words_.size()) {
        return fail(MPI_ERR_ARG, "option %s needs a value", word.c_str());
    }
    value = words_[next_++];
    return {};
}

Error Parser::setting(Option option, const std::string& word, const std::string& value) {
    EnvironmentSetting set;
    const std::size_t equals = value.find('=');
    set.name = value.substr(0, equals);
    if (set.name.empty()) {
        return fail(MPI_ERR_ARG, "option %s %s: the name of the variable is empty", word.c_str(),
                    value.c_str());
    }
    if (equals != std::string::npos) {
        set.value = value.substr(equals + 1);
    } else if (option == Option::exported) {
        return {}; // the whole environment is passed anyway
    } else if (Error error = take_value(word + " " + value, set.value)) {
        return error;
    }
    if (set.name.starts_with("WARREN_")) {
        return fail(MPI_ERR_ARG, "option %s %s: names that start with WARREN_ are mpiexec's own",
                    word.c_str(), value.c_str());
    }
    (option == Option::environment ? program_.environment : made_.environment)
        .push_back(std::move(set));
    return {};
}

// Hints, collective operations (all, or every so many), or seconds.
Error Parser::balance_at(const std::string& word, const std::string& value) {
    constexpr std::uint32_t most = 1'000'000'000;
    made_.balance_at_given = true;
    made_.balance_period_s = 0;
    made_.balance_collectives = 0;
    if (value == "hints") {
        return {};
    }
    if (value == "collectives") {
        made_.balance_collectives = 1;
        return {};
    }
    if (value.starts_with("collectives=") &&
        whole_number(value.substr(value.find('=') + 1), most, made_.balance_collectives)) {
        return {};
    }
    char* end = nullptr;
    made_.balance_period_s = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' ||
        !(made_.balance_period_s >= 0.005 && made_.balance_period_s <= 1e6)) {
        return fail(MPI_ERR_ARG,
                    "option %s needs hints, collectives, collectives=N, or a time from 0.005 "
                    "seconds, not '%s'",
                    word.c_str(), value.c_str());
    }
    return {};
}

// A file that can be replaced, as seen from here: ranks may be elsewhere.
Error Parser::balance_record(const std::string& word, const std::string& value) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(value, error);
    if (value.empty() || error) {
        return fail(MPI_ERR_ARG, "option %s needs the name of a file", word.c_str());
    }
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        return fail(MPI_ERR_ARG, "option %s: %s is no file that can be replaced", word.c_str(),
                    value.c_str());
    }
    if (!path.has_filename() || access(path.parent_path().c_str(), W_OK | X_OK) != 0) {
        return fail(MPI_ERR_ARG, "option %s: %s can't be written: %s", word.c_str(), value.c_str(),
                    std::strerror(path.has_filename() ? errno : EISDIR));
    }
    made_.balance_record = path;
    return {};
}

Error Parser::with_value(Option option, const std::string& word, const std::string& value) {
    switch (option) {
    case Option::ranks:
        if (!whole_number(value, node::rank_limit, program_.ranks)) {
            return fail(MPI_ERR_ARG, "option %s needs a number of ranks from 1 to %u, not '%s'",
                        word.c_str(), node::rank_limit, value.c_str());
        }
        return {};
    case Option::rank_kind:
        made_.rank_kind_given = true;
        return parse_rank_kind("option " + word, value, made_.rank_kind);
    case Option::workers:
        if (!whole_number(value, CpuSet::limit, made_.workers)) {
            return fail(MPI_ERR_ARG, "option %s needs a number of workers from 1 to %zu, not '%s'",
                        word.c_str(), CpuSet::limit, value.c_str());
        }
        return {};
    case Option::balance:
        if (balance::find_balancer(value) == nullptr) {
            return fail(MPI_ERR_ARG, "option %s knows%s, not '%s'", word.c_str(),
                        names_of_balancers().c_str(), value.c_str());
        }
        made_.balancer = value;
        return {};
    case Option::balance_at:
        return balance_at(word, value);
    case Option::balance_record:
        return balance_record(word, value);
    case Option::stack_size:
        return parse_size("option " + word, value, made_.stack_bytes);
    case Option::ranks_per_process:
        if (!whole_number(value, node::rank_limit, made_.ranks_per_process)) {
            return fail(MPI_ERR_ARG, "option %s needs a number of ranks from 1 to %u, not '%s'",
                        word.c_str(), node::rank_limit, value.c_str());
        }
        return {};
    case Option::library:
        made_.library = value;
        return {};
    case Option::directory:
        if (value.empty()) {
            return fail(MPI_ERR_ARG, "option %s needs a directory", word.c_str());
        }
        program_.directory = value;
        return {};
    case Option::memory_kinds:
        if (!is_list_of_kinds(value) || value.size() >= MPI_MAX_INFO_VAL) {
            return fail(MPI_ERR_ARG,
                        "option %s needs kinds of memory with commas between them and restrictors "
                        "behind colons, as in system,mpi:alloc_mem, not '%.80s'",
                        word.c_str(), value.c_str());
        }
        program_.environment.push_back({"WARREN_MEMORY_KINDS", value});
        return {};
    case Option::bind_to: {
        const auto* found =
            std::find_if(bind_to_names.begin(), bind_to_names.end(),
                         [&](const BindToName& name) { return name.name == value; });
        if (found == bind_to_names.end()) {
            return fail(MPI_ERR_ARG,
                        "option %s needs auto, core, hwthread, l3cache, numa, socket or none, "
                        "not '%s'",
                        word.c_str(), value.c_str());
        }
        made_.bind_to = found->bind_to;
        return {};
    }
    case Option::topology:
        if (value.empty()) {
            return fail(MPI_ERR_ARG, "option %s needs a file, a folder or synthetic:…",
                        word.c_str());
        }
        made_.topology = value;
        return {};
    case Option::timeout:
        return parse_timeout("option " + word, value, made_.timeout_s);
    default:
        return setting(option, word, value);
    }
}

Error Parser::option(const std::string& word) {
    const std::string_view bare = std::string_view(word).substr(word.starts_with("--") ? 2 : 1);
    const std::size_t equals = bare.find('=');
    const std::string_view name = bare.substr(0, equals);
    const auto* found = std::find_if(option_names.begin(), option_names.end(),
                                     [&](const OptionName& known) { return known.name == name; });
    if (found == option_names.end()) {
        return fail(MPI_ERR_ARG, "unknown option '%s'; mpiexec --help lists the options",
                    word.c_str());
    }
    if (found->takes_value) {
        std::string value;
        if (equals != std::string_view::npos) {
            value = bare.substr(equals + 1);
        } else if (Error error = take_value(word, value)) {
            return error;
        }
        return with_value(found->option, word, value);
    }
    if (found->option == Option::several_nodes) {
        return fail(MPI_ERR_ARG,
                    "option %s: this version of Warren starts ranks on its own node only",
                    word.c_str());
    }
    if (found->option == Option::hwloc_shmem) {
        made_.hwloc.asked = true;
        return equals == std::string_view::npos
                   ? Error{}
                   : parse_hwloc_sharing("option " + word.substr(0, word.find('=')),
                                         std::string(bare.substr(equals + 1)), made_.hwloc);
    }
    if (equals != std::string_view::npos) {
        return fail(MPI_ERR_ARG, "option %s takes no value", word.c_str());
    }
    switch (found->option) {
    case Option::report_bindings:
        made_.report_bindings = true;
        break;
    case Option::tag_output:
        made_.tag_output = true;
        break;
    case Option::migrate_pages:
        made_.migrates_pages = true;
        return {};
    case Option::no_stealing:
        made_.steals = false;
        return {};
    case Option::load_summary:
        made_.load_summary = true;
        return {};
    case Option::verbose:
        made_.verbose = true;
        break;
    case Option::keep_going:
        made_.keeps_going = true;
        break;
    case Option::help:
        made_.request = CommandLine::Request::help;
        break;
    case Option::version:
        made_.request = CommandLine::Request::version;
        break;
    default:
        break;
    }
    return {};
}

Error Parser::finish_program() {
    if (program_.arguments.empty()) {
        return fail(MPI_ERR_ARG, "%s",
                    made_.programs.empty() ? "no program to run; mpiexec --help explains"
                                           : "no program between ':' and the next ':' or the end");
    }
    made_.programs.push_back(std::move(program_));
    program_ = {};
    if (made_.ranks() > node::rank_limit) {
        return fail(MPI_ERR_ARG, "a node holds at most %u ranks", node::rank_limit);
    }
    return {};
}

Error Parser::parse() {
    while (next_ < words_.size()) {
        const std::string& word = words_[next_];
        if (word == ":") {
            ++next_;
            if (Error error = finish_program()) {
                return error;
            }
            continue;
        }
        if (word.size() > 1 && word[0] == '-' && word != "--") {
            ++next_;
            if (Error error = option(word)) {
                return error;
            }
            if (made_.request != CommandLine::Request::run) {
                return {};
            }
            continue;
        }
        next_ += word == "--" ? 1 : 0;
        while (next_ < words_.size() && words_[next_] != ":") {
            program_.arguments.push_back(words_[next_++]);
        }
    }
    return finish_program();
}

} // namespace

std::uint32_t CommandLine::ranks() const {
    std::uint64_t sum = 0;
    for (const Program& program : programs) {
        sum += program.ranks;
    }
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, UINT32_MAX));
}

Error parse_timeout(const std::string& what, const std::string& value, double& seconds) {
    char* end = nullptr;
    seconds = std::strtod(value.c_str(), &end);
    // A year: keeps the arithmetic in range; catches nan too.
    if (value.empty() || *end != '\0' || !(seconds > 0 && seconds < 3.2e7)) {
        return fail(MPI_ERR_ARG, "%s needs a time in seconds above 0, not '%s'", what.c_str(),
                    value.c_str());
    }
    return {};
}

Error parse_hwloc_sharing(const std::string& what, const std::string& value,
                          HwlocSharing& sharing) {
    constexpr std::uint32_t copies_limit = 64;
    std::string chosen[3]; // the words for the way, the place and the copies
    for (std::size_t at = 0; at <= value.size();) {
        const std::size_t end = std::min(value.find(',', at), value.size());
        const std::string word = value.substr(at, end - at);
        at = end + 1;
        const auto way = std::find(hwloc_way_names.begin(), hwloc_way_names.end(), word);
        if (word != "io") {
            std::string& before = chosen[word.starts_with("copies=") ? 2 : word.starts_with("at=")];
            if (!before.empty() && before != word) {
                return fail(MPI_ERR_ARG, "%s: '%s' and '%s' contradict each other", what.c_str(),
                            before.c_str(), word.c_str());
            }
            before = word;
        }
        if (way != hwloc_way_names.end()) {
            sharing.way = static_cast<HwlocWay>(way - hwloc_way_names.begin());
        } else if (word == "io") {
            sharing.devices = true;
        } else if (word == "at=largest") {
            sharing.place = HolePlace::largest;
        } else if (word == "at=before-heap") {
            sharing.place = HolePlace::before_heap;
        } else if (word == "at=after-heap") {
            sharing.place = HolePlace::after_heap;
        } else if (word.starts_with("at=0x")) {
            char* rest = nullptr;
            errno = 0;
            sharing.address = std::strtoull(word.c_str() + 3, &rest, 16);
            const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
            if (*rest != '\0' || errno != 0 || sharing.address == 0 ||
                sharing.address % page != 0) {
                return fail(MPI_ERR_ARG, "%s: '%s' is no address of a page", what.c_str(),
                            word.c_str());
            }
        } else if (!word.starts_with("copies=") ||
                   !whole_number(word.substr(7), copies_limit, sharing.copies)) {
            return fail(MPI_ERR_ARG,
                        "%s understands auto, shmem, xml, native, io, at=largest, at=before-heap, "
                        "at=after-heap, at=0xADDRESS and copies=1 to %u, with commas between "
                        "them, not '%s'",
                        what.c_str(), copies_limit, word.c_str());
        }
    }
    return {};
}

Error parse_rank_kind(const std::string& what, const std::string& value, RankKind& kind) {
    if (value != "processes" && value != "threads" && value != "fibres") {
        return fail(MPI_ERR_ARG, "%s needs processes, threads or fibres, not '%s'", what.c_str(),
                    value.c_str());
    }
    kind = value == "threads"  ? RankKind::thread
           : value == "fibres" ? RankKind::fibre
                               : RankKind::process;
    return {};
}

Error parse_size(const std::string& what, const std::string& value, std::uint64_t& bytes) {
    constexpr std::string_view units = "kMG";
    constexpr std::uint64_t least = 64 << 10; // the C library and a signal's frame need as much
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    char* end = nullptr;
    errno = 0;
    bytes = std::strtoull(value.c_str(), &end, 10);
    bool sound = errno == 0 && end != value.c_str() && value[0] != '-' && bytes <= most;
    if (const std::size_t unit = units.find(*end); sound && *end != '\0') {
        sound =
            unit != std::string_view::npos && end[1] == '\0' && bytes <= most >> 10 * (unit + 1);
        bytes <<= sound ? 10 * (unit + 1) : 0;
    }
    if (!sound || bytes < least || bytes > most) {
        return fail(MPI_ERR_ARG, "%s needs a size from 64k to 1024G, not '%s'", what.c_str(),
                    value.c_str());
    }
    return {};
}

namespace {

// Refuses options of fibres for other ranks, and for fibres those that need ranks to be threads or
// processes.
Error check_fibres(const CommandLine& line) {
    if (line.rank_kind != RankKind::fibre) {
        return line.workers != 0 ? fail(MPI_ERR_ARG, "--workers is for --ranks fibres")
               : !line.balancer.empty() || line.balance_at_given || !line.balance_record.empty() ||
                       !line.steals || line.migrates_pages
                   ? fail(MPI_ERR_ARG, "--balance, --balance-at, --balance-record, --migrate-pages "
                                       "and --no-stealing are for --ranks fibres: the system moves "
                                       "processes and threads")
               : line.load_summary ? fail(MPI_ERR_ARG, "--load-summary is for --ranks fibres; "
                                                       "`warren ranks` shows what others do")
                                   : Error{};
    }
    if (line.balancer.empty() && (line.balance_at_given || !line.balance_record.empty())) {
        return fail(MPI_ERR_ARG, "--balance-at and --balance-record are for --balance");
    }
    if (line.migrates_pages && (line.balancer.empty() || line.balancer == "none")) {
        return fail(MPI_ERR_ARG, "--migrate-pages is for a --balance that moves ranks: their pages "
                                 "follow them");
    }
    if (!line.library.empty()) {
        return fail(MPI_ERR_ARG, "--library is for --ranks threads: another library's waits would "
                                 "keep the worker from other fibres");
    }
    if (line.bind_to != BindTo::automatic && line.bind_to != BindTo::none) {
        return fail(MPI_ERR_ARG, "--bind-to is not for --ranks fibres: workers are bound, to a "
                                 "processor each, and ranks move among them");
    }
    for (const Program& program : line.programs) {
        if (program.directory != line.programs[0].directory) {
            return fail(MPI_ERR_ARG,
                        "--ranks fibres: fibres share a working directory, and %s and "
                        "%s are to be started in different ones",
                        line.programs[0].arguments[0].c_str(), program.arguments[0].c_str());
        }
    }
    return {};
}

} // namespace

Error check_combinations(const CommandLine& line) {
    const std::uint32_t together = line.ranks_per_process;
    for (const Program& program : line.programs) {
        if (program.ranks % together != 0) {
            return fail(MPI_ERR_ARG,
                        "--ranks-per-process %u: the %u ranks of %s do not make whole processes",
                        together, program.ranks, program.arguments[0].c_str());
        }
    }
    if (!line.library.empty() && !line.library.ends_with("/" + std::string(library_name))) {
        return fail(MPI_ERR_ARG, "--library needs a path that ends in /%s, not '%s'", library_name,
                    line.library.c_str());
    }
    if (line.rank_kind == RankKind::process && line.stack_bytes != 0) {
        return fail(MPI_ERR_ARG, "--stack-size is for --ranks threads or fibres; processes go by "
                                 "the limit (ulimit -s)");
    }
    if (Error error = check_fibres(line)) {
        return error;
    }
    if (line.rank_kind == RankKind::process) {
        return line.library.empty()
                   ? Error{}
                   : fail(MPI_ERR_ARG, "--library is for --ranks threads; processes take another "
                                       "library from LD_LIBRARY_PATH, under its own mpiexec");
    }
    if (together > 1) {
        return fail(MPI_ERR_ARG,
                    "--ranks-per-process is for programs whose threads become ranks by themselves; "
                    "with --ranks threads all ranks are in one process already");
    }
    if (line.hwloc.asked && line.hwloc.way == HwlocWay::shmem) {
        return fail(MPI_ERR_ARG, "--hwloc-shmem=shmem: hwloc maps a shared topology once per "
                                 "process, and all threads are in one; they can read XML "
                                 "(--hwloc-shmem or --hwloc-shmem=xml), or warren/topology.h");
    }
    if (line.keeps_going) {
        return fail(MPI_ERR_ARG, "--keep-going needs ranks that fail alone, which threads of one "
                                 "process do not; use --ranks processes");
    }
    return {};
}

Error parse_command_line(const std::vector<std::string>& words, CommandLine& made) {
    made = {};
    return Parser(words, made).parse();
}

const char* name_of(BindTo bind_to) {
    const auto* found =
        std::find_if(bind_to_names.begin(), bind_to_names.end(),
                     [&](const BindToName& name) { return name.bind_to == bind_to; });
    return found->name.data();
}

} // namespace warren::launch
