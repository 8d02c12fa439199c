// ByteMarks: a bit for each byte of a part of a file, set for those that are written. Thread rule:
// ranks may mark bytes of one map at once; it is read when all have marked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warren::io {

class ByteMarks {
  public:
    static constexpr std::uint64_t bytes_per_mark = 8;

    explicit ByteMarks(std::byte* map) : map_(map) {}

    // Also clears the other marks in the first and the last byte of the map.
    void clear(std::uint64_t begin, std::uint64_t end) const {
        const std::uint64_t first = begin / bytes_per_mark;
        std::memset(map_ + first, 0, (end + bytes_per_mark - 1) / bytes_per_mark - first);
    }
    void mark(std::uint64_t begin, std::uint64_t end) const {
        const std::uint64_t first = begin / bytes_per_mark;
        const std::uint64_t last = end / bytes_per_mark;
        const unsigned head = 0xffU << (begin % bytes_per_mark);
        const unsigned tail = (1U << (end % bytes_per_mark)) - 1;
        if (first == last) {
            set(first, head & tail);
            return;
        }
        set(first, head & 0xffU);
        std::memset(map_ + first + 1, 0xff, last - first - 1);
        if (tail != 0) {
            set(last, tail);
        }
    }
    bool has(std::uint64_t byte) const {
        return (std::to_integer<unsigned>(map_[byte / bytes_per_mark]) >> (byte % bytes_per_mark) &
                1) != 0;
    }
    // Where bytes from `begin` on cease to be marked, or begin to be; `end` if nowhere before.
    std::uint64_t change(std::uint64_t begin, std::uint64_t end) const {
        const bool marked = has(begin);
        const std::byte same = marked ? std::byte{0xff} : std::byte{0};
        std::uint64_t at = begin + 1;
        while (at < end) {
            if (at % bytes_per_mark == 0 && end - at >= bytes_per_mark &&
                map_[at / bytes_per_mark] == same) {
                at += bytes_per_mark;
            } else if (has(at) == marked) {
                ++at;
            } else {
                break;
            }
        }
        return at;
    }

  private:
    void set(std::uint64_t byte, unsigned bits) const {
        std::atomic_ref(reinterpret_cast<std::uint8_t&>(map_[byte]))
            .fetch_or(static_cast<std::uint8_t>(bits), std::memory_order_relaxed);
    }

    std::byte* map_;
};

} // namespace warren::io
