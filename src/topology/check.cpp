// TopologyView::check(): everything that readers follow, once, in arrays from begin to end. The
// loops have no way out in their middle, so that the compiler can do several elements at once.
#include "topology/checksum.hpp"
#include "topology/view.hpp"

namespace warren::topology {

class ImageCheck {
  public:
    ImageCheck(std::span<const std::byte> image, TopologyView& view) : image_(image), view_(view) {}

    Error run();

  private:
    Error check_header();
    Error find_sections();
    Error check_levels();
    Error check_tree();
    Error check_places();
    Error check_children();
    Error check_sets();
    Error check_details();
    Error check_texts();
    Error check_indices();
    Error check_distances();
    Error check_attributes();
    Error check_attribute(const AttributeRecord& attribute);

    std::uint32_t count(Section section) const {
        return header_->counts[static_cast<std::size_t>(section)];
    }

    // The next section, of elements of this type, of as many as there should be (any: whatever it
    // says). What was before it fitted, so the sum stays below 2^37.
    template <typename Element>
    bool find(Section section, const Element*& elements, std::uint64_t expected = any) {
        elements = reinterpret_cast<const Element*>(image_.data() + offset_);
        const std::uint64_t elements_bytes = std::uint64_t{count(section)} * sizeof(Element);
        if (elements_bytes > image_.size() - offset_ ||
            (expected != any && count(section) != expected)) {
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

    static constexpr std::uint64_t any = ~std::uint64_t{0};

    [[gnu::cold]] static Error damaged(const char* what) {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "the topology image is damaged: %s", what);
    }

    const std::span<const std::byte> image_;
    TopologyView& view_;
    const Header* header_ = nullptr;
    std::size_t offset_ = sizeof(Header);
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
    if (header_->section_records != section_count || header_->objects == 0 ||
        header_->objects > max_objects || header_->tree_objects == 0 ||
        header_->tree_objects > header_->objects ||
        (header_->place_bits > max_place_bits && header_->place_bits != no_places)) {
        return damaged("impossible counts");
    }
    return {};
}

Error ImageCheck::find_sections() {
    TopologyView& view = view_;
    view.image_ = image_;
    view.objects_ = header_->objects;
    view.tree_objects_ = header_->tree_objects;
    view.index_.placed_objects = header_->place_bits == no_places ? 0 : view.tree_objects_;
    view.level_count_ = count(Section::levels);
    view.cpus_by_os_ = count(Section::pu_by_os);
    view.nodes_by_os_ = count(Section::node_by_os);
    const std::uint64_t objects = view.objects_;
    const std::uint64_t branches =
        view.index_.placed_objects == 0 ? 0 : std::uint64_t{2} << header_->place_bits;
    // In the order of Section.
    const bool fits =
        find(Section::details, view.details_) && find(Section::words, view.words_) &&
        find(Section::values, view.values_) && find(Section::sets, view.sets_) &&
        find(Section::infos, view.infos_) && find(Section::distances, view.distances_) &&
        find(Section::cpu_kinds, view.cpu_kinds_) && find(Section::attributes, view.attributes_) &&
        find(Section::wide_os_indices, view.wide_os_indices_) &&
        find(Section::distance_objects, view.distance_objects_) &&
        find(Section::levels, view.levels_) && find(Section::initiators, view.initiators_) &&
        find(Section::other_children, view.other_children_) &&
        find(Section::complete_sets, view.complete_sets_) &&
        find(Section::allowed, view.allowed_, 2) && find(Section::arity, view.arity_, objects) &&
        find(Section::details_of, view.details_of_, objects) &&
        find(Section::nodeset_of, view.nodeset_of_, objects) &&
        find(Section::os_index, view.os_index_, objects) &&
        find(Section::parent, view.parent_, objects) &&
        find(Section::first_child, view.first_child_, objects) &&
        find(Section::cpuset_of, view.cpuset_of_, objects) &&
        find(Section::places, view.index_.places, view.index_.placed_objects) &&
        find(Section::branches, view.index_.branches, branches) &&
        find(Section::children, view.children_) && find(Section::pu_by_os, view.pu_by_os_) &&
        find(Section::node_by_os, view.node_by_os_) &&
        find(Section::row_by_os, view.row_by_os_, view.cpus_by_os_) &&
        find(Section::level_of, view.level_of_, objects) &&
        find(Section::flags, view.flags_, objects) &&
        find(Section::value_origins, view.value_origins_, count(Section::values)) &&
        find(Section::distance_bytes, view.distance_bytes_) && find(Section::cells, view.cells_) &&
        find(Section::orders, view.orders_) && find(Section::strings, view.strings_) &&
        image_.size() - offset_ < 8;
    return fits ? Error{} : damaged("a section doesn't fit into it");
}

Error ImageCheck::check_levels() {
    TopologyView& view = view_;
    bool wrong = view.level_count_ == 0 || view.level_count_ > 255;
    if (wrong) {
        return damaged("impossible levels");
    }
    std::fill_n(view.first_level_, object_types, static_cast<std::uint8_t>(view.level_count_));
    view.targets_ = 0;
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
            wrong |= level.depth != -static_cast<std::int32_t>(level.type) || !is_first ||
                     number < view.tree_objects_;
        } else {
            wrong |= level.depth != static_cast<std::int32_t>(index) ||
                     level.count > view.tree_objects_ - std::min(number, view.tree_objects_);
            view.depth_ = index + 1;
        }
        if (is_first) {
            first = static_cast<std::uint8_t>(index);
        }
        if (type == ObjectType::numa_node) {
            view.targets_ = level.count;
            view.first_target_ = level.first;
        }
        const std::uint8_t* level_of = view.level_of_ + number;
        for (std::uint32_t at = 0; at < level.count; ++at) {
            wrong |= level_of[at] != index;
        }
        number += level.count;
    }
    wrong |= number != view.objects_ || view.levels_[0].count != 1 || view.depth_ == 0 ||
             view.levels_[view.depth_ - 1].first + view.levels_[view.depth_ - 1].count !=
                 view.tree_objects_ ||
             view.targets_ > max_targets;
    return wrong ? damaged("impossible levels") : Error{};
}

