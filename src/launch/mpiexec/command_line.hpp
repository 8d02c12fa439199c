// CommandLine: what the user asks of mpiexec, as data.
//
//     mpiexec [options] program [arguments] { : [options] program [arguments] }
//
// Options are understood with one dash or two and as "--option value" or "--option=value", because
// the launchers that people come from differ in it. The first word that is no option is the
// program; everything after it, up to a ":" alone, belongs to the program. Thread rule: plain
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "launch/mpiexec/address_hole.hpp"
#include "launch/mpiexec/hwloc_offer.hpp"

namespace warren::launch {

// Processors that a rank may run on.
enum class BindTo : std::uint8_t {
    automatic, // an equal share of the cores when there are enough for all ranks, else none
    none,
    hwthread,
    core,
    l3cache,
    numa,
    socket
};

// The MPI library of the standard's ABI.
inline constexpr const char* library_name = "libmpi_abi.so.1";

// How the system sees a rank.
enum class RankKind : std::uint8_t {
    process, // a process; with --ranks-per-process, a thread that the program makes and binds
    thread,  // of one process of the node, which runs a private image of the program
    fibre    // the same as a user-level thread: many on a worker thread per processor
};

// The error handler of MPI_COMM_WORLD and MPI_COMM_SELF at the beginning, as
// node::WorldIdentity::initial_handler has it.
enum class InitialHandler : std::uint8_t { fatal = 0, aborts = 1, returns = 2 };

struct EnvironmentSetting {
    std::string name;
    std::string value;
};

// The topology that mpiexec gives to ranks that call hwloc_topology_load.
struct HwlocSharing {
    bool asked = false;
    HwlocWay way = HwlocWay::automatic;
    HolePlace place = HolePlace::largest;
    std::uint64_t address = 0; // 0: in a hole
    std::uint32_t copies = 4; // a process adopts as many; a program and its libraries load one each
    bool devices = false;
};

struct Program {
    std::uint32_t ranks = 1;
    bool ranks_given = false;
    std::string soft = {};              // numbers of ranks that would do; empty: only `ranks`
    std::vector<std::string> arguments; // the first is the program as written
    std::string directory = {};         // empty: where mpiexec was started
    std::string search = {};            // folders to look for the program in; empty: PATH
    std::vector<EnvironmentSetting> environment = {};
};

struct CommandLine {
    enum class Request : std::uint8_t { run, help, version };

    Request request = Request::run;
    std::vector<Program> programs;
    std::vector<EnvironmentSetting> environment; // for all programs, before their own
    BindTo bind_to = BindTo::automatic;
    RankKind rank_kind = RankKind::process;
    bool rank_kind_given = false;
    std::uint32_t workers = 0;     // of fibres; 0: one per processor
    std::uint64_t stack_bytes = 0; // of a thread or fibre; 0: as a process would have
    std::uint32_t ranks_per_process = 1;
    std::string library; // another MPI library, of which each thread has its own; empty: Warren's
    HwlocSharing hwloc;
    std::string topology; // file, folder or synthetic:… instead of this machine's; empty: this one
    bool report_bindings = false;
    bool tag_output = false;
    bool verbose = false;
    bool load_summary = false; // of fibres, at the end
    bool profile = false;
    std::string profile_page; // absolute path of the profile's page; empty: none
    std::string balancer;     // assigns fibres' home workers; empty: nobody does
    // The balancer runs by the clock, or after so many collective operations. If both are 0, it
    // runs at the program's hints only.
    double balance_period_s = 0.1;
    std::uint32_t balance_collectives = 0;
    bool balance_at_given = false;
    std::string balance_record;  // absolute path of a file for the balancer's last matrix
    bool migrates_pages = false; // to where balancers put ranks
    bool steals = true;
    InitialHandler initial_handler = InitialHandler::fatal;
    bool keeps_going = false; // a rank that fails does not end the others
    double timeout_s = 0;     // 0: none
    std::string hosts;        // as written; read by plan_hosts (hosts.hpp)
    std::string hostfile;
    std::uint32_t ranks_per_node = 0; // most that may be; 0: as slots say
    bool dealt = false;               // ranks go round the nodes in turn
    std::string launcher;  // starts agents: ssh, srun, fork or a command; empty: by the hosts
    bool by_slurm = false; // the hosts are those of a Slurm allocation
    std::vector<std::string> notes; // what the user should know of options that change nothing

    std::uint32_t ranks() const;
};

// Refuses options that contradict each other. The error names them and says why.
Error check_combinations(const CommandLine& line);

// The most ranks of a job.
inline constexpr std::uint32_t world_limit = 1U << 30;

// Replaces -configfile by the words of its file: a program per line. Error: there is no such file.
Error expand_config_file(std::vector<std::string>& words);

// Reads the words of the command line (without the launcher's own name). An error names the option
// and what it needs.
Error parse_command_line(const std::vector<std::string>& words, CommandLine& made);

// The text of --help, made of the table of options (options.hpp).
std::string usage();

// The word of --bind-to.
const char* name_of(BindTo bind_to);

} // namespace warren::launch
