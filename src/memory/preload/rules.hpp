// Rules of `warren run`: which blocks of an unmodified program go where. A file with a rule per
// line,
//
//     # what is large and from the solver, into the fast memory; small things stay
//     size>=1M function=solve*   -> bandwidth,capacity full=next
//     library=libblas* size>64k  -> bandwidth
//     file=grid.cpp              -> capacity from=core:0
//     size<4k                    -> system
//     default                    -> latency
//
// Conditions, blanks between them, all of which must hold, then -> and criteria (warren/memory.h),
// or `system` for the system's own malloc. The first rule that fits counts. What none fits has what
// --memory says, or the system's malloc. Conditions:
//     size<N size<=N size>N size>=N size=N size=A..B   bytes asked for, with k, M or G (of 1024)
//     function=PATTERN   the function that allocates: its symbol, or the qualified name of a C++
//                        function without parameters; no templates, but by their symbols
//     library=PATTERN    the file name of its library or program
//     file=PATTERN       its source file, by the debugging information of gcc -g
//     default            everything; the last rule
// Patterns have * and ?. # begins a comment.
// Thread rule: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "memory/attributes/machine.hpp"

namespace warren::memory {

struct Rule {
    unsigned line = 0; // 0: of the command line
    std::uint64_t least = 0;
    std::uint64_t most = UINT64_MAX;
    std::string function; // patterns, "": any
    std::string library;
    std::string file;
    std::string criteria; // "system", or what parse_criteria understands
};

// WARREN_MEM_ERR_FILE: "name:line: reason".
Error parse_rules(std::string_view text, const std::string& name, std::vector<Rule>& rules);

struct PlanOptions {
    bool children = false;
    bool report = false;
};

// Resolves the rules on this machine into a plan, as plan.hpp reads it. Messages call the rules
// `name`.
Error make_plan(const Machine& machine, const std::vector<Rule>& rules, const std::string& name,
                const PlanOptions& options, std::string& plan);

} // namespace warren::memory
