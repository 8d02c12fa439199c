#include "memory/attributes/attribute.hpp"

#include <algorithm>
#include <array>

namespace warren::memory {

namespace {

constexpr std::array<Attribute, predefined_attributes> table{{
    {"capacity", Unit::bytes, true, false},
    {"locality", Unit::processors, false, false},
    {"bandwidth", Unit::mebibytes_per_second, true, true},
    {"latency", Unit::nanoseconds, false, true},
    {"read_bandwidth", Unit::mebibytes_per_second, true, true},
    {"write_bandwidth", Unit::mebibytes_per_second, true, true},
    {"read_latency", Unit::nanoseconds, false, true},
    {"write_latency", Unit::nanoseconds, false, true},
    {"available", Unit::bytes, true, false},
    {"cache", Unit::bytes, true, false},
}};

bool is_letter(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
}

} // namespace

const Attribute* predefined_attribute(int attribute) {
    return attribute >= 0 && attribute < predefined_attributes
               ? &table[static_cast<std::size_t>(attribute)]
               : nullptr;
}

int predefined_attribute_by_name(std::string_view name) {
    for (int attribute = 0; attribute < predefined_attributes; ++attribute) {
        if (table[static_cast<std::size_t>(attribute)].name == name) {
            return attribute;
        }
    }
    return -1;
}

bool is_attribute_name(std::string_view name) {
    return !name.empty() && name.size() < 64 && is_letter(name.front()) &&
           std::all_of(name.begin(), name.end(), [](char character) {
               return is_letter(character) || (character >= '0' && character <= '9') ||
                      character == '_';
           });
}

double default_tolerance(const Attribute& attribute) {
    return attribute.unit == Unit::mebibytes_per_second || attribute.unit == Unit::nanoseconds
               ? default_performance_tolerance
               : 0;
}

} // namespace warren::memory
