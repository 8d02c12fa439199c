// Thread defaults: variables that tell thread run-times (OpenMP, OpenBLAS, MKL) how many processors
// a rank can hope for, and not to spin while they wait if threads are more than processors.
//
// A run-time sees all processors that its process may use. On 2 processors, 8 ranks with 2 OpenMP
// threads each then spin at each other's expense: every barrier of one rank lasts time slices of
// the others. mpiexec knows how many ranks share the processors, so it sets what the user has not
// set. Thread rule: functions of their arguments only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launch/mpiexec/command_line.hpp"

namespace warren::launch {

struct ThreadShare {
    std::uint32_t ranks = 1;
    std::uint32_t processors = 1; // that the job gets, by affinity and by control groups
    std::uint32_t visible = 1;    // that a run-time sees in a rank
    // A program that makes its ranks as threads itself may make them by OpenMP: then a number of
    // threads is not to be set.
    bool makes_its_ranks = false;
};

// The value that the user gave to a variable; null: none.
using Variable = std::function<const char*(const char* name)>;

// The settings to add to a rank's environment; none for a variable that the user has set.
std::vector<EnvironmentSetting> thread_defaults(const ThreadShare& share, const Variable& variable);

// "OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive": for people.
std::string text_of(const std::vector<EnvironmentSetting>& settings);

} // namespace warren::launch
