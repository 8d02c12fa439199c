// Soft numbers: the numbers of processes that would do, as the info key soft and mpiexec's option
// -soft write them (MPI 5.0, 11.8.4).
//
// A text has triplets with commas between them: a, a:b for a to b, a:b:c for every c-th of them; c
// may be negative, and b then smaller. Numbers below 0 and above what is asked for don't count.
// Thread rule: a function of its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace warren::node {

// The largest of the numbers up to `limit`, or nothing if there is none. False: the text is not of
// this form.
bool largest_soft_number(std::string_view text, std::uint32_t limit,
                         std::optional<std::uint32_t>& largest);

} // namespace warren::node
