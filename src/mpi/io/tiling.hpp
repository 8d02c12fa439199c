// Tiling: whether blocks of many ranks cover a range of bytes exactly, without a list of them.
//
// Each block adds a hash of its end and takes off the hash of its begin. Where blocks touch, the
// two cancel: the sum over all is that of the range alone if the blocks cover it without holes and
// overlap. That another set of blocks has the same sum happens once in 2^64, because every bit of
// an offset changes half of the hash's (SplitMix64).
#pragma once

#include <cstdint>

namespace warren::io {

class Tiling {
  public:
    void add(std::uint64_t begin, std::uint64_t end) { sum_ += hash(end) - hash(begin); }
    void add(std::uint64_t sum) { sum_ += sum; }
    std::uint64_t sum() const { return sum_; }
    bool covers(std::uint64_t begin, std::uint64_t end) const {
        return sum_ == hash(end) - hash(begin);
    }

  private:
    static std::uint64_t hash(std::uint64_t value) {
        value += 0x9e3779b97f4a7c15; // else the hash of twice a value may be twice the value's
        value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
        value = (value ^ value >> 27) * 0x94d049bb133111eb;
        return value ^ value >> 31;
    }

    std::uint64_t sum_ = 0;
};

} // namespace warren::io
