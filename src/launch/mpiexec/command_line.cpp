#include "launch/mpiexec/command_line.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/options.hpp"
#include "mpi/job/soft_numbers.hpp"

namespace warren::launch {

namespace {

// Walks the words once; knows the program that is being described.
class Parser {
  public:
    Parser(const std::vector<std::string>& words, CommandLine& made) : words_(words), made_(made) {}

    Error parse();

  private:
    Error option(const std::string& word);
    Error finish_program();

    const std::vector<std::string>& words_;
    CommandLine& made_;
    Program program_;
    std::size_t next_ = 0;
};

Error Parser::option(const std::string& word) {
    const std::string_view bare = std::string_view(word).substr(word.starts_with("--") ? 2 : 1);
    const std::size_t equals = bare.find('=');
    const Option* found = find_option(bare.substr(0, equals));
    if (found == nullptr) {
        return fail(exit_usage, "unknown option '%s'; mpiexec --help lists the options",
                    word.c_str());
    }
    OptionUse use{.line = made_, .program = program_, .words = words_, .next = next_, .word = word};
    if (equals != std::string_view::npos) {
        if (found->takes == Takes::nothing) {
            return fail(exit_usage, "option %s takes no value", word.c_str());
        }
        use.has_value = true;
        use.value = bare.substr(equals + 1);
    } else if (found->takes == Takes::value) {
        use.has_value = true;
        if (Error error = use.take_value(word, use.value)) {
            return error;
        }
    }
    return found->set(use);
}

// The largest number of ranks that would do. (Without -n, what there are slots for is not known
// yet.)
Error choose_soft(Program& program) {
    std::optional<std::uint32_t> largest = program.ranks;
    if (!program.soft.empty() && program.ranks_given) {
        node::largest_soft_number(program.soft, program.ranks, largest);
    }
    if (largest.value_or(0) == 0) {
        return fail(exit_usage, "option -soft %.80s: none of the numbers is from 1 to %u",
                    program.soft.c_str(), program.ranks);
    }
    program.ranks = *largest;
    return {};
}

Error Parser::finish_program() {
    if (program_.arguments.empty()) {
        return fail(exit_usage, "%s",
                    made_.programs.empty() ? "no program to run; mpiexec --help explains"
                                           : "no program between ':' and the next ':' or the end");
    }
    if (Error error = choose_soft(program_)) {
        return error;
    }
    made_.programs.push_back(std::move(program_));
    program_ = {};
    if (made_.ranks() > world_limit) {
        return fail(exit_usage, "a job has at most %u ranks", world_limit);
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

namespace {

// Refuses options of fibres for other ranks, and for fibres those that need ranks to be threads or
// processes.
Error check_fibres(const CommandLine& line) {
    if (line.rank_kind != RankKind::fibre) {
        return line.workers != 0 ? fail(exit_usage, "--workers is for --ranks fibres")
               : !line.balancer.empty() || line.balance_at_given || !line.balance_record.empty() ||
                       !line.steals || line.migrates_pages
                   ? fail(exit_usage, "--balance, --balance-at, --balance-record, --migrate-pages "
                                      "and --no-stealing are for --ranks fibres: the system moves "
                                      "processes and threads")
               : line.load_summary ? fail(exit_usage, "--load-summary is for --ranks fibres; "
                                                      "`warren ranks` shows what others do")
                                   : Error{};
    }
    if (line.balancer.empty() && (line.balance_at_given || !line.balance_record.empty())) {
        return fail(exit_usage, "--balance-at and --balance-record are for --balance");
    }
    if (line.migrates_pages && (line.balancer.empty() || line.balancer == "none")) {
        return fail(exit_usage, "--migrate-pages is for a --balance that moves ranks: their pages "
                                "follow them");
    }
    if (!line.library.empty()) {
        return fail(exit_usage, "--library is for --ranks threads: another library's waits would "
                                "keep the worker from other fibres");
    }
    if (line.bind_to != BindTo::automatic && line.bind_to != BindTo::none) {
        return fail(exit_usage, "--bind-to is not for --ranks fibres: workers are bound, to a "
                                "processor each, and ranks move among them");
    }
    for (const Program& program : line.programs) {
        if (program.directory != line.programs[0].directory) {
            return fail(exit_usage,
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
            return fail(exit_usage,
                        "--ranks-per-process %u: the %u ranks of %s do not make whole processes",
                        together, program.ranks, program.arguments[0].c_str());
        }
    }
    if (!line.library.empty() && !line.library.ends_with("/" + std::string(library_name))) {
        return fail(exit_usage, "--library needs a path that ends in /%s, not '%s'", library_name,
                    line.library.c_str());
    }
    if (line.rank_kind == RankKind::process && line.stack_bytes != 0) {
        return fail(exit_usage, "--stack-size is for --ranks threads or fibres; processes go by "
                                "the limit (ulimit -s)");
    }
    if (Error error = check_fibres(line)) {
        return error;
    }
    if (line.rank_kind == RankKind::process) {
        return line.library.empty()
                   ? Error{}
                   : fail(exit_usage, "--library is for --ranks threads; processes take another "
                                      "library from LD_LIBRARY_PATH, under its own mpiexec");
    }
    if (together > 1) {
        return fail(exit_usage,
                    "--ranks-per-process is for programs whose threads become ranks by themselves; "
                    "with --ranks threads all ranks are in one process already");
    }
    if (line.hwloc.asked && line.hwloc.way == HwlocWay::shmem) {
        return fail(exit_usage, "--hwloc-shmem=shmem: hwloc maps a shared topology once per "
                                "process, and all threads are in one; they can read XML "
                                "(--hwloc-shmem or --hwloc-shmem=xml), or warren/topology.h");
    }
    if (line.keeps_going) {
        return fail(exit_usage, "--keep-going needs ranks that fail alone, which threads of one "
                                "process do not; use --ranks processes");
    }
    return {};
}

Error expand_config_file(std::vector<std::string>& words) {
    // Before a program's name; the standard has it alone.
    const auto found = std::find_if(words.begin(), words.end(), [](const std::string& word) {
        return word == "-configfile" || word == "--configfile" || word.empty() || word[0] != '-';
    });
    if (found == words.end() || found->empty() || (*found)[0] != '-') {
        return {};
    }
    if (found + 1 == words.end()) {
        return fail(exit_usage, "option %s needs a value", found->c_str());
    }
    const std::string path = found[1];
    std::ifstream file(path);
    if (!file) {
        return fail(exit_usage, "option %s %s: %s", found->c_str(), path.c_str(),
                    std::strerror(errno));
    }
    std::vector<std::string> expanded(words.begin(), found);
    bool first = true;
    std::string whole;
    for (std::string line; std::getline(file, line);) {
        if (line.ends_with('\\')) {
            whole += line.substr(0, line.size() - 1) + " ";
            continue;
        }
        whole += line;
        std::istringstream parts(whole.substr(0, whole[0] == '#' ? 0 : std::string::npos));
        whole.clear();
        std::string word;
        if (!(parts >> word)) {
            continue;
        }
        if (!std::exchange(first, false)) {
            expanded.emplace_back(":");
        }
        do {
            expanded.push_back(word);
        } while (parts >> word);
    }
    if (found + 2 != words.end()) {
        return fail(exit_usage, "option %s %s: nothing may follow it, and '%s' does",
                    found->c_str(), path.c_str(), found[2].c_str());
    }
    words = std::move(expanded);
    return {};
}

Error parse_command_line(const std::vector<std::string>& words, CommandLine& made) {
    made = {};
    return Parser(words, made).parse();
}

} // namespace warren::launch
