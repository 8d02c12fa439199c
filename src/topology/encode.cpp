#include "topology/encode.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

#include "topology/checksum.hpp"
#include "topology/common_ancestors.hpp"
#include "topology/details.hpp"

namespace warren::topology {

namespace {

// Indices that are known to fit, and none.
std::uint16_t narrow(std::size_t index) {
    return static_cast<std::uint16_t>(index);
}

// The sections while they grow.
class Encoder {
  public:
    explicit Encoder(const Description& description) : description_(description) {}

    Error encode(std::vector<std::byte>& image);

  private:
    Error check_limits() const;
    Error add_objects();
    Error add_children(std::uint32_t number);
    void add_nearest();
    Error add_indices();
    void add_row_indices();
    Error add_names();
    void add_infos(std::uint32_t object, const std::vector<Info>& infos);
    void add_info(std::uint32_t object, const std::string& name, const std::string& value);
    void add_distances();
    void add_cpu_kinds();
    void add_attributes();
    void add_attribute(const AttributeMatrix& matrix);
    Error write(std::vector<std::byte>& image) const;

    std::uint32_t string(const std::string& text);
    std::uint32_t set(const Bits& bits);
    std::uint32_t words(const std::uint64_t* first, std::size_t count);
    std::uint16_t details(const Words& words);
    bool is_predefined(std::size_t attribute) const {
        return attribute < std::size(predefined_attributes) &&
               description_.matrices[attribute].name == predefined_attributes[attribute];
    }

    const Description& description_;
    std::uint32_t tree_objects_ = 0;
    CommonAncestors ancestors_;

    std::vector<std::uint32_t> nested_; // within how many objects beside the tree, itself counted
    std::vector<std::uint8_t> level_of_;
    std::vector<std::uint8_t> flags_;
    std::vector<std::uint16_t> arity_;
    std::vector<std::uint16_t> details_of_;
    std::vector<std::uint16_t> nodeset_of_;
    std::vector<std::uint16_t> os_index_;
    std::vector<std::uint16_t> parent_;
    std::vector<std::uint16_t> first_child_;
    std::vector<std::uint16_t> cpuset_of_;
    std::vector<std::uint8_t> nearest_;
    std::vector<LevelRecord> levels_;
    std::vector<OtherChildren> other_children_;
    std::vector<CompleteSets> complete_sets_;
    std::vector<InfoRecord> infos_;
    std::vector<std::uint16_t> children_;
    std::vector<std::uint64_t> details_;
    std::vector<SetRecord> sets_;
    std::vector<std::uint64_t> words_;
    std::vector<char> strings_;
    std::vector<std::uint16_t> pu_by_os_;
    std::vector<std::int16_t> node_by_os_;
    std::vector<std::int16_t> row_by_os_;
    std::vector<DistancesRecord> distances_;
    std::vector<std::uint32_t> distance_objects_;
    std::vector<std::uint8_t> distance_bytes_;
    std::vector<CpuKindRecord> cpu_kinds_;
    std::vector<InitiatorRecord> initiators_;
    std::vector<AttributeRecord> attributes_;
    std::vector<std::uint8_t> cells_;
    std::vector<std::uint8_t> orders_;
    std::vector<std::uint8_t> values_;
    std::vector<WideOsIndex> wide_os_indices_;
    std::vector<std::uint16_t> allowed_;

