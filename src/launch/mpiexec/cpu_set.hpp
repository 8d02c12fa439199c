// CpuSet: a set of the operating system's processors, as the kernel takes it.
// Thread rule: a plain value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace warren::launch {

class CpuSet {
  public:
    // As many as Linux can be built for.
    static constexpr std::size_t limit = 8192;

    void add(std::size_t processor) {
        if (processor < limit) {
            words_[processor / 64] |= std::uint64_t{1} << (processor % 64);
        }
    }
    bool has(std::size_t processor) const {
        return processor < limit && (words_[processor / 64] >> (processor % 64) & 1) != 0;
    }
    std::uint32_t count() const;
    bool empty() const { return count() == 0; }

    CpuSet& operator&=(const CpuSet& other);
    CpuSet& operator|=(const CpuSet& other);
    bool operator==(const CpuSet& other) const = default;

    // "0-3,8": as taskset and the kernel write it.
    std::string text() const;

    // The processors that this process may run on. Empty when the kernel doesn't say.
    static CpuSet allowed();

    // The words of the set up to the last that is not zero.
    std::span<const std::uint64_t> words() const;
    // Becomes the set of these words; false when they are too many.
    bool assign(std::span<const std::uint64_t> words);

    const void* data() const { return words_.data(); }
    static constexpr std::size_t bytes() { return limit / 8; }

  private:
    std::array<std::uint64_t, limit / 64> words_{};
};

} // namespace warren::launch
