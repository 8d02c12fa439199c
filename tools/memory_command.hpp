// `warren mem …`: the memories of a machine and their attributes.
//     warren mem [--topology SOURCE] [--all] [--svg FILE]    table, and picture, of the matrix
//     warren mem order --by ATTRIBUTES [--from INITIATOR] [--targets KINDS] [--topology SOURCE]
//     warren mem measure [--seconds N] [--repetitions N] [--size MIB] [--output FILE]
//     warren mem import FILE [--output FILE]                 values of hwloc's XML
//     warren mem export FILE                                 this machine with values, as hwloc's
//     XML
#pragma once

#include <string>
#include <vector>

namespace warren::tools {

// The arguments behind "mem"; the exit code.
int memory_command(const std::vector<std::string>& arguments);
int measure_command(const std::vector<std::string>& arguments);
int import_command(const std::vector<std::string>& arguments);
int export_command(const std::vector<std::string>& arguments);

extern const char* const memory_usage;

// Options of the form --name value (or --name alone where `flags` has it), taken off the arguments;
// a mistake is said, and false.
class Options {
  public:
    Options(std::vector<std::string> names, std::vector<std::string> flags);
    bool read(const std::vector<std::string>& arguments, std::vector<std::string>& rest);
    bool has(const std::string& name) const;
    std::string get(const std::string& name, const std::string& otherwise) const;
    // A number of `least` to `most`; false, and said, when it is something else.
    bool number(const std::string& name, double least, double most, double& value) const;

  private:
    std::vector<std::string> names_;
    std::vector<std::string> flags_;
    std::vector<std::pair<std::string, std::string>> given_;
};

} // namespace warren::tools
