// The folder of a recording, before anything is in it. Thread rule: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace warren::locality {

// Makes the folder `wanted` of a recording, or takes it if it's there; its absolute name is
// `absolute`. Ranks of a job share it, and each may be there once; what is recorded alone (`rank`
// is -1) wants one for itself. An error, too, if its disk has no room for a recording.
Error make_folder(const std::string& wanted, std::int32_t rank, std::string& absolute);

} // namespace warren::locality
