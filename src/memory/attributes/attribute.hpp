// Attribute: what is known of the predefined attributes of memory (warren/memory.h): name, unit,
// which direction is better, whether a value depends on the initiator, and the tolerance that is
// meant when nobody says one.
// Thread rule: constant data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "warren/memory.h"

namespace warren::memory {

enum class Unit : std::uint8_t { bytes, processors, mebibytes_per_second, nanoseconds, none };

struct Attribute {
    std::string_view name;
    Unit unit;
    bool more_is_better;
    bool by_initiator;
};

inline constexpr int predefined_attributes = WARREN_MEM_CACHE + 1;

// Latencies of a kind of memory differ by a fifth with the load and the way that they are measured;
// what is meant to differ (another socket, another technology) differs by more than a fourth.
inline constexpr double default_performance_tolerance = 0.25;

// Null if there is none of this number.
const Attribute* predefined_attribute(int attribute);
// -1 if there is none.
int predefined_attribute_by_name(std::string_view name);

// A name that a user may register: letters, digits and '_', begins with a letter, at most 63 bytes.
bool is_attribute_name(std::string_view name);

double default_tolerance(const Attribute& attribute);

} // namespace warren::memory
