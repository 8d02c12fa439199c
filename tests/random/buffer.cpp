#include "buffer.hpp"

#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace programs {

void value_of(Bits key, long index, const Basic& basic, unsigned char* bytes) {
    Bits value[2] = {mix(key + static_cast<Bits>(index)), 0};
    if (basic.size > 8) {
        value[1] = mix(value[0]);
    }
    std::memcpy(bytes, value, static_cast<std::size_t>(basic.valued));
}

void Buffer::reserve(const std::vector<Block>& blocks) {
    Offset lowest = 0, highest = 0;
    for (const Block& block : blocks) {
        if (block.count > 0) {
            const Type& type = *block.type;
            const Offset last = (block.count - 1) * type.extent();
            lowest = std::min(
                {lowest, block.offset + type.true_lower, block.offset + type.true_lower + last});
            highest = std::max(
                {highest, block.offset + type.true_upper, block.offset + type.true_upper + last});
        }
    }
    origin_ = (guard_ - lowest + 15) / 16 * 16;
    memory_.resize(static_cast<std::size_t>(origin_ + highest + guard_));
    expected_.resize(memory_.size());
    reset();
}

void Buffer::reset() {
    std::fill(memory_.begin(), memory_.end(), gap_);
    std::fill(expected_.begin(), expected_.end(), gap_);
}

void Buffer::expect_gaps() {
    std::fill(expected_.begin(), expected_.end(), gap_);
}

template <typename F>
void Buffer::each_leaf(const Block& block, long limit, F f) {
    long index = 0;
    for (long i = 0; i < block.count; ++i) {
        const Offset element = origin_ + block.offset + i * block.type->extent();
        for (const Leaf& leaf : block.type->leaves) {
            if (index == limit) {
                return;
            }
            f(static_cast<std::size_t>(element + leaf.offset), *leaf.basic, index++);
        }
    }
}

void Buffer::put(Part part, const Block& block, Bits key, long limit) {
    each_leaf(block, limit, [&](std::size_t at, const Basic& basic, long index) {
        if ((part & held) != 0) {
            value_of(key, index, basic, &memory_[at]);
        }
        if ((part & expected) != 0) {
            value_of(key, index, basic, &expected_[at]);
        }
    });
}

void Buffer::put(Part part, const Block& block,
                 const std::function<void(unsigned char*, long)>& write) {
    each_leaf(block, -1, [&](std::size_t at, const Basic&, long index) {
        if ((part & held) != 0) {
            write(&memory_[at], index);
        }
        if ((part & expected) != 0) {
            write(&expected_[at], index);
        }
    });
}

void Buffer::ignore(const Block& block, bool ignored) {
    ignored_.resize(memory_.size());
    each_leaf(block, -1, [&](std::size_t at, const Basic& basic, long) {
        std::fill_n(ignored_.begin() + static_cast<Offset>(at), basic.size, ignored);
    });
}

unsigned char* Buffer::at(const Block& block, long leaf) {
    const auto leaves = static_cast<long>(block.type->leaves.size());
    return &memory_[static_cast<std::size_t>(
        origin_ + block.offset + leaf / leaves * block.type->extent() +
        block.type->leaves[static_cast<std::size_t>(leaf % leaves)].offset)];
}

void Buffer::check(const char* name) const {
    if (std::memcmp(memory_.data(), expected_.data(), memory_.size()) == 0) {
        return;
    }
    long wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = memory_.size(); i-- > 0;) {
        if (memory_[i] != expected_[i] && (ignored_.empty() || !ignored_[i])) {
            ++wrong;
            first = i;
        }
    }
    if (wrong == 0) {
        return;
    }
    std::string expected_bytes, got;
    for (std::size_t i = first; i < std::min(first + 16, memory_.size()); ++i) {
        char text[8];
        std::snprintf(text, sizeof text, " %02x", expected_[i]);
        expected_bytes += text;
        std::snprintf(text, sizeof text, " %02x", memory_[i]);
        got += text;
    }
    fail("%s: %ld bytes are wrong, the first at %td of %zu (gaps hold a5): expected%s, got%s", name,
         wrong, static_cast<Offset>(first) - origin_, memory_.size(), expected_bytes.c_str(),
         got.c_str());
}

} // namespace programs
