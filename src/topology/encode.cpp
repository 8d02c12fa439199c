#include "topology/encode.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "topology/details.hpp"
#include "topology/encoder.hpp"

namespace warren::topology {

std::uint32_t Encoder::string(const std::string& text) {
    const auto [entry, is_new] =
        string_index_.try_emplace(text.c_str(), static_cast<std::uint32_t>(strings_.size()));
    if (is_new) {
        // Up to a null character within, as its readers would see it.
        const char* begin = text.c_str();
        strings_.insert(strings_.end(), begin, begin + std::strlen(begin) + 1);
    }
    return entry->second;
}

// Single words, which most sets are, are shared between sets: all sets of one processor of 64 have
// 64 words together.
std::uint32_t Encoder::words(const std::uint64_t* first, std::size_t count) {
    const auto [entry, is_new] =
        word_index_.try_emplace({first, first + count}, static_cast<std::uint32_t>(words_.size()));
    if (is_new) {
        words_.insert(words_.end(), first, first + count);
    }
    return entry->second;
}

std::uint32_t Encoder::set(const Bits& bits) {
    std::size_t first = 0;
    std::size_t end = bits.size();
    while (end > 0 && bits[end - 1] == 0) {
        --end;
    }
    while (first < end && bits[first] == 0) {
        ++first;
    }
    std::vector<std::uint64_t> key(bits.begin() + static_cast<std::ptrdiff_t>(first),
                                   bits.begin() + static_cast<std::ptrdiff_t>(end));
    const std::size_t count = key.size();
    key.push_back(first);
    const auto [entry, is_new] =
        set_index_.try_emplace(key, static_cast<std::uint32_t>(sets_.size()));
    if (is_new) {
        sets_.push_back({count > 0 ? words(key.data(), count) : 0,
                         static_cast<std::uint16_t>(count > 0 ? first : 0),
                         static_cast<std::uint16_t>(count)});
    }
    return entry->second;
}

std::uint16_t Encoder::details(const Words& words) {
    // An index that is too large shows in the section's size, which is looked at in the end.
    const auto [entry, is_new] =
        detail_index_.try_emplace(words, static_cast<std::uint16_t>(details_.size()));
    if (is_new) {
        details_.insert(details_.end(), words.begin(), words.end());
    }
    return entry->second;
}

Error Encoder::check_limits() const {
    const std::size_t objects = description_.objects.size();
    if (objects == 0 || description_.levels.empty()) {
        return fail(WARREN_TOPOLOGY_ERR_ARGUMENT, "a topology has one object at least");
    }
    if (objects > max_objects) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "the topology has %zu objects, more than %u",
                    objects, max_objects);
    }
    if (description_.levels.size() > 255) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "the topology has %zu levels, more than 255",
                    description_.levels.size());
    }
    const std::size_t targets = description_.targets().size();
    const std::size_t initiators = description_.initiators.size();
    if (targets > max_targets || initiators > max_targets) {
        return fail(
            WARREN_TOPOLOGY_ERR_LIMIT,
            "%zu NUMA nodes and %zu places from which memory looks alike; up to %u are possible",
            targets, initiators, max_targets);
    }
    if (description_.matrices.size() > max_attributes) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "the topology has %zu attributes, more than %u",
                    description_.matrices.size(), max_attributes);
    }
    const auto too_wide = [](const Bits& bits) {
        return bits.size() > (std::size_t{max_os_index} + 1) / 64;
    };
    for (const Object& object : description_.objects) {
        if (too_wide(object.complete_cpus) || too_wide(object.complete_nodes) ||
            too_wide(object.cpus) || too_wide(object.nodes)) {
            return fail(WARREN_TOPOLOGY_ERR_LIMIT,
                        "a processor or NUMA node has an OS index above %u", max_os_index);
        }
        if (object.children[0].size() > none16) {
            return fail(WARREN_TOPOLOGY_ERR_LIMIT, "an object has %zu children, more than %u",
                        object.children[0].size(), unsigned{none16});
        }
    }
    return {};
}

// Names have 16 bits: they are first among the strings.
Error Encoder::add_names() {
    string("");
    string(name_key);
    string(subtype_key);
    const auto add = [&](const std::vector<Info>& infos) {
        for (const Info& info : infos) {
            string(info.name);
        }
    };
    for (const Object& object : description_.objects) {
        add(object.infos);
    }
    for (const CpuKind& kind : description_.cpu_kinds) {
        add(kind.infos);
    }
    add(description_.infos);
    for (std::size_t index = 0; index < description_.matrices.size(); ++index) {
        if (!is_predefined(index)) {
            string(description_.matrices[index].name);
        }
    }
    return strings_.size() <= none16
               ? Error{}
               : fail(WARREN_TOPOLOGY_ERR_LIMIT, "the names of infos have %zu bytes, more than %u",
                      strings_.size(), unsigned{none16});
}

