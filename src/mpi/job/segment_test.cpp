#include "mpi/job/segment.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "mpi.h"

namespace warren::node {

namespace {

constexpr JobShape shapes[] = {{.ranks = 1, .cores = 1},
                               {.ranks = 2, .cores = 2},
                               {.ranks = 64, .cores = 2},
                               {.ranks = 100, .cores = 128},
                               {.ranks = 300, .cores = 2, .fibres = true},
                               {.ranks = rank_limit, .cores = 2}};

std::string text_of(Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record->text;
}

template <std::uint64_t bytes, std::uint64_t sure>
Extent fixed(const JobShape&) {
    return {.unit_bytes = bytes, .units = 1, .sure_units = sure};
}

TEST(Segment, has_the_regions_of_all_rooms) {
    std::vector<std::string> names;
    for (const Region* region : declared_regions()) {
        names.emplace_back(region->name);
    }
    for (const char* name :
         {"rank slots", "memory use", "loads", "queues", "collective slots", "contexts"}) {
        EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
    }
}

TEST(Segment, lays_regions_out_beside_each_other) {
    for (const JobShape& shape : shapes) {
        Layout layout;
        ASSERT_FALSE(lay_out(declared_regions(), shape, layout));
        std::vector<DirectoryEntry> there;
        for (const DirectoryEntry& entry : layout.entries) {
            if (entry.offset != 0) {
                there.push_back(entry);
            }
        }
        std::sort(there.begin(), there.end(), [](const DirectoryEntry& a, const DirectoryEntry& b) {
            return a.offset < b.offset;
        });
        std::uint64_t end = sizeof(SegmentHeader);
        for (const DirectoryEntry& entry : there) {
            EXPECT_GE(entry.offset, end);
            EXPECT_EQ(entry.offset % cache_line_bytes, 0u);
            const bool is_sure = entry.extent.sure_units == entry.extent.units;
            if (!is_sure || entry.extent.bytes() >= 4096) {
                EXPECT_EQ(entry.offset % 4096, 0u);
            }
            EXPECT_LE(entry.extent.sure_units, entry.extent.units);
            end = entry.offset + entry.extent.bytes();
        }
        EXPECT_GE(layout.bytes, end);
        EXPECT_LT(layout.bytes, end + 4096);
    }
}

TEST(Segment, commits_what_is_sure_and_no_more) {
    Segment segment;
    ASSERT_FALSE(Segment::create({.ranks = 4, .cores = 4}, segment));
    struct stat status;
    ASSERT_EQ(fstat(segment.descriptor(), &status), 0);
    const auto has = static_cast<std::uint64_t>(status.st_blocks) * 512;
    const std::uint64_t sure = segment.header().committed_bytes;
    EXPECT_GE(has, sure);
    EXPECT_LE(has, sure + 2 * 4096); // begun pages
}

TEST(Segment, refuses_two_regions_of_one_number) {
    const Region first = {.number = 5, .name = "this", .extent = fixed<64, 1>};
    const Region second = {.number = 5, .name = "that", .extent = fixed<64, 1>};
    const Region* const both[] = {&first, &second};
    Layout layout;
    EXPECT_EQ(text_of(lay_out(both, {}, layout)),
              "the regions \"this\" and \"that\" have the same number, 5");
}

TEST(Segment, refuses_a_region_that_the_directory_has_no_entry_for) {
    const Region beyond = {.number = region_limit, .name = "beyond", .extent = fixed<64, 1>};
    const Region* const one[] = {&beyond};
    Layout layout;
    EXPECT_EQ(text_of(lay_out(one, {}, layout)),
              "the region \"beyond\" has the number 40, the limit is 40");
}

TEST(Segment, puts_what_is_sure_first_and_counts_it) {
    const Region later = {.number = 1, .name = "later", .extent = fixed<100, 0>};
    const Region large = {.number = 2, .name = "large", .extent = fixed<8192, 1>};
    const Region small = {.number = 3, .name = "small", .extent = fixed<100, 1>};
    const Region* const all[] = {&later, &large, &small};
    Layout layout;
    ASSERT_FALSE(lay_out(all, {}, layout));
    EXPECT_LT(layout.entries[3].offset, 4096u);
    EXPECT_EQ(layout.entries[2].offset, 4096u);
    EXPECT_EQ(layout.entries[1].offset, 4096u + 8192u);
    EXPECT_EQ(layout.committed_bytes, 4096u + 8192u);
    EXPECT_EQ(layout.bytes, 4096u + 8192u + 4096u);
}

TEST(Segment, is_refused_where_a_region_is_elsewhere) {
    Segment segment;
    ASSERT_FALSE(Segment::create({.ranks = 2, .cores = 2}, segment));
    Segment again;
    EXPECT_FALSE(Segment::attach(dup(segment.descriptor()), again));
    segment.header().directory.entries[rank_slots.number].offset += cache_line_bytes;
    Segment other;
    EXPECT_NE(text_of(Segment::attach(dup(segment.descriptor()), other)).find("different builds"),
              std::string::npos);
}

TEST(Segment, numbers_the_processes_of_ranks) {
    Segment segment;
    ASSERT_FALSE(Segment::create({.ranks = 3, .cores = 1}, segment));
    EXPECT_EQ(segment.slot(2).process, 2u);
    EXPECT_EQ(segment.units(rank_slots), 3u);
}

} // namespace

} // namespace warren::node
