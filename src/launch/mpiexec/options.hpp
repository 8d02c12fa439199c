// The options of mpiexec: one table with each option's names, its setter and its help. The parser
// (command_line.cpp) and --help (usage.cpp) both read it. Thread rule: constant.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "launch/mpiexec/command_line.hpp"

namespace warren::launch {

// One use of an option on the command line, for its setter.
struct OptionUse {
    CommandLine& line;
    Program& program; // the one that the options before its name describe
    const std::vector<std::string>& words;
    std::size_t& next; // index of the first word that has not been read
    std::string word;  // the option as written, with "=value" if it has one
    std::string value = {};
    bool has_value = false;

    // Takes the next word as the value. Errors call the option `what`.
    Error take_value(const std::string& what, std::string& taken);
};

enum class Takes : std::uint8_t {
    nothing,
    value,             // after '=', or the next word
    value_after_equals // only so: without '=' the option has none
};

struct Option {
    static constexpr std::size_t name_limit = 7;

    std::string_view section; // heading in the help; the table has a section's options together
    std::array<std::string_view, name_limit>
        names; // as in the help; all work with one dash and two
    Takes takes;
    std::string_view value; // the value's form; the help prints it after the names
    Error (*set)(OptionUse& use);
    std::string_view help; // sentences without line breaks; may be empty
};

std::span<const Option> options();

// The option of a name without dashes; null: there is none.
const Option* find_option(std::string_view bare_name);

} // namespace warren::launch
