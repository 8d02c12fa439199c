// The attributes of a machine's memories as a table and as a picture (SVG).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warren/memory.h"
#include "warren/topology.h"

namespace warren::tools {

struct Cell {
    bool known = false;
    std::uint64_t value = 0;
    int origin = 0;
};

struct Matrix {
    std::string name;
    std::string unit;
    bool more_is_better = true;
    std::vector<std::vector<Cell>> rows; // an initiator each
};

struct MemoryRow {
    unsigned node = 0;
    std::string kind; // "MCDRAM", "DRAM" …
    Cell capacity;
    Cell available;
    std::uint64_t cache_bytes = 0; // of memory-side caches in front of it
    std::string local_to;
};

struct Matrices {
    std::vector<MemoryRow> memories;
    std::vector<std::string> initiators; // "0-3", or a device's name
    std::vector<Matrix> matrices;
};

// `all`: also attributes of only reads or only writes, and others of the topology.
Matrices matrices_of(const warren_topology* topology, warren_memory* memory, bool all);

std::string table_of(const Matrices& matrices);
std::string picture_of(const Matrices& matrices);

// The names of the attributes in criteria such as "latency~10%,capacity".
std::vector<std::string> names_in(const std::string& criteria);
// A value with its unit and origin, right-aligned.
std::string value_text(warren_memory* memory, const std::string& attribute, const std::string& from,
                       unsigned node, int width);
// A set as a list: "0-3,8".
std::string list_of(warren_set set);

} // namespace warren::tools