Error ImageCheck::check_tree() {
    const TopologyView& view = view_;
    bool wrong = view.parent_[0] != none16;
    for (std::uint32_t object = 1; object < view.objects_; ++object) {
        wrong |= view.parent_[object] >= object;
    }
    std::uint8_t flags = 0;
    for (std::uint32_t object = 0; object < view.objects_; ++object) {
        flags |= view.flags_[object];
    }
    wrong |= (flags & ~object_flag::all) != 0;
    if (wrong) {
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

Error ImageCheck::check_places() {
    const TopologyView& view = view_;
    std::uint32_t wrong = 0;
    for (std::uint32_t object = 0; object < view.index_.placed_objects; ++object) {
        wrong |= static_cast<std::uint32_t>(view.index_.places[object]) >> header_->place_bits ^ 1;
    }
    const auto last = static_cast<std::uint16_t>(view.tree_objects_ - 1);
    std::uint16_t excess = 0; // processors subtract so, and find no maximum as fast
    const std::uint32_t parting = count(Section::branches) / 2;
    for (std::uint32_t at = 0; at < parting; ++at) {
        const std::uint16_t branch = view.index_.branches[at];
        excess |= static_cast<std::uint16_t>(branch > last ? branch - last : 0);
    }
    for (std::uint32_t at = parting; at < 2 * parting; ++at) {
        excess |= static_cast<std::uint16_t>(~view.index_.branches[at]);
    }
    return wrong != 0 || excess != 0 ? damaged("impossible places") : Error{};
}

// Every object but the root is once a child of its parent.
Error ImageCheck::check_children() {
    const TopologyView& view = view_;
    const std::uint32_t listed = count(Section::children);
    std::uint64_t seen = 1;
    bool wrong = false;
    const auto check_list = [&](std::uint32_t object, std::uint64_t first, std::uint64_t children,
                                bool in_tree) {
        if (first > listed || children > listed - first) {
            return true;
        }
        bool is_wrong = false;
        for (std::uint64_t at = first; at < first + children; ++at) {
            const std::uint32_t child = view.children_[at];
            is_wrong |= child >= view.objects_ || view.parent_[child] != object ||
                        view.is_in_tree(child) != in_tree;
        }
        return is_wrong;
    };
    for (std::uint32_t object = 0; object < view.objects_; ++object) {
        const std::uint32_t children = view.arity_[object];
        if (children == 0) {
            continue;
        }
        seen += children;
        const std::uint32_t first = view.first_child_[object];
        if (view.has(object, object_flag::scattered)) {
            wrong |= check_list(object, first, children, true);
        } else if (first >= view.tree_objects_ || children > view.tree_objects_ - first) {
            wrong = true;
        } else {
            for (std::uint32_t child = first; child < first + children; ++child) {
                wrong |= view.parent_[child] != object;
            }
        }
    }
    std::uint32_t before = none;
    for (const OtherChildren& record : view.other_children_) {
        const std::uint64_t children = std::uint64_t{record.memory} + record.io + record.misc;
        seen += children;
        wrong |= record.object >= view.objects_ || (before != none && record.object <= before) ||
                 check_list(record.object, record.first, children, false);
        before = record.object;
    }
    return wrong || seen != view.objects_ ? damaged("impossible children") : Error{};
}

Error ImageCheck::check_sets() {
    const TopologyView& view = view_;
    const std::uint32_t sets = count(Section::sets);
    const std::uint32_t words = count(Section::words);
    bool wrong = false;
    for (std::uint32_t index = 0; index < sets; ++index) {
        const SetRecord set = view.sets_[index];
        wrong |= (set.word > words) | (set.count > words - set.word) |
                 (std::uint32_t{set.first} + set.count > (max_os_index + 1) / 64);
    }
    // What is in the tree, or memory, has both sets, anything else none.
    for (std::uint32_t index = 0; index < view.level_count_; ++index) {
        const Level level = view.level(index);
        const auto type = static_cast<ObjectType>(level.type);
        const bool has_sets = type <= ObjectType::memory_cache;
        const std::uint16_t* cpusets = view.cpuset_of_ + level.first;
        const std::uint16_t* nodesets = view.nodeset_of_ + level.first;
        std::uint16_t largest = 0;
        std::uint16_t smallest = none16;
        std::uint16_t largest_nodeset = 0;
        for (std::uint32_t at = 0; at < level.count; ++at) {
            largest = std::max(largest, cpusets[at]);
            smallest = std::min(smallest, cpusets[at]);
        }
        for (std::uint32_t at = 0; at < level.count; ++at) {
            largest_nodeset = std::max(largest_nodeset, nodesets[at]);
        }
        wrong |= has_sets ? largest >= sets || largest_nodeset >= sets : smallest != none16;
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
    bool wrong = false;
    for (std::uint32_t index = 0; index < view.level_count_; ++index) {
        const Level level = view.level(index);
        const auto type = static_cast<ObjectType>(level.type);
        const std::uint32_t words = detail_words(type);
        const std::uint16_t* place = view.details_of_ + level.first;
        for (std::uint32_t at = 0; at < level.count; ++at) {
            wrong |= words == 0 ? place[at] != none16
                                : place[at] == none16 || place[at] + words > details;
        }
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
    for (const AttributeRecord& attribute : view.attributes_) {
        wrong |= attribute.name >= bytes;
    }
    return wrong ? damaged("impossible texts") : Error{};
}

Error ImageCheck::check_indices() {
    const TopologyView& view = view_;
    bool wrong = view.cpus_by_os_ > max_os_index + 1 || view.nodes_by_os_ > max_os_index + 1;
    // The objects of a level, none if it is empty.
    const auto range = [&view](ObjectType type) {
        const std::uint32_t index = view.first_level(type);
        return index < view.level_count_ ? view.level(index) : Level{};
    };
    const Level pus = range(ObjectType::pu);
    for (std::uint32_t at = 0; at < view.cpus_by_os_; ++at) {
        const std::uint16_t object = view.pu_by_os_[at];
        wrong |= (object != none16) & (object - pus.first >= pus.count);
    }
    const Level nodes = range(ObjectType::numa_node);
    for (std::uint32_t at = 0; at < view.nodes_by_os_; ++at) {
        const std::uint16_t object = view.node_by_os_[at];
        wrong |= (object != none16) & (object - nodes.first >= nodes.count);
    }
    const auto rows = static_cast<std::uint32_t>(view.initiators_.size());
    for (std::uint32_t at = 0; at < view.cpus_by_os_; ++at) {
        const std::uint16_t row = view.row_by_os_[at];
        wrong |= (row != none16) & (row >= rows);
    }
    std::uint32_t before = none;
    for (const WideOsIndex& wide : view.wide_os_indices_) {
        wrong |= wide.object >= view.objects_ || (before != none && wide.object <= before);
        before = wide.object;
    }
    wrong |= rows > max_targets;
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
    const TopologyView& view = view_;
    const std::uint64_t rows = view.initiators_.size();
    const std::uint64_t numbers = std::uint64_t{attribute.rows} * view.targets_;
    const std::uint64_t bytes = count(Section::cells);
    const std::uint64_t values = count(Section::values);
    const std::uint64_t orders = count(Section::orders) / order_width(view.targets_);
    const bool fits =
        (attribute.rows == 1 || attribute.rows == rows) && std::has_single_bit(attribute.width) &&
        attribute.width <= 4 && attribute.cells <= bytes &&
        numbers <= (bytes - attribute.cells) / attribute.width && attribute.values <= values &&
        attribute.value_count <= values - attribute.values && attribute.order <= orders &&
        rows * view.targets_ <= orders - attribute.order;
    if (!fits) {
        return damaged("an attribute doesn't fit");
    }
    std::uint64_t largest = 0;
    const std::uint8_t* cells = view.cells_ + attribute.cells;
    if (attribute.width == 1) {
        std::uint8_t byte = 0;
        for (std::uint64_t at = 0; at < numbers; ++at) {
            byte = std::max(byte, cells[at]);
        }
        largest = byte;
    } else {
        for (std::uint64_t at = 0; at < numbers; ++at) {
            largest = std::max(largest, TopologyView::number(cells, attribute.width, at));
        }
    }
    return numbers > 0 && largest >= attribute.value_count ? damaged("impossible values") : Error{};
}

Error ImageCheck::check_attributes() {
    const TopologyView& view = view_;
    for (const AttributeRecord& attribute : view.attributes_) {
        if (Error error = check_attribute(attribute)) {
            return error;
        }
    }
    bool wrong = false;
    const std::uint32_t width = order_width(view.targets_);
    const std::uint32_t orders = count(Section::orders) / width;
    wrong |= count(Section::orders) % width != 0;
    if (width == 1) {
        for (std::uint32_t at = 0; at < orders; ++at) {
            wrong |= view.orders_[at] >= view.targets_;
        }
    } else {
        for (std::uint32_t at = 0; at < orders; ++at) {
            wrong |= TopologyView::number(view.orders_, width, at) >= view.targets_;
        }
    }
    const std::uint32_t values = count(Section::values);
    for (std::uint32_t at = 0; at < values; ++at) {
        wrong |= view.value_origins_[at] > WARREN_ORIGIN_GUESSED;
    }
    return wrong ? damaged("impossible values") : Error{};
}

Error ImageCheck::run() {
    if (reinterpret_cast<std::uintptr_t>(image_.data()) % 8 != 0) {
        return damaged("it doesn't begin at a multiple of 8");
    }
    for (Error (ImageCheck::*step)() :
         {&ImageCheck::check_header, &ImageCheck::find_sections, &ImageCheck::check_levels,
          &ImageCheck::check_tree, &ImageCheck::check_places, &ImageCheck::check_children,
          &ImageCheck::check_sets, &ImageCheck::check_details, &ImageCheck::check_texts,
          &ImageCheck::check_indices, &ImageCheck::check_distances,
          &ImageCheck::check_attributes}) {
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
