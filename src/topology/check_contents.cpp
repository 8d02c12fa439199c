// Checks of the sections that readers follow beside the tree: sets, details, texts, indices,
// distances, attributes.
#include <algorithm>
#include <bit>

#include "topology/image_check.hpp"

namespace warren::topology {

Error ImageCheck::check_sets() {
    const TopologyView& view = view_;
    const std::uint32_t sets = count(Section::sets);
    const std::uint32_t words = count(Section::words);
    // Their last words are in `words`, and of the last possible index; else a difference has the
    // highest bit.
    const std::uint64_t beyond = loops_.beyond(view.sets_, sets, words, (max_os_index + 1) / 64);
    // (No set has the number that says that there is none.)
    bool wrong = beyond >> 63 != 0 || sets > none16;
    // Objects in the tree and memory objects have both sets, all others none.
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
        for (std::uint32_t at = 0; !wrong && type == ObjectType::os_device && at < level.count;
             ++at) {
            wrong = view.details_[place[at]] > WARREN_DEVICE_MEMORY;
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

// The values that the cells, so many, name: they are there, and have origins.
Error ImageCheck::check_values(const AttributeRecord& attribute, std::uint64_t numbers,
                               std::uint64_t values_end) {
    std::uint64_t largest = 0;
    const auto* first = reinterpret_cast<const std::uint8_t*>(view_.index_.attributes);
    const std::uint8_t* cells = first + attribute.cells;
    const std::uint32_t cell_width = cell_bytes(attribute);
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
    return {};
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
    // Both are counted from the first attribute, behind which they are.
    static_assert(Section::attributes < Section::cells && Section::cells < Section::values);
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
    if (Error error = check_values(attribute, numbers, values_end)) {
        return error;
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

} // namespace warren::topology
