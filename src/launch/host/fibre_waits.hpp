// Waits of fibres for signals, time and descriptors, which the rank's own signals end as a
// process's do: with EINTR, after the handler has run in the fibre.
//
// Thread rule: any thread. One that is no fibre waits in the kernel, and goes on after signals of
// other ranks.
#pragma once

#include <csignal>
#include <ctime>
#include <poll.h>
#include <span>
#include <sys/select.h>

#include "warren/image.h"

namespace warren::launch {

// ppoll and pselect. Null: without limit; what is blocked stays so.
int poll_in_fibre(pollfd* descriptors, nfds_t count, const timespec* limit, const sigset_t* mask);
int select_in_fibre(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional,
                    const timespec* limit, const sigset_t* mask);

// Replacements for the C library's functions that need no translation of descriptors, and for
// threads of those that need it for fibres.
std::span<const warren_image_binding> wait_bindings();
std::span<const warren_image_binding> thread_poll_bindings();

} // namespace warren::launch
