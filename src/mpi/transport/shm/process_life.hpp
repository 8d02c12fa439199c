// Whether a process that a rank has seen alive has ended.
//
// Its number alone doesn't tell: a later process may have got it; and what reaches for its memory
// by that number fails as soon as its first thread has ended, though others run. What the system
// says of it does: as long as any of its threads runs it hasn't ended, and if it began after the
// rank has seen it alive, it is another.
// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace warren::transport {

// Now, by the clock that says when processes began.
std::uint64_t process_clock_ns();

// `seen_ns`: when, by that clock, the process was certainly alive. Where the system doesn't show
// processes, one has ended when nobody has its number any more.
bool has_ended(int process, std::uint64_t seen_ns);

} // namespace warren::transport
