// Options that users of other launchers type by habit: understood, or answered with what Warren
// has instead. The table of options (options.cpp) names them. Thread rule: plain functions.
#pragma once

#include "launch/mpiexec/options.hpp"

namespace warren::launch::other_launchers {

// --map-by, --rank-by: in order (Warren's way), or round the nodes.
Error set_order(OptionUse& use);
// --mca, --gmca, --pmixmca, --prtemca KEY VALUE: Open MPI's parameters.
Error set_parameter(OptionUse& use);
// -iface: the network's interface.
Error set_interface(OptionUse& use);
// -launcher, -bootstrap: what starts agents.
Error set_launcher(OptionUse& use);
// The standard's: -initial-errhandler, -path, -soft, -arch.
Error set_initial_error_handler(OptionUse& use);
Error set_search_path(OptionUse& use);
Error set_soft(OptionUse& use);
Error check_architecture(OptionUse& use);
// Have no equivalent here: the error says what to use instead.
Error refuse_config_file(OptionUse& use);
Error refuse_file(OptionUse& use);
Error refuse_output_files(OptionUse& use);

} // namespace warren::launch::other_launchers
