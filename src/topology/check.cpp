// TopologyView::check(): everything that readers follow, once, in arrays from begin to end. The
// loops have no way out in their middle, so that processors can do several elements at once.
#include <algorithm>
#include <numeric>

#include "topology/checksum.hpp"
#include "topology/elements.hpp"
#include "topology/view.hpp"

namespace warren::topology {

class ImageCheck {
  public:
    ImageCheck(std::span<const std::byte> image, TopologyView& view) : image_(image), view_(view) {}

    Error run();

  private:
    Error check_header();
    Error read_counts();
    Error find_sections();
    Error check_levels();
    Error check_tree();
    Error check_pairs();
    Error check_places();
    bool is_list(std::uint32_t object, std::uint64_t first, std::uint64_t children, bool in_tree,
                 std::span<std::uint64_t> listed) const;
    bool is_even(const Level& level) const;
    Error check_children();
    Error check_children_of_many();
    Error check_children(std::span<std::uint64_t> listed);
    Error check_sets();
    Error check_details();
    Error check_texts();
    Error check_indices();
    Error check_distances();
    Error check_attributes();
    Error check_attribute(const AttributeRecord& attribute);

    std::uint32_t count(Section section) const {
        return counts_[static_cast<std::size_t>(section)];
    }

    // The next section, of elements of this type. What was before it fitted, so the sum stays below
    // 2^37.
    template <typename Element>
    bool find(Section section, const Element*& elements) {
        elements = reinterpret_cast<const Element*>(image_.data() + offset_);
        const std::uint64_t elements_bytes = std::uint64_t{count(section)} * sizeof(Element);
        if (elements_bytes > image_.size() - offset_) {
            return false;
        }
        offset_ += elements_bytes;
        return true;
    }
    template <typename Element>
    bool find(Section section, std::span<const Element>& elements) {
        const Element* first = nullptr;
        const bool is_there = find(section, first);
        elements = {first, is_there ? count(section) : 0};
        return is_there;
    }

    bool may_look_at(std::uint64_t numbers) {
        looked_at_ += numbers;
        return looked_at_ <= max_looks(image_.size());
    }
    [[gnu::cold]] static Error damaged(const char* what) {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "the topology image is damaged: %s", what);
    }

    const ElementLoops& loops_ = element_loops();
    const std::span<const std::byte> image_;
    TopologyView& view_;
    const Header* header_ = nullptr;
    std::size_t offset_ = sizeof(Header);
    std::uint32_t counts_[section_count] = {};
    const std::uint8_t* cells_ = nullptr;
    const std::uint8_t* values_ = nullptr;
    bool lacks_values_ = false; // what check_attribute looked at last
    // Attributes whose cells and values were found right: others often share them.
    struct Seen {
        AttributeRecord attribute;
        std::uint64_t numbers;
        bool lacks_values;
    };
    static constexpr std::size_t seen_limit = 4;
    Seen seen_[seen_limit];
    std::size_t seen_count_ = 0;
    std::uint64_t looked_at_ = 0; // cells and values of attributes, all together
};

Error ImageCheck::check_header() {
    if (image_.size() < sizeof(Header) || image_.size() > max_image_bytes) {
        return damaged("it has an impossible size");
    }
    header_ = reinterpret_cast<const Header*>(image_.data());
    if (header_->magic != image_magic) {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "this is no topology image");
    }
    if (header_->version != image_version) {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED,
                    "the topology image has version %u, this library reads version %u",
                    header_->version, image_version);
    }
    if (header_->bytes != image_.size() || header_->bytes % 8 != 0) {
        return damaged("it is shorter or longer than it says");
    }
    if (header_->checksum != checksum(image_.data() + checksum_end, image_.size() - checksum_end)) {
        return damaged("its checksum is wrong");
    }
    const bool has_places = header_->place_bits != no_places;
    if (header_->sections != section_count || header_->objects == 0 ||
        header_->objects > max_objects || header_->tree_objects == 0 ||
        header_->tree_objects > header_->objects ||
        (has_places && (header_->place_bits > max_place_bits || header_->parting_kinds == 0)) ||
        header_->has_pairs > (has_places ? 0 : 1) ||
        (header_->has_pairs != 0 && header_->tree_objects > max_paired_objects)) {
        return damaged("impossible counts");
    }
    return {};
}

