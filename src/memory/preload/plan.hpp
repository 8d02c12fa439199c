// Plan: which memory an unmodified program's blocks come from, as `warren run` has worked it out
// and the preloaded library follows it.
//
// `warren run` reads rules and criteria, knows the machine, and writes down what comes of it: kinds
// of memory, for each criteria which of them is meant on which processor, and rules in order. So
// the library needs no topology, no names of attributes and no allocator of its own beside ours,
// also in the processes that the program starts. The text goes by the environment.
//
// Thread rule: read() by one thread, then constant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/heap/kind.hpp"

namespace warren::memory {

inline constexpr const char* plan_variable = "WARREN_MEMORY_PLAN";

inline constexpr unsigned rule_limit = 63;     // a bit each; the last one stands for "no rule"
inline constexpr unsigned criteria_limit = 64; // that are different
inline constexpr unsigned kind_limit = 4096;   // as many heaps as there can be
inline constexpr unsigned processor_limit = 8192;
inline constexpr std::uint16_t systems = 0xffff; // criteria: the system's own malloc

// Patterns with * and ? that a rule has for the allocating place; null: any.
struct Site {
    const char* function = nullptr; // a symbol, or the qualified name in it
    const char* library = nullptr;  // the file's name without folders, also the program's
    const char* file = nullptr;     // a source file, with the folders that the pattern names

    bool any() const { return function == nullptr && library == nullptr && file == nullptr; }
};

struct PlanRule {
    std::uint64_t least = 0; // bytes
    std::uint64_t most = 0;
    std::uint32_t line = 0; // where it stands; 0: what --memory says
    std::uint16_t criteria = systems;
    Site site;
};

// The kind that criteria mean: on all processors, or on each.
struct PlanCriteria {
    bool by_processor = false;
    std::uint16_t kind = 0;
    std::uint16_t* kind_on = nullptr; // processor_limit entries
};

struct Plan {
    Kind* kinds = nullptr;
    unsigned kind_count = 0;
    PlanCriteria criteria[criteria_limit];
    unsigned criteria_count = 0;
    PlanRule rules[rule_limit]; // the first that fits counts; else the system's malloc
    unsigned rule_count = 0;
    bool by_site = false;  // some rule looks at places
    bool children = false; // programs that this one starts, too
    bool report = false;   // says at the end what each rule has served

    // Takes the text apart; the patterns stay in it, so it is kept for good and written to. False:
    // it is damaged. Memory comes from take_metadata.
    bool read(char* text);
};

// Whether a name is as the pattern wants it.
bool matches(const char* pattern, const char* name);

} // namespace warren::memory
