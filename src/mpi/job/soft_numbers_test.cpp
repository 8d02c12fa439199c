#include "mpi/job/soft_numbers.hpp"

#include <gtest/gtest.h>

namespace warren::node {
namespace {

// -1: no number; -2: not of the form.
int largest(const char* text, std::uint32_t limit) {
    std::optional<std::uint32_t> found;
    if (!largest_soft_number(text, limit, found)) {
        return -2;
    }
    return found ? static_cast<int>(*found) : -1;
}

TEST(SoftNumbers, LargestUpToTheLimit) {
    EXPECT_EQ(largest("1", 4), 1);
    EXPECT_EQ(largest("0:10", 4), 4);
    EXPECT_EQ(largest("0:10:3", 4), 3);
    EXPECT_EQ(largest("2:10:2,7", 7), 7);
    EXPECT_EQ(largest("2:10:2,7", 8), 8);
    EXPECT_EQ(largest("1,2,4,8,16", 15), 8);
    EXPECT_EQ(largest(" 1 , 3 : 5 ", 4), 4);
    EXPECT_EQ(largest("-5:5:2", 4), 3);
    EXPECT_EQ(largest("0", 4), 0);
}

TEST(SoftNumbers, StepsMayGoDown) {
    EXPECT_EQ(largest("4:1:-1", 4), 4);
    EXPECT_EQ(largest("10:1:-4", 5), 2);
    EXPECT_EQ(largest("10:1:-4", 6), 6);
    EXPECT_EQ(largest("10:6:-4", 5), -1);
    EXPECT_EQ(largest("3:-9:-5", 2), -1);
}

TEST(SoftNumbers, NoneDoes) {
    EXPECT_EQ(largest("9", 4), -1);
    EXPECT_EQ(largest("-3:-1", 4), -1);
    EXPECT_EQ(largest("4:1", 4), -1);
}

TEST(SoftNumbers, OtherTextsAreRefused) {
    for (const char* text :
         {"", ",", "x", "1,", "1:", ":2", "1:2:", "1:2:0", "1:2:3:4", "1 2", "1;2", "--1", "+1"}) {
        EXPECT_EQ(largest(text, 4), -2) << text;
    }
    EXPECT_EQ(largest("1:99999999999999999999", 4), 4);
}

} // namespace
} // namespace warren::node
