#include "topology/common_ancestors.hpp"

#include <algorithm>
#include <bit>

namespace warren::topology {

namespace {

// Parents have smaller numbers than their children.
class Maker {
  public:
    Maker(const Description& description, std::uint32_t tree_objects, CommonAncestors& made)
        : description_(description), tree_objects_(tree_objects), made_(made) {}

    void add_pairs();
    void add_places();

  private:
    void add_partings(const std::vector<std::uint32_t>& bits_below);

    const Description& description_;
    const std::uint32_t tree_objects_;
    CommonAncestors& made_;
};

void Maker::add_pairs() {
    made_.pairs.resize(std::size_t{tree_objects_} * tree_objects_);
    const auto pair = [&](std::uint32_t one, std::uint32_t other) -> std::uint8_t& {
        return made_.pairs[std::size_t{one} * tree_objects_ + other];
    };
    for (std::uint32_t lower = 0; lower < tree_objects_; ++lower) {
        made_.places.push_back(static_cast<std::uint16_t>(lower * tree_objects_));
        pair(lower, lower) = static_cast<std::uint8_t>(lower);
        for (std::uint32_t higher = 0; higher < lower; ++higher) {
            const std::uint8_t common = pair(description_.objects[lower].parent, higher);
            pair(lower, higher) = common;
            pair(higher, lower) = common;
        }
    }
}

void Maker::add_places() {
    const auto children = [&](std::uint32_t number) -> const std::vector<std::uint32_t>& {
        return description_.objects[number].children[0];
    };
    const auto bits_to_number = [](std::size_t count) {
        return static_cast<std::uint32_t>(std::bit_width(count - 1));
    };
    // The bits that the longest way down takes, from each object.
    std::vector<std::uint32_t> bits_below(tree_objects_);
    std::size_t leaves = 0;
    for (std::uint32_t number = tree_objects_; number-- > 0;) {
        const std::size_t count = children(number).size();
        leaves += count == 0;
        bits_below[number] += count == 0 ? 0 : bits_to_number(count);
        if (number > 0) {
            std::uint32_t& most = bits_below[description_.objects[number].parent];
            most = std::max(most, bits_below[number]);
        }
    }
    made_.place_bits = bits_below[0];
    if (made_.place_bits > max_place_bits ||
        made_.place_bits > bits_to_number(leaves) + most_spare_bits) {
        made_.place_bits = no_places;
        return;
    }
    made_.places.resize(tree_objects_);
    for (std::uint32_t number = 0; number < tree_objects_; ++number) {
        const std::size_t count = children(number).size();
        const std::uint32_t bits = count == 0 ? 0 : bits_to_number(count);
        for (std::uint32_t index = 0; index < count; ++index) {
            made_.places[children(number)[index]] = static_cast<std::uint16_t>(
                made_.places[number] + (std::size_t{index} << (bits_below[number] - bits)));
        }
    }
    add_partings(bits_below);
}

void Maker::add_partings(const std::vector<std::uint32_t>& bits_below) {
    // By bit and place the object that has the bit for its children's numbers; none16 where no two
    // places part.
    const std::size_t place_count = std::size_t{1} << made_.place_bits;
    std::vector<std::vector<std::uint16_t>> parting(made_.place_bits);
    for (std::vector<std::uint16_t>& objects : parting) {
        objects.assign(place_count, none16);
    }
    for (std::uint32_t number = 0; number < tree_objects_; ++number) {
        const std::size_t count = description_.objects[number].children[0].size();
        const auto bits = static_cast<std::uint32_t>(count < 2 ? 0 : std::bit_width(count - 1));
        const std::size_t end = made_.places[number] + (std::size_t{1} << bits_below[number]);
        for (std::uint32_t bit = bits_below[number] - bits; bit < bits_below[number]; ++bit) {
            std::fill(parting[bit].begin() + made_.places[number],
                      parting[bit].begin() + static_cast<std::ptrdiff_t>(end),
                      static_cast<std::uint16_t>(number));
        }
    }
    // Neighbouring bits become one kind unless two objects are at one place.
    std::vector<std::vector<std::uint16_t>> kinds{std::vector(place_count, none16)};
    std::vector<std::size_t> kind_of{0};
    for (std::uint32_t bit = 0; bit < made_.place_bits; ++bit) {
        bool is_same = kinds.size() > 1;
        for (std::size_t place = 0; is_same && place < place_count; ++place) {
            const std::uint16_t before = kinds.back()[place];
            is_same =
                before == none16 || parting[bit][place] == none16 || before == parting[bit][place];
        }
        if (!is_same) {
            kinds.emplace_back(place_count, none16);
        }
        for (std::size_t place = 0; place < place_count; ++place) {
            if (parting[bit][place] != none16) {
                kinds.back()[place] = parting[bit][place];
            }
        }
        kind_of.resize(std::size_t{2} << bit, kinds.size() - 1);
    }
    if ((kinds.size() - 1) * tree_objects_ > UINT16_MAX) {
        made_ = {};
        return;
    }
    for (const std::size_t kind : kind_of) {
        made_.partings.push_back(static_cast<std::uint16_t>(kind * tree_objects_));
    }
    made_.parting_kinds = static_cast<std::uint32_t>(kinds.size());
    for (const std::vector<std::uint16_t>& objects : kinds) {
        for (std::uint32_t number = 0; number < tree_objects_; ++number) {
            made_.above.push_back(
                std::min(objects[made_.places[number]], static_cast<std::uint16_t>(number)));
        }
    }
}

} // namespace

CommonAncestors make_common_ancestors(const Description& description, std::uint32_t tree_objects) {
    CommonAncestors made;
    Maker maker(description, tree_objects, made);
    if (tree_objects <= max_paired_objects &&
        std::size_t{tree_objects} * tree_objects <=
            description.objects.size() * most_pair_bytes_per_object) {
        maker.add_pairs();
    } else {
        maker.add_places();
    }
    return made;
}

} // namespace warren::topology
