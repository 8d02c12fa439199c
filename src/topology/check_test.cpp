// Checks that random damage does not reach: numbers that are each in range but contradict each
// other, and more work than an image is worth.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "topology/checksum.hpp"
#include "topology/description.hpp"
#include "topology/encode.hpp"
#include "topology/format.hpp"
#include "topology/guess.hpp"
#include "topology/view.hpp"

// (A sanitizer has its own, and wants all forms of it to match.)
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WARREN_COUNTS_ALLOCATIONS
namespace {
std::atomic<unsigned> allocations{0};
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* made = std::malloc(bytes)) {
        return made;
    }
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* made) noexcept {
    std::free(made);
}
[[gnu::noinline]] void operator delete(void* made, std::size_t) noexcept {
    std::free(made);
}
#endif

namespace warren::topology {

namespace {

// Why an image is refused; "": it isn't.
std::string refusal(const std::vector<std::byte>& image) {
    TopologyView view;
    Error error = TopologyView::check(image, view);
    std::string text;
    if (ErrorRecord* record = error.take()) {
        EXPECT_EQ(record->error_class, WARREN_TOPOLOGY_ERR_DAMAGED);
        text = record->text;
        delete record;
    }
    return text;
}

void mend_checksum(std::vector<std::byte>& image) {
    const std::uint64_t sum = checksum(image.data() + checksum_end, image.size() - checksum_end);
    std::memcpy(image.data() + offsetof(Header, checksum), &sum, sizeof sum);
}

Bits first_bits(std::uint32_t count) {
    Bits bits;
    for (std::uint32_t bit = 0; bit < count; ++bit) {
        add_bit(bits, bit);
    }
    return bits;
}

// A tree in which each object of a level has as many children as the level's number says, cores
// above processors at its end, and nodes of all of them.
Description describe(const std::vector<std::uint32_t>& children, std::uint32_t nodes) {
    Description made;
    std::uint32_t cpus = 1;
    for (const std::uint32_t each : children) {
        cpus *= each;
    }
    made.allowed_cpus = first_bits(cpus);
    made.allowed_nodes = first_bits(nodes);
    const auto add = [&made](std::uint32_t parent, ChildKind kind, std::uint32_t os_index,
                             const Bits& its_cpus, const Bits& its_nodes) {
        const auto number = static_cast<std::uint32_t>(made.objects.size());
        Object& object = made.objects.emplace_back();
        object.parent = parent;
        object.os_index = os_index;
        object.has_sets = true;
        object.cpus = object.complete_cpus = its_cpus;
        object.nodes = object.complete_nodes = its_nodes;
        if (parent != none) {
            made.objects[parent].children[static_cast<std::size_t>(kind)].push_back(number);
        }
    };
    const auto level = [&made](std::uint32_t first, std::int32_t depth, ObjectType type) {
        const auto end = static_cast<std::uint32_t>(made.objects.size());
        made.levels.push_back({first, end - first, depth, static_cast<std::uint32_t>(type)});
    };
    add(none, ChildKind::tree, none, made.allowed_cpus, made.allowed_nodes);
    level(0, 0, ObjectType::machine);
    std::uint32_t above = 0; // the first object of the level above
    std::uint32_t objects = 1;
    for (std::size_t depth = 1; depth <= children.size(); ++depth) {
        const auto first = static_cast<std::uint32_t>(made.objects.size());
        const std::uint32_t each = children[depth - 1];
        objects *= each;
        for (std::uint32_t index = 0; index < objects; ++index) {
            Bits its_cpus;
            for (std::uint32_t cpu = 0; cpu < cpus / objects; ++cpu) {
                add_bit(its_cpus, index * (cpus / objects) + cpu);
            }
            add(above + index / each, ChildKind::tree, index, its_cpus, made.allowed_nodes);
        }
        level(first, static_cast<std::int32_t>(depth),
              depth == children.size()       ? ObjectType::pu
              : depth + 1 == children.size() ? ObjectType::core
                                             : ObjectType::package);
        above = first;
    }
    const auto first_node = static_cast<std::uint32_t>(made.objects.size());
    for (std::uint32_t node = 0; node < nodes; ++node) {
        Bits only;
        add_bit(only, node);
        add(0, ChildKind::memory, node, made.allowed_cpus, only);
        made.objects.back().details = {1U << 30, 0};
    }
    if (nodes > 0) {
        level(first_node, -static_cast<std::int32_t>(ObjectType::numa_node), ObjectType::numa_node);
    }
    made.attributes = standard_attributes();
    complete_attributes(made);
    return made;
}

// `cores` cores of `threads` processors each.
Description describe(std::uint32_t cores, std::uint32_t threads, std::uint32_t nodes) {
    return describe({cores, threads}, nodes);
}

std::vector<std::byte> encoded(const Description& description) {
    std::vector<std::byte> image;
    Error error = encode(description, image);
    EXPECT_FALSE(error);
    error.drop();
    EXPECT_EQ(refusal(image), "");
    return image;
}

// Each object once a child of its parent, whatever is said: for images that are not refused.
bool children_are_right(const std::vector<std::byte>& image) {
    TopologyView view;
    if (Error error = TopologyView::check(image, view)) {
        error.drop();
        return true;
    }
    std::vector<std::uint32_t> times(view.objects(), 0);
    for (std::uint32_t object = 0; object < view.objects(); ++object) {
        for (const int kind : {WARREN_CHILD_TREE, WARREN_CHILD_MEMORY}) {
            for (std::uint32_t at = 0; at < view.child_count(object, kind); ++at) {
                const std::uint32_t child = view.child(object, kind, at);
                if (child >= view.objects() || view.parent(child) != object) {
                    return false;
                }
                ++times[child];
            }
        }
    }
    return times[0] == 0 && std::count(times.begin(), times.end(), 1U) + 1 == view.objects();
}

#ifdef WARREN_COUNTS_ALLOCATIONS
// Levels whose objects are alike are asked about as wholes.
TEST(Check, allocates_nothing_however_many_objects_there_are) {
    for (const std::uint32_t cores : {2U, 3000U}) {
        const std::vector<std::byte> image = encoded(describe(cores, 2, 1));
        TopologyView view;
        const unsigned before = allocations;
        ASSERT_FALSE(TopologyView::check(image, view));
        EXPECT_EQ(allocations, before) << view.objects() << " objects";
    }
}
#endif

TEST(Check, finds_each_wrong_number_of_the_tree) {
    const std::vector<std::uint32_t> trees[] = {{64, 4}, {100, 1}, {7, 3},   {1, 40},
                                                {4, 4},  {5, 5},   {3, 4, 2}};
    for (const std::vector<std::uint32_t>& tree : trees) {
        const std::vector<std::byte> image = encoded(describe(tree, 1));
        std::size_t refused = 0;
        const auto add = [](std::vector<std::byte>& changed, std::size_t at, int much) {
            std::uint16_t number = 0;
            std::memcpy(&number, changed.data() + at, sizeof number);
            number = static_cast<std::uint16_t>(number + much);
            std::memcpy(changed.data() + at, &number, sizeof number);
        };
        for (std::size_t at = checksum_end; at + 4 <= image.size(); at += 2) {
            // Also what one has too many the next one lacks.
            for (const auto& [here, behind] : {std::pair{1, 0}, {-1, 0}, {256, 0}, {1, -1}}) {
                std::vector<std::byte> wrong = image;
                add(wrong, at, here);
                add(wrong, at + 2, behind);
                mend_checksum(wrong);
                ASSERT_TRUE(children_are_right(wrong)) << "at " << at << " of " << image.size();
                refused += refusal(wrong).ends_with("impossible children") ? 1 : 0;
            }
        }
        const std::uint32_t cpus =
            std::accumulate(tree.begin(), tree.end(), 1U, std::multiplies<>());
        EXPECT_GT(refused, cpus); // each one's parent, to begin with
    }
}

// `count` objects of no meaning, each within the one before or all in the machine.
void add_others(Description& description, std::uint32_t count, bool within_each_other) {
    const auto first = static_cast<std::uint32_t>(description.objects.size());
    for (std::uint32_t number = first; number < first + count; ++number) {
        Object& object = description.objects.emplace_back();
        object.parent = within_each_other && number > first ? number - 1 : 0;
        description.objects[object.parent]
            .children[static_cast<std::size_t>(ChildKind::misc)]
            .push_back(number);
    }
    description.levels.push_back({first, count, -static_cast<std::int32_t>(ObjectType::misc),
                                  static_cast<std::uint32_t>(ObjectType::misc)});
}

// Lists need not be sorted, but have nothing twice.
TEST(Check, takes_children_in_any_order_once) {
    Description description = describe(2, 1, 1);
    const auto first = static_cast<std::uint16_t>(description.objects.size());
    add_others(description, 3, false);
    for (const int order : {0, 1, 2, 3}) {
        std::vector<std::uint32_t>& children =
            description.objects[0].children[static_cast<std::size_t>(ChildKind::misc)];
        children = {first, first + 1U, first + 2U};
        std::rotate(children.begin(), children.begin() + order % 3, children.end());
        if (order == 3) {
            std::swap(children[0], children[2]);
        }
        const std::vector<std::byte> image = encoded(description);
        TopologyView view;
        ASSERT_FALSE(TopologyView::check(image, view));
        std::uint16_t list[3];
        for (std::uint32_t at = 0; at < 3; ++at) {
            EXPECT_EQ(view.child(0, WARREN_CHILD_MISC, at), children[at]);
            list[at] = static_cast<std::uint16_t>(children[at]);
        }
        const auto bytes = std::as_bytes(std::span(list));
        const auto found = std::search(image.begin(), image.end(), bytes.begin(), bytes.end());
        ASSERT_NE(found, image.end());
        ASSERT_EQ(std::search(found + 1, image.end(), bytes.begin(), bytes.end()), image.end());
        const std::size_t place = static_cast<std::size_t>(found - image.begin());
        for (const std::size_t one : {0, 1, 2}) {
            for (const std::size_t other : {0, 1, 2}) {
                std::vector<std::byte> twice = image;
                std::memcpy(twice.data() + place + 2 * one, image.data() + place + 2 * other, 2);
                mend_checksum(twice);
                EXPECT_EQ(refusal(twice),
                          one == other ? "" : "the topology image is damaged: impossible children")
                    << "order " << order << ", " << other << " at " << one;
            }
        }
    }
}

// No deeper than that, and where there are no more than may be deep nothing can be.
TEST(Check, refuses_what_is_too_deep_beside_the_tree) {
    Description description = describe(2, 1, 0);
    add_others(description, max_nested, true);
    const std::uint32_t last = static_cast<std::uint32_t>(description.objects.size()) - 1;
    const std::vector<std::byte> deepest = encoded(description);
    TopologyView view;
    ASSERT_FALSE(TopologyView::check(deepest, view));
    EXPECT_EQ(view.parent(last), last - 1);
    // One more, beside the deepest one; then below it.
    description.objects.emplace_back().parent = last - 1;
    description.objects[last - 1].children[static_cast<std::size_t>(ChildKind::misc)].push_back(
        last + 1);
    ++description.levels.back().count;
    std::vector<std::byte> image = encoded(description);
    const std::uint16_t parents[] = {static_cast<std::uint16_t>(last - 2),
                                     static_cast<std::uint16_t>(last - 1),
                                     static_cast<std::uint16_t>(last - 1)};
    const auto bytes = std::as_bytes(std::span(parents));
    const auto found = std::search(image.begin(), image.end(), bytes.begin(), bytes.end());
    ASSERT_NE(found, image.end());
    const auto deeper = static_cast<std::uint16_t>(last);
    std::memcpy(&found[4], &deeper, sizeof deeper);
    mend_checksum(image);
    EXPECT_EQ(refusal(image), "the topology image is damaged: objects too deep within others");
}

// By pairs and by places: a number just too large is refused wherever it is, the largest one isn't.
TEST(Check, refuses_common_ancestors_that_are_elsewhere) {
    for (const auto& [cores, by_pairs] : {std::pair{3U, true}, {64U, false}}) {
        const std::vector<std::byte> image = encoded(describe(cores, 1, 1));
        TopologyView view;
        ASSERT_FALSE(TopologyView::check(image, view));
        Header header;
        std::memcpy(&header, image.data(), sizeof header);
        ASSERT_EQ(header.has_pairs != 0, by_pairs);
        const std::size_t tree = view.tree_objects();
        const auto refuses_above = [&image, has_pairs = by_pairs](
                                       const auto* table, std::size_t count, std::size_t largest) {
            const auto place =
                static_cast<std::size_t>(reinterpret_cast<const std::byte*>(table) - image.data());
            for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
                for (const std::size_t number : {largest, largest + 1}) {
                    std::vector<std::byte> changed = image;
                    std::memcpy(changed.data() + place + at * sizeof *table, &number,
                                sizeof *table);
                    mend_checksum(changed);
                    EXPECT_EQ(refusal(changed) != "", number > largest)
                        << (has_pairs ? "pairs: " : "places: ") << number << " at " << at;
                }
            }
        };
        const warren_topology_index& index = view.index();
        if (by_pairs) {
            refuses_above(index.places, tree, tree * (tree - 1));
            refuses_above(static_cast<const std::uint8_t*>(index.joins), tree * tree, tree - 1);
        } else {
            const std::size_t partings = std::size_t{1} << header.place_bits;
            refuses_above(index.places, tree, partings - 1);
            refuses_above(index.partings, partings, (header.parting_kinds - 1U) * tree);
            refuses_above(static_cast<const std::uint16_t*>(index.joins),
                          header.parting_kinds * tree, tree - 1);
        }
    }
}

// Kinds are handed out as numbers that programs have names for.
TEST(Check, refuses_devices_of_unknown_kinds) {
    Description description = describe(2, 1, 1);
    const auto number = static_cast<std::uint32_t>(description.objects.size());
    Object& device = description.objects.emplace_back();
    device.parent = 0;
    description.objects[0].children[static_cast<std::size_t>(ChildKind::io)].push_back(number);
    description.levels.push_back({number, 1, -static_cast<std::int32_t>(ObjectType::os_device),
                                  static_cast<std::uint32_t>(ObjectType::os_device)});
    for (const std::uint64_t kind :
         {std::uint64_t{WARREN_DEVICE_MEMORY}, std::uint64_t{WARREN_DEVICE_MEMORY} + 1,
          std::uint64_t{1} << 31, UINT64_MAX}) {
        description.objects[number].details = {kind};
        std::vector<std::byte> image;
        ASSERT_FALSE(encode(description, image));
        EXPECT_EQ(refusal(image), kind <= WARREN_DEVICE_MEMORY
                                      ? ""
                                      : "the topology image is damaged: impossible details");
    }
}

// The image with more records of attributes, so that there are `total`: like the last but one,
// whose cells have those of the last behind them, which begin in other places each time. (What is
// shared as a whole is looked at once.)
std::vector<std::byte> with_attributes(const std::vector<std::byte>& image, std::uint32_t total) {
    std::vector<std::uint32_t> counts;
    std::size_t which = 0; // of the counts is the attributes'
    std::size_t at = sizeof(Header);
    for (std::size_t section = 0; section < section_count; ++section) {
        if (static_cast<Section>(section) == Section::attributes) {
            which = counts.size();
        }
        if (!is_counted(static_cast<Section>(section))) {
            continue;
        }
        std::uint32_t count = 0;
        unsigned shift = 0;
        do {
            count |= static_cast<std::uint32_t>(image[at] & std::byte{0x7f}) << shift;
            shift += 7;
        } while ((image[at++] & std::byte{0x80}) != std::byte{0});
        counts.push_back(count);
    }
    at = (at + 7) / 8 * 8;
    TopologyView view;
    Error error = TopologyView::check(image, view);
    EXPECT_FALSE(error);
    const auto first = static_cast<std::size_t>(
        reinterpret_cast<const std::byte*>(view.attributes().data()) - image.data());
    const std::uint32_t before = counts[which];
    const std::uint32_t cells =
        view.attributes()[before - 1].cells - view.attributes()[before - 2].cells;
    const auto moved = static_cast<std::uint32_t>((total - before) * sizeof(AttributeRecord));

    std::vector<std::byte> made(image.begin(), image.begin() + sizeof(Header));
    counts[which] = total;
    for (std::uint32_t count : counts) {
        for (; count >= 0x80; count >>= 7) {
            made.push_back(static_cast<std::byte>(count | 0x80));
        }
        made.push_back(static_cast<std::byte>(count));
    }
    made.resize((made.size() + 7) / 8 * 8);
    made.insert(made.end(), image.begin() + static_cast<std::ptrdiff_t>(at),
                image.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::uint32_t number = 0; number < total; ++number) {
        const bool is_more = number >= before;
        AttributeRecord record = view.attributes()[is_more ? before - 2 : number];
        record.cells += moved + (is_more ? number % cells : 0);
        record.values += moved;
        const auto* bytes = reinterpret_cast<const std::byte*>(&record);
        made.insert(made.end(), bytes, bytes + sizeof record);
    }
    made.insert(made.end(),
                image.begin() +
                    static_cast<std::ptrdiff_t>(first + before * sizeof(AttributeRecord)),
                image.end());
    const auto bytes = static_cast<std::uint32_t>(made.size());
    std::memcpy(made.data() + offsetof(Header, bytes), &bytes, sizeof bytes);
    mend_checksum(made);
    return made;
}

// Two more attributes, matrices of nothing but two values, by turns; one begins with the other
// value.
void add_matrices(Description& description) {
    const std::size_t targets = description.targets().size();
    for (const std::size_t first : {0, 1}) {
        AttributeMatrix& made = description.matrices.emplace_back();
        made.name = first == 0 ? "Other" : "Another";
        made.flags = WARREN_ATTRIBUTE_NEEDS_INITIATOR;
        made.rows = description.initiators.size();
        for (std::size_t cell = 0; cell < made.rows * targets; ++cell) {
            made.cells.push_back({(first + cell) % 2, WARREN_ORIGIN_MEASURED});
            made.order.push_back(static_cast<std::uint16_t>(cell % targets));
        }
    }
}

TEST(Check, refuses_more_attributes_than_there_may_be) {
    Description description = describe(2, 1, 64);
    add_matrices(description);
    const std::vector<std::byte> image = encoded(description);
    EXPECT_EQ(refusal(with_attributes(image, max_attributes)), "");
    EXPECT_EQ(refusal(with_attributes(image, max_attributes + 1)),
              "the topology image is damaged: more attributes than there may be");
}

// An image of a few MB, all of whose attributes are right, each with other pairs of the same many.
TEST(Check, refuses_attributes_that_take_long_to_look_at) {
    constexpr std::uint32_t many = 600;
    Description description = describe(many, 1, many);
    description.initiators.resize(many, description.initiators[0]);
    for (AttributeMatrix& matrix : description.matrices) {
        if (matrix.rows == 1 && (matrix.flags & WARREN_ATTRIBUTE_NEEDS_INITIATOR) == 0) {
            matrix.cells.resize(many, matrix.cells[0]);
        } else {
            matrix.rows = many;
            matrix.cells.resize(std::size_t{many} * many, matrix.cells[0]);
        }
        matrix.order.assign(std::size_t{many} * many, 0);
    }
    add_matrices(description);
    const std::vector<std::byte> image = encoded(description);
    const std::uint64_t looks = std::uint64_t{many} * many;
    const std::vector<std::byte> largest = with_attributes(image, max_attributes);
    ASSERT_GT(max_attributes * looks, max_looks(largest.size()) + 20 * looks);
    EXPECT_EQ(refusal(with_attributes(image, max_attributes / 2)), "");
    EXPECT_EQ(refusal(largest),
              "the topology image is damaged: its attributes have too many pairs in common");
}

} // namespace

} // namespace warren::topology
