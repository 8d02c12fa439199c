// Measures one pair: latency and bandwidth of one node's memory for the processors of one
// initiator.
//
// Latency is that of dependent loads: a chain through all cache lines of a buffer. The chain has
// three orders: random over the buffer (each step misses the caches, and mostly the TLB), page by
// page (random within a page, pages in random order), and random with huge pages (without most TLB
// misses). The latency of writes uses the last chain with an atomic addition of zero per step: the
// step must own the line from which it reads the next address, and written lines go back to memory.
// Bandwidth is that of threads that read, write, copy (a = b) or add (a = b + s · c, STREAM's
// triad) arrays of their own, one thread per core, on 1, 2, 4 … all cores of the initiator; bytes
// are counted as in STREAM.
//
// Each figure is the median of repetitions; their extremes show how steady it is. Thread rule: one
// measurement at a time. It makes its own threads, and restores the caller's processors at its end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace warren::tools {

enum class Quantity : std::uint8_t {
    latency_random,
    latency_pages,
    latency_huge,
    latency_write,
    read,
    write,
    copy,
    triad
};
inline constexpr Quantity quantities[] = {Quantity::latency_random, Quantity::latency_pages,
                                          Quantity::latency_huge,   Quantity::latency_write,
                                          Quantity::read,           Quantity::write,
                                          Quantity::copy,           Quantity::triad};
const char* name_of(Quantity quantity);
bool is_latency(Quantity quantity);

struct Figure {
    Quantity quantity{};
    unsigned threads = 1; // with which the best bandwidth was had
    unsigned repetitions = 0;
    double median = 0; // ns, or MiB/s
    double least = 0;
    double most = 0;
    bool huge_pages = false; // for latency_huge: whether most of the buffer had them
};

struct Pair {
    std::vector<unsigned> cores; // a processor of each core of the initiator
    unsigned node = 0;
    std::size_t bytes = 0; // of the buffer, in all
};

// Time limit of a figure, and number of its repetitions (at least one).
struct Effort {
    double seconds_per_figure = 0.1;
    unsigned repetitions = 5;
};

// Measures all quantities of a pair. Calls `done` after each figure; if that returns false, the
// measurement ends with the figures so far. Fails if memory of the node is not available or the
// processors can't be used.
Error measure(const Pair& pair, const Effort& effort, const std::function<bool()>& done,
              std::vector<Figure>& figures);

// The order of a chain through the lines of a buffer: next[i] follows i, in one cycle through all.
// With lines_per_page the chain visits the lines page by page; 0: in any order.
std::vector<std::uint32_t> chain_order(std::size_t lines, std::size_t lines_per_page,
                                       std::uint64_t seed);

} // namespace warren::tools
