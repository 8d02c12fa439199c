#include "launch/mpiexec/address_hole.hpp"

#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

// A program at fixed addresses, as old ones are, in an address space of 47 bits.
const std::string fixed_program =
    "00400000-00401000 r-xp 00000000 08:01 1    /bin/a\n"
    "01800000-01900000 rw-p 00000000 00:00 0    [heap]\n"
    "7f0000000000-7f0000200000 r-xp 00000000 08:01 2    /lib/b\n"
    "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0    [stack]\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

constexpr std::uint64_t two_mib = 2 << 20;

TEST(AddressHole, MapsAreReadWithTheirHeap) {
    const std::vector<AddressRange> mappings = parse_maps(fixed_program);
    ASSERT_EQ(mappings.size(), 4U); // the kernel's page is not ours
    EXPECT_EQ(mappings[1].begin, 0x1800000U);
    EXPECT_EQ(mappings[1].end, 0x1900000U);
    EXPECT_TRUE(mappings[1].heap);
    EXPECT_FALSE(mappings[0].heap);
    EXPECT_TRUE(parse_maps("").empty());
    EXPECT_TRUE(parse_maps("nonsense\n\n7f-").empty());
}

TEST(AddressHole, MiddlesAreAlignedToTheSecondLevel) {
    EXPECT_EQ(second_level_bytes(4096), two_mib);
    EXPECT_EQ(second_level_bytes(65536), 512U << 20);
    const auto mappings = parse_maps(fixed_program);
    const std::uint64_t middle = middle_of_hole(mappings, HolePlace::largest, 4096, two_mib);
    EXPECT_EQ(middle % two_mib, 0U);
    EXPECT_NEAR(static_cast<double>(middle), 0x3f8000000000, 0x1000000);
}

TEST(AddressHole, HolesAreChosenByTheHeap) {
    const auto mappings = parse_maps(fixed_program);
    EXPECT_LT(middle_of_hole(mappings, HolePlace::before_heap, 4096, 4096), 0x1800000U);
    EXPECT_GT(middle_of_hole(mappings, HolePlace::after_heap, 4096, 4096), 0x1900000U);
}

TEST(AddressHole, TooLittleRoomIsNone) {
    const std::vector<AddressRange> mappings{{1 << 20, 0x400000, false},
                                             {0x401000, 0x402000, true}};
    EXPECT_EQ(middle_of_hole(mappings, HolePlace::largest, 4096, 4096), 0x400000U);
    EXPECT_EQ(middle_of_hole(mappings, HolePlace::largest, 8192, 4096), 0U);
    EXPECT_EQ(middle_of_hole(mappings, HolePlace::after_heap, 4096, 4096), 0U);
    EXPECT_EQ(middle_of_hole({}, HolePlace::largest, 4096, 4096), 0U);
}

TEST(AddressHole, AHoleOfThisProcessCanBeMapped) {
    const std::uint64_t address = find_hole(HolePlace::largest, 1 << 20);
    ASSERT_NE(address, 0U);
    void* wanted = reinterpret_cast<void*>(address); // NOLINT(performance-no-int-to-ptr)
    void* got = mmap(wanted, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(got, MAP_FAILED);
    EXPECT_EQ(got, wanted);
    munmap(got, 1 << 20);
}

} // namespace
} // namespace warren::launch
