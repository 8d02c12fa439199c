// Machines at the limits of the image's numbers: everything is right up to them, and refused
// beyond.
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "topology/description.hpp"
#include "topology/encode.hpp"
#include "topology/guess.hpp"
#include "topology/handle.hpp"

namespace warren::topology {

namespace {

std::uint32_t add_object(Description& made, std::uint32_t os_index, std::uint32_t parent,
                         ChildKind kind) {
    const auto number = static_cast<std::uint32_t>(made.objects.size());
    Object& object = made.objects.emplace_back();
    object.os_index = os_index;
    object.parent = parent;
    if (parent != none) {
        made.objects[parent].children[static_cast<std::size_t>(kind)].push_back(number);
    }
    return number;
}

void add_level(Description& made, ObjectType type, std::uint32_t first, std::int32_t depth) {
    const auto count = static_cast<std::uint32_t>(made.objects.size()) - first;
    if (count > 0) {
        made.levels.push_back({first, count, depth, static_cast<std::uint32_t>(type)});
    }
}

// A machine with cores of one processor each, with these OS indices, nodes of all of them, and
// `others` objects of no meaning.
Description describe(const std::vector<std::uint32_t>& cores,
                     const std::vector<std::uint32_t>& cpus,
                     const std::vector<std::uint32_t>& nodes, std::uint32_t others) {
    Description made;
    Bits all_cpus;
    Bits all_nodes;
    for (const std::uint32_t cpu : cpus) {
        add_bit(all_cpus, cpu);
    }
    for (const std::uint32_t node : nodes) {
        add_bit(all_nodes, node);
    }
    const auto set = [&made](std::uint32_t number, const Bits& own_cpus, const Bits& own_nodes) {
        Object& object = made.objects[number];
        object.has_sets = true;
        object.cpus = object.complete_cpus = own_cpus;
        object.nodes = object.complete_nodes = own_nodes;
    };
    const auto only = [](std::uint32_t bit) {
        Bits bits;
        add_bit(bits, bit);
        return bits;
    };
    set(add_object(made, none, none, ChildKind::tree), all_cpus, all_nodes);
    add_level(made, ObjectType::machine, 0, 0);
    for (std::size_t at = 0; at < cores.size(); ++at) {
        set(add_object(made, cores[at], 0, ChildKind::tree), only(cpus[at]), all_nodes);
    }
    add_level(made, ObjectType::core, 1, 1);
    const auto first_cpu = static_cast<std::uint32_t>(made.objects.size());
    for (std::size_t at = 0; at < cpus.size(); ++at) {
        set(add_object(made, cpus[at], static_cast<std::uint32_t>(1 + at), ChildKind::tree),
            only(cpus[at]), all_nodes);
    }
    add_level(made, ObjectType::pu, first_cpu, 2);
    const auto first_node = static_cast<std::uint32_t>(made.objects.size());
    for (std::size_t at = 0; at < nodes.size(); ++at) {
        const std::uint32_t number = add_object(made, nodes[at], 0, ChildKind::memory);
        set(number, all_cpus, only(nodes[at]));
        made.objects[number].details = {(at + 1) << 30, 0};
    }
    add_level(made, ObjectType::numa_node, first_node,
              -static_cast<std::int32_t>(ObjectType::numa_node));
    const auto first_other = static_cast<std::uint32_t>(made.objects.size());
    for (std::uint32_t at = 0; at < others; ++at) {
        add_object(made, at, 0, ChildKind::misc);
    }
    add_level(made, ObjectType::misc, first_other, -static_cast<std::int32_t>(ObjectType::misc));
    made.allowed_cpus = all_cpus;
    made.allowed_nodes = all_nodes;
    made.attributes = standard_attributes();
    for (std::uint32_t at = 0; at < nodes.size(); ++at) {
        made.attributes[WARREN_ATTRIBUTE_CAPACITY].values.push_back(
            {none, {}, at, std::uint64_t{at + 1} << 30, WARREN_ORIGIN_FIRMWARE});
        made.attributes[WARREN_ATTRIBUTE_LOCALITY].values.push_back(
            {none, {}, at, 1, WARREN_ORIGIN_FIRMWARE});
    }
    complete_attributes(made);
    return made;
}

// Returns the error's text and stores its class in `error_class`.
std::string open(const Description& description, warren_topology*& topology, int& error_class) {
    std::vector<std::byte> image;
    ImageMemory memory;
    Error error = encode(description, image);
    if (!error) {
        error = ImageMemory::copy(image, memory);
    }
    if (!error) {
        error = make_handle(std::move(memory), WARREN_TOPOLOGY_FILE, topology);
    }
    error_class = error.error_class();
    std::string text;
    if (ErrorRecord* record = error.take()) {
        text = record->text;
        delete record;
    }
    return text;
}

TEST(Limits, the_largest_os_indices_are_found) {
    const std::vector<std::uint32_t> cores{65533, 65534, 65535, 65536, 0xfffffffe};
    const std::vector<std::uint32_t> cpus{0, 63, 65533, 65534, 65535};
    const std::vector<std::uint32_t> nodes{3, 65534, 65533, 65535};
    warren_topology* topology = nullptr;
    int error_class = 0;
    ASSERT_EQ(open(describe(cores, cpus, nodes, 0), topology, error_class), "");
    const auto expect_all = [&](int type, const std::vector<std::uint32_t>& os_indices) {
        for (std::uint32_t at = 0; at < os_indices.size(); ++at) {
            const warren_object object = warren_topology_object(topology, type, at);
            EXPECT_EQ(warren_object_os_index(topology, object), os_indices[at]);
            EXPECT_EQ(warren_topology_by_os_index(topology, type, os_indices[at]), object);
        }
        for (const std::uint32_t not_there : {1U, 65532U, 65537U, 0xfffffffdU, 0xffffffffU}) {
            EXPECT_EQ(warren_topology_by_os_index(topology, type, not_there), WARREN_NO_OBJECT);
        }
    };
    expect_all(WARREN_OBJECT_CORE, cores);
    expect_all(WARREN_OBJECT_PU, cpus);
    expect_all(WARREN_OBJECT_NUMA_NODE, nodes);
    for (const std::uint32_t cpu : cpus) {
        const warren_object object = warren_topology_by_os_index(topology, WARREN_OBJECT_PU, cpu);
        EXPECT_EQ(warren_set_next(warren_object_cpus(topology, object), 0), cpu);
        EXPECT_EQ(warren_topology_covering(topology, warren_object_cpus(topology, object)), object);
        const std::uint32_t initiator = warren_topology_initiator_of_cpu(topology, cpu);
        EXPECT_EQ(initiator, warren_topology_find_initiator_of_cpu(topology, cpu));
        EXPECT_EQ(warren_topology_nearest_memory(topology, object),
                  warren_topology_find_nearest_memory(topology, object));
        // The largest is the best.
        const std::uint32_t best[] = {65535, 65533, 65534, 3, WARREN_NO_INDEX};
        for (std::uint32_t place = 0; place < 5; ++place) {
            EXPECT_EQ(
                warren_topology_best_target(topology, WARREN_ATTRIBUTE_CAPACITY, initiator, place),
                best[place]);
        }
        for (std::uint32_t at = 0; at < nodes.size(); ++at) {
            std::uint64_t bytes = 0;
            EXPECT_EQ(warren_topology_value(topology, WARREN_ATTRIBUTE_CAPACITY, initiator,
                                            nodes[at], &bytes, nullptr),
                      WARREN_TOPOLOGY_SUCCESS);
            EXPECT_EQ(bytes, std::uint64_t{at + 1} << 30);
        }
    }
    std::uint64_t bytes = 7;
    EXPECT_EQ(warren_topology_value(topology, WARREN_ATTRIBUTE_CAPACITY, 0, 4, &bytes, nullptr),
              WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(warren_topology_value(topology, WARREN_ATTRIBUTE_CAPACITY, 0, 65536, &bytes, nullptr),
              WARREN_TOPOLOGY_ERR_ARGUMENT);
    EXPECT_EQ(bytes, 7U);
    EXPECT_EQ(warren_topology_initiator_of_cpu(topology, 65536), WARREN_NO_INDEX);
    EXPECT_EQ(warren_topology_initiator_of_cpu(topology, 1), WARREN_NO_INDEX);
    warren_topology_close(topology);
}

TEST(Limits, more_than_a_byte_of_targets_is_told_as_well) {
    for (const std::uint32_t count : {254U, 255U, 256U, 257U, 600U}) {
        std::vector<std::uint32_t> nodes;
        for (std::uint32_t node = 0; node < count; ++node) {
            nodes.push_back(node * 2);
        }
        warren_topology* topology = nullptr;
        int error_class = 0;
        ASSERT_EQ(open(describe({0, 1}, {0, 1}, nodes, 0), topology, error_class), "");
        for (std::uint32_t at = 0; at < count; ++at) {
            std::uint64_t bytes = 0;
            ASSERT_EQ(warren_topology_value(topology, WARREN_ATTRIBUTE_CAPACITY, 0, 2 * at, &bytes,
                                            nullptr),
                      WARREN_TOPOLOGY_SUCCESS);
            ASSERT_EQ(bytes, std::uint64_t{at + 1} << 30);
            ASSERT_EQ(warren_topology_best_target(topology, WARREN_ATTRIBUTE_CAPACITY, 0, at),
                      2 * (count - 1 - at));
            ASSERT_EQ(warren_topology_nearest_memory(
                          topology,
                          warren_topology_by_os_index(topology, WARREN_OBJECT_NUMA_NODE, 2 * at)),
                      warren_topology_find_nearest_memory(
                          topology,
                          warren_topology_by_os_index(topology, WARREN_OBJECT_NUMA_NODE, 2 * at)));
        }
        warren_topology_close(topology);
    }
}

TEST(Limits, what_is_larger_is_refused) {
    const auto refusal = [](const Description& description) {
        warren_topology* topology = nullptr;
        int error_class = 0;
        const std::string text = open(description, topology, error_class);
        EXPECT_EQ(topology, nullptr);
        EXPECT_EQ(error_class, WARREN_TOPOLOGY_ERR_LIMIT);
        return text;
    };
    EXPECT_EQ(refusal(describe({0}, {65536}, {0}, 0)),
              "a processor or NUMA node has an OS index above 65535");
    EXPECT_EQ(refusal(describe({0}, {0}, {65536}, 0)),
              "a processor or NUMA node has an OS index above 65535");
    EXPECT_EQ(refusal(describe({0}, {0}, {0}, max_objects - 3)),
              "the topology has 65535 objects, more than 65534");
    Description many = describe({0}, {0}, {0}, 0);
    while (many.matrices.size() <= max_attributes) {
        many.matrices.push_back(many.matrices[0]);
        many.matrices.back().name = "Other" + std::to_string(many.matrices.size());
    }
    EXPECT_EQ(refusal(many), "the topology has 1025 attributes, more than 1024");
    // One for each core and its processor, and one for what there once was of either.
    std::vector<std::uint32_t> numbers(32000);
    std::iota(numbers.begin(), numbers.end(), 0);
    many = describe(numbers, numbers, {0}, 0);
    for (std::uint32_t object = 1; object <= 2 * numbers.size(); ++object) {
        many.objects[object].complete_cpus.clear();
        add_bit(many.objects[object].complete_cpus, object % 300);
        add_bit(many.objects[object].complete_cpus, 300 + object / 300);
    }
    EXPECT_EQ(refusal(many), "there are 96001 different sets, more than 65535");
    warren_topology* topology = nullptr;
    int error_class = 0;
    ASSERT_EQ(open(describe({0}, {0}, {0}, max_objects - 4), topology, error_class), "");
    EXPECT_EQ(warren_topology_objects(topology), max_objects);
    EXPECT_EQ(warren_topology_by_os_index(topology, WARREN_OBJECT_MISC, 65529), 65533U);
    EXPECT_EQ(warren_object_common_ancestor(topology, 65533, 65532), 0U);
    warren_topology_close(topology);
}

} // namespace

} // namespace warren::topology
