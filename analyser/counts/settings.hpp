// Settings that `warren locality record` gives the client: words `key=value` in DynamoRIO's
// options, which executed images inherit even if the program clears their environment. DynamoRIO
// splits words at blanks and has several quotes; characters other than letters, digits and `/._-`
// are therefore written as %XX.
#pragma once

#include <cstdint>
#include <string>

namespace warren::locality::counts {

struct Settings {
    std::string folder; // of the recording: each process makes its own in it
    std::string mode = "counts";
    std::uint64_t granularity = 4096;       // bytes of a unit: a power of two, 64 … 2 MiB
    std::uint64_t interval_ns = 0;          // 0: no intervals of time
    std::uint64_t save_ns = 10'000'000'000; // 0: never before the end
    std::uint64_t limit_bytes = 0;          // of a process's folder; 0: none
    std::uint64_t threshold = 4096;         // bytes: smaller heap blocks are not recorded
    std::uint64_t communication = 0;        // 1: which thread gets units that which has written
    std::uint64_t faults = 0;               // 1: first touches are recorded beside (faults_folder)
    std::uint64_t stack_depth = 32;         // calls that lead to an allocation, at most
};

constexpr std::uint64_t least_granularity = 64;
constexpr std::uint64_t largest_granularity = std::uint64_t{2} << 20;
constexpr std::uint64_t most_calls = 64; // that the tracker unwinds

std::string write_settings(const Settings& settings);

// False: the settings make no sense, and `problem` says why.
bool check(const Settings& settings, std::string& problem);

// False: `problem` says why. words[0] is the client's own name.
bool read_settings(int count, const char* const* words, Settings& settings, std::string& problem);

} // namespace warren::locality::counts
