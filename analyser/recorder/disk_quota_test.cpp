#include "analyser/recorder/disk_quota.hpp"

#include <gtest/gtest.h>

namespace {

using warren::locality::DiskQuota;

TEST(DiskQuota, TakesItsOwnPartBeforeTheCommonOne) {
    std::uint64_t common = 100;
    DiskQuota one{50, &common};
    DiskQuota other{50, &common};
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

TEST(DiskQuota, TakesNothingIfNotAllIsLeft) {
    std::uint64_t common = 10;
    DiskQuota quota{5, &common};
    EXPECT_FALSE(quota.take(16));
    EXPECT_EQ(quota.left(), 15U);
    EXPECT_TRUE(quota.take(15));
    quota.give_back(4);
    EXPECT_EQ(quota.left(), 4U);
}

TEST(DiskQuota, MayHaveNoCommonPart) {
    DiskQuota quota{5, nullptr};
    EXPECT_FALSE(quota.take(6));
    EXPECT_TRUE(quota.take(5));
    EXPECT_EQ(quota.left(), 0U);
}

} // namespace
