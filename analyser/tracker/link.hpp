// How the tracker in a recorded process and the recorder find each other: by a short exchange over
// a socket with an abstract name, which an environment variable holds. Afterwards each writes its
// own files and needs the other no more.
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
    // Common part of the disk quota, shared with a recorder in the same process (disk_quota.hpp);
    // else null.
    std::uint64_t* common_bytes;
    LogSums* sums;     // what that recorder is told of these files; else null
    char folder[4000]; // absolute, of this process; empty: not wanted
};

// A library in the program that records by itself (analyser/hooks) takes the recorder's place. It
// has a variable of this name, or calls the tracker when it is loaded.
struct Listener {
    std::uint32_t version;
    std::uint32_t reserved;
    void (*ask)(Welcome* welcome);
    // Called as the functions of the same names in tracker.cpp, with the tracker's lock held.
    void (*noted)(std::uint32_t event, std::uint32_t record, std::uint64_t address,
                  std::uint64_t bytes, std::uint64_t previous);
    void (*phase_noted)(std::uint32_t event, std::uint32_t record);
};
constexpr const char* listener_variable = "warren_locality_listener";

} // namespace warren::locality
