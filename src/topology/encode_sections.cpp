// The sections of an image that are not its objects, and the image itself.
#include <algorithm>
#include <bit>
#include <cstring>

#include "topology/checksum.hpp"
#include "topology/details.hpp"
#include "topology/encoder.hpp"

namespace warren::topology {

namespace {

// The smallest of 1, 2, 4 and 8 bytes that numbers up to `largest` fit in.
std::uint32_t width_for(std::uint64_t largest) {
    return largest <= 0xff ? 1 : largest <= 0xffff ? 2 : largest <= 0xffffffff ? 4 : 8;
}

void append(std::vector<std::uint8_t>& bytes, std::uint64_t number, std::uint32_t width) {
    for (std::uint32_t byte = 0; byte < width; ++byte) {
        bytes.push_back(static_cast<std::uint8_t>(number >> (8 * byte)));
    }
}

} // namespace

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

void Encoder::place_all(std::vector<std::byte>& counts, std::vector<std::byte>& sections) const {
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
}

Error Encoder::write(std::vector<std::byte>& image) const {
    std::vector<std::byte> counts;
    std::vector<std::byte> sections;
    place_all(counts, sections);
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

} // namespace warren::topology
