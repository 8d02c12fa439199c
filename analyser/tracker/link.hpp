// How the tracker in a recorded process and the recorder find each other: a short exchange over a
// socket with an abstract name, which the environment variable names. Afterwards each writes its
// own files, so that neither needs the other.
#pragma once

#include <cstdint>

#include "analyser/recorder/log_sum.hpp"

namespace warren::locality {

constexpr const char* link_variable = "WARREN_LOCALITY_RECORDER";
constexpr std::uint32_t link_version = 3;

struct Hello {
    std::uint32_t version;
    std::int32_t rank; // -1: the environment knows of none
    std::int32_t size;
    std::uint32_t own_malloc; // 1: the program has a malloc of its own, which can't be followed
    char rank_source[16];
};

struct Welcome {
    std::uint32_t version;
    std::uint32_t stack_depth;
    std::uint64_t threshold;   // bytes
    std::uint64_t limit_bytes; // of the tracker's files together
    // More of them, that they share with a recorder in the same process (disk_quota.hpp); else
    // null.
    std::uint64_t* common_bytes;
    LogSums* sums;     // what that recorder is told of these files; else null
    char folder[4000]; // absolute, of this process; empty: not wanted
};

// A library in the program that records by itself (locality/hooks) takes the recorder's place: it
// has a variable of this name, or tells the tracker of it when it is loaded.
struct Listener {
    std::uint32_t version;
    std::uint32_t reserved;
    void (*ask)(Welcome* welcome);
    // As the functions of the same names in tracker.cpp; the tracker's lock is held.
    void (*noted)(std::uint32_t event, std::uint32_t record, std::uint64_t address,
                  std::uint64_t bytes, std::uint64_t previous);
    void (*phase_noted)(std::uint32_t event, std::uint32_t record);
};
constexpr const char* listener_variable = "warren_locality_listener";

} // namespace warren::locality
