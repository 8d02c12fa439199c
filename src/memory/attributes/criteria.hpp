// Criteria: what somebody wants of memory (warren/memory.h): attributes in order, each with a
// tolerance, the initiator, the policy for full memory, the size of pages, the targets considered.
//
// The type behind warren_mem_criteria. Names of attributes that are not predefined, and objects of
// the machine, are kept as they were written: what they mean is known where the criteria meet a
// machine.
//
// Thread rule: a plain value; one thread sets, any number read.
// Invariant: `revision` is different for criteria of different contents in a process, so that what
// was computed for some can be kept under it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "warren/memory.h"

namespace warren::memory {

// As many attributes as anybody will want; each is a pass over the targets.
inline constexpr std::size_t max_terms = 16;
// As many processors as Linux can be built for.
inline constexpr std::size_t max_processors = 8192;
// A tolerance of ten: the best is no more than eleven times as good.
inline constexpr double max_tolerance = 10;

struct Term {
    int attribute = -1;    // -1: the one called `name`
    std::string name;      // "" unless attribute is -1
    double tolerance = -1; // negative: the attribute's default

    bool operator==(const Term&) const = default;
};

struct Initiator {
    enum class Kind : std::uint8_t { here, processors, object };
    Kind kind = Kind::here;
    std::vector<std::uint64_t> processors; // a bitmap by the system's numbers, not empty
    std::string type;                      // of the object: "core"
    unsigned index = 0;                    // its logical index

    bool operator==(const Initiator&) const = default;
};

struct Criteria {
    std::vector<Term> terms;
    Initiator initiator;
    int policy = WARREN_MEM_NEXT;
    std::size_t page_bytes = 0; // 0: the default
    bool reserved = false;      // pages of that size from the system's reserve
    unsigned targets = WARREN_MEM_LOCAL | WARREN_MEM_REMOTE;
    std::uint64_t revision = 0;

    Error add(int attribute, double tolerance); // a predefined one
    Error add(std::string_view name, double tolerance);
    Error set_initiator(std::string_view text);
    Error set_processors(std::vector<std::uint64_t> bitmap);
    Error set_policy(int value);
    Error set_page_bytes(std::size_t bytes, bool from_reserve = false);
    Error set_targets(unsigned value);
    // The text that parse_criteria understands.
    std::string text() const;
    // To be called after a change.
    void changed();

  private:
    Error add(Term term);
};

Error parse_criteria(std::string_view text, Criteria& criteria);

// "here", "cpus:0-3,8" or "core:3".
Error parse_initiator(std::string_view text, Initiator& initiator);
std::string text_of(const Initiator& initiator);

// "0-3,8" and back; the words of the bitmap end with one that is not zero.
Error parse_processors(std::string_view text, std::vector<std::uint64_t>& bitmap);
std::string text_of_processors(const std::vector<std::uint64_t>& bitmap);

inline const Criteria& of(const warren_mem_criteria* criteria) {
    return *reinterpret_cast<const Criteria*>(criteria);
}
inline Criteria& of(warren_mem_criteria* criteria) {
    return *reinterpret_cast<Criteria*>(criteria);
}

} // namespace warren::memory
