// `warren mem …`: the memories of a machine and their attributes.
//     warren mem [--topology SOURCE] [--all] [--svg FILE]    table, and picture, of the matrix
//     warren mem order --by ATTRIBUTES [--from INITIATOR] [--targets KINDS] [--topology SOURCE]
//     warren mem measure [--seconds N] [--repetitions N] [--size MIB] [--output FILE]
//     warren mem import FILE [--output FILE]                 values of hwloc's XML
//     warren mem export FILE                                 this machine with values, as hwloc's
//     XML
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace warren::tools {

// Runs `warren mem` with the arguments behind it; returns the exit code.
int memory_command(const std::vector<std::string>& arguments);
int measure_command(const std::vector<std::string>& arguments);
int import_command(const std::vector<std::string>& arguments);
int export_command(const std::vector<std::string>& arguments);

extern const char* const memory_usage;

// Takes options of the form --name value (or --name alone if `flags` has it) off the arguments.
// False: there is a mistake, and it has been printed.
class Options {
  public:
    Options(std::vector<std::string> names, std::vector<std::string> flags);
    bool read(const std::vector<std::string>& arguments, std::vector<std::string>& rest);
    bool has(const std::string& name) const;
    std::string get(const std::string& name, const std::string& otherwise) const;
    // Reads a number from `least` to `most`. False: it is something else, and that has been
    // printed.
    bool number(const std::string& name, double least, double most, double& value) const;

  private:
    std::vector<std::string> names_;
    std::vector<std::string> flags_;
    std::vector<std::pair<std::string, std::string>> given_;
};

} // namespace warren::tools