Error ImageCheck::read_counts() {
    for (std::size_t section = 0; section < section_count; ++section) {
        std::uint32_t shift = 0;
        std::uint8_t byte = is_counted(static_cast<Section>(section)) ? 0x80 : 0;
        for (; (byte & 0x80) != 0; shift += 7) {
            if (offset_ == image_.size() || shift > 21) { // 28 bits are as many as bytes can be
                return damaged("impossible counts");
            }
            byte = static_cast<std::uint8_t>(image_[offset_++]);
            counts_[section] |= std::uint32_t{byte & 0x7fU} << shift;
        }
    }
    for (; offset_ % 8 != 0; ++offset_) { // the image's bytes are a multiple of 8
        if (image_[offset_] != std::byte{0}) {
            return damaged("impossible counts");
        }
    }
    const std::uint32_t objects = header_->objects;
    const bool has_places = header_->place_bits != no_places;
    const auto follows = [this](Section section, std::uint32_t count) {
        counts_[static_cast<std::size_t>(section)] = count;
    };
    follows(Section::allowed, 2);
    for (const Section section : {Section::arity, Section::nodeset_of, Section::os_index,
                                  Section::parent, Section::first_child, Section::cpuset_of,
                                  Section::level_of, Section::flags, Section::nearest}) {
        follows(section, objects);
    }
    const std::uint32_t tree = header_->tree_objects;
    follows(Section::places, has_places || header_->has_pairs != 0 ? tree : 0);
    follows(Section::above, has_places ? tree * header_->parting_kinds : 0);
    follows(Section::partings, has_places ? std::uint32_t{1} << header_->place_bits : 0);
    follows(Section::pairs, header_->has_pairs != 0 ? tree * tree : 0);
    follows(Section::row_by_os, count(Section::pu_by_os));
    return {};
}

