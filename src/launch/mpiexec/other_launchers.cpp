#include "launch/mpiexec/other_launchers.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <sys/utsname.h>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/option_values.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/job/soft_numbers.hpp"

namespace warren::launch::other_launchers {

namespace {

// Orders that are Warren's own: ranks of a node follow each other from core to core.
constexpr std::array in_order{"slot", "core", "hwthread", "fill"};

// Value of "ppr:N:node", 0: it is none.
std::uint32_t per_node_of(const std::string& value) {
    std::uint32_t number = 0;
    constexpr std::string_view end = ":node";
    const bool is_one =
        value.starts_with("ppr:") && value.ends_with(end) &&
        whole_number(value.substr(4, value.size() - 4 - end.size()), node::rank_limit, number);
    return is_one ? number : 0;
}

void set_default(std::vector<EnvironmentSetting>& settings, const char* name,
                 const std::string& value) {
    settings.push_back({name, value});
}

} // namespace

Error set_order(OptionUse& use) {
    std::string order = use.value;
    for (const char* modifier : {":OVERSUBSCRIBE", ":oversubscribe", ":NOLOCAL"}) {
        if (order.ends_with(modifier)) {
            order.resize(order.size() - std::string_view(modifier).size());
        }
    }
    if (order == "node") {
        use.line.dealt = true;
        return {};
    }
    if (const std::uint32_t per_node = per_node_of(order); per_node != 0) {
        use.line.ranks_per_node = per_node;
        return {};
    }
    if (std::find(in_order.begin(), in_order.end(), order) != in_order.end()) {
        return {};
    }
    return fail(exit_usage,
                "option %s knows slot, core and hwthread (ranks fill nodes in order, Warren's "
                "way), node (round the nodes) and ppr:N:node, not '%.80s'; --bind-to l3cache, numa "
                "or socket spreads a node's ranks over these",
                use.word.c_str(), use.value.c_str());
}

Error set_parameter(OptionUse& use) {
    std::string value;
    if (Error error = use.take_value(use.word + " " + use.value, value)) {
        return error;
    }
    const bool is_interface = use.value.ends_with("_if_include");
    use.line.notes.push_back(use.word + " " + use.value + " " + value +
                             " is a parameter of Open MPI's and does nothing" +
                             (is_interface ? "; -iface " + value + " chooses the interface" : ""));
    return {};
}

Error set_interface(OptionUse& use) {
    if (use.value.empty()) {
        return fail(exit_usage, "option %s needs the name of an interface", use.word.c_str());
    }
    set_default(use.line.environment, "WARREN_NETWORK", "tcp," + use.value);
    return {};
}

Error set_launcher(OptionUse& use) {
    const std::string& value = use.value;
    const bool known = value == "ssh" || value == "srun" || value == "fork";
    if (!known && value != "slurm" && value.find("{host}") == std::string::npos) {
        return fail(exit_usage,
                    "option %s needs ssh, srun, fork (all on this machine) or a command with "
                    "{host} for the node's name, as in 'ssh -p 2222 {host}', not '%.80s'",
                    use.word.c_str(), value.c_str());
    }
    use.line.launcher = value == "slurm" ? "srun" : value;
    return {};
}

Error set_initial_error_handler(OptionUse& use) {
    constexpr std::array names{"mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"};
    const auto* const found = std::find(names.begin(), names.end(), use.value);
    if (found == names.end()) {
        return fail(exit_usage,
                    "option %s needs mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return, "
                    "not '%.80s'",
                    use.word.c_str(), use.value.c_str());
    }
    use.line.initial_handler = static_cast<InitialHandler>(found - names.begin());
    return {};
}

Error set_search_path(OptionUse& use) {
    if (use.value.empty()) {
        return fail(exit_usage, "option %s needs folders with colons between them",
                    use.word.c_str());
    }
    use.program.search = use.value;
    return {};
}

Error set_soft(OptionUse& use) {
    std::optional<std::uint32_t> largest;
    if (!node::largest_soft_number(use.value, node::rank_limit, largest)) {
        return fail(exit_usage,
                    "option %s needs numbers of ranks, as in 2:8:2 or 1,4,16, not "
                    "'%.80s'",
                    use.word.c_str(), use.value.c_str());
    }
    use.program.soft = use.value;
    return {};
}

Error check_architecture(OptionUse& use) {
    utsname system;
    if (uname(&system) == 0 && use.value != system.machine) {
        return fail(exit_usage, "option %s %.80s: this node is %s", use.word.c_str(),
                    use.value.c_str(), system.machine);
    }
    return {};
}

Error refuse_config_file(OptionUse& use) {
    return fail(exit_usage, "option %s has to come first: all others are in its file",
                use.word.c_str());
}

Error refuse_file(OptionUse& use) {
    return fail(exit_usage,
                "option %s means something else to every launcher: -configfile reads programs and "
                "options, --hostfile names of nodes",
                use.word.c_str());
}

Error refuse_output_files(OptionUse& use) {
    return fail(
        exit_usage,
        "option %s: mpiexec writes no files for ranks; sh -c './program > out.$WARREN_RANK' "
        "does, and -l tells ranks' lines apart",
        use.word.c_str());
}

} // namespace warren::launch::other_launchers
