// TopologyView::check(): everything that readers follow, once, in arrays from begin to end. Here
// what the image says of itself; its contents are in check_tree.cpp and check_contents.cpp.
#include "topology/checksum.hpp"
#include "topology/image_check.hpp"

namespace warren::topology {

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
        (has_places && header_->place_bits > max_place_bits) ||
        has_places != (header_->parting_kinds != 0) || header_->has_pairs > (has_places ? 0 : 1) ||
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
