// RemoteLock: the lock of a rank of another node, which that rank takes and gives back for this one
// (Window::serve_lock). Each call is a request and its answer; the answer to take() comes when the
// lock has been handed over. Thread rule: under the rank's lock, which waits release.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "mpi/rma/window_server.hpp"

namespace warren::rma {

class RemoteLock {
  public:
    RemoteLock(WindowServer& server, const Window& window, int target)
        : server_(server), window_(window), target_(target) {}

    Error take(bool exclusive) {
        bool taken = false;
        return ask(ServedKind::lock, exclusive, taken);
    }
    // `taken`: false if it is held, or others wait for it.
    Error try_take(bool exclusive, bool& taken) {
        return ask(ServedKind::try_lock, exclusive, taken);
    }
    Error give_back(bool exclusive) {
        bool taken = false;
        return ask(ServedKind::unlock, exclusive, taken);
    }

  private:
    Error ask(ServedKind kind, bool exclusive, bool& taken);

    WindowServer& server_;
    const Window& window_;
    const int target_;
};

// Takes the shared locks of several ranks of other nodes that are free (try_lock), or gives them
// back (unlock), in the time of one. `taken`, by rank: which are held then. The first error counts.
Error ask_shared_locks(WindowServer& server, const Window& window, ServedKind kind,
                       const std::vector<int>& targets, std::vector<std::uint8_t>& taken);

} // namespace warren::rma
