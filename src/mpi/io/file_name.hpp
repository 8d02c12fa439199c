// File names: a prefix before a name says the kind of storage, as ROMIO has it ("ufs:/tmp/file").
// Thread rule: functions of their arguments.
#pragma once

#include "base/error.hpp"

namespace warren::io {

// Sets `path` to `name` without the prefix of a kind that is mounted as a file system. A kind that
// only a library of its own reaches ("daos:") is MPI_ERR_IO. `forced`: ROMIO_FSTYPE_FORCE, the kind
// of names without a prefix, or null. Any other text before a colon belongs to the name.
Error path_of_name(const char* name, const char* forced, const char*& path);

} // namespace warren::io
