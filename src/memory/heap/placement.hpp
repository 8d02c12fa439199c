// Placement: pages that are there, on the nodes of a kind, before anybody uses them.
//
// Nothing is left for later. A policy that binds strictly would answer a full node with the
// out-of-memory killer at some later touch; so pages are brought in at once, under a policy that
// only prefers a node, and then the kernel is asked where they are. What went elsewhere says that
// the node is full: it is moved there as far as room can be made, and the rest goes to the next
// target. Thread rule: any thread at any time, on ranges of its own. Errors are results and errno:
// ENOMEM (no room on the targets), EPERM (the system forbids to place memory), EINVAL (no target
// may be used).
#pragma once

#include <cstddef>

#include "memory/heap/kind.hpp"

namespace warren::memory {

// Says of which size a fresh range's pages shall be, before it is placed. Where it is not `large`,
// units of it come and go.
void advise_page_size(const Kind& kind, void* begin, std::size_t bytes, bool large);

// Places the pages of a fresh range (multiples of page_bytes, mapped, untouched) as the kind says.
// On failure none of them is present.
bool place(const Kind& kind, void* begin, std::size_t bytes);

// Gives the placed pages of a kind back to the system.
void displace(const Kind& kind, void* begin, std::size_t bytes);

// Moves the pages of a placed range to where another kind says; both have ordinary pages. On
// failure they are back where they were, as far as there is still room.
bool migrate(const Kind& from, const Kind& to, void* begin, std::size_t bytes);

} // namespace warren::memory
