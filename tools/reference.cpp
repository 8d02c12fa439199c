#include "reference.hpp"

#include <algorithm>
#include <string_view>

#include "commands.hpp"
#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/options.hpp"
#include "warren/version.h"

namespace warren::tools {

namespace {

constexpr std::string_view usage_label = "usage: ";

// The paragraphs of a text, without the line breaks in them.
std::vector<std::string> paragraphs_of(const std::string& text) {
    std::vector<std::string> paragraphs(1);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        if (end == begin) {
            paragraphs.emplace_back();
        } else {
            std::string& paragraph = paragraphs.back();
            paragraph += (paragraph.empty() ? "" : " ") + text.substr(begin, end - begin);
        }
        begin = end + 1;
    }
    std::erase(paragraphs, "");
    return paragraphs;
}

std::string names_of(const launch::Option& option) {
    std::string names;
    for (const std::string_view name : option.names) {
        if (!name.empty()) {
            names += (names.empty() ? "" : ", ") + std::string(name);
        }
    }
    return names + std::string(option.value);
}

// Text in which these characters have something before them.
std::string escaped(std::string_view text, std::string_view characters, std::string_view before) {
    std::string made;
    for (const char one : text) {
        if (characters.find(one) != std::string_view::npos) {
            made += before;
        }
        made += one;
    }
    return made;
}

// Markdown's characters, but in code, which is between backticks in the text already.
std::string markdown_text(std::string_view text) {
    std::string made;
    bool is_code = false;
    for (const char one : text) {
        is_code = is_code != (one == '`');
        if (!is_code && std::string_view("*_<>[]\\").find(one) != std::string_view::npos) {
            made += '\\';
        }
        made += one;
    }
    return made;
}

// An option's names become pieces of code of their own, so that lines break between them.
std::string term_of_markdown(std::string_view term) {
    constexpr std::string_view between = ", -";
    std::string made;
    for (std::size_t at = term.find(between); at != std::string_view::npos;
         at = term.find(between)) {
        made += std::string(term.substr(0, at)) + "`, `";
        term.remove_prefix(at + 2);
    }
    return escaped(made + std::string(term), "|", "\\");
}

// A line of text for roff, in which a dash is one and no line begins with a request.
std::string roff_text(std::string_view text) {
    std::string made;
    for (const char one : text) {
        made += one == '\\' ? "\\e" : one == '-' ? "\\-" : std::string(1, one);
    }
    return made.empty() || (made[0] != '.' && made[0] != '\'') ? made : "\\&" + made;
}

std::string roff_lines(const std::string& text) {
    std::string made;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        made += roff_text(std::string_view(text).substr(begin, end - begin)) + "\n";
        begin = end + 1;
    }
    return made;
}

std::string upper_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char one) {
        return one >= 'a' && one <= 'z' ? static_cast<char>(one - 'a' + 'A') : one;
    });
    return text;
}

} // namespace

Reference mpiexec_reference() {
    Reference made{"mpiexec", "starts MPI programs", {}, {}};
    for (const launch::Option& option : launch::options()) {
        if (made.sections.empty() || made.sections.back().heading != option.section) {
            made.sections.push_back({std::string(option.section), {}, {}, {}});
        }
        made.sections.back().entries.push_back({names_of(option), std::string(option.help)});
    }
    // Of the help's text what is not made of the table: the first line and the paragraphs behind
    // the options.
    Reference::Section notes{"Notes", {}, {}, {}};
    for (const std::string& paragraph : paragraphs_of(launch::usage())) {
        if (paragraph.starts_with(usage_label)) {
            made.synopsis.push_back(paragraph.substr(usage_label.size()));
        } else if (std::none_of(made.sections.begin(), made.sections.end(),
                                [&](const auto& section) {
                                    return paragraph.starts_with(section.heading + " ");
                                })) {
            notes.paragraphs.push_back(paragraph);
        }
    }
    made.sections.push_back(std::move(notes));
    return made;
}

Reference warren_reference() {
    Reference made{"warren", "tells about the node, running jobs, memory and programs", {}, {}};
    made.synopsis.emplace_back("warren COMMAND …");
    Reference::Section& all = made.sections.emplace_back();
    all.heading = "Commands";
    for (const Command& command : commands()) {
        std::string term = "warren " + std::string(command.name);
        term += (command.words.empty() ? "" : " ") + std::string(command.words);
        all.entries.push_back({term, std::string(command.help)});
    }
    for (const OwnHelp& help : own_helps()) {
        made.sections.push_back({std::string(help.command), {}, {}, help.text});
    }
    return made;
}

std::string as_markdown(const Reference& reference) {
    std::string text = "# " + reference.name +
                       "\n\n<!-- generated: `cmake --build --preset release --target "
                       "reference` writes this page -->\n\n`" +
                       reference.name + "` " + markdown_text(reference.summary) + ".\n\n```\n";
    for (const std::string& line : reference.synopsis) {
        text += line + "\n";
    }
    text += "```\n";
    for (const Reference::Section& section : reference.sections) {
        text += "\n## " + markdown_text(section.heading) + "\n";
        for (const std::string& paragraph : section.paragraphs) {
            text += "\n" + markdown_text(paragraph) + "\n";
        }
        if (!section.entries.empty()) {
            text += "\n| | |\n|---|---|\n";
        }
        for (const Reference::Entry& entry : section.entries) {
            text += "| `" + term_of_markdown(entry.term) + "` | " +
                    escaped(markdown_text(entry.text), "|", "\\") + " |\n";
        }
        if (!section.verbatim.empty()) {
            text += "\n```\n" + section.verbatim + "```\n";
        }
    }
    return text;
}

std::string as_roff(const Reference& reference) {
    std::string text = ".TH " + upper_case(reference.name) + " 1 \"\" \"Warren " +
                       warren_version() + "\" \"Warren\"\n.SH NAME\n" + reference.name + " \\- " +
                       roff_text(reference.summary) + "\n.SH SYNOPSIS\n.nf\n";
    for (const std::string& line : reference.synopsis) {
        text += roff_text(line) + "\n";
    }
    text += ".fi\n";
    for (const Reference::Section& section : reference.sections) {
        text += ".SH " + roff_text(upper_case(section.heading)) + "\n";
        for (const std::string& paragraph : section.paragraphs) {
            text += ".PP\n" + roff_text(paragraph) + "\n";
        }
        for (const Reference::Entry& entry : section.entries) {
            text += ".TP\n\\fB" + roff_text(entry.term) + "\\fR\n" + roff_text(entry.text) + "\n";
        }
        if (!section.verbatim.empty()) {
            text += ".nf\n" + roff_lines(section.verbatim) + ".fi\n";
        }
    }
    return text;
}

} // namespace warren::tools
