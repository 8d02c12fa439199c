#include "topology/view.hpp"

#include <bit>

namespace warren::topology {

namespace {

// Whether `visit` was true for every member; ends with the first for which it is not.
template <typename Visit>
bool each_member(const warren_set& set, Visit visit) {
    for (std::uint32_t word = 0; word < set.count; ++word) {
        for (std::uint64_t bits = set.words[word]; bits != 0; bits &= bits - 1) {
            const auto bit = static_cast<std::uint32_t>(std::countr_zero(bits));
            if (!visit((set.first + word) * 64 + bit)) {
                return false;
            }
        }
    }
    return true;
}

} // namespace

std::uint32_t TopologyView::count(ObjectType type) const {
    std::uint32_t sum = 0;
    for (std::uint32_t index = first_level(type); index < level_count_; index = next_level(index)) {
        sum += levels_[index].count;
    }
    return sum;
}

std::uint32_t TopologyView::object(ObjectType type, std::uint32_t index) const {
    for (std::uint32_t level = first_level(type); level < level_count_; level = next_level(level)) {
        if (index < levels_[level].count) {
            return levels_[level].first + index;
        }
        index -= levels_[level].count;
    }
    return none;
}

std::uint32_t TopologyView::by_os_index(ObjectType type, std::uint32_t os_index) const {
    if (type == ObjectType::pu) {
        return os_index < index_.cpus ? widen(index_.pu_by_cpu[os_index]) : none;
    }
    if (type == ObjectType::numa_node) {
        const std::uint32_t target = target_of_node(os_index);
        return target == none ? none : target_object(target);
    }
    if (os_index == none) {
        return none;
    }
    if (os_index >= wide16) {
        for (const WideOsIndex& wide : wide_os_indices_) {
            if (wide.os_index == os_index && this->type(wide.object) == type) {
                return wide.object;
            }
        }
        return none;
    }
    for (std::uint32_t level = first_level(type); level < level_count_; level = next_level(level)) {
        const std::uint16_t* first = os_index_ + levels_[level].first;
        const std::uint16_t* end = first + levels_[level].count;
        const std::uint16_t* found = std::find(first, end, static_cast<std::uint16_t>(os_index));
        if (found != end) {
            return static_cast<std::uint32_t>(found - os_index_);
        }
    }
    return none;
}

std::uint32_t TopologyView::next(ObjectType type, std::uint32_t object) const {
    std::uint32_t level = first_level(type);
    if (object != none) {
        level = level_of_[object];
        if (levels_[level].type != static_cast<std::uint32_t>(type)) {
            return none;
        }
        if (object + 1 < levels_[level].first + levels_[level].count) {
            return object + 1;
        }
        level = next_level(level);
    }
    return level < level_count_ ? levels_[level].first : none;
}

std::uint32_t TopologyView::wide_os_index(std::uint32_t object) const {
    const auto found = std::lower_bound(
        wide_os_indices_.begin(), wide_os_indices_.end(), object,
        [](const WideOsIndex& record, std::uint32_t number) { return record.object < number; });
    return found != wide_os_indices_.end() && found->object == object ? found->os_index : none;
}

const OtherChildren& TopologyView::others(std::uint32_t object) const {
    static constexpr OtherChildren nothing{};
    if (!has(object, object_flag::has_others)) {
        return nothing;
    }
    const auto found = std::lower_bound(
        other_children_.begin(), other_children_.end(), object,
        [](const OtherChildren& record, std::uint32_t number) { return record.object < number; });
    return found != other_children_.end() && found->object == object ? *found : nothing;
}

std::uint32_t TopologyView::child_count(std::uint32_t object, int kind) const {
    switch (kind) {
    case WARREN_CHILD_TREE:
        return arity_[object];
    case WARREN_CHILD_MEMORY:
        return others(object).memory;
    case WARREN_CHILD_IO:
        return others(object).io;
    default:
        return others(object).misc;
    }
}

std::uint32_t TopologyView::child(std::uint32_t object, int kind, std::uint32_t index) const {
    if (kind == WARREN_CHILD_TREE) {
        const std::uint32_t place = first_child_[object] + index;
        return has(object, object_flag::scattered) ? children_[place] : place;
    }
    const OtherChildren& record = others(object);
    const std::uint32_t before = kind == WARREN_CHILD_MEMORY ? 0
                                 : kind == WARREN_CHILD_IO
                                     ? record.memory
                                     : std::uint32_t{record.memory} + record.io;
    return children_[record.first + before + index];
}

std::uint32_t TopologyView::next_sibling(std::uint32_t object) const {
    const std::uint32_t above = parent(object);
    if (above == none) {
        return none;
    }
    const std::uint32_t first = first_child_[above];
    const std::uint32_t count = arity_[above];
    std::uint32_t index = object - first; // wraps for what is none of the children
    if (has(above, object_flag::scattered)) {
        // The last place where it is, so that even a list that has it twice comes to an end.
        index = count;
        while (index > 0 && children_[first + index - 1] != object) {
            --index;
        }
        --index;
    }
    return index < count && index + 1 < count ? child(above, WARREN_CHILD_TREE, index + 1) : none;
}

const CompleteSets* TopologyView::complete(std::uint32_t object) const {
    if (!has(object, object_flag::incomplete)) {
        return nullptr;
    }
    const auto found = std::lower_bound(
        complete_sets_.begin(), complete_sets_.end(), object,
        [](const CompleteSets& record, std::uint32_t number) { return record.object < number; });
    return found != complete_sets_.end() && found->object == object ? &*found : nullptr;
}

warren_set TopologyView::complete_cpus(std::uint32_t object) const {
    const CompleteSets* record = complete(with_sets(object));
    return record != nullptr ? set(record->cpuset) : cpus(object);
}

warren_set TopologyView::complete_nodes(std::uint32_t object) const {
    const CompleteSets* record = complete(with_sets(object));
    return record != nullptr ? set(record->nodeset) : nodes(object);
}

std::uint32_t TopologyView::ancestor(std::uint32_t object, ObjectType type) const {
    do {
        object = parent(object);
    } while (object != none && this->type(object) != type);
    return object;
}

std::uint32_t TopologyView::common_ancestor(std::uint32_t one, std::uint32_t other) const {
    const std::uint32_t common = warren_topology_join(&index_, one, other);
    if (common != none) {
        return common;
    }
    // Parents have smaller numbers: the larger one goes up.
    while (one != other) {
        std::uint32_t& larger = one > other ? one : other;
        larger = parent(larger);
    }
    return one;
}

bool TopologyView::is_below(std::uint32_t object, std::uint32_t ancestor) const {
    return common_ancestor(object, ancestor) == ancestor;
}

std::uint32_t TopologyView::covering(const warren_set& cpus) const {
    // Processing units are numbered in the tree's order: what is above the first and the last is
    // above all.
    std::uint32_t first = none;
    std::uint32_t last = 0;
    const bool all_known = each_member(cpus, [&](std::uint32_t cpu) {
        const std::uint32_t object = cpu < index_.cpus ? widen(index_.pu_by_cpu[cpu]) : none;
        if (object == none) {
            return false;
        }
        first = std::min(first, object);
        last = std::max(last, object);
        return true;
    });
    return all_known && first != none ? common_ancestor(first, last) : none;
}

std::span<const InfoRecord> TopologyView::all_infos(std::uint32_t object) const {
    if (object != none && !has(object, object_flag::has_infos)) {
        return {};
    }
    const auto key = static_cast<std::uint16_t>(object); // none16: of the topology
    const auto first = std::lower_bound(
        infos_.begin(), infos_.end(), key,
        [](const InfoRecord& record, std::uint16_t number) { return record.object < number; });
    auto end = first;
    while (end != infos_.end() && end->object == key) {
        ++end;
    }
    return {first, end};
}

std::span<const InfoRecord> TopologyView::infos(std::uint32_t object) const {
    std::span<const InfoRecord> all = all_infos(object);
    if (object == none) { // those of kinds of processors come first
        for (const CpuKindRecord& kind : cpu_kinds_) {
            all = all.subspan(std::min<std::size_t>(kind.infos, all.size()));
        }
        return all;
    }
    while (!all.empty() && is_own_key(string(all.front().name))) {
        all = all.subspan(1);
    }
    return all;
}

const char* TopologyView::info(std::uint32_t object, std::string_view name) const {
    const bool is_own = name == name_key || name == subtype_key;
    for (const InfoRecord& record : is_own ? all_infos(object) : infos(object)) {
        if (name == string(record.name)) {
            return string(record.value);
        }
    }
    return nullptr;
}

std::uint64_t TopologyView::memory_bytes(std::uint32_t object) const {
    std::uint64_t sum = 0;
    for (std::uint32_t target = 0; target < index_.targets; ++target) {
        const std::uint32_t node = target_object(target);
        if (is_below(node, object)) {
            sum += details(node)[0];
        }
    }
    return sum;
}

std::uint32_t TopologyView::initiator_of_cpus(const warren_set& cpus) const {
    std::uint32_t row = none;
    const bool alike = each_member(cpus, [&](std::uint32_t cpu) {
        const std::uint32_t own = initiator_of_cpu(cpu);
        const bool fits = own != none && (row == none || own == row);
        row = own;
        return fits;
    });
    return alike ? row : none;
}

std::uint32_t TopologyView::nearest_memory(std::uint32_t object) const {
    if (index_.nearest[object] != no_nearest) {
        return target_object(index_.nearest[object]);
    }
    return nearest_of_initiator(initiator_of_cpu(warren_set_next(cpus(object), 0)));
}

std::uint32_t TopologyView::nearest_of_initiator(std::uint32_t initiator) const {
    return initiator < index_.initiators && index_.targets > 0 &&
                   index_.attribute_count > WARREN_ATTRIBUTE_LOCALITY
               ? target_object(
                     ordered_target(index_.attributes[WARREN_ATTRIBUTE_LOCALITY], initiator, 0))
               : none;
}

std::uint32_t TopologyView::initiator_of_object(std::uint32_t object) const {
    // Devices that are initiators come behind the processors, and are few.
    for (std::size_t row = initiators_.size(); row > 0 && initiators_[row - 1].object != none16;
         --row) {
        if (initiators_[row - 1].object == object) {
            return static_cast<std::uint32_t>(row - 1);
        }
    }
    return initiator_of_cpus(cpus(object));
}

} // namespace warren::topology
