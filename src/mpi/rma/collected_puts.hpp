// CollectedPuts: small writes to ranks of other nodes, whose bounds the origin knows. They leave
// together: one request per target (window_server.hpp) when there is enough for one, or when the
// program completes them. Requests that have left are answered later, so that many are under way.
//
// The origin's data is copied, so it is complete there at once; at the target it is complete after
// complete(). Requests of one origin are carried out in the order in which they leave.
// Thread rule: under the rank's lock, which waits release. Invariants
//  1. A target's requests end in the order in which they were sent: `begun` and `over` count them.
//  2. Whoever waits looks after the requests of its target itself: no thread waits for another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/rma/window_server.hpp"

namespace warren::rma {

class CollectedPuts {
  public:
    CollectedPuts(WindowServer& server, message::Engine& engine, const Window& window)
        : server_(server), engine_(engine), window_(window) {}
    CollectedPuts(const CollectedPuts&) = delete;
    CollectedPuts& operator=(const CollectedPuts&) = delete;
    // Nothing is under way (Window::end).
    ~CollectedPuts() = default;

    // Up to largest_collected bytes, to an address of the target's. An error is of this or an
    // earlier write.
    Error add(int target, std::uint64_t address, const void* from, std::size_t bytes);
    // Sends what was added: other requests to the target come after it.
    Error send(int target);
    // Waits until what was added is complete at the target.
    Error complete(int target);
    Error complete_all();
    // Nothing is to be completed.
    bool empty() const;

  private:
    struct Sent {
        WindowServer::Asked asked;
        std::vector<std::byte> request;
        ServedAnswer answer;
    };
    struct Target {
        std::vector<ServedPiece> pieces = {};
        std::vector<std::byte> data = {};
        std::deque<Sent> sent = {};
        std::uint64_t begun = 0;
        std::uint64_t over = 0;
        std::int32_t error_class = MPI_SUCCESS; // of a request, until somebody has been told

        bool empty() const { return pieces.empty() && sent.empty(); }
    };

    Error send(int rank, Target& target);
    Error complete(int rank, Target& target);
    // Waits until so many of the target's requests are over.
    Error await(int rank, Target& target, std::uint64_t over);
    void end_requests(Target& target);
    static Error told(int rank, Target& target);

    WindowServer& server_;
    message::Engine& engine_;
    const Window& window_;
    std::map<int, Target> targets_; // that have been written to, by rank
};

} // namespace warren::rma
