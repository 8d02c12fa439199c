#include "topology/description.hpp"

#include <algorithm>

namespace warren::topology {

void add_bit(Bits& bits, std::size_t bit) {
    if (bits.size() <= bit / 64) {
        bits.resize(bit / 64 + 1);
    }
    bits[bit / 64] |= std::uint64_t{1} << (bit % 64);
}

bool has_bit(const Bits& bits, std::size_t bit) {
    return bit / 64 < bits.size() && (bits[bit / 64] >> (bit % 64) & 1) != 0;
}

bool includes(const Bits& bits, const Bits& part) {
    for (std::size_t word = 0; word < part.size(); ++word) {
        if ((part[word] & ~(word < bits.size() ? bits[word] : 0)) != 0) {
            return false;
        }
    }
    return true;
}

bool intersects(const Bits& one, const Bits& other) {
    for (std::size_t word = 0; word < std::min(one.size(), other.size()); ++word) {
        if ((one[word] & other[word]) != 0) {
            return true;
        }
    }
    return false;
}

bool is_empty(const Bits& bits) {
    return std::all_of(bits.begin(), bits.end(), [](std::uint64_t word) { return word == 0; });
}

ObjectType Description::type_of(std::uint32_t object) const {
    const auto behind = std::upper_bound(
        levels.begin(), levels.end(), object,
        [](std::uint32_t number, const Level& level) { return number < level.first; });
    return static_cast<ObjectType>(std::prev(behind)->type);
}

std::vector<std::uint32_t> Description::targets() const {
    std::vector<std::uint32_t> found;
    for (const Level& level : levels) {
        if (static_cast<ObjectType>(level.type) == ObjectType::numa_node) {
            for (std::uint32_t index = 0; index < level.count; ++index) {
                found.push_back(level.first + index);
            }
        }
    }
    return found;
}

} // namespace warren::topology
