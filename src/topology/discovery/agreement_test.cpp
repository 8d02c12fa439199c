// The image says what hwloc says: on topologies that the test makes, and, with a folder as
// argument, on each machine recorded there: FILE.xml and folders for which hwloc takes /proc and
// /sys from.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <string>
#include <vector>

#include "topology/discovery/agreement.hpp"
#include "topology/discovery/describe.hpp"
#include "topology/encode.hpp"
#include "topology/guess.hpp"
#include "topology/handle.hpp"

namespace warren::discovery {

namespace {

std::string recorded_machines;

// Text of an error, "" for none.
std::string text_of(Error error) {
    ErrorRecord* record = error.take();
    const std::string text = record != nullptr ? record->text : "";
    delete record;
    return text;
}

void expect_agreement(hwloc_topology_t theirs, const std::string& name) {
    std::string problem;
    const HwlocLibrary* hwloc = HwlocLibrary::get(problem);
    ASSERT_NE(hwloc, nullptr) << problem;
    topology::Description description;
    ASSERT_EQ(text_of(describe(*hwloc, theirs, description)), "");
    topology::complete_attributes(description);
    std::vector<std::byte> image;
    ASSERT_EQ(text_of(topology::encode(description, image)), "");
    topology::ImageMemory memory;
    ASSERT_EQ(text_of(topology::ImageMemory::copy(image, memory)), "");
    warren_topology* ours = nullptr;
    ASSERT_EQ(text_of(topology::make_handle(std::move(memory), 0, ours)), "");
    Agreement agreement(theirs, ours);
    agreement.check_all();
    std::printf("%-40s %5u objects, %7zu bytes, %5.1f per object\n", name.c_str(),
                warren_topology_objects(ours), image.size(),
                static_cast<double>(image.size()) / warren_topology_objects(ours));
    warren_topology_close(ours);
}

void expect_agreement(const Source& source, const std::string& name) {
    SCOPED_TRACE(name);
    std::string problem;
    const HwlocLibrary* hwloc = HwlocLibrary::get(problem);
    ASSERT_NE(hwloc, nullptr) << problem;
    hwloc_topology_t theirs = nullptr;
    ASSERT_EQ(text_of(load(*hwloc, source, theirs)), "");
    expect_agreement(theirs, name);
    hwloc_topology_destroy(theirs);
}

TEST(Image, says_what_hwloc_says_of_synthetic_topologies) {
    for (const char* description :
         {"pu:1", "pu:7", "package:2 core:4 pu:2", "numa:4 l3:2 core:3 pu:2",
          "package:2 [numa] l3:2 l2:2 l1d:1 l1i:1 core:2 pu:2",
          "package:2 [numa(memory=8GB)][numa(memory=64GB)] die:2 core:4 pu:2(indexes=pu:core)",
          "group:2 package:2 group:3 numa:2 core:2 pu:4", "package:24 [numa] core:8 pu:2",
          "package:3 core:43 pu:4(indexes=core:pu)",
          "[numa] package:2 [numa] group:2 [numa] core:4 pu:2"}) {
        expect_agreement({SourceKind::synthetic, description}, description);
    }
}

TEST(Image, says_what_hwloc_says_of_this_machine) {
    expect_agreement({SourceKind::native, ""}, "this machine");
}

// A machine with everything that synthetic ones lack.
TEST(Image, says_what_hwloc_says_of_attributes_distances_kinds_and_others) {
    hwloc_topology_t theirs = nullptr;
    ASSERT_EQ(hwloc_topology_init(&theirs), 0);
    ASSERT_EQ(hwloc_topology_set_synthetic(
                  theirs, "package:2 [numa(memory=1GB)] group:2 [numa(memory=64GB)] core:4 pu:2"),
              0);
    hwloc_topology_set_all_types_filter(theirs, HWLOC_TYPE_FILTER_KEEP_ALL);
    ASSERT_EQ(hwloc_topology_load(theirs), 0);

    // Values for some pairs, of initiators that cut the processors in new ways.
    const unsigned nodes =
        static_cast<unsigned>(hwloc_get_nbobjs_by_type(theirs, HWLOC_OBJ_NUMANODE));
    for (unsigned node = 0; node < nodes; ++node) {
        hwloc_obj_t target = hwloc_get_obj_by_type(theirs, HWLOC_OBJ_NUMANODE, node);
        hwloc_location location{};
        location.type = HWLOC_LOCATION_TYPE_CPUSET;
        location.location.cpuset = target->cpuset;
        ASSERT_EQ(hwloc_memattr_set_value(theirs, HWLOC_MEMATTR_ID_BANDWIDTH, target, &location, 0,
                                          100'000 + 7000 * node),
                  0);
        ASSERT_EQ(hwloc_memattr_set_value(theirs, HWLOC_MEMATTR_ID_READ_LATENCY, target, &location,
                                          0, 80 + 10 * (node % 2)),
                  0);
        if (node != 1) {
            location.location.cpuset = hwloc_get_obj_by_type(theirs, HWLOC_OBJ_CORE, 3)->cpuset;
            ASSERT_EQ(hwloc_memattr_set_value(theirs, HWLOC_MEMATTR_ID_LATENCY, target, &location,
                                              0, 100 + 50 * node),
                      0);
        }
    }
    hwloc_memattr_id_t own = 0;
    ASSERT_EQ(hwloc_memattr_register(theirs, "Endurance", HWLOC_MEMATTR_FLAG_HIGHER_FIRST, &own),
              0);
    ASSERT_EQ(hwloc_memattr_set_value(theirs, own,
                                      hwloc_get_obj_by_type(theirs, HWLOC_OBJ_NUMANODE, 2), nullptr,
                                      0, std::uint64_t{5} << 40),
              0);

    std::vector<hwloc_obj_t> objects;
    std::vector<hwloc_uint64_t> values;
    for (unsigned node = 0; node < nodes; ++node) {
        objects.push_back(hwloc_get_obj_by_type(theirs, HWLOC_OBJ_NUMANODE, node));
    }
    for (unsigned pair = 0; pair < nodes * nodes; ++pair) {
        values.push_back(pair / nodes == pair % nodes ? 10 : 10 + (pair * 7) % 300);
    }
    hwloc_distances_add_handle_t handle = hwloc_distances_add_create(
        theirs, "Ours", HWLOC_DISTANCES_KIND_FROM_USER | HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0);
    ASSERT_NE(handle, nullptr);
    ASSERT_EQ(hwloc_distances_add_values(theirs, handle, nodes, objects.data(), values.data(), 0),
              0);
    ASSERT_EQ(hwloc_distances_add_commit(theirs, handle, 0), 0);

    hwloc_info_s info{const_cast<char*>("CoreType"), const_cast<char*>("IntelAtom")};
    hwloc_bitmap_t atoms = hwloc_bitmap_alloc();
    hwloc_bitmap_set_range(atoms, 8, 15);
    ASSERT_EQ(hwloc_cpukinds_register(theirs, atoms, 0, 1, &info, 0), 0);
    hwloc_bitmap_andnot(atoms, hwloc_topology_get_topology_cpuset(theirs), atoms);
    ASSERT_EQ(hwloc_cpukinds_register(theirs, atoms, 1, 0, nullptr, 0), 0);
    hwloc_bitmap_free(atoms);

    hwloc_obj_t core = hwloc_get_obj_by_type(theirs, HWLOC_OBJ_CORE, 5);
    hwloc_obj_t misc = hwloc_topology_insert_misc_object(theirs, core, "a process");
    ASSERT_NE(misc, nullptr);
    hwloc_obj_add_info(misc, "Rank", "17");
    hwloc_obj_add_info(core, "Rank", "");
    ASSERT_NE(hwloc_topology_insert_misc_object(theirs, misc, "its thread"), nullptr);

    // Processors that are not used, so that the tree gets uneven.
    hwloc_bitmap_t left = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(theirs));
    hwloc_bitmap_clr(left, 3);
    hwloc_bitmap_clr_range(left, 16, 23);
    ASSERT_EQ(hwloc_topology_restrict(theirs, left, HWLOC_RESTRICT_FLAG_ADAPT_MISC), 0);
    hwloc_bitmap_free(left);
    hwloc_topology_refresh(theirs);

    expect_agreement(theirs, "a machine with everything");
    hwloc_topology_destroy(theirs);
}

TEST(Image, says_what_hwloc_says_of_recorded_machines) {
    if (recorded_machines.empty()) {
        GTEST_SKIP() << "no folder given";
    }
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(recorded_machines)) {
        paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    EXPECT_FALSE(paths.empty());
    for (const std::filesystem::path& path : paths) {
        const bool is_folder = std::filesystem::is_directory(path);
        if (is_folder || path.extension() == ".xml") {
            expect_agreement({is_folder ? SourceKind::dump : SourceKind::xml, path},
                             path.filename());
        }
    }
}

} // namespace

} // namespace warren::discovery

int main(int argument_count, char** arguments) {
    testing::InitGoogleTest(&argument_count, arguments);
    if (argument_count > 1) {
        warren::discovery::recorded_machines = arguments[1];
    }
    return RUN_ALL_TESTS();
}
