// Makes the folder of a recording. Thread rule: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace warren::locality {

// Makes the folder `wanted` of a recording, or takes an existing one; `absolute` gets its absolute
// name. Ranks of a job share it, and each may be in it once. A program that is recorded alone
// (`rank` is -1) needs a folder for itself. It is an error if the disk has no space for a
// recording.
Error make_folder(const std::string& wanted, std::int32_t rank, std::string& absolute);

} // namespace warren::locality