Error ImageCheck::find_sections() {
    TopologyView& view = view_;
    view.image_ = image_;
    view.objects_ = header_->objects;
    view.tree_objects_ = header_->tree_objects;
    view.level_count_ = count(Section::levels);
    warren_topology_index& index = view.index_;
    index.objects = view.objects_;
    const bool has_places = header_->place_bits != no_places;
    index.joined_objects = count(Section::places);
    index.joined_others = index.joined_objects;
    const std::uint16_t* above = nullptr;
    const std::uint16_t* partings = nullptr;
    const std::uint8_t* pairs = nullptr;
    index.cpus = count(Section::pu_by_os);
    index.nodes = count(Section::node_by_os);
    index.attribute_count = count(Section::attributes);
    index.initiators = count(Section::initiators);
    // In the order of Section.
    const bool fits =
        find(Section::details, view.details_) && find(Section::words, view.words_) &&
        find(Section::attributes, index.attributes) && find(Section::cells, cells_) &&
        find(Section::values, values_) && offset_ % 8 == 0 && find(Section::sets, view.sets_) &&
        find(Section::infos, view.infos_) && find(Section::distances, view.distances_) &&
        find(Section::cpu_kinds, view.cpu_kinds_) &&
        find(Section::wide_os_indices, view.wide_os_indices_) &&
        find(Section::distance_objects, view.distance_objects_) &&
        find(Section::levels, view.levels_) && find(Section::initiators, view.initiators_) &&
        find(Section::other_children, view.other_children_) &&
        find(Section::complete_sets, view.complete_sets_) &&
        find(Section::allowed, view.allowed_) && find(Section::details_of, view.details_of_) &&
        find(Section::arity, view.arity_) && find(Section::nodeset_of, view.nodeset_of_) &&
        find(Section::os_index, view.os_index_) && find(Section::parent, view.parent_) &&
        find(Section::first_child, view.first_child_) &&
        find(Section::cpuset_of, view.cpuset_of_) && find(Section::places, index.places) &&
        find(Section::above, above) && find(Section::partings, partings) &&
        find(Section::children, view.children_) && find(Section::pu_by_os, index.pu_by_cpu) &&
        find(Section::node_by_os, index.target_by_node) &&
        find(Section::row_by_os, index.initiator_by_cpu) &&
        find(Section::level_of, view.level_of_) && find(Section::flags, view.flags_) &&
        find(Section::nearest, index.nearest) && find(Section::pairs, pairs) &&
        find(Section::distance_bytes, view.distance_bytes_) &&
        find(Section::orders, index.orders) && find(Section::strings, view.strings_) &&
        image_.size() - offset_ < 8;
    index.partings = has_places ? partings : nullptr;
    index.joins = has_places ? static_cast<const void*>(above) : pairs;
    return fits ? Error{} : damaged("a section doesn't fit into it");
}

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
    for (std::uint32_t object = view.tree_objects_; object < view.objects_; ++object) {
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
    const auto first = static_cast<std::uint16_t>(first_parent);
    const std::uint32_t each = level.count / parents;
    // at / each is ⌊at · part / 2^16⌋, with 2^16 / each rounded up, while that is little.
    const std::uint32_t part = (0xffffU + each) / each;
    if (std::uint64_t{level.count} * (part * each - 0x10000U) >= 0x10000U) {
        return false;
    }
    const std::uint16_t* parent = view.parent_ + level.first;
    return (each == 1
                ? loops_.are_steps(parent, level.count, first, 1)
                : loops_.are_parts(parent, level.count, first, static_cast<std::uint16_t>(part))) &&
           loops_.are_steps(view.first_child_ + first, parents,
                            static_cast<std::uint16_t>(level.first),
                            static_cast<std::uint16_t>(each)) &&
           loops_.are_steps(view.arity_ + first, parents, static_cast<std::uint16_t>(each), 0);
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
    const std::uint32_t children = std::accumulate(view.arity_, view.arity_ + tree, 0U);
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
    std::uint32_t before = none;
    for (const OtherChildren& record : view.other_children_) {
        const std::uint64_t its = std::uint64_t{record.memory} + record.io + record.misc;
        others += its;
        wrong |= record.object >= view.objects_ || (before != none && record.object <= before) ||
                 !is_list(record.object, record.first, its, false, listed);
        before = record.object;
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

Error ImageCheck::check_sets() {
    const TopologyView& view = view_;
    const std::uint32_t sets = count(Section::sets);
    const std::uint32_t words = count(Section::words);
    // Their last words are in `words`, and of the last possible index; else a difference has the
    // highest bit.
    const std::uint64_t beyond = loops_.beyond(view.sets_, sets, words, (max_os_index + 1) / 64);
    // (No set has the number that says that there is none.)
    bool wrong = beyond >> 63 != 0 || sets > none16;
    // What is in the tree, or memory, has both sets, anything else none.
    wrong |= !all_below(view.cpuset_of_, view.tree_objects_, sets, loops_) ||
             !all_below(view.nodeset_of_, view.tree_objects_, sets, loops_);
    for (std::uint32_t index = view.depth_; index < view.level_count_; ++index) {
        const Level level = view.level(index);
        const std::uint16_t* cpusets = view.cpuset_of_ + level.first;
        const std::uint16_t* nodesets = view.nodeset_of_ + level.first;
        const bool has_sets = level.type <= static_cast<std::uint32_t>(ObjectType::memory_cache);
        wrong |= has_sets ? !all_below(cpusets, level.count, sets, loops_) ||
                                !all_below(nodesets, level.count, sets, loops_)
                          : !all_equal(cpusets, level.count, none16);
    }
    std::uint32_t before = none;
    for (const CompleteSets& record : view.complete_sets_) {
        wrong |= record.object >= view.objects_ || (before != none && record.object <= before) ||
                 record.cpuset >= sets || record.nodeset >= sets;
        before = record.object;
    }
    for (const CpuKindRecord& kind : view.cpu_kinds_) {
        wrong |= kind.cpuset >= sets;
    }
    for (const InitiatorRecord& initiator : view.initiators_) {
        wrong |= initiator.cpuset >= sets ||
                 (initiator.object != none16 && initiator.object >= view.objects_);
    }
    wrong |= view.allowed_[0] >= sets || view.allowed_[1] >= sets;
    return wrong ? damaged("impossible sets") : Error{};
}

Error ImageCheck::check_details() {
    const TopologyView& view = view_;
    const std::uint32_t details = count(Section::details);
    const std::uint32_t places = count(Section::details_of);
    bool wrong = false;
    for (std::uint32_t index = 0; index < view.level_count_; ++index) {
        const LevelRecord& level = view.levels_[index];
        const auto type = static_cast<ObjectType>(level.type);
        const std::uint32_t words = detail_words(type);
        if (words == 0) {
            continue;
        }
        if (level.details > places || level.count > places - level.details) {
            return damaged("impossible details");
        }
        const std::uint16_t* place = view.details_of_ + level.details;
        wrong |= details < words || !all_below(place, level.count, details - words + 1, loops_);
        for (std::uint32_t at = 0; !wrong && type == ObjectType::numa_node && at < level.count;
             ++at) {
            wrong = view.details_[place[at] + 1] > (details - place[at] - words) / 2;
        }
    }
    return wrong ? damaged("impossible details") : Error{};
}

Error ImageCheck::check_texts() {
    const TopologyView& view = view_;
    const std::uint32_t bytes = count(Section::strings);
    bool wrong = bytes == 0 || view.strings_[bytes - 1] != '\0' || view.strings_[0] != '\0';
    std::uint32_t before = 0;
    for (const InfoRecord& record : view.infos_) {
        wrong |= record.name >= bytes || record.value >= bytes || record.object < before ||
                 (record.object != none16 && record.object >= view.objects_);
        before = record.object;
    }
    std::uint64_t of_kinds = 0;
    for (const CpuKindRecord& kind : view.cpu_kinds_) {
        of_kinds += kind.infos;
        wrong |= kind.first_info > view.infos_.size() ||
                 kind.infos > view.infos_.size() - kind.first_info;
    }
    wrong |= of_kinds > view.infos_.size();
    for (const DistancesRecord& matrix : view.distances_) {
        wrong |= matrix.name >= bytes;
    }
    for (const AttributeRecord& attribute : view.attributes()) {
        wrong |= attribute.name >= bytes;
    }
    return wrong ? damaged("impossible texts") : Error{};
}

Error ImageCheck::check_indices() {
    const TopologyView& view = view_;
    const warren_topology_index& own = view.index_;
    bool wrong = own.cpus > max_os_index + 1 || own.nodes > max_os_index + 1;
    // The objects of a level, none if it is empty.
    const auto range = [&view](ObjectType type) {
        const std::uint32_t index = view.first_level(type);
        return index < view.level_count_ ? view.level(index) : Level{};
    };
    const Level pus = range(ObjectType::pu);
    const auto first_pu = static_cast<std::uint16_t>(pus.first);
    const auto pu_count = static_cast<std::uint16_t>(pus.count);
    wrong |= !all_are(own.pu_by_cpu, own.cpus, [=](ShortLanes objects, std::size_t) {
        return (objects - first_pu < pu_count) | (objects == none16);
    });
    // -1 is none.
    wrong |= !all_below_or_none(reinterpret_cast<const std::uint16_t*>(own.target_by_node),
                                own.nodes, own.targets) ||
             !all_below_or_none(reinterpret_cast<const std::uint16_t*>(own.initiator_by_cpu),
                                own.cpus, own.initiators);
    std::uint32_t before = none;
    for (const WideOsIndex& wide : view.wide_os_indices_) {
        wrong |= wide.object >= view.objects_ || (before != none && wide.object <= before);
        before = wide.object;
    }
    wrong |= own.initiators > max_targets;
    return wrong ? damaged("impossible indices") : Error{};
}

Error ImageCheck::check_distances() {
    const TopologyView& view = view_;
    const std::uint64_t places = count(Section::distance_objects);
    const std::uint64_t bytes = count(Section::distance_bytes);
    bool wrong = false;
    for (std::uint64_t at = 0; at < places; ++at) {
        wrong |= view.distance_objects_[at] >= view.objects_;
    }
    for (const DistancesRecord& matrix : view.distances_) {
        const bool has_width = std::has_single_bit(matrix.width) && matrix.width <= 8;
        const std::uint64_t numbers = std::uint64_t{matrix.count} * matrix.count;
        wrong |= !has_width || std::uint64_t{matrix.objects} + matrix.count > places ||
                 matrix.bytes > bytes ||
                 numbers > (bytes - matrix.bytes) / std::max(matrix.width, 1U);
    }
    return wrong ? damaged("impossible distances") : Error{};
}

Error ImageCheck::check_attribute(const AttributeRecord& attribute) {
    const warren_topology_index& own = view_.index_;
    const auto is_width = [](std::uint32_t bytes, std::uint32_t most) {
        return std::has_single_bit(bytes) && bytes <= most;
    };
    const std::uint64_t numbers =
        std::uint64_t{is_by_initiator(attribute) ? own.initiators : 1} * own.targets;
    const std::uint32_t cell_width = cell_bytes(attribute);
    const std::uint32_t value_width = attribute.value_stride - 1U;
    // Both are counted from the first attribute.
    const auto* first = reinterpret_cast<const std::uint8_t*>(own.attributes);
    const auto cells_begin = static_cast<std::uint64_t>(cells_ - first);
    const auto values_begin = static_cast<std::uint64_t>(values_ - first);
    const std::uint64_t values_end = values_begin + count(Section::values);
    const std::uint64_t order_end = (std::uint64_t{attribute.order} + 1) * own.initiators *
                                    own.targets * order_width(own.targets);
    const bool fits = is_width(cell_width, 4) && is_width(value_width, 8) &&
                      attribute.row == row_of(attribute, own.targets) &&
                      attribute.cells >= cells_begin &&
                      attribute.cells + numbers * cell_width <= values_begin &&
                      attribute.values >= values_begin && order_end <= count(Section::orders);
    if (!fits) {
        return damaged("an attribute doesn't fit");
    }
    if (numbers == 0) {
        return {};
    }
    const auto* same = std::find_if(seen_, seen_ + seen_count_, [&](const Seen& seen) {
        return seen.attribute.cells == attribute.cells &&
               seen.attribute.values == attribute.values && seen.numbers == numbers &&
               cell_bytes(seen.attribute) == cell_width &&
               seen.attribute.value_stride == attribute.value_stride;
    });
    if (same != seen_ + seen_count_) {
        lacks_values_ = same->lacks_values;
        return {};
    }
    if (!may_look_at(numbers)) {
        return damaged("its attributes have too many pairs in common");
    }
    std::uint64_t largest = 0;
    const std::uint8_t* cells = first + attribute.cells;
    if (cell_width == 1) {
        largest = loops_.largest8(cells, numbers);
    } else {
        for (std::uint64_t at = 0; at < numbers; ++at) {
            largest = std::max(largest, TopologyView::number(cells, cell_width, at));
        }
    }
    // Eight bytes can be read where the last begins, behind its origin.
    const std::uint64_t last = attribute.values + largest * attribute.value_stride;
    if (last + 1 + sizeof(std::uint64_t) > values_end) {
        return damaged("impossible values");
    }
    if (!may_look_at(largest)) {
        return damaged("its attributes have too many values in common");
    }
    std::uint8_t largest_origin = 0;
    std::uint8_t smallest_origin = WARREN_ORIGIN_GUESSED;
    for (std::uint64_t value = 0; value <= largest; ++value) {
        const std::uint8_t origin = first[attribute.values + value * attribute.value_stride];
        largest_origin = std::max(largest_origin, origin);
        smallest_origin = std::min(smallest_origin, origin);
    }
    lacks_values_ = smallest_origin == 0;
    if (largest_origin > WARREN_ORIGIN_GUESSED) {
        return damaged("impossible values");
    }
    if (seen_count_ < seen_limit) {
        seen_[seen_count_++] = {attribute, numbers, lacks_values_};
    }
    return {};
}

Error ImageCheck::check_attributes() {
    const TopologyView& view = view_;
    if (view.index_.attribute_count > max_attributes) {
        return damaged("more attributes than there may be");
    }
    std::uint32_t shorts = 0;
    for (const AttributeRecord& attribute : view.attributes()) {
        if (Error error = check_attribute(attribute)) {
            return error;
        }
        const bool is_predefined =
            &attribute - view.index_.attributes < WARREN_ATTRIBUTE_FIRST_OTHER;
        shorts +=
            is_predefined && !lacks_values_ && is_short(attribute, view.index_.targets) ? 1 : 0;
    }
    if (shorts == WARREN_ATTRIBUTE_FIRST_OTHER) {
        view_.index_.short_initiators = view.index_.initiators;
        const auto* first = reinterpret_cast<const std::uint8_t*>(view.index_.attributes);
        for (std::uint32_t index = 0; index < shorts; ++index) {
            const AttributeRecord& attribute = view.index_.attributes[index];
            const std::uint32_t bits = (attribute.value_stride - 1U) * 8;
            view_.index_.short_values[index] = {.cells = first + attribute.cells,
                                                .values = first + attribute.values,
                                                .mask = UINT64_MAX >> (64 - bits),
                                                .row = attribute.row,
                                                .value_stride = attribute.value_stride};
        }
    }
    bool wrong = false;
    const std::uint32_t targets = view.index_.targets;
    const std::uint32_t width = order_width(targets);
    const std::uint32_t orders = count(Section::orders) / width;
    wrong |= count(Section::orders) % width != 0;
    wrong |= width == 1 ? !all_below(view.index_.orders, orders, targets, loops_) : false;
    for (std::uint32_t at = 0; width != 1 && at < orders; ++at) { // perhaps at odd addresses
        wrong |= TopologyView::number(view.index_.orders, width, at) >= targets;
    }
    return wrong ? damaged("impossible values") : Error{};
}

Error ImageCheck::run() {
    if (reinterpret_cast<std::uintptr_t>(image_.data()) % 8 != 0) {
        return damaged("it doesn't begin at a multiple of 8");
    }
    for (Error (ImageCheck::*step)() :
         {&ImageCheck::check_header, &ImageCheck::read_counts, &ImageCheck::find_sections,
          &ImageCheck::check_levels, &ImageCheck::check_tree, &ImageCheck::check_pairs,
          &ImageCheck::check_places, &ImageCheck::check_children, &ImageCheck::check_sets,
          &ImageCheck::check_details, &ImageCheck::check_texts, &ImageCheck::check_indices,
          &ImageCheck::check_distances, &ImageCheck::check_attributes}) {
        if (Error error = (this->*step)()) {
            return error;
        }
    }
    return {};
}

Error TopologyView::check(std::span<const std::byte> image, TopologyView& view) {
    TopologyView candidate;
    ImageCheck check(image, candidate);
    if (Error error = check.run()) {
        return error;
    }
    view = candidate;
    return {};
}

} // namespace warren::topology
