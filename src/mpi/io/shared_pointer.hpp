// SharedPointer: the file pointer that all ranks of a file share, in etypes of the view.
//
// On a node it is a word of the control block. Among nodes it is a word of the first rank, in a
// window: ranks of other nodes ask for it by messages, which the first rank answers while it is in
// a call of MPI. Among worlds, which windows don't reach, only the first rank has it.
// Thread rule: under the rank's lock, which waits release.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/rma/window.hpp"

namespace warren::io {

class SharedPointer {
  public:
    // This rank reaches the word by itself.
    void use(std::atomic<std::int64_t>& word) { word_ = &word; }
    // Collective, among nodes of one world. The window has the file's communicator, of which the
    // file itself only uses the context of collectives.
    Error make(rma::WindowServer& server, message::Engine& engine,
               comm::Communicator& communicator);
    // Collective: the pointer's end.
    Error end();

    // Where this rank can change the pointer by itself; null: by add() only.
    std::atomic<std::int64_t>* word() const { return window_ == nullptr ? word_ : nullptr; }
    // `before`: where it was.
    Error add(std::int64_t addend, std::int64_t& before);
    Error get(std::int64_t& value) { return add(0, value); }
    // Only the first rank, while nobody moves the pointer.
    void set(std::int64_t value) { word_->store(value, std::memory_order_relaxed); }

  private:
    std::atomic<std::int64_t>* word_ = nullptr; // null: another rank has it
    std::unique_ptr<rma::Window> window_;
};

} // namespace warren::io
