// The commands of `warren`: one table with each one's words, its function and its help. main
// (warren.cpp), `warren help` and the reference pages (reference.hpp) read it. Thread rule:
// constant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warren::tools {

// What a command returns when its words are wrong in a way that the usage explains.
inline constexpr int wrong_words = -1;

struct Command {
    std::string_view name;  // the first word; several forms of a command follow each other
    std::string_view words; // behind it, for the help
    std::string_view help;  // sentences without line breaks
    int (*run)(const std::vector<std::string>& words);
};

std::span<const Command> commands();

// Null: there is none of this name.
const Command* find_command(std::string_view name);

// The help of all commands, or of the forms of one.
std::string usage(std::string_view name = {});

// The help of a command that has more of its own, and the words that print it.
struct OwnHelp {
    std::string_view command;
    const char* text;
};

std::span<const OwnHelp> own_helps();

} // namespace warren::tools