void Encoder::add_info(std::uint32_t object, const std::string& name, const std::string& value) {
    infos_.push_back({narrow(object), narrow(string(name)), string(value)});
}

void Encoder::add_infos(std::uint32_t object, const std::vector<Info>& infos) {
    for (const Info& info : infos) {
        add_info(object, info.name, info.value);
    }
}

Error Encoder::add_children(std::uint32_t number) {
    const Object& object = description_.objects[number];
    const std::vector<std::uint32_t>& tree = object.children[0];
    arity_.push_back(static_cast<std::uint16_t>(tree.size()));
    std::uint32_t first = tree.empty() ? none : tree[0];
    for (std::size_t index = 1; index < tree.size(); ++index) {
        if (tree[index] != tree[0] + index) {
            flags_.back() |= object_flag::scattered;
        }
    }
    if ((flags_.back() & object_flag::scattered) != 0) {
        first = static_cast<std::uint32_t>(children_.size());
        children_.insert(children_.end(), tree.begin(), tree.end());
    }
    first_child_.push_back(narrow(first));
    const auto& [unused, memory, io, misc] = object.children;
    if (!memory.empty() || !io.empty() || !misc.empty()) {
        flags_.back() |= object_flag::has_others;
        other_children_.push_back({narrow(number), narrow(children_.size()), narrow(memory.size()),
                                   narrow(io.size()), narrow(misc.size())});
        for (const auto* list : {&memory, &io, &misc}) {
            children_.insert(children_.end(), list->begin(), list->end());
        }
    }
    if (children_.size() > none16) { // some are there twice
        return fail(WARREN_TOPOLOGY_ERR_ARGUMENT, "objects have more than one parent");
    }
    for (const std::vector<std::uint32_t>& list : object.children) {
        for (const std::uint32_t child : list) {
            if (child >= description_.objects.size() ||
                description_.objects[child].parent != number) {
                return fail(WARREN_TOPOLOGY_ERR_ARGUMENT, "object %u is no child of object %u",
                            child, number);
            }
        }
    }
    return {};
}

void Encoder::add_sets(std::uint32_t number, const Object& object) {
    nodeset_of_.push_back(object.has_sets ? static_cast<std::uint16_t>(set(object.nodes)) : none16);
    cpuset_of_.push_back(object.has_sets ? narrow(set(object.cpus)) : none16);
    if (object.has_sets && (!includes(object.cpus, object.complete_cpus) ||
                            !includes(object.nodes, object.complete_nodes))) {
        flags_.back() |= object_flag::incomplete;
        complete_sets_.push_back({narrow(number), narrow(set(object.complete_cpus)),
                                  narrow(set(object.complete_nodes))});
    }
}

void Encoder::add_object_infos(std::uint32_t number, const Object& object) {
    if (!object.name && !object.subtype && object.infos.empty()) {
        return;
    }
    flags_.back() |= object_flag::has_infos;
    if (object.name) {
        add_info(number, name_key, *object.name);
    }
    if (object.subtype) {
        add_info(number, subtype_key, *object.subtype);
    }
    add_infos(number, object.infos);
}

Error Encoder::add_object(std::uint32_t number, const Level& level, std::size_t level_index) {
    const Object& object = description_.objects[number];
    if (number == 0 ? object.parent != none : object.parent >= number) {
        return fail(WARREN_TOPOLOGY_ERR_ARGUMENT, "object %u comes before its parent", number);
    }
    const std::uint32_t nested =
        level.depth >= 0 ? 0 : 1 + (number != 0 ? nested_[object.parent] : 0);
    if (nested > max_nested) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT,
                    "more than %u objects beside the tree are within each other", max_nested);
    }
    nested_.push_back(nested);
    level_of_.push_back(static_cast<std::uint8_t>(level_index));
    flags_.push_back(object.symmetric ? object_flag::symmetric : std::uint8_t{0});
    os_index_.push_back(narrow(object.os_index));
    if (object.os_index != none && object.os_index >= wide16) {
        os_index_.back() = wide16;
        wide_os_indices_.push_back({number, object.os_index});
    }
    parent_.push_back(narrow(object.parent));
    if (Error error = add_children(number)) {
        return error;
    }
    if (detail_words(static_cast<ObjectType>(level.type)) > 0) {
        details_of_.push_back(details(object.details));
    }
    add_sets(number, object);
    add_object_infos(number, object);
    return {};
}

