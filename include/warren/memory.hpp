// Memory by attribute, for C++: memory.h with owners, errors as exceptions, allocators of the
// standard's kinds. (Memory that is near the threads which use it: first_touch.hpp.)
//
//     warren::MemoryResource fast("bandwidth");                     // std::pmr
//     std::pmr::vector<double> field(n, &fast);
//
//     std::vector<double, warren::Allocator<double>> table(n,
//     warren::Allocator<double>("latency"));
//
// Link with -lwarren.
#ifndef WARREN_MEMORY_HPP
#define WARREN_MEMORY_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "warren/memory.h"

namespace warren {

// An error of a call of memory.h.
class MemoryError : public std::runtime_error {
  public:
    explicit MemoryError(int its_code) : std::runtime_error(warren_mem_error()), code_(its_code) {}
    int code() const { return code_; } // WARREN_MEM_ERR_…

  private:
    int code_;
};

// Criteria that are owned. Copies share one object, which nobody changes any more.
class Criteria {
  public:
    // In the words of warren_mem_criteria_parse: "bandwidth~10%,capacity full=strict".
    Criteria(const char* text) {
        warren_mem_criteria* made = nullptr;
        if (const int error = warren_mem_criteria_parse(text, &made)) {
            throw MemoryError(error);
        }
        owned_.reset(made, warren_mem_criteria_free);
    }
    Criteria(const std::string& text) : Criteria(text.c_str()) {}
    // Takes over an object of the C API.
    explicit Criteria(warren_mem_criteria* taken) : owned_(taken, warren_mem_criteria_free) {}
    // Copied even where they could be moved: a container that is moved from keeps its allocator's.
    Criteria(const Criteria&) = default;
    Criteria& operator=(const Criteria&) = default;

    const warren_mem_criteria* get() const { return owned_.get(); }

  private:
    std::shared_ptr<const warren_mem_criteria> owned_;
};

// Memory by criteria for std::pmr containers. Throws std::bad_alloc when there is none, whatever
// the reason; warren_mem_error() has it. Thread rule: any thread at any time. What one resource has
// allocated any other may deallocate.
class MemoryResource : public std::pmr::memory_resource {
  public:
    explicit MemoryResource(Criteria criteria) : criteria_(std::move(criteria)) {}

  private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        void* block = warren_mem_alloc_aligned(alignment, bytes, criteria_.get());
        if (block == nullptr) {
            throw std::bad_alloc();
        }
        return block;
    }
    void do_deallocate(void* block, std::size_t, std::size_t) override { warren_mem_free(block); }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return dynamic_cast<const MemoryResource*>(&other) != nullptr;
    }

    Criteria criteria_;
};

// A standard allocator with criteria. A container takes the criteria with it when it is copied,
// moved or swapped.
template <typename Element>
class Allocator {
  public:
    using value_type = Element;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::true_type; // any of them frees what another has allocated

    Allocator(Criteria criteria) : criteria_(std::move(criteria)) {}
    Allocator(const char* text) : criteria_(text) {}
    template <typename Other>
    Allocator(const Allocator<Other>& other) noexcept : criteria_(other.criteria()) {}

    Element* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(Element)) {
            throw std::bad_array_new_length();
        }
        void* block =
            warren_mem_alloc_aligned(alignof(Element), count * sizeof(Element), criteria_.get());
        if (block == nullptr) {
            throw std::bad_alloc();
        }
        return static_cast<Element*>(block);
    }
    void deallocate(Element* block, std::size_t) noexcept { warren_mem_free(block); }

    const Criteria& criteria() const { return criteria_; }

  private:
    Criteria criteria_;
};

template <typename One, typename Other>
bool operator==(const Allocator<One>&, const Allocator<Other>&) noexcept {
    return true;
}

} // namespace warren

#endif
