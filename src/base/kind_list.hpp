// The form of lists of kinds of memory (MPI 5.0, 11.4.3): names of letters, digits, _ and -,
// with commas and colons between them. Thread rule: a function of its argument.
#pragma once

#include <string_view>

namespace warren {

// Whether the text is such a list, without blanks and empty names.
constexpr bool is_list_of_kinds(std::string_view text) {
    bool name = false; // has begun
    for (const char character : text) {
        const bool separates = character == ',' || character == ':';
        if (separates
                ? !name
                : (character < '0' || character > '9') && (character < 'a' || character > 'z') &&
                      (character < 'A' || character > 'Z') && character != '_' &&
                      character != '-') {
            return false;
        }
        name = !separates;
    }
    return name;
}

} // namespace warren
