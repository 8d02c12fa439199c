#include "memory_command.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "memory_table.hpp"
#include "warren/memory.h"
#include "warren/topology.h"

namespace warren::tools {

namespace {

using Topology = std::unique_ptr<warren_topology, void (*)(warren_topology*)>;
using Memory = std::unique_ptr<warren_memory, void (*)(warren_memory*)>;
using Criteria = std::unique_ptr<warren_mem_criteria, void (*)(warren_mem_criteria*)>;

int failed(const char* reason) {
    std::fprintf(stderr, "warren mem: %s\n", reason);
    return 1;
}

// The machine that --topology names, or this one.
Topology topology_of(const Options& options) {
    warren_topology* topology = nullptr;
    warren_topology_report report{};
    const std::string source = options.get("--topology", "");
    const int result = source.empty() ? warren_topology_load(&topology, &report)
                                      : warren_topology_open(source.c_str(), &topology, &report);
    if (result != WARREN_TOPOLOGY_SUCCESS) {
        failed(report.problem);
        return {nullptr, warren_topology_close};
    }
    if (report.problem[0] != '\0') {
        std::fprintf(stderr, "warren mem: note: %s\n", report.problem);
    }
    return {topology, warren_topology_close};
}

Memory memory_of(const warren_topology* topology) {
    warren_memory* memory = nullptr;
    if (warren_mem_open(topology, &memory) != WARREN_MEM_SUCCESS) {
        failed(warren_mem_error());
    }
    return {memory, warren_mem_close};
}

int table_command(const std::vector<std::string>& arguments) {
    Options options({"--topology", "--svg"}, {"--all"});
    std::vector<std::string> rest;
    if (!options.read(arguments, rest) || !rest.empty()) {
        std::fputs(memory_usage, stderr);
        return 2;
    }
    const Topology topology = topology_of(options);
    const Memory memory = topology ? memory_of(topology.get()) : Memory{nullptr, warren_mem_close};
    if (!memory) {
        return 1;
    }
    const Matrices matrices = matrices_of(topology.get(), memory.get(), options.has("--all"));
    std::fputs(table_of(matrices).c_str(), stdout);
    if (options.has("--svg")) {
        const std::string path = options.get("--svg", "");
        std::FILE* file = std::fopen(path.c_str(), "we");
        const std::string picture = picture_of(matrices);
        const bool written = file != nullptr &&
                             std::fwrite(picture.data(), 1, picture.size(), file) == picture.size();
        if (file == nullptr || std::fclose(file) != 0 || !written) {
            return failed(("can't write " + path).c_str());
        }
    }
    return 0;
}

int order_command(const std::vector<std::string>& arguments) {
    Options options({"--topology", "--by", "--from", "--targets"}, {});
    std::vector<std::string> rest;
    if (!options.read(arguments, rest) || !rest.empty()) {
        std::fputs(memory_usage, stderr);
        return 2;
    }
    warren_mem_criteria* parsed = nullptr;
    std::string text = options.get("--by", "");
    for (const char* setting : {"--from", "--targets"}) {
        if (options.has(setting)) {
            text += std::string(" ") + (setting + 2) + "=" + options.get(setting, "");
        }
    }
    if (warren_mem_criteria_parse(text.c_str(), &parsed) != WARREN_MEM_SUCCESS) {
        return failed(warren_mem_error());
    }
    const Criteria criteria(parsed, warren_mem_criteria_free);
    const Topology topology = topology_of(options);
    const Memory memory = topology ? memory_of(topology.get()) : Memory{nullptr, warren_mem_close};
    if (!memory) {
        return 1;
    }
    std::size_t count = 0;
    if (warren_mem_get_ordering(memory.get(), criteria.get(), 0, nullptr, nullptr, &count) !=
        WARREN_MEM_SUCCESS) {
        return failed(warren_mem_error());
    }
    std::vector<unsigned> nodes(count);
    std::vector<unsigned> tiers(count);
    // The availability may change between the calls, so the count of the second one holds.
    if (warren_mem_get_ordering(memory.get(), criteria.get(), count, nodes.data(), tiers.data(),
                                &count) != WARREN_MEM_SUCCESS) {
        return failed(warren_mem_error());
    }
    count = std::min(count, nodes.size());
    const std::vector<std::string> attributes = names_in(options.get("--by", ""));
    std::string table = "place  node";
    char field[64];
    for (const std::string& name : attributes) {
        std::snprintf(field, sizeof field, "  %20s", name.c_str());
        table += field;
    }
    table += "\n";
    const std::string from = options.get("--from", "here");
    for (std::size_t place = 0; place < count; ++place) {
        const bool tie = place > 0 && tiers[place] == tiers[place - 1];
        std::snprintf(field, sizeof field, "%4s%u  %4u", tie ? "=" : "", tiers[place] + 1,
                      nodes[place]);
        table += field;
        for (const std::string& name : attributes) {
            table += "  " + value_text(memory.get(), name, from, nodes[place], 20);
        }
        table += "\n";
    }
    std::fputs(table.c_str(), stdout);
    return 0;
}

} // namespace

const char* const memory_usage =
    "usage: warren mem [--topology SOURCE] [--all] [--svg FILE]\n"
    "                            the memories and their attributes as a table, and as a picture\n"
    "       warren mem order --by latency,capacity [--from core:3] [--targets local+remote]\n"
    "                        [--topology SOURCE]\n"
    "                            the memories, the best first\n"
    "       warren mem measure [--seconds 60] [--repetitions 5] [--size MIB] [--from LIST]\n"
    "                          [--to LIST] [--output FILE]\n"
    "                            measures latencies and bandwidths, and keeps them for this "
    "machine\n"
    "       warren mem import FILE [--output FILE]\n"
    "                            keeps the values that hwloc's XML of this machine has\n"
    "       warren mem export FILE   this machine with its values, as hwloc's XML\n"
    "SOURCE is as warren_topology_open takes it: xml:FILE, synthetic:TEXT, image:FILE, native.\n";

Options::Options(std::vector<std::string> names, std::vector<std::string> flags)
    : names_(std::move(names)), flags_(std::move(flags)) {}

bool Options::read(const std::vector<std::string>& arguments, std::vector<std::string>& rest) {
    const auto is_in = [](const std::vector<std::string>& list, const std::string& word) {
        return std::find(list.begin(), list.end(), word) != list.end();
    };
    for (std::size_t at = 0; at < arguments.size(); ++at) {
        std::string word = arguments[at];
        if (!word.starts_with("--")) {
            rest.push_back(word);
            continue;
        }
        std::string value;
        const std::size_t equals = word.find('=');
        const bool joined = equals != std::string::npos;
        if (joined) {
            value = word.substr(equals + 1);
            word.resize(equals);
        }
        const bool flag = is_in(flags_, word);
        if ((!flag && !is_in(names_, word)) || (flag && joined)) {
            std::fprintf(stderr, "warren mem: there is no option %s here\n", arguments[at].c_str());
            return false;
        }
        if (!flag && !joined) {
            if (at + 1 == arguments.size()) {
                std::fprintf(stderr, "warren mem: %s wants a value\n", word.c_str());
                return false;
            }
            value = arguments[++at];
        }
        given_.emplace_back(word, value);
    }
    return true;
}

bool Options::has(const std::string& name) const {
    return std::any_of(given_.begin(), given_.end(),
                       [&](const auto& option) { return option.first == name; });
}

std::string Options::get(const std::string& name, const std::string& otherwise) const {
    for (const auto& [given, value] : given_) {
        if (given == name) {
            return value;
        }
    }
    return otherwise;
}

bool Options::number(const std::string& name, double least, double most, double& value) const {
    if (!has(name)) {
        return true;
    }
    const std::string text = get(name, "");
    char* end = nullptr;
    const double read = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(read >= least && read <= most)) {
        std::fprintf(stderr, "warren mem: %s %s: a number from %g to %g\n", name.c_str(),
                     text.c_str(), least, most);
        return false;
    }
    value = read;
    return true;
}

int memory_command(const std::vector<std::string>& arguments) {
    const std::string first = arguments.empty() ? "" : arguments.front();
    const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1),
                                        arguments.end());
    if (first == "order") {
        return order_command(rest);
    }
    if (first == "measure") {
        return measure_command(rest);
    }
    if (first == "import") {
        return import_command(rest);
    }
    if (first == "export") {
        return export_command(rest);
    }
    if (first == "help" || first == "--help") {
        std::fputs(memory_usage, stdout);
        return 0;
    }
    return table_command(arguments);
}

} // namespace warren::tools
