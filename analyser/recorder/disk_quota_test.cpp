#include "analyser/recorder/disk_quota.hpp"

#include <gtest/gtest.h>

namespace {

using warren::locality::Room;

TEST(Room, TakesItsOwnFirstAndThenWhatIsCommon) {
    std::uint64_t common = 100;
    Room one{50, &common};
    Room other{50, &common};
    EXPECT_TRUE(one.take(30));
    EXPECT_EQ(common, 100U);
    EXPECT_TRUE(one.take(60)); // 20 of its own
    EXPECT_EQ(common, 60U);
    EXPECT_EQ(one.left(), 60U);
    EXPECT_EQ(other.left(), 110U);
    EXPECT_TRUE(other.take(110));
    EXPECT_EQ(common, 0U);
    EXPECT_FALSE(one.take(1));
}

TEST(Room, TakesNothingOfWhatItHasNotAll) {
    std::uint64_t common = 10;
    Room room{5, &common};
    EXPECT_FALSE(room.take(16));
    EXPECT_EQ(room.left(), 15U);
    EXPECT_TRUE(room.take(15));
    room.give_back(4);
    EXPECT_EQ(room.left(), 4U);
}

TEST(Room, MayHaveNothingInCommon) {
    Room room{5, nullptr};
    EXPECT_FALSE(room.take(6));
    EXPECT_TRUE(room.take(5));
    EXPECT_EQ(room.left(), 0U);
}

} // namespace
