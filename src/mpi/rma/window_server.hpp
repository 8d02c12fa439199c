// WindowServer: operations on this rank's memory, and on its lock, that others ask for by messages,
// where neither loads and stores nor the kernel's copies reach it, and this rank's own requests to
// others.
//
// A request is a cell (kind::window_request), which names the window, the origin and a tag, and a
// message with that tag: the head (ServedHead), the pieces of memory, and data. The answer is a
// message with the next tag: an error class (ServedAnswer) and data. Both go by the ways of
// point-to-point messages in the context of the window's communicator. A thread of an origin waits
// for the answers to what it has asked, of several targets together; a target never waits for an
// origin. A lock that is held is answered when it has been handed over.
// Ranks of other nodes tell by a cell without an answer (kind::window_notice) that they have posted
// their window or completed their epoch.
// Thread rule: under the rank's lock. Invariants
//  1. A window is registered before any rank can access it, and until none can.
//  2. A target checks a request, and all pieces against its own memory of the window, before it
//     touches any.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/rma/tuning.hpp"

namespace warren::rma {

class Window;

enum class ServedKind : std::uint8_t {
    read,
    write,
    accumulate,
    compare_and_swap,
    lock,
    try_lock,
    unlock
};

struct ServedPiece {
    std::uint64_t address; // in the target's process
    std::uint64_t bytes;
};

struct ServedHead {
    ServedKind kind = ServedKind::read;
    std::uint8_t fetches = 0;   // of an accumulate operation: the answer has what was there
    std::uint8_t operation = 0; // coll::OpKind
    std::uint8_t basic = 0;     // type, as an index of the predefined ones
    std::uint8_t exclusive = 0; // of locks
    std::uint8_t unused[3] = {};
    std::uint32_t pieces = 0;
    std::uint64_t bytes = 0; // of the pieces together
};
// (Of a comparison, twice as much data.)
inline constexpr std::size_t largest_request = sizeof(ServedHead) +
                                               pieces_per_request * sizeof(ServedPiece) +
                                               2 * static_cast<std::size_t>(data_bytes_per_request);

struct ServedAnswer {
    std::int32_t error_class;
    std::uint32_t taken; // of locks
};

// A cell's tag tells what a rank of another node has done, or that one of this node has something
// to be done (offer.hpp).
enum class Notice : std::int32_t { posted, completed, offered };

class WindowServer {
  public:
    explicit WindowServer(message::Engine& engine);
    WindowServer(const WindowServer&) = delete;
    WindowServer& operator=(const WindowServer&) = delete;
    ~WindowServer();

    void add(std::uint32_t context, Window& window) { windows_[context] = &window; }
    void remove(std::uint32_t context) { windows_.erase(context); }

    // --- For origins
    // A request that has been sent to a rank of a window. Its memory stays until finish().
    struct Asked {
        int target = 0;
        message::Request* send = nullptr;
        message::Request* receive = nullptr;

        bool is_over() const { return send != nullptr && send->complete && receive->complete; }
    };
    // After an error there is nothing to finish.
    Error begin(const Window& window, int target, const std::vector<std::byte>& request,
                void* answer, std::size_t answer_bytes, Asked& asked);
    // Waits for the answer: an error class and data.
    Error finish(const Window& window, const Asked& asked);
    // Ends a request that is over: the class of the error that has kept its answer away.
    std::int32_t end(const Asked& asked);
    // Both.
    Error ask(const Window& window, int target, const std::vector<std::byte>& request, void* answer,
              std::size_t answer_bytes) {
        Asked asked;
        Error error = begin(window, target, request, answer, answer_bytes, asked);
        return error ? error : finish(window, asked);
    }
    void tell(const Window& window, int rank, Notice notice);

    // A number that no other offer of this rank has: a cell may outlive its window.
    std::uint64_t number_offer() { return ++offers_; }

    // A flush of any of the rank's windows has left its stores to the processor, which lets loads
    // overtake them: the next operation that loads completes them first (Window::order_load).
    bool loads_wait = false;

    // Whether the kernel is known to refuse copies between processes. Noted once.
    bool kernel_refuses() const { return kernel_refuses_; }
    void note_refusal(int reason);

  private:
    // A request of another rank that is being served.
    struct Service {
        std::uint32_t context;
        std::uint32_t origin_in_world;
        message::Envelope envelope;
        std::int32_t own_rank;                // in the window
        std::uint64_t bytes;                  // of the request
        message::Request* transfer = nullptr; // the request's receive, then the answer's send
        bool answers = false;
        bool queued = false;                // for a lock
        std::vector<std::byte> memory = {}; // of the request, then of the answer
    };
    struct RequestCell {
        std::uint64_t bytes;
        std::int32_t target; // rank in the window
    };

    void take(const transport::Arrival& arrival);
    void take_notice(const transport::Arrival& arrival);
    // Goes on with all services. True: none is left.
    bool run();
    // True: it has ended.
    bool advance(Service& service);
    // Makes the answer of a request that has come. False: not yet.
    bool carry_out(Service& service);
    bool begin_receive(Service& service);
    bool begin_answer(Service& service);

    message::Engine& engine_;
    std::map<std::uint32_t, Window*> windows_; // by context
    std::list<Service> services_;
    message::Request* stepping_ = nullptr; // while there are services
    std::int32_t next_tag_ = 0;
    std::uint64_t offers_ = 0; // that this rank has made
    bool kernel_refuses_ = false;
};

} // namespace warren::rma
