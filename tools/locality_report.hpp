// `warren locality report` shows the analysis of a recording. The analysis is in Python
// (analyser/reports); the command finds a Python and becomes it.
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// The Python of the reports: the one that WARREN_PYTHON names, else the environment of a source
// tree (tools/python_packages.sh), else the one beside `warren`, else python3 of PATH.
std::string python_of_reports();

// Runs `python3 -m warren.locality` with these arguments (the first is the subcommand). Returns
// only if that fails, after saying why: an exit code.
int locality_report(const std::vector<std::string>& arguments);

} // namespace warren::tools
