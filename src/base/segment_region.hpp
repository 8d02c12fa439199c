// Regions: the parts of the node segment, and the directory at its beginning where they are found.
//
// A room that needs memory of the segment declares a region in a file segment_region.cpp of its
// own: a number, a name, its size as a function of the job's shape and what is in it at first. The
// segment (mpi/job/segment.hpp) lays out whatever regions are declared. A region is found by its
// number: two loads, wherever it is.
//
// Declarations are collected by the linker, in the section warren_regions. CMake links every
// segment_region.cpp with what makes or attaches segments (src/mpi/CMakeLists.txt).
//
// Invariants
//  1. Regions have different numbers below region_limit. A segment is not made otherwise.
//  2. Regions don't overlap. One begins at a cache line, or at a page if it has a page or more or
//     is committed later.
//  3. The memory of the first `sure_units` is committed when the job starts. Whoever uses more
//     commits it before.
// Thread rule: constant data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warren::node {

inline constexpr std::size_t cache_line_bytes = 64;

// Properties of a job that determine the sizes of regions.
struct JobShape {
    std::uint32_t ranks = 1; // on this node
    std::uint32_t cores = 1; // processors that the job may use
    std::uint32_t nodes = 1; // of the job
    bool fibres = false;     // all ranks are fibres of one process
    bool profiled = false;   // mpiexec --profile

    // Waiting ranks yield and sleep instead of polling.
    bool shares_processors() const { return fibres || ranks > cores; }
};

// A region consists of units of one size. Zero bytes, unless it has an initialiser.
struct Extent {
    std::uint64_t unit_bytes = 0;
    std::uint64_t units = 0;
    std::uint64_t sure_units = 0; // the first so many have memory from the start

    std::uint64_t bytes() const { return unit_bytes * units; }
    std::uint64_t sure_bytes() const { return unit_bytes * sure_units; }
};

// A region for its users, who include it from a header of its room. T: what is at its beginning.
template <typename T>
struct RegionId {
    std::uint32_t number;
};

// A region for the segment.
struct Region {
    std::uint32_t number;
    const char* name; // for messages
    Extent (*extent)(const JobShape& shape);
    // Called once, when the segment is made. May write to what is sure only.
    void (*initialise)(std::byte* memory, const JobShape& shape) = nullptr;
};

inline constexpr std::uint32_t region_limit = 40;

struct DirectoryEntry {
    std::uint64_t offset; // from the segment's beginning; 0: this job has no such region
    Extent extent;
};

// The beginning of a segment.
struct Directory {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t ranks;
    DirectoryEntry entries[region_limit];

    template <typename T>
    const DirectoryEntry& operator[](RegionId<T> region) const {
        return entries[region.number];
    }
};

inline constexpr std::uint64_t segment_magic = 0x67655372'72615701; // "\1WarrSeg", little-endian
inline constexpr std::uint32_t segment_version = 14;

} // namespace warren::node

// Declares a region: WARREN_REGION(queues, {.number = …, .name = …, .extent = …}); A name is used
// once in a program.
#define WARREN_REGION(name, ...)                                                                   \
    static constexpr ::warren::node::Region name##_declaration __VA_ARGS__;                        \
    [[gnu::used,                                                                                   \
      gnu::section(                                                                                \
          "warren_regions")]] static const ::warren::node::Region* const name##_declared =         \
        &name##_declaration
