// Address space that nobody else is to get, for tests that want blocks in certain places. Thread
// rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "memory/heap/size_class.hpp"

namespace warren::memory {

class Filling {
  public:
    Filling() = default;
    ~Filling() {
        for (const auto& [begin, bytes] : filled_) {
            munmap(begin, bytes);
        }
    }
    Filling(const Filling&) = delete;
    Filling& operator=(const Filling&) = delete;

    std::uintptr_t map(std::size_t bytes) {
        void* begin =
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        filled_.emplace_back(begin, begin != MAP_FAILED ? bytes : 0);
        return reinterpret_cast<std::uintptr_t>(begin);
    }

    // As much of `most` bytes as is free right below; where that is less than `least`, so many
    // where the next are free.
    std::uintptr_t map_below(std::uintptr_t end, std::size_t most, std::size_t least) {
        for (std::size_t bytes = most; bytes >= page_bytes && (bytes >= least || bytes == most);
             bytes = bytes / 2 / page_bytes * page_bytes) {
            if (map(bytes) == end - bytes) {
                return end - bytes;
            }
            unmap_last();
        }
        return map(least);
    }

  private:
    void unmap_last() {
        munmap(filled_.back().first, filled_.back().second);
        filled_.pop_back();
    }

    std::vector<std::pair<void*, std::size_t>> filled_;
};

} // namespace warren::memory
