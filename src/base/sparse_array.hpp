// SparseArray: pointers by number, null at first, of which most are never used: each rank's place
// for every other rank. A large one is a mapping of its own, whose memory comes with use.
// Thread rule: its owner's.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace warren {

template <typename Object>
class SparseArray {
  public:
    explicit SparseArray(std::size_t count) : bytes_(count * sizeof(Object*)) {
        void* memory = is_mapped() ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                   : std::calloc(count, sizeof(Object*));
        if (memory == nullptr || memory == MAP_FAILED) {
            throw std::bad_alloc();
        }
        objects_ = static_cast<Object**>(memory);
    }
    // Makes room for numbers below `count`, which is more than there is room for.
    void grow(std::size_t count) {
        SparseArray larger(count);
        std::memcpy(larger.objects_, objects_, bytes_);
        std::swap(bytes_, larger.bytes_);
        std::swap(objects_, larger.objects_);
    }
    SparseArray(const SparseArray&) = delete;
    SparseArray& operator=(const SparseArray&) = delete;
    ~SparseArray() {
        if (is_mapped()) {
            munmap(objects_, bytes_);
        } else {
            std::free(objects_);
        }
    }

    Object*& operator[](std::size_t number) { return objects_[number]; }

  private:
    // A few pages, so that some of them stay without memory.
    static constexpr std::size_t mapped_bytes = 16384;
    bool is_mapped() const { return bytes_ >= mapped_bytes; }

    std::size_t bytes_;
    Object** objects_;
};

} // namespace warren