Error Encoder::add_objects() {
    // The node sets first: their indices have 16 bits.
    for (const Object& object : description_.objects) {
        if (object.has_sets) {
            set(object.nodes);
        }
    }
    if (sets_.size() >= none16) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "too many different sets of NUMA nodes");
    }
    std::uint32_t number = 0;
    for (std::size_t index = 0; index < description_.levels.size(); ++index) {
        const Level& level = description_.levels[index];
        if (level.first != number || level.count == 0 ||
            level.count > description_.objects.size() - number) {
            return fail(WARREN_TOPOLOGY_ERR_ARGUMENT, "level %zu is not where it should be", index);
        }
        const bool has_details = detail_words(static_cast<ObjectType>(level.type)) > 0;
        levels_.push_back({narrow(level.first), narrow(level.count), narrow(level.type),
                           has_details ? narrow(details_of_.size()) : std::uint16_t{0}});
        for (; number < level.first + level.count; ++number) {
            if (Error error = add_object(number, level, index)) {
                return error;
            }
        }
        if (level.depth >= 0) {
            tree_objects_ = number;
        }
    }
    if (number != description_.objects.size()) {
        return fail(WARREN_TOPOLOGY_ERR_ARGUMENT, "objects belong to no level");
    }
    return {};
}

Error Encoder::add_indices() {
    std::uint32_t nodes = 0;
    for (std::uint32_t number = 0; number < description_.objects.size(); ++number) {
        const ObjectType type = description_.type_of(number);
        const std::uint32_t os_index = description_.objects[number].os_index;
        if (type != ObjectType::pu && type != ObjectType::numa_node) {
            continue;
        }
        if (os_index > max_os_index) {
            return fail(WARREN_TOPOLOGY_ERR_LIMIT,
                        "a processor or NUMA node has an OS index above %u", max_os_index);
        }
        const auto add = [os_index]<typename Entry>(std::vector<Entry>& table,
                                                    std::uint32_t entry) {
            constexpr auto empty = static_cast<Entry>(none16);
            if (table.size() <= os_index) {
                table.resize(os_index + 1, empty);
            }
            const bool is_new = table[os_index] == empty;
            table[os_index] = static_cast<Entry>(entry);
            return is_new;
        };
        if (type == ObjectType::pu ? !add(pu_by_os_, number) : !add(node_by_os_, nodes++)) {
            return fail(WARREN_TOPOLOGY_ERR_ARGUMENT,
                        "two processors or NUMA nodes have the OS index %u", os_index);
        }
    }
    add_row_indices();
    return {};
}

void Encoder::add_row_indices() {
    row_by_os_.assign(pu_by_os_.size(), -1);
    for (std::size_t row = 0; row < description_.initiators.size(); ++row) {
        const Initiator& initiator = description_.initiators[row];
        initiators_.push_back({narrow(set(initiator.cpus)), narrow(initiator.object)});
        for (std::size_t cpu = 0; initiator.object == none && cpu < row_by_os_.size(); ++cpu) {
            if (has_bit(initiator.cpus, cpu)) {
                row_by_os_[cpu] = static_cast<std::int16_t>(row);
            }
        }
    }
    allowed_ = {narrow(set(description_.allowed_cpus)), narrow(set(description_.allowed_nodes))};
}

// As TopologyView::nearest_memory finds it.
void Encoder::add_nearest() {
    const std::vector<std::uint32_t> targets = description_.targets();
    nearest_.assign(description_.objects.size(), no_nearest);
    if (targets.empty() || description_.matrices.size() <= WARREN_ATTRIBUTE_LOCALITY) {
        return;
    }
    const std::vector<std::uint16_t>& order =
        description_.matrices[WARREN_ATTRIBUTE_LOCALITY].order;
    for (std::uint32_t number = 0; number < nearest_.size(); ++number) {
        std::uint32_t with_sets = number;
        while (!description_.objects[with_sets].has_sets) {
            with_sets = description_.objects[with_sets].parent;
        }
        const Bits& cpus = description_.objects[with_sets].cpus;
        std::size_t first = 0;
        while (first < row_by_os_.size() && !has_bit(cpus, first)) {
            ++first;
        }
        const int row = first < row_by_os_.size() ? row_by_os_[first] : -1;
        const std::uint32_t target =
            row < 0 ? none : order[static_cast<std::size_t>(row) * targets.size()];
        if (target < no_nearest) {
            nearest_[number] = static_cast<std::uint8_t>(target);
        }
    }
}

Error Encoder::encode(std::vector<std::byte>& image) {
    if (Error error = check_limits()) {
        return error;
    }
    for (Error (Encoder::*step)() :
         {&Encoder::add_names, &Encoder::add_objects, &Encoder::add_indices}) {
        if (Error error = (this->*step)()) {
            return error;
        }
    }
    ancestors_ = make_common_ancestors(description_, tree_objects_);
    add_nearest();
    add_distances();
    add_cpu_kinds();
    add_attributes();
    return write(image);
}

Error encode(const Description& description, std::vector<std::byte>& image) {
    Encoder encoder(description);
    return encoder.encode(image);
}

} // namespace warren::topology
