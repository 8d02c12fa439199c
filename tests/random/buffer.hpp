// Memory of random datatypes, watched byte by byte: what it holds, and what it must hold in the
// end. All that no datatype names, gaps and surroundings, must stay as it is.
#pragma once

#include "types.hpp"

#include <functional>
#include <optional>

namespace programs {

// `count` elements of a datatype at a distance from the buffer's base.
struct Block {
    TypePtr type;
    long count = 0;
    Offset offset = 0;

    long leaves() const { return count * static_cast<long>(type->leaves.size()); }
};

// The value of the element at `index` among those with the key.
void value_of(Bits key, long index, const Basic& basic, unsigned char* bytes);

class Buffer {
  public:
    // Room for the blocks; all bytes are gaps.
    void reserve(const std::vector<Block>& blocks);
    void reset();
    void expect_gaps(); // everywhere

    void* base() { return memory_.data() + origin_; }

    enum Part { held = 1, expected = 2, both = 3 };
    // Puts the values of the key, as many leaves of the block as there are or `limit`.
    void put(Part part, const Block& block, Bits key, long limit = -1);
    // Puts what write(bytes, index) writes for each leaf.
    void put(Part part, const Block& block, const std::function<void(unsigned char*, long)>& write);
    // What the block holds is nobody's business.
    void ignore(const Block& block, bool ignored = true);

    // Fails unless all is as expected.
    void check(const char* name) const;

    unsigned char* at(const Block& block, long leaf);

  private:
    template <typename F>
    void each_leaf(const Block& block, long limit, F f);

    static constexpr unsigned char gap_ = 0xA5;
    static constexpr int guard_ = 32;
    std::vector<unsigned char> memory_, expected_;
    std::vector<bool> ignored_; // empty: nothing is
    Offset origin_ = guard_;
};

} // namespace programs
