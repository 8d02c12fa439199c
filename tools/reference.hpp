// The reference of mpiexec and warren, from the tables that their --help is made of: pages of
// docs/reference and man pages. Thread rule: functions of their arguments.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// A page in a form that is neither Markdown nor roff yet.
struct Reference {
    struct Entry {
        std::string term; // an option or a command, as it is written
        std::string text;
    };
    struct Section {
        std::string heading;
        std::vector<std::string> paragraphs;
        std::vector<Entry> entries;
        std::string verbatim; // lines as they are
    };

    std::string name;
    std::string summary; // without a full stop
    std::vector<std::string> synopsis;
    std::vector<Section> sections;
};

Reference mpiexec_reference();
Reference warren_reference();

std::string as_markdown(const Reference& reference);
// For man(1), in its section 1.
std::string as_roff(const Reference& reference);

} // namespace warren::tools
