// SendBuffer: the memory that a program attaches for buffered sends (MPI 5.0, 3.6).
//
// Messages lie in it in the order of addresses, each with a header of at most MPI_BSEND_OVERHEAD,
// until they have left. With MPI_BUFFER_AUTOMATIC the library allocates instead. Thread rule: under
// the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/message/engine.hpp"

namespace warren::message {

class SendBuffer {
  public:
    SendBuffer() = default;
    SendBuffer(const SendBuffer&) = delete;
    SendBuffer& operator=(const SendBuffer&) = delete;
    // All messages have left: flush() or Engine::flush() has seen to it, or abandon() has been
    // called.
    ~SendBuffer();

    // Whether a buffer is attached.
    bool attached() const { return base_ != nullptr; }

    void attach(void* base, MPI_Count bytes);

    // Sends a copy of the data. MPI_ERR_BUFFER when the buffer has no space for it.
    Error send(Engine& engine, const Buffer& buffer, std::uint32_t peer, const Envelope& envelope);

    // Whether all messages have left; makes no progress by itself.
    bool empty(Engine& engine);

    // Waits until all messages have left.
    void flush(Engine& engine);

    // After flush(): gives the memory back to the program.
    void detach(void*& base, MPI_Count& bytes);

    // For when the buffer's communicator is freed: the messages are sent nevertheless. The
    // program's memory must stay valid until they have left, as for any send.
    void abandon(Engine& engine);

  private:
    // Stands before the data of each message; a list in the order of addresses.
    struct Message {
        Message* next;
        Request* request;
        MPI_Count bytes; // with this header
    };

    Message* place(MPI_Count bytes);
    void reclaim(Engine& engine);

    std::byte* base_ = nullptr;
    MPI_Count bytes_ = 0;
    Message* first_ = nullptr;
};

} // namespace warren::message