    // Entries that have been written, with their indices, so that equal ones are written once.
    std::unordered_map<std::string, std::uint32_t> string_index_;
    std::map<std::vector<std::uint64_t>, std::uint32_t> set_index_;
    std::map<std::vector<std::uint64_t>, std::uint32_t> word_index_;
    std::map<Words, std::uint16_t> detail_index_;
    std::map<std::vector<std::uint16_t>, std::uint16_t> order_index_;
    std::unordered_map<std::string, std::uint32_t> cell_index_;
    std::unordered_map<std::string, std::uint32_t> value_index_;
};

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
            const Object& object = description_.objects[number];
            if (number == 0 ? object.parent != none : object.parent >= number) {
                return fail(WARREN_TOPOLOGY_ERR_ARGUMENT, "object %u comes before its parent",
                            number);
            }
            const std::uint32_t nested =
                level.depth >= 0 ? 0 : 1 + (number != 0 ? nested_[object.parent] : 0);
            if (nested > max_nested) {
                return fail(WARREN_TOPOLOGY_ERR_LIMIT,
                            "more than %u objects beside the tree are within each other",
                            max_nested);
            }
            nested_.push_back(nested);
            level_of_.push_back(static_cast<std::uint8_t>(index));
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
            if (has_details) {
                details_of_.push_back(details(object.details));
            }
            nodeset_of_.push_back(object.has_sets ? static_cast<std::uint16_t>(set(object.nodes))
                                                  : none16);
            cpuset_of_.push_back(object.has_sets ? narrow(set(object.cpus)) : none16);
            if (object.has_sets && (!includes(object.cpus, object.complete_cpus) ||
                                    !includes(object.nodes, object.complete_nodes))) {
                flags_.back() |= object_flag::incomplete;
                complete_sets_.push_back({narrow(number), narrow(set(object.complete_cpus)),
                                          narrow(set(object.complete_nodes))});
            }
            if (object.name || object.subtype || !object.infos.empty()) {
                flags_.back() |= object_flag::has_infos;
                if (object.name) {
                    add_info(number, name_key, *object.name);
                }
                if (object.subtype) {
                    add_info(number, subtype_key, *object.subtype);
                }
                add_infos(number, object.infos);
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

// The smallest of 1, 2, 4 and 8 bytes that numbers up to `largest` fit in.
std::uint32_t width_for(std::uint64_t largest) {
    return largest <= 0xff ? 1 : largest <= 0xffff ? 2 : largest <= 0xffffffff ? 4 : 8;
}

void append(std::vector<std::uint8_t>& bytes, std::uint64_t number, std::uint32_t width) {
    for (std::uint32_t byte = 0; byte < width; ++byte) {
        bytes.push_back(static_cast<std::uint8_t>(number >> (8 * byte)));
    }
}

void Encoder::add_distances() {
    for (const Distances& matrix : description_.distances) {
        const auto largest = std::max_element(matrix.values.begin(), matrix.values.end());
        const std::uint32_t width = width_for(largest == matrix.values.end() ? 0 : *largest);
        distances_.push_back({matrix.name ? string(*matrix.name) : 0, matrix.kind,
                              static_cast<std::uint32_t>(matrix.objects.size()),
                              static_cast<std::uint32_t>(distance_objects_.size()),
                              static_cast<std::uint32_t>(distance_bytes_.size()), width});
        distance_objects_.insert(distance_objects_.end(), matrix.objects.begin(),
                                 matrix.objects.end());
        for (const std::uint64_t value : matrix.values) {
            append(distance_bytes_, value, width);
        }
    }
}

void Encoder::add_cpu_kinds() {
    for (const CpuKind& kind : description_.cpu_kinds) {
        cpu_kinds_.push_back({set(kind.cpus), kind.efficiency,
                              static_cast<std::uint32_t>(infos_.size()),
                              static_cast<std::uint32_t>(kind.infos.size())});
        add_infos(none, kind.infos);
    }
    // The topology's own come last of all.
    add_infos(none, description_.infos);
}

void Encoder::add_attribute(const AttributeMatrix& matrix) {
    std::vector<AttributeMatrix::Cell> values = matrix.cells;
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());

    const std::size_t index = attributes_.size();
    AttributeRecord record{};
    record.name = is_predefined(index) ? std::uint16_t{0} : narrow(string(matrix.name));
    const std::uint32_t cell_width = width_for(values.empty() ? 0 : values.size() - 1);
    // The last is the largest.
    const std::uint32_t value_width = width_for(values.empty() ? 0 : values.back().value);
    const auto targets = static_cast<std::uint32_t>(description_.targets().size());
    record.flags = static_cast<std::uint8_t>(matrix.flags | cell_width * 16 |
                                             (matrix.rows == 1 ? 0 : attribute_flag::by_initiator));
    record.row = row_of(record, targets);
    record.value_stride = static_cast<std::uint8_t>(value_width + 1);
    std::vector<std::uint8_t> bytes;
    for (const AttributeMatrix::Cell& cell : matrix.cells) {
        const auto place = std::lower_bound(values.begin(), values.end(), cell) - values.begin();
        append(bytes, static_cast<std::uint64_t>(place), cell_width);
    }
    // Contents that several attributes share are stored once: those of reading and writing often
    // are the same.
    const auto keep = [](auto& known, auto& all, const std::vector<std::uint8_t>& added) {
        const auto [entry, is_new] = known.try_emplace(std::string(added.begin(), added.end()),
                                                       static_cast<std::uint32_t>(all.size()));
        if (is_new) {
            all.insert(all.end(), added.begin(), added.end());
        }
        return entry->second;
    };
    record.cells = keep(cell_index_, cells_, bytes);
    bytes.clear();
    for (const AttributeMatrix::Cell& value : values) {
        bytes.push_back(static_cast<std::uint8_t>(value.origin));
        append(bytes, value.value, value_width);
    }
    record.values = keep(value_index_, values_, bytes);
    const auto [entry, is_new] =
        order_index_.try_emplace(matrix.order, static_cast<std::uint16_t>(order_index_.size()));
    const std::uint32_t width = order_width(targets);
    for (const std::uint16_t target : is_new ? matrix.order : std::vector<std::uint16_t>{}) {
        append(orders_, target, width);
    }
    record.order = entry->second;
    attributes_.push_back(record);
}

void Encoder::add_attributes() {
    for (const AttributeMatrix& matrix : description_.matrices) {
        add_attribute(matrix);
    }
    const std::size_t cells = attributes_.size() * sizeof(AttributeRecord);
    const std::size_t values = cells + cells_.size();
    values_.resize((values + values_.size() + value_margin + 7) / 8 * 8 - values);
    for (AttributeRecord& record : attributes_) {
        record.cells += static_cast<std::uint32_t>(cells);
        record.values += static_cast<std::uint32_t>(values);
    }
}

Error Encoder::write(std::vector<std::byte>& image) const {
    std::vector<std::byte> counts;
    std::vector<std::byte> sections;
    const auto place = [&](Section section, const auto& elements) {
        if (is_counted(section)) {
            std::size_t count = elements.size();
            for (; count > 0x7f; count >>= 7) {
                counts.push_back(static_cast<std::byte>(count | 0x80));
            }
            counts.push_back(static_cast<std::byte>(count));
        }
        const auto* bytes = reinterpret_cast<const std::byte*>(elements.data());
        sections.insert(sections.end(), bytes, bytes + elements.size() * sizeof elements[0]);
    };
    // In the order of Section.
    place(Section::details, details_);
    place(Section::words, words_);
    place(Section::attributes, attributes_);
    place(Section::cells, cells_);
    place(Section::values, values_);
    place(Section::sets, sets_);
    place(Section::infos, infos_);
    place(Section::distances, distances_);
    place(Section::cpu_kinds, cpu_kinds_);
    place(Section::wide_os_indices, wide_os_indices_);
    place(Section::distance_objects, distance_objects_);
    place(Section::levels, levels_);
    place(Section::initiators, initiators_);
    place(Section::other_children, other_children_);
    place(Section::complete_sets, complete_sets_);
    place(Section::allowed, allowed_);
    place(Section::details_of, details_of_);
    place(Section::arity, arity_);
    place(Section::nodeset_of, nodeset_of_);
    place(Section::os_index, os_index_);
    place(Section::parent, parent_);
    place(Section::first_child, first_child_);
    place(Section::cpuset_of, cpuset_of_);
    place(Section::places, ancestors_.places);
    place(Section::above, ancestors_.above);
    place(Section::partings, ancestors_.partings);
    place(Section::children, children_);
    place(Section::pu_by_os, pu_by_os_);
    place(Section::node_by_os, node_by_os_);
    place(Section::row_by_os, row_by_os_);
    place(Section::level_of, level_of_);
    place(Section::flags, flags_);
    place(Section::nearest, nearest_);
    place(Section::pairs, ancestors_.pairs);
    place(Section::distance_bytes, distance_bytes_);
    place(Section::orders, orders_);
    place(Section::strings, strings_);
    for (std::vector<std::byte>* part : {&counts, &sections}) {
        part->resize((part->size() + 7) / 8 * 8);
    }
    const std::size_t bytes = sizeof(Header) + counts.size() + sections.size();
    if (sets_.size() > none16) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "there are %zu different sets, more than %u",
                    sets_.size(), unsigned{none16});
    }
    if (bytes > max_image_bytes || details_.size() > none16) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "the image would have %zu bytes, %zu of details",
                    bytes, details_.size() * sizeof(std::uint64_t));
    }
    Header header{};
    header.magic = image_magic;
    header.version = image_version;
    header.bytes = static_cast<std::uint32_t>(bytes);
    header.objects = narrow(description_.objects.size());
    header.tree_objects = narrow(tree_objects_);
    header.place_bits = static_cast<std::uint8_t>(ancestors_.place_bits);
    header.parting_kinds = static_cast<std::uint8_t>(ancestors_.parting_kinds);
    header.has_pairs = ancestors_.pairs.empty() ? 0 : 1;
    header.sections = static_cast<std::uint8_t>(section_count);
    image.resize(sizeof header);
    std::memcpy(image.data(), &header, sizeof header);
    image.insert(image.end(), counts.begin(), counts.end());
    image.insert(image.end(), sections.begin(), sections.end());
    header.checksum = checksum(image.data() + checksum_end, image.size() - checksum_end);
    std::memcpy(image.data(), &header, sizeof header);
    return {};
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

} // namespace

Error encode(const Description& description, std::vector<std::byte>& image) {
    Encoder encoder(description);
    return encoder.encode(image);
}

} // namespace warren::topology
