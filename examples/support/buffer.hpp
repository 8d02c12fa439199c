// A buffer in memory by attribute (warren/memory.h) that knows which memory was wanted for it, and
// asks the kernel how much of it is there. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <warren/memory.hpp>

namespace examples {

using warren::Criteria;

struct Placement {
    std::vector<unsigned> wanted; // nodes: the best target and those that are equal to it
    std::size_t pages = 0;
    std::size_t pages_there = 0;

    double percent() const {
        return pages != 0 ? 100.0 * static_cast<double>(pages_there) / static_cast<double>(pages)
                          : 100.0;
    }
};

// `count` elements, not initialised.
template <typename Element>
class Buffer {
  public:
    Buffer() = default;
    Buffer(std::size_t count, const Criteria& criteria)
        : count_(count), wanted_(best_targets(criteria)) {
        for (;;) {
            begin_ =
                static_cast<Element*>(warren_mem_alloc(count * sizeof(Element), criteria.get()));
            if (begin_ == nullptr) {
                throw warren::MemoryError(WARREN_MEM_ERR_FULL);
            }
            // The thread may have got to processors with other memory meanwhile.
            std::vector<unsigned> now = best_targets(criteria);
            if (now == wanted_) {
                break;
            }
            wanted_.swap(now);
            warren_mem_free(begin_);
        }
    }
    ~Buffer() { warren_mem_free(begin_); }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }

    Element* begin() { return begin_; }
    Element* end() { return begin_ + count_; }
    const Element* begin() const { return begin_; }
    const Element* end() const { return begin_ + count_; }
    std::size_t size() const { return count_; }
    Element& operator[](std::size_t index) { return begin_[index]; }
    const Element& operator[](std::size_t index) const { return begin_[index]; }

    // Where its pages are now, as the kernel says.
    Placement placement() const {
        Placement found{wanted_};
        if (count_ == 0) {
            return found;
        }
        std::vector<int> nodes(count_ * sizeof(Element) / 4096 + 2);
        if (const int error = warren_mem_where(begin_, count_ * sizeof(Element), nodes.size(),
                                               nodes.data(), &found.pages)) {
            throw warren::MemoryError(error);
        }
        for (std::size_t page = 0; page < found.pages; ++page) {
            for (const unsigned node : wanted_) {
                found.pages_there += nodes[page] == static_cast<int>(node);
            }
        }
        return found;
    }

  private:
    // As seen from where this thread runs, if the criteria don't say from where.
    static std::vector<unsigned> best_targets(const Criteria& criteria) {
        std::size_t count = 0;
        std::vector<unsigned> nodes(1024);
        std::vector<unsigned> tiers(nodes.size());
        if (const int error = warren_mem_get_ordering(nullptr, criteria.get(), nodes.size(),
                                                      nodes.data(), tiers.data(), &count)) {
            throw warren::MemoryError(error);
        }
        std::size_t equal = 0;
        while (equal < count && tiers[equal] == 0) {
            ++equal;
        }
        nodes.resize(equal);
        return nodes;
    }

    void swap(Buffer& other) {
        std::swap(begin_, other.begin_);
        std::swap(count_, other.count_);
        std::swap(wanted_, other.wanted_);
    }

    Element* begin_ = nullptr;
    std::size_t count_ = 0;
    std::vector<unsigned> wanted_;
};

} // namespace examples
