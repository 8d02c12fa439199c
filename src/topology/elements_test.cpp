// Questions about all elements of arrays: none is left out, at whatever place of whatever length,
// by the widest loops of this processor and by those of all.
#include "topology/elements.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

namespace warren::topology {
namespace {

// Tests arrays of `count` elements with one wrong element at each place.
void look_at_all(const ElementLoops& loops, std::size_t count) {
    std::vector<std::uint8_t> bytes(count, 6);
    std::vector<std::uint16_t> numbers(count, 300);
    const auto bytes_below = [&](std::uint64_t limit) {
        return all_below(bytes.data(), count, limit, loops);
    };
    const auto numbers_below = [&](std::uint64_t limit) {
        return all_below(numbers.data(), count, limit, loops);
    };
    EXPECT_TRUE(bytes_below(7) && numbers_below(301));
    EXPECT_TRUE(all_equal(numbers.data(), count, std::uint16_t{300}));
    EXPECT_TRUE(bytes_below(1000) && numbers_below(65536));
    EXPECT_EQ(bytes_below(0), count == 0);
    for (std::size_t wrong = 0; wrong < count; ++wrong) {
        bytes[wrong] = 7;
        numbers[wrong] = 301;
        EXPECT_FALSE(bytes_below(7)) << wrong << " of " << count;
        EXPECT_FALSE(numbers_below(301)) << wrong << " of " << count;
        EXPECT_FALSE(all_below_or_none(bytes.data(), count, 7)) << wrong << " of " << count;
        EXPECT_FALSE(all_equal(numbers.data(), count, std::uint16_t{300})) << wrong;
        bytes[wrong] = 255;
        EXPECT_TRUE(all_below_or_none(bytes.data(), count, 7)) << wrong << " of " << count;
        EXPECT_FALSE(bytes_below(255)) << wrong << " of " << count;
        bytes[wrong] = 6;
        numbers[wrong] = 300;
    }
}

// `count` parents of `each` children, with one wrong number after another.
void look_at_children(const ElementLoops& loops, std::size_t count, std::uint16_t each) {
    constexpr std::uint16_t begin = 65500; // past 2^16 soon
    std::vector<std::uint16_t> parent(count * each);
    std::vector<std::uint16_t> first_child(count);
    std::vector<std::uint16_t> arity(count, each);
    for (std::size_t at = 0; at < parent.size(); ++at) {
        parent[at] = static_cast<std::uint16_t>(begin + at / each);
    }
    for (std::size_t at = 0; at < count; ++at) {
        first_child[at] = static_cast<std::uint16_t>(begin + at * each);
    }
    const auto are_even = [&] {
        return loops.are_even(
            {parent.data(), parent.size(), first_child.data(), arity.data(), count, begin, each});
    };
    EXPECT_TRUE(are_even()) << count << " with " << each;
    std::uint32_t sum = 0;
    for (std::vector<std::uint16_t>* numbers : {&parent, &first_child, &arity}) {
        for (std::size_t wrong = 0; wrong < numbers->size(); ++wrong) {
            // (The caller knows the first parent.)
            for (const std::uint16_t bit : {std::uint16_t{1}, std::uint16_t{0x8000}}) {
                (*numbers)[wrong] ^= bit;
                EXPECT_TRUE(!are_even() || (numbers == &parent && parent.size() == 1))
                    << wrong << " of " << count << " with " << each;
                (*numbers)[wrong] ^= bit;
            }
            sum += numbers == &parent ? parent[wrong] : 0;
        }
    }
    EXPECT_EQ(loops.sum16(parent.data(), parent.size()), sum);
}

void look_at_rows(const ElementLoops& loops, std::size_t count) {
    std::vector<SetRecord> sets(count);
    for (std::uint32_t at = 0; at < count; ++at) {
        sets[at] = {at, 3, 2};
    }
    for (const int each : {1, 3, 20}) {
        constexpr std::size_t most = 400; // children: time goes with their square
        if (count > 0 && count * static_cast<std::size_t>(each) <= most) {
            look_at_children(loops, count, static_cast<std::uint16_t>(each));
        }
    }
    const auto are_beyond = [&](std::uint64_t words, std::uint64_t most) {
        return loops.beyond(sets.data(), count, words, most) >> 63 != 0;
    };
    EXPECT_FALSE(are_beyond(count + 1, 5));
    EXPECT_EQ(are_beyond(count, 5), count != 0);
    EXPECT_EQ(are_beyond(count + 1, 4), count != 0);
    for (std::size_t wrong = 0; wrong < count; ++wrong) {
        const SetRecord right = sets[wrong];
        for (const SetRecord set : {SetRecord{UINT32_MAX, 3, 2}, SetRecord{0, UINT16_MAX, 2},
                                    SetRecord{0, 3, UINT16_MAX}}) {
            sets[wrong] = set;
            EXPECT_TRUE(are_beyond(count + 1, 5)) << wrong << " of " << count;
        }
        sets[wrong] = right;
    }
}

TEST(Elements, are_all_looked_at) {
    for (const ElementLoops* loops : {&element_loops(), &portable_element_loops()}) {
        for (std::size_t count = 0; count < 200; ++count) {
            look_at_all(*loops, count);
            look_at_rows(*loops, count);
        }
    }
}

} // namespace
} // namespace warren::topology
