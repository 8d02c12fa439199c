// Subject: what of a rank the tool information interface looks at and changes. It exists while MPI
// is initialised; variables have values before and after, too.
#pragma once

#include "base/late_handle_table.hpp"
#include "mpi/io/file.hpp"
#include "mpi/message/engine_view.hpp"
#include "mpi/rank/rank.hpp"
#include "mpi/rma/window.hpp"

namespace warren::tool {

struct Subject {
    Rank* rank;
    message::Engine* messages;
    const LateHandleTable<rma::Window>* windows;
    const LateHandleTable<io::File>* files;
};

} // namespace warren::tool
