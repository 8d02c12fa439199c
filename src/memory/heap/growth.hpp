// Growth: a lock of a heap that threads hold shared while they add memory, and one thread holds
// alone.
//
// Any number of threads may add memory at once. If the system refuses memory to one of them, the
// others may just be taking the last of it and then keep more than they need. The refused thread
// therefore waits until the others are done and tries again alone. A thread that forks holds the
// lock alone, so that the child finds no half-made regions.
//
// The C library's read-write lock does not do: a child of fork could not release it, since the
// child is another thread for it. Waits are kernel waits: a fibre keeps its worker in the middle of
// an allocation. errno is preserved. Thread rule: any thread; not recursive.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace warren::memory {

class Growth {
  public:
    // The calling thread adds memory, from the constructor to end().
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
    static constexpr std::uint32_t alone = 1; // a thread holds the lock alone, or wants to
    static constexpr std::uint32_t one = 2;

    std::mutex alone_mutex_;
    std::atomic<std::uint32_t> turns_ = 0; // `one` for each, and `alone`
    std::atomic<std::uint32_t> begun_ = 0; // number of turns so far
};

} // namespace warren::memory
