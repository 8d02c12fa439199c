#include "commands.hpp"

#include <algorithm>
#include <array>

#include "balance_command.hpp"
#include "bench_command.hpp"
#include "doctor_command.hpp"
#include "image_command.hpp"
#include "locality_command.hpp"
#include "locality_counts.hpp"
#include "locality_hooks.hpp"
#include "memory_command.hpp"
#include "node_command.hpp"
#include "ranks_command.hpp"
#include "run_command.hpp"
#include "topo/command.hpp"

namespace warren::tools {

namespace {

constexpr std::size_t line_limit = 80;
constexpr std::size_t help_column = 29;

int image_command(const std::vector<std::string>& words) {
    return words.size() == 2 && words[0] == "check" ? check_image(words[1].c_str()) : wrong_words;
}

constexpr std::array table{
    Command{"version", "", "the version", version_command},
    Command{"node", "", "what of this node matters to Warren, and what is missing", node_command},
    Command{
        "doctor", "[PROGRAM]",
        "what of this system, of the installation and of PROGRAM stands in Warren's way, with a "
        "remedy for each",
        doctor_command},
    Command{"bench", "[--ranks N] [--mpi FOLDER] …",
            "start of a job, memory of a rank and latency, of Warren and of each other MPI that is "
            "found: warren bench --help",
            bench_command},
    Command{
        "info", "",
        "the version, the node and how Warren was built: what a report of a problem should contain",
        info_command},
    Command{"image", "check PROGRAM",
            "whether a program can run as a private image (a thread of a process with others), and "
            "what then changes",
            image_command},
    Command{"locality", "record PROGRAM …",
            "which thread touches which memory of a program first: warren locality help",
            locality_command},
    Command{"locality", "report DIR",
            "what a recording of memory accesses says: figures, names, what to change, tables, a "
            "page with pictures: … report --help",
            locality_command},
    Command{"mem", "…",
            "the memories of the machine, their attributes and their order: warren mem help",
            memory_command},
    Command{"run", "…", "an unmodified program with its heap where criteria say: warren run help",
            run_command},
    Command{
        "state", "[PID]",
        "what every rank of a job, and of the worlds that it has spawned, waits for; PID is its "
        "mpiexec's or a rank's, and not needed for a single job",
        state_command},
    Command{"balance", "FILE [NAME …]",
            "what balancers make of a recorded matrix (mpiexec --balance-record): imbalance of the "
            "workers, moves, bytes times distance, and their own time; all of them, or those named",
            balance_command},
    Command{
        "ranks", "[PID] [--once | --json] [--profile] [--interval S]",
        "what each rank of a job, and of the worlds that it has spawned, does: worker, core, "
        "state, load, messages, call; on a terminal again and again (every second), until Ctrl-C "
        "or the end of the job. --profile shows the table of a job that mpiexec --profile has "
        "started, up to now",
        ranks_command},
    Command{
        "topo", "[--job [PID]] [-o FILE] [--format FORMAT] [SOURCE]",
        "the node's processors, caches, memories and devices, or another machine's; FORMAT is "
        "text, json, xml (hwloc's), svg or png (by rsvg-convert); without it FILE's name says "
        "it. --job shows where its ranks are bound. SOURCE: an image file, hwloc's XML, a folder "
        "with a copy of /sys and /proc, or synthetic:DESCRIPTION; files and folders of users "
        "other than you and root are refused",
        topology_command},
    Command{"topo", "publish FILE [SOURCE]", "writes the image of it", topology_command},
};

// Columns that a text takes.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char one) { return (one & 0xc0) != 0x80; }));
}

// Adds the command's words and, from help_column on, its help, broken between words.
void add(std::string& text, const Command& command) {
    std::string line = text.empty() ? "usage: warren " : "       warren ";
    line += command.name;
    line += command.words.empty() ? "" : " ";
    line += command.words;
    if (width(line) + 1 >= help_column) {
        text += line + "\n";
        line.clear();
    }
    line.append(help_column - 2 - width(line), ' ');
    for (std::string_view rest = command.help; !rest.empty();) {
        const std::string_view word = rest.substr(0, rest.find(' '));
        if (width(line) + 1 + width(word) > line_limit) {
            text += line + "\n";
            line.assign(help_column - 2, ' ');
        }
        line += ' ';
        line += word;
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    }
    text += line + "\n";
}

} // namespace

std::span<const Command> commands() {
    return table;
}

const Command* find_command(std::string_view name) {
    const auto* found = std::find_if(table.begin(), table.end(),
                                     [&](const Command& command) { return command.name == name; });
    return found == table.end() ? nullptr : found;
}

std::string usage(std::string_view name) {
    std::string text;
    for (const Command& command : table) {
        if (name.empty() || command.name == name) {
            add(text, command);
        }
    }
    return text;
}

std::span<const OwnHelp> own_helps() {
    static const std::array helps{
        OwnHelp{"warren mem help", memory_usage},
        OwnHelp{"warren run help", run_usage},
        OwnHelp{"warren locality help", locality_usage},
        OwnHelp{"warren locality record --mode counts --help", counts_usage},
        OwnHelp{"warren locality flags --help", flags_usage},
    };
    return helps;
}

} // namespace warren::tools
