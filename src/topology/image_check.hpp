// ImageCheck: what TopologyView::check() asks of an image, a step for each kind of its contents, in
// three files: check.cpp (header, counts, sections), check_tree.cpp (levels, parents, children,
// common ancestors), check_contents.cpp (sets, details, texts, indices, distances, attributes).
// The loops over whole arrays (elements.hpp) have no way out in their middle, so that processors
// can do several elements at once. Thread rule: a value of its caller, used once.
#pragma once

#include <cstdint>

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
    bool is_sorted_list(const OtherChildren& record, std::uint32_t its) const;
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
    Error check_values(const AttributeRecord& attribute, std::uint64_t numbers,
                       std::uint64_t values_end);
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

} // namespace warren::topology
