// Common ancestors of trees of all shapes: by pairs, by places, and by walking where a tree has
// neither.
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "topology/description.hpp"
#include "topology/encode.hpp"
#include "topology/guess.hpp"
#include "topology/view.hpp"

namespace warren::topology {
namespace {

struct Node {
    std::size_t level;
    std::vector<Node> children;
};

// A description of the tree: the machine, dies, processing units at the last of `levels` levels.
Description describe(const Node& root, std::size_t levels) {
    std::vector<std::uint32_t> counts(levels);
    const auto count = [&](const auto& self, const Node& node) -> void {
        ++counts[node.level];
        for (const Node& child : node.children) {
            self(self, child);
        }
    };
    count(count, root);
    Description made;
    std::vector<std::uint32_t> next(levels);
    std::uint32_t first = 0;
    for (std::size_t level = 0; level < levels; ++level) {
        const ObjectType type = level == 0            ? ObjectType::machine
                                : level + 1 == levels ? ObjectType::pu
                                                      : ObjectType::die;
        made.levels.push_back({first, counts[level], static_cast<std::int32_t>(level),
                               static_cast<std::uint32_t>(type)});
        next[level] = first;
        first += counts[level];
    }
    made.objects.resize(first);
    std::uint32_t cpus = 0;
    const auto add = [&](const auto& self, const Node& node, std::uint32_t parent) -> void {
        const std::uint32_t number = next[node.level]++;
        made.objects[number].parent = parent;
        made.objects[number].has_sets = true;
        if (parent != none) {
            made.objects[parent].children[0].push_back(number);
        }
        if (node.children.empty()) {
            made.objects[number].os_index = cpus++;
            for (std::uint32_t above = number; above != none; above = made.objects[above].parent) {
                add_bit(made.objects[above].cpus, made.objects[number].os_index);
                add_bit(made.objects[above].complete_cpus, made.objects[number].os_index);
            }
        }
        for (const Node& child : node.children) {
            self(self, child, number);
        }
    };
    add(add, root, none);
    made.allowed_cpus = made.objects[0].cpus;
    made.attributes = standard_attributes();
    complete_attributes(made);
    return made;
}

std::string text_of(Error error) {
    std::string text;
    if (ErrorRecord* record = error.take()) {
        text = record->text;
        delete record;
    }
    return text;
}

enum class Form : std::uint8_t { pairs, places, neither };

Form form_of(const TopologyView& view) {
    return view.index().joined_objects == 0   ? Form::neither
           : view.index().partings != nullptr ? Form::places
                                              : Form::pairs;
}

std::uint32_t lowest_common(const Description& description, std::uint32_t one,
                            std::uint32_t other) {
    while (one != other) {
        (one > other ? one : other) = description.objects[std::max(one, other)].parent;
    }
    return one;
}

void compare(const Node& root, std::size_t levels, Form form) {
    const Description description = describe(root, levels);
    std::vector<std::byte> image;
    ASSERT_EQ(text_of(encode(description, image)), "");
    TopologyView view;
    ASSERT_EQ(text_of(TopologyView::check(image, view)), "");
    EXPECT_EQ(form_of(view), form);
    const auto objects = static_cast<std::uint32_t>(description.objects.size());
    for (std::uint32_t one = 0; one < objects; ++one) {
        for (std::uint32_t other = 0; other < objects; ++other) {
            ASSERT_EQ(view.common_ancestor(one, other), lowest_common(description, one, other))
                << one << " and " << other;
        }
    }
}

TEST(Places, random_trees_part_where_they_do) {
    std::mt19937 random(5);
    int rounds_of[3] = {};
    for (int round = 0; round < 900; ++round) {
        const std::size_t levels = 2 + random() % 5;
        const auto grow = [&](const auto& self, std::size_t level) -> Node {
            Node node{level, {}};
            for (unsigned child = level + 1 < levels ? 1 + random() % 4 : 0; child > 0; --child) {
                node.children.push_back(self(self, level + 1 + random() % (levels - level - 1)));
            }
            return node;
        };
        Node root = grow(grow, 0);
        // Each level has an object.
        Node* path = &root;
        for (std::size_t level = 1; level < levels; ++level) {
            path->children.push_back({level, {}});
            path = &path->children.back();
        }
        // Small trees have pairs, and places may take too many bits: all ways have to be right.
        const Description description = describe(root, levels);
        std::vector<std::byte> image;
        ASSERT_EQ(text_of(encode(description, image)), "");
        TopologyView view;
        ASSERT_EQ(text_of(TopologyView::check(image, view)), "");
        compare(root, levels, form_of(view));
        ++rounds_of[static_cast<int>(form_of(view))];
    }
    for (const int rounds : rounds_of) {
        EXPECT_GT(rounds, 5);
    }
}

TEST(Places, even_trees_have_them_and_small_or_deep_uneven_ones_do_not) {
    Node even{0, std::vector<Node>(3, {1, std::vector<Node>(15, {2, {}})})};
    compare(even, 3, Form::places);
    Node chain{0, {{1, {{2, {{3, {}}}}}}}}; // one leaf
    compare(chain, 4, Form::pairs);
    Node chains{0, std::vector<Node>(9, {1, {{2, {{3, {}}}}}})};
    compare(chains, 4, Form::places);
    Node large{0, std::vector<Node>(90, {1, {{2, {{3, {}}}}}})}; // more than pairs can number
    compare(large, 4, Form::places);
    constexpr std::size_t depth = 40;
    Node caterpillar{depth - 1, {}};
    for (std::size_t level = depth - 1; level-- > 0;) {
        Node above{level, {{depth - 1, {}}}};
        above.children.push_back(std::move(caterpillar));
        caterpillar = std::move(above);
    }
    compare(caterpillar, depth, Form::neither);
}

// A tree of `objects`, the places of which part in three kinds: the machine, 16 dies of 32 dies
// each, and processing units as evenly as they are divided.
Node of_three_kinds(std::size_t objects) {
    constexpr std::size_t dies = 16;
    constexpr std::size_t within = 32;
    Node root{0, std::vector<Node>(dies, {1, std::vector<Node>(within, {2, {}})})};
    for (std::size_t unit = 0; unit < objects - 1 - dies - dies * within; ++unit) {
        root.children[unit % dies].children[unit / dies % within].children.push_back({3, {}});
    }
    return root;
}

// The columns of larger trees would begin where 16 bits can't say.
TEST(Places, trees_have_them_as_long_as_their_last_column_can_begin) {
    constexpr std::size_t largest = UINT16_MAX / 3;
    for (const std::size_t objects : {largest, largest + 1}) {
        const Description description = describe(of_three_kinds(objects), 4);
        ASSERT_EQ(description.objects.size(), objects);
        std::vector<std::byte> image;
        ASSERT_EQ(text_of(encode(description, image)), "");
        TopologyView view;
        ASSERT_EQ(text_of(TopologyView::check(image, view)), "");
        EXPECT_EQ(form_of(view), objects == largest ? Form::places : Form::neither);
        std::mt19937 random(7); // NOLINT: repeatable
        for (std::uint32_t sample = 0; sample < 100000; ++sample) {
            const auto one = static_cast<std::uint32_t>(random() % objects);
            // Neighbours too: most others have but the machine in common.
            const auto other = static_cast<std::uint32_t>(
                sample % 2 == 0 ? random() % objects : (one + random() % 100) % objects);
            ASSERT_EQ(view.common_ancestor(one, other), lowest_common(description, one, other))
                << one << " and " << other << " of " << objects;
        }
    }
}

} // namespace
} // namespace warren::topology
