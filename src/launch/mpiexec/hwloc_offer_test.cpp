#include "launch/mpiexec/hwloc_offer.hpp"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

TEST(HwlocOffer, RanksReadWhatMpiexecWrites) {
    HwlocOffer offer{.shmem = 12,
                     .address = 0x2aaaaaa00000,
                     .length = 286720,
                     .copies = 4,
                     .way = HwlocWay::xml,
                     .is_this_system = false,
                     .report = -1};
    std::strcpy(offer.filters.data(), "00001112");
    HwlocOffer read;
    ASSERT_TRUE(
        read_hwloc_offer(hwloc_text(offer).data(), hwloc_shmem_text(offer).data(), "13", read));
    EXPECT_EQ(read.shmem, 12);
    EXPECT_EQ(read.address, 0x2aaaaaa00000U);
    EXPECT_EQ(read.length, 286720U);
    EXPECT_EQ(read.copies, 4U);
    EXPECT_EQ(read.xml, 13);
    EXPECT_EQ(read.way, HwlocWay::xml);
    EXPECT_STREQ(read.filters.data(), "00001112");
    EXPECT_FALSE(read.is_this_system);
    EXPECT_EQ(read.report, -1);
    ASSERT_TRUE(read_hwloc_offer("0:0:1:9", nullptr, nullptr, read));
    EXPECT_EQ(read.shmem, -1);
    EXPECT_EQ(read.xml, -1);
    EXPECT_EQ(read.report, 9);
}

TEST(HwlocOffer, NonsenseIsNoOffer) {
    HwlocOffer read;
    EXPECT_FALSE(read_hwloc_offer(nullptr, nullptr, nullptr, read));
    for (const char* text :
         {"", "x", "0", "0:1", "4:0:1:-1", "0::1:-1", "0:ab:1:-1", "0:0:1", "-1:0:1:-1"}) {
        EXPECT_FALSE(read_hwloc_offer(text, nullptr, nullptr, read)) << text;
    }
    for (const char* text :
         {"", "7", "7:0x1000", "7:0x1000:4096", "-1:0x1000:4096:1", "7:0:4096:1", "7:0x1000:0:1"}) {
        EXPECT_FALSE(read_hwloc_offer("0:0:1:-1", text, nullptr, read)) << text;
    }
    for (const char* text : {"", "x", "-1", "3x"}) {
        EXPECT_FALSE(read_hwloc_offer("0:0:1:-1", nullptr, text, read)) << text;
    }
    // More filters than there is room for.
    const std::string many = "0:" + std::string(100, '1') + ":1:-1";
    EXPECT_FALSE(read_hwloc_offer(many.c_str(), nullptr, nullptr, read));
}

} // namespace
} // namespace warren::launch
