#include "launch/mpiexec/options.hpp"

#include <algorithm>
#include <utility>

#include "base/kind_list.hpp"
#include "launch/mpiexec/cpu_set.hpp"
#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/option_values.hpp"
#include "launch/mpiexec/other_launchers.hpp"
#include "mpi.h"
#include "mpi/job/segment.hpp"
#include "runtime/balance/balancer.hpp"

namespace warren::launch {

namespace {

std::string described(const OptionUse& use) {
    return "option " + use.word;
}

// --- Setters of one kind

template <auto member, auto value = true>
Error set_to(OptionUse& use) {
    use.line.*member = value;
    return {};
}

Error ignore(OptionUse& /*use*/) {
    return {};
}

Error set_ranks(const OptionUse& use, std::uint32_t& ranks) {
    return whole_number(use.value, world_limit, ranks)
               ? Error{}
               : fail(exit_usage, "option %s needs a number of ranks from 1 to %u, not '%s'",
                      use.word.c_str(), world_limit, use.value.c_str());
}

// Reads NAME=VALUE, or NAME and VALUE. If the value may lack, NAME alone sets nothing.
Error read_setting(OptionUse& use, bool value_may_lack, std::vector<EnvironmentSetting>& settings) {
    EnvironmentSetting set;
    const std::size_t equals = use.value.find('=');
    set.name = use.value.substr(0, equals);
    if (set.name.empty()) {
        return fail(exit_usage, "option %s %s: the name of the variable is empty", use.word.c_str(),
                    use.value.c_str());
    }
    if (equals != std::string::npos) {
        set.value = use.value.substr(equals + 1);
    } else if (value_may_lack) {
        return {}; // the whole environment is passed anyway
    } else if (Error error = use.take_value(use.word + " " + use.value, set.value)) {
        return error;
    }
    if (set.name.starts_with("WARREN_")) {
        return fail(exit_usage, "option %s %s: names that start with WARREN_ are mpiexec's own",
                    use.word.c_str(), use.value.c_str());
    }
    settings.push_back(std::move(set));
    return {};
}

// --- Setters of one option

Error set_number_of_ranks(OptionUse& use) {
    const std::uint32_t before = use.program.ranks;
    if (Error error = set_ranks(use, use.program.ranks)) {
        return error;
    }
    if (std::exchange(use.program.ranks_given, true) && use.program.ranks != before) {
        return fail(exit_usage,
                    "option %s %s: the number of ranks is %u already; a ':' begins another program",
                    use.word.c_str(), use.value.c_str(), before);
    }
    return {};
}

// Hosts are those of the whole job.
Error set_once(const OptionUse& use, std::string& setting) {
    if (use.value.empty()) {
        return fail(exit_usage, "option %s needs the name of a node or a file", use.word.c_str());
    }
    if (!setting.empty() && setting != use.value) {
        return fail(exit_usage,
                    "option %s %.80s: the nodes of the job are %.80s already; programs share them",
                    use.word.c_str(), use.value.c_str(), setting.c_str());
    }
    setting = use.value;
    return {};
}

Error set_hosts(OptionUse& use) {
    return set_once(use, use.line.hosts);
}

Error set_hostfile(OptionUse& use) {
    return set_once(use, use.line.hostfile);
}

Error set_ranks_per_node(OptionUse& use) {
    return whole_number(use.value, node::rank_limit, use.line.ranks_per_node)
               ? Error{}
               : fail(exit_usage, "option %s needs a number of ranks from 1 to %u, not '%s'",
                      use.word.c_str(), node::rank_limit, use.value.c_str());
}

Error set_rank_kind(OptionUse& use) {
    use.line.rank_kind_given = true;
    return parse_rank_kind(described(use), use.value, use.line.rank_kind);
}

Error set_workers(OptionUse& use) {
    return whole_number(use.value, CpuSet::limit, use.line.workers)
               ? Error{}
               : fail(exit_usage, "option %s needs a number of workers from 1 to %zu, not '%s'",
                      use.word.c_str(), CpuSet::limit, use.value.c_str());
}

Error set_stack_size(OptionUse& use) {
    return parse_size(described(use), use.value, use.line.stack_bytes);
}

Error set_ranks_per_process(OptionUse& use) {
    return set_ranks(use, use.line.ranks_per_process);
}

Error set_balancer(OptionUse& use) {
    if (balance::find_balancer(use.value) == nullptr) {
        std::string names;
        for (const balance::Balancer& one : balance::balancers()) {
            names += (names.empty() ? " " : ", ") + std::string(one.name);
        }
        return fail(exit_usage, "option %s knows%s, not '%s'", use.word.c_str(), names.c_str(),
                    use.value.c_str());
    }
    use.line.balancer = use.value;
    return {};
}

Error set_balance_at(OptionUse& use) {
    return parse_balance_at(described(use), use.value, use.line);
}

Error set_balance_record(OptionUse& use) {
    return parse_written_file(described(use), use.value, use.line.balance_record);
}

Error set_profile(OptionUse& use) {
    use.line.profile = true;
    return use.has_value ? parse_written_file("option " + use.word.substr(0, use.word.find('=')),
                                              use.value, use.line.profile_page)
                         : Error{};
}

Error set_library(OptionUse& use) {
    use.line.library = use.value;
    return {};
}

Error set_directory(OptionUse& use) {
    if (use.value.empty()) {
        return fail(exit_usage, "option %s needs a directory", use.word.c_str());
    }
    use.program.directory = use.value;
    return {};
}

Error set_memory_kinds(OptionUse& use) {
    if (!is_list_of_kinds(use.value) || use.value.size() >= MPI_MAX_INFO_VAL) {
        return fail(exit_usage,
                    "option %s needs kinds of memory with commas between them and restrictors "
                    "behind colons, as in system,mpi:alloc_mem, not '%.80s'",
                    use.word.c_str(), use.value.c_str());
    }
    use.program.environment.push_back({"WARREN_MEMORY_KINDS", use.value});
    return {};
}

Error set_variable(OptionUse& use) {
    return read_setting(use, false, use.program.environment);
}

Error set_variable_of_all(OptionUse& use) {
    return read_setting(use, false, use.line.environment);
}

Error export_variable(OptionUse& use) {
    return read_setting(use, true, use.line.environment);
}

Error set_bind_to(OptionUse& use) {
    return parse_bind_to(described(use), use.value, use.line.bind_to);
}

Error set_hwloc_sharing(OptionUse& use) {
    use.line.hwloc.asked = true;
    return use.has_value ? parse_hwloc_sharing("option " + use.word.substr(0, use.word.find('=')),
                                               use.value, use.line.hwloc)
                         : Error{};
}

Error set_topology(OptionUse& use) {
    if (use.value.empty()) {
        return fail(exit_usage, "option %s needs a file, a folder or synthetic:…",
                    use.word.c_str());
    }
    use.line.topology = use.value;
    return {};
}

Error set_timeout(OptionUse& use) {
    return parse_timeout(described(use), use.value, use.line.timeout_s);
}

// --- The table

constexpr std::string_view about_program = "Programs and ranks";
constexpr std::string_view about_nodes = "Nodes";
constexpr std::string_view about_binding = "Binding";
constexpr std::string_view about_topology = "Topology";
constexpr std::string_view about_failure = "Failures";
constexpr std::string_view about_output = "Output and time limit";
constexpr std::string_view about_others = "Options of other launchers";

constexpr std::array table{
    Option{about_program,
           {"-n", "-np", "-c"},
           Takes::value,
           " N",
           set_number_of_ranks,
           "start N ranks of the program (default 1), on as many processors as there are: more "
           "ranks than processors need no option"},
    Option{about_program,
           {"--ranks"},
           Takes::value,
           " WHAT",
           set_rank_kind,
           "processes (default), or threads: all ranks in one process, each with a private image "
           "of the program; or fibres: the same as user-level threads, thousands of them; also "
           "from WARREN_RANKS"},
    Option{about_program,
           {"--workers"},
           Takes::value,
           " N",
           set_workers,
           "kernel threads that run fibres (default: one per processor)"},
    Option{about_program,
           {"--stack-size"},
           Takes::value,
           " SIZE",
           set_stack_size,
           "of each thread or fibre (512k, 8M; default: ulimit -s)"},
    Option{about_program,
           {"--ranks-per-process"},
           Takes::value,
           " T",
           set_ranks_per_process,
           "processes of T ranks each, for programs whose threads become ranks by "
           "warren_rank_bind"},
    Option{about_program,
           {"--balance"},
           Takes::value,
           " NAME",
           set_balancer,
           "fibres are at home on the worker that this balancer gives them, by their loads: none "
           "(measures), greedy (the largest first), refine (moves few), topology (and near those "
           "that they talk to)"},
    Option{about_program,
           {"--balance-at"},
           Takes::value,
           " WHEN",
           set_balance_at,
           "every so many seconds (default 0.1), or when all ranks have come to a collective "
           "operation of all (collectives, or collectives=N for every N-th) or called "
           "warren_rank_migrate (hints)"},
    Option{about_program,
           {"--balance-record"},
           Takes::value,
           " FILE",
           set_balance_record,
           "what the balancer looked at last, for `warren balance`"},
    Option{about_program,
           {"--migrate-pages"},
           Takes::nothing,
           "",
           set_to<&CommandLine::migrates_pages>,
           "when a balancer has moved a rank to another NUMA node, its pages follow: those of its "
           "stack, its variables and its heap (not of programs that bring an allocator)"},
    Option{about_program,
           {"--no-stealing"},
           Takes::nothing,
           "",
           set_to<&CommandLine::steals, false>,
           "idle workers take no fibres from others"},
    Option{about_program,
           {"--library"},
           Takes::value,
           " PATH",
           set_library,
           "with --ranks threads: each rank has a copy of this MPI library, a libmpi_abi.so.1 "
           "that speaks PMI-1 (MPICH's), instead of Warren"},
    Option{about_program,
           {"-wdir", "-wd"},
           Takes::value,
           " DIR",
           set_directory,
           "start the program in DIR"},
    Option{about_program,
           {"-memory-alloc-kinds", "-memory-allocation-kinds"},
           Takes::value,
           " KINDS",
           set_memory_kinds,
           "kinds of memory that the program asks MPI for (MPI 5.0, 11.4.3), as in "
           "system,mpi:alloc_mem; infos say which it has"},
    Option{about_program,
           {"-env"},
           Takes::value,
           " NAME VALUE",
           set_variable,
           "set a variable for this program (the environment is passed whole)"},
    Option{about_program,
           {"-genv"},
           Takes::value,
           " NAME VALUE",
           set_variable_of_all,
           "set a variable for all programs"},
    Option{about_program,
           {"-x"},
           Takes::value,
           " NAME[=VALUE]",
           export_variable,
           "the same; without a value, pass the variable, as is done anyway"},

    Option{about_nodes,
           {"-host", "-hosts", "-H"},
           Takes::value,
           " LIST",
           set_hosts,
           "start ranks on these nodes, as in a:4,b:4 (slots; 1 if not said). Ranks fill slots in "
           "order; with more ranks than slots each node gets its share"},
    Option{about_nodes,
           {"-hostfile", "-machinefile", "-f"},
           Takes::value,
           " FILE",
           set_hostfile,
           "the same from a file with a line per node: a slots=4, a:4 or a"},
    Option{about_nodes,
           {"-ppn", "-perhost", "-npernode", "-N"},
           Takes::value,
           " N",
           set_ranks_per_node,
           "N slots on each node; without -n, so many ranks on each"},
    Option{about_nodes,
           {"--map-by"},
           Takes::value,
           " WHAT",
           other_launchers::set_order,
           "slot (default): ranks fill node after node; node: they go round the nodes; ppr:N:node: "
           "as -ppn N"},
    Option{about_nodes,
           {"--launcher", "-bootstrap"},
           Takes::value,
           " WHAT",
           other_launchers::set_launcher,
           "starts an agent of mpiexec on each node: ssh (default), srun (default in a Slurm "
           "allocation, whose nodes are taken when none are named), fork (all on this machine), "
           "or a command with {host}, as in 'ssh -p 2222 {host}'"},

    Option{about_binding,
           {"--bind-to"},
           Takes::value,
           " WHAT",
           set_bind_to,
           "auto (default), core, hwthread, l3cache, numa, socket or none; auto gives each rank an "
           "equal share of the cores when there is a core for each, and binds nothing otherwise"},
    Option{about_binding,
           {"--report-bindings"},
           Takes::nothing,
           "",
           set_to<&CommandLine::report_bindings>,
           "print what each rank is bound to"},

    Option{about_topology,
           {"--hwloc-shmem"},
           Takes::value_after_equals,
           "[=WORDS]",
           set_hwloc_sharing,
           "ranks that load a topology of hwloc share one that mpiexec has discovered, or else "
           "read XML of it, or else discover (-v says which and why). Words, with commas: shmem, "
           "xml or native for that way only; io for devices, too; copies=N, so many loads per "
           "process can share (4); at=largest, at=before-heap, at=after-heap or at=0xADDRESS for "
           "the place in memory"},
    Option{about_topology,
           {"--topology"},
           Takes::value,
           " SOURCE",
           set_topology,
           "what ranks see of the node, here and in warren/topology.h, is a recorded or invented "
           "machine instead of this one: an image file, hwloc's XML, a folder with a copy of /sys "
           "and /proc, or synthetic:DESCRIPTION as hwloc reads it. Files and folders of users "
           "other than you and root are refused"},

    Option{about_failure,
           {"--keep-going", "--disable-auto-cleanup"},
           Takes::nothing,
           "",
           set_to<&CommandLine::keeps_going>,
           "when ranks fail, or abort a communicator that others are not in, let the others go "
           "on; what waits for a failed rank is MPI_ERR_PROC_ABORTED. For a job of one node"},

    Option{about_output,
           {"-l", "--tag-output", "--prepend-rank"},
           Takes::nothing,
           "",
           set_to<&CommandLine::tag_output>,
           "start each line of output with the rank it comes from"},
    Option{about_output,
           {"--timeout"},
           Takes::value,
           " S",
           set_timeout,
           "after S seconds print what every rank waits for, end the job and return 124; also "
           "from the variable MPIEXEC_TIMEOUT"},
    Option{about_output,
           {"--profile"},
           Takes::value_after_equals,
           "[=FILE]",
           set_profile,
           "print in the end who waited for whom in which call, bytes between ranks and collective "
           "operations by size; with FILE, also as a page (HTML). For a job of one node; spawned "
           "worlds are not counted"},
    Option{about_output,
           {"--load-summary"},
           Takes::nothing,
           "",
           set_to<&CommandLine::load_summary>,
           "with --ranks fibres: print in the end how long ranks ran and how unequally (`warren "
           "ranks` shows it meanwhile)"},
    Option{about_output,
           {"-v", "--verbose"},
           Takes::nothing,
           "",
           set_to<&CommandLine::verbose>,
           "explain choices"},
    Option{about_output,
           {"-V", "--version"},
           Takes::nothing,
           "",
           set_to<&CommandLine::request, CommandLine::Request::version>,
           "print the version"},
    Option{about_output,
           {"-h", "--help"},
           Takes::nothing,
           "",
           set_to<&CommandLine::request, CommandLine::Request::help>,
           "print this"},

    Option{about_others,
           {"--oversubscribe", "--allow-run-as-root", "-envall", "-genvall"},
           Takes::nothing,
           "",
           ignore,
           "accepted: Warren does so anyway"},
    Option{about_others,
           {"--rank-by"},
           Takes::value,
           " WHAT",
           other_launchers::set_order,
           "the same as --map-by"},
    Option{about_others,
           {"--mca", "--gmca", "--prtemca", "--pmixmca"},
           Takes::value,
           " KEY VALUE",
           other_launchers::set_parameter,
           "parameters of Open MPI: accepted, with a note, and not looked at"},
    Option{about_others,
           {"-iface"},
           Takes::value,
           " NAME",
           other_launchers::set_interface,
           "the interface between nodes, over TCP: as WARREN_NETWORK=tcp,NAME"},
    Option{about_others,
           {"-configfile"},
           Takes::value,
           " FILE",
           other_launchers::refuse_config_file,
           "the standard's: alone, or behind options of all programs; each line of the file has "
           "a program with its options, # begins a comment"},
    Option{about_others,
           {"-path"},
           Takes::value,
           " FOLDERS",
           other_launchers::set_search_path,
           "the standard's: look for the program there instead of in PATH"},
    Option{about_others,
           {"-soft"},
           Takes::value,
           " NUMBERS",
           other_launchers::set_soft,
           "the standard's: numbers of ranks that would do; the largest that is not above -n is "
           "started"},
    Option{about_others,
           {"-arch"},
           Takes::value,
           " NAME",
           other_launchers::check_architecture,
           "the standard's: refused when this node's is another"},
    Option{about_others,
           {"-initial-errhandler"},
           Takes::value,
           " NAME",
           other_launchers::set_initial_error_handler,
           "the standard's: the error handler that programs begin with: mpi_errors_are_fatal, "
           "mpi_errors_abort, mpi_errors_return"},
    Option{about_others,
           {"-file"},
           Takes::value,
           " FILE",
           other_launchers::refuse_file,
           "refused: -configfile or --hostfile"},
    Option{about_others,
           {"--output-filename", "-outfile-pattern", "-errfile-pattern"},
           Takes::value,
           " FILE",
           other_launchers::refuse_output_files,
           "refused, with a shell's way to do it"},
};

} // namespace

Error OptionUse::take_value(const std::string& what, std::string& taken) {
    if (next >= words.size()) {
        return fail(exit_usage, "option %s needs a value", what.c_str());
    }
    taken = words[next++];
    return {};
}

std::span<const Option> options() {
    return table;
}

const Option* find_option(std::string_view bare_name) {
    const auto is_named = [&](std::string_view name) {
        return !name.empty() && name.substr(name.find_first_not_of('-')) == bare_name;
    };
    const auto* found = std::find_if(table.begin(), table.end(), [&](const Option& option) {
        return std::any_of(option.names.begin(), option.names.end(), is_named);
    });
    return found == table.end() ? nullptr : found;
}

} // namespace warren::launch
