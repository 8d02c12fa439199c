// Who adds memory to a heap, and who has to know that nobody does.
//
// Any number of threads add memory at once. One that was refused it while others were at it may
// have been so for what they are about to have: it waits until they are done, and tries again
// alone. Who forks keeps all of them out, so that the child has what they were making.
//
// A lock of our own, as the C library's shared one can't be given back by a child of fork, who is
// another thread to it. Waits are the kernel's: a fibre keeps its thread in the middle of an
// allocation. errno stays. Thread rule: any thread at any time; not in itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace warren::memory {

class Growth {
  public:
    // One of those who add memory: from the constructor to end().
    class Turn {
      public:
        explicit Turn(Growth& growth);
        // Whether others had a turn meanwhile.
        bool end();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

      private:
        Growth& growth_;
        bool others_;
        std::uint32_t begun_; // when it began
    };

    // Nobody has a turn until unlock(), which a child of fork may call, too.
    void lock();
    void unlock();

  private:
    static constexpr std::uint32_t alone = 1; // somebody is, or wants to be
    static constexpr std::uint32_t one = 2;

    std::mutex alone_mutex_;
    std::atomic<std::uint32_t> turns_ = 0; // `one` for each, and `alone`
    std::atomic<std::uint32_t> begun_ = 0; // turns ever
};

} // namespace warren::memory
