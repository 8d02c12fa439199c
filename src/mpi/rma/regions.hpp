// Regions: the memory that a rank has attached to a dynamic window, where others can look it up.
//
// A few regions are in the rank's control line; more are in a table of the window heap, which the
// owner replaces by a larger one when it is full. Old tables stay until the window ends.
// Thread rule: the owner changes them under its rank's lock; others read at any time. Invariants
//  1. `version` is odd while the owner changes something; a reader whose version has changed reads
//     again.
//  2. Regions are in rising order and don't overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/rma/shared_part.hpp"

namespace warren::rma {

struct Region {
    std::uintptr_t base;
    std::uint64_t size;
};

struct SharedRegion {
    std::atomic<std::uint64_t> base;
    std::atomic<std::uint64_t> size;
};

struct alignas(node::cache_line_bytes) RegionLine {
    static constexpr std::uint32_t own_regions = 3;

    std::atomic<std::uint32_t> version;
    std::atomic<std::uint32_t> count;
    std::atomic<std::uint64_t> table; // its place in the memory file; 0: none, regions are here
    SharedRegion regions[own_regions];
};
static_assert(sizeof(RegionLine) == node::cache_line_bytes);

class Regions {
  public:
    // `rank`: this one, on the node. `own`: its line, once the window has one.
    Regions(const node::Segment& segment, std::uint32_t rank) : segment_(segment), rank_(rank) {}
    Regions(const Regions&) = delete;
    Regions& operator=(const Regions&) = delete;

    // --- The owner
    // Where a region belongs among the others; false: it overlaps one of them.
    bool find_gap(const Region& region, std::size_t& index) const;
    Error insert(std::size_t index, const Region& region, RegionLine& own);
    // The region that begins there; false: there is none.
    bool erase(std::uintptr_t base, RegionLine& own);
    // Whether these bytes are attached, in one region or several that touch.
    bool contain(std::uint64_t begin, std::uint64_t bytes) const;
    // Gives the tables back, when nobody reads them any more.
    void give_back();

    // --- Others. `owner`: the rank on the node. Errors: no memory to map the table; the owner has
    // ended in the middle of a change.
    Error contain(std::uint32_t owner, const RegionLine& line, std::uint64_t begin,
                  std::uint64_t bytes, bool& found);

  private:
    Error make_table(std::uint64_t regions);
    void publish(RegionLine& own);

    const node::Segment& segment_;
    const std::uint32_t rank_;
    std::vector<Region> regions_;
    // The owner's tables: the last one is in use.
    std::vector<std::uint64_t> tables_;
    std::uint64_t room_ = RegionLine::own_regions;
    SharedPart own_table_;
    // Others' tables, as this rank maps them.
    std::map<std::uint32_t, std::pair<std::uint64_t, SharedPart>> mapped_;
};

} // namespace warren::rma
