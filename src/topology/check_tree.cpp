// Checks of the tree that readers follow: levels, parents, children, common ancestors.
#include <algorithm>

#include "topology/image_check.hpp"

namespace warren::topology {

Error ImageCheck::check_levels() {
    TopologyView& view = view_;
    bool wrong = view.level_count_ == 0 || view.level_count_ > 255;
    if (wrong) {
        return damaged("impossible levels");
    }
    std::fill_n(view.first_level_, object_types, static_cast<std::uint8_t>(view.level_count_));
    view.depth_ = 0;
    std::uint32_t number = 0;
    for (std::uint32_t index = 0; index < view.level_count_; ++index) {
        const Level level = view.level(index);
        if (level.first != number || level.count == 0 || level.count > view.objects_ - number ||
            level.type >= object_types) {
            return damaged("impossible levels");
        }
        const auto type = static_cast<ObjectType>(level.type);
        std::uint8_t& first = view.first_level_[level.type];
        const bool is_first = first == view.level_count_;
        const bool is_beside = type >= ObjectType::numa_node && type <= ObjectType::misc;
        if (is_beside) {
            wrong |= !is_first || number < view.tree_objects_;
        } else {
            wrong |= view.depth_ != index ||
                     level.count > view.tree_objects_ - std::min(number, view.tree_objects_);
            view.depth_ = index + 1;
        }
        if (is_first) {
            first = static_cast<std::uint8_t>(index);
        }
        if (type == ObjectType::numa_node) {
            view.index_.targets = level.count;
            view.index_.first_target = level.first;
        }
        wrong |= !all_equal(view.level_of_ + number, level.count, static_cast<std::uint8_t>(index));
        number += level.count;
    }
    wrong |= number != view.objects_ || view.levels_[0].count != 1 || view.depth_ == 0 ||
             view.levels_[view.depth_ - 1].first + view.levels_[view.depth_ - 1].count !=
                 view.tree_objects_ ||
             view.index_.targets > max_targets;
    view.index_.target_os_indices = view.os_index_ + view.index_.first_target;
    return wrong ? damaged("impossible levels") : Error{};
}

Error ImageCheck::check_tree() {
    const TopologyView& view = view_;
    const ShortLanes steps{0, 1, 2, 3, 4, 5, 6, 7};
    const bool are_below =
        all_are(view.parent_ + 1, view.objects_ - 1, [&steps](ShortLanes parents, std::size_t at) {
            return parents <= steps + static_cast<std::uint16_t>(at);
        });
    if (view.parent_[0] != none16 || !are_below ||
        !all_below(view.flags_, view.objects_, object_flag::all + 1U, loops_)) {
        return damaged("objects above their parents");
    }
    // So few that they can't be too deep are not asked.
    const bool may_be_deep = view.objects_ - view.tree_objects_ > max_nested;
    for (std::uint32_t object = may_be_deep ? view.tree_objects_ : view.objects_;
         object < view.objects_; ++object) {
        std::uint32_t nested = 0;
        for (std::uint32_t above = object; above >= view.tree_objects_;
             above = view.parent_[above]) {
            if (++nested > max_nested) {
                return damaged("objects too deep within others");
            }
        }
    }
    return {};
}

Error ImageCheck::check_pairs() {
    const TopologyView& view = view_;
    const auto* pairs = static_cast<const std::uint8_t*>(view.index_.joins);
    const std::uint32_t all = count(Section::pairs);
    return all_below(pairs, all, view.tree_objects_, loops_) &&
                   (all == 0 || all_below(view.index_.places, view.tree_objects_,
                                          all - view.tree_objects_ + 1, loops_)) &&
                   all_below_or_none(view.index_.nearest, view.objects_, view.index_.targets)
               ? Error{}
               : damaged("impossible pairs");
}

Error ImageCheck::check_places() {
    const warren_topology_index& own = view_.index_;
    const std::uint32_t partings = count(Section::partings);
    const std::uint32_t tree = view_.tree_objects_;
    const std::uint32_t all = count(Section::above);
    return partings == 0 ||
                   (all_below(own.places, tree, partings, loops_) &&
                    all_below(own.partings, partings, all - tree + 1, loops_) &&
                    all_below(static_cast<const std::uint16_t*>(own.joins), all, tree, loops_))
               ? Error{}
               : damaged("impossible places");
}

// A list of children, none of which has been in another: of the tree, or of what is beside it.
bool ImageCheck::is_list(std::uint32_t object, std::uint64_t first, std::uint64_t children,
                         bool in_tree, std::span<std::uint64_t> listed) const {
    const TopologyView& view = view_;
    const std::uint32_t all = count(Section::children);
    if (first > all || children > all - first) {
        return false;
    }
    for (std::uint64_t at = first; at < first + children; ++at) {
        const std::uint32_t child = view.children_[at];
        if (child >= view.objects_ || view.parent_[child] != object ||
            view.is_in_tree(child) != in_tree || (listed[child / 64] >> child % 64 & 1) != 0) {
            return false;
        }
        listed[child / 64] |= std::uint64_t{1} << child % 64;
    }
    return true;
}

// Whether what is beside the tree at an object are its children, each with a larger number than the
// one before: the usual case. Then none is twice in this list, and in another it would have another
// parent. False also of lists that have to be looked at by is_list().
bool ImageCheck::is_sorted_list(const OtherChildren& record, std::uint32_t its) const {
    const TopologyView& view = view_;
    const std::uint32_t all = count(Section::children);
    if (record.first > all || its > all - record.first) {
        return false;
    }
    std::uint32_t last = view.tree_objects_ - 1;
    for (std::uint32_t at = 0; at < its; ++at) {
        const std::uint32_t child = view.children_[record.first + at];
        if (child <= last || child >= view.objects_ || view.parent_[child] != record.object) {
            return false;
        }
        last = child;
    }
    return true;
}

// Whether a level's objects are children of consecutive ones that have as many each, and say so:
// the usual case, which is asked about quickly.
bool ImageCheck::is_even(const Level& level) const {
    const TopologyView& view = view_;
    const std::uint32_t first_parent = view.parent_[level.first];
    const std::uint32_t last_parent = view.parent_[level.first + level.count - 1];
    const std::uint32_t parents = last_parent - first_parent + 1;
    if (last_parent < first_parent || parents > level.count || level.count % parents != 0) {
        return false;
    }
    return loops_.are_even({.parent = view.parent_ + level.first,
                            .count = level.count,
                            .first_child = view.first_child_ + first_parent,
                            .arity = view.arity_ + first_parent,
                            .parents = parents,
                            .first = static_cast<std::uint16_t>(level.first),
                            .each = static_cast<std::uint16_t>(level.count / parents)});
}

// Every object but the root is once a child of its parent: where children have consecutive numbers,
// each is one of those that its parent says, and all parents together say as many as there are;
// others are in lists. `listed`: a bit per object.
Error ImageCheck::check_children(std::span<std::uint64_t> listed) {
    const TopologyView& view = view_;
    const std::uint32_t tree = view.tree_objects_;
    bool wrong = !all_equal(view.arity_ + tree, view.objects_ - tree, std::uint16_t{0});
    const bool any_scattered = !all_are(view.flags_, tree, [](ByteLanes flags, std::size_t) {
        return (flags & object_flag::scattered) == 0;
    });
    std::uint32_t scattered = 0; // whose parents have lists
    for (std::uint32_t index = 1; index < view.depth_; ++index) {
        const Level level = view.level(index);
        if (!any_scattered && is_even(level)) {
            continue;
        }
        for (std::uint32_t child = level.first; child < level.first + level.count; ++child) {
            const std::uint32_t parent = view.parent_[child]; // in the tree, as all above it
            const bool is_scattered = view.has(parent, object_flag::scattered);
            const auto place = static_cast<std::uint16_t>(child - view.first_child_[parent]);
            wrong |= (place >= view.arity_[parent]) & !is_scattered;
            scattered += is_scattered ? 1 : 0;
        }
    }
    const std::uint32_t children = loops_.sum16(view.arity_, tree);
    std::uint32_t in_lists = 0;
    if (any_scattered) {
        for (std::uint32_t object = 0; object < tree; ++object) {
            if (view.has(object, object_flag::scattered)) {
                in_lists += view.arity_[object];
                wrong |=
                    !is_list(object, view.first_child_[object], view.arity_[object], true, listed);
            }
        }
    }
    wrong |= in_lists != scattered || children - in_lists != tree - 1 - scattered;
    std::uint64_t others = 0;
    std::uint32_t least = 0; // they are sorted
    for (const OtherChildren& record : view.other_children_) {
        const std::uint32_t its = std::uint32_t{record.memory} + record.io + record.misc;
        others += its;
        wrong |= record.object >= view.objects_;
        wrong |= record.object < least;
        least = record.object + 1U;
        wrong |= !is_sorted_list(record, its) &&
                 !is_list(record.object, record.first, its, false, listed);
    }
    wrong |= others != view.objects_ - tree;
    return wrong ? damaged("impossible children") : Error{};
}

// Two pages of stack that usual machines are not to dirty.
[[gnu::noinline]] Error ImageCheck::check_children_of_many() {
    std::uint64_t listed[max_objects / 64 + 1] = {};
    return check_children(listed);
}

Error ImageCheck::check_children() {
    std::uint64_t few[32] = {};
    return view_.objects_ < 64 * std::size(few) ? check_children(few) : check_children_of_many();
}

} // namespace warren::topology
