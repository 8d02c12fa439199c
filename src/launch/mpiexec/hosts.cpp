#include "launch/mpiexec/hosts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>
#include <sys/stat.h>

#include "launch/mpiexec/errors.hpp"
#include "launch/mpiexec/option_values.hpp"
#include "launch/mpiexec/this_node.hpp"
#include "mpi/job/segment.hpp"

namespace warren::launch {

namespace {

constexpr std::uint32_t most_ranks = 1U << 30;

Host& host_named(const std::string& name, std::vector<Host>& hosts) {
    const auto found = std::find_if(hosts.begin(), hosts.end(),
                                    [&](const Host& host) { return host.name == name; });
    return found != hosts.end() ? *found : hosts.emplace_back(Host{.name = name, .slots = 0});
}

Error check_name(const std::string& what, const std::string& name) {
    // It becomes a word of the launcher's command.
    if (name.empty() || name[0] == '-' ||
        name.find_first_of(" \t'\"\\$`;|&<>(){}") != std::string::npos) {
        return fail(exit_usage, "%s: '%.80s' is no name of a node", what.c_str(), name.c_str());
    }
    return {};
}

// Adds "name", "name:4", or "name" and slots that were read elsewhere (0: none were).
Error add_host(const std::string& what, const std::string& word, std::uint32_t slots,
               std::vector<Host>& hosts) {
    std::string name = word;
    const std::size_t colon = word.rfind(':');
    const bool is_address = std::count(word.begin(), word.end(), ':') > 1; // of IPv6
    if (colon != std::string::npos && !is_address) {
        name = word.substr(0, colon);
        if (!whole_number(word.substr(colon + 1), node::rank_limit, slots)) {
            return fail(exit_usage,
                        "%s: '%.80s' needs a number of slots from 1 to %u behind its "
                        "colon",
                        what.c_str(), word.c_str(), node::rank_limit);
        }
    }
    if (Error error = check_name(what, name)) {
        return error;
    }
    host_named(name, hosts).slots += std::max(slots, 1U);
    return {};
}

} // namespace

Error parse_hosts(const std::string& what, const std::string& list, std::vector<Host>& hosts) {
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
        if (Error error = add_host(what, word, 0, hosts)) {
            return error;
        }
    }
    return hosts.empty() ? fail(exit_usage, "%s needs the name of a node", what.c_str()) : Error{};
}

Error parse_hostfile(const std::string& what, const std::string& path, std::vector<Host>& hosts) {
    struct stat status;
    std::ifstream file(path);
    if (!file || stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) {
        return fail(exit_usage, "%s %s: %s", what.c_str(), path.c_str(),
                    std::strerror(file ? EISDIR : errno));
    }
    const std::string where = what + " " + path;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string host;
        if (!(words >> host)) {
            continue;
        }
        std::uint32_t slots = 0;
        for (std::string word; words >> word;) {
            const bool named = word.starts_with("slots=");
            const bool number = word.find_first_not_of("0123456789") == std::string::npos;
            if ((named || number) &&
                !whole_number(named ? word.substr(6) : word, node::rank_limit, slots)) {
                return fail(exit_usage, "%s: '%.80s' of %.80s is no number of slots from 1 to %u",
                            where.c_str(), word.c_str(), host.c_str(), node::rank_limit);
            }
        }
        if (Error error = add_host(where, host, slots, hosts)) {
            return error;
        }
    }
    return hosts.empty() ? fail(exit_usage, "%s %s names no node", what.c_str(), path.c_str())
                         : Error{};
}

bool expand_slurm_nodes(const std::string& list, std::vector<std::string>& names) {
    for (std::size_t at = 0; at < list.size();) {
        const std::size_t end = list.find_first_of(",[", at);
        const std::string prefix = list.substr(at, end == std::string::npos ? end : end - at);
        if (end == std::string::npos || list[end] == ',') {
            names.push_back(prefix);
            at = end == std::string::npos ? list.size() : end + 1;
            continue;
        }
        const std::size_t close = list.find(']', end);
        if (close == std::string::npos) {
            return false;
        }
        const std::size_t after = std::min(list.find_first_of(",[", close), list.size());
        if (after < list.size() && list[after] == '[') {
            return false; // several brackets in a name
        }
        const std::string suffix = list.substr(close + 1, after - close - 1);
        std::istringstream ranges(list.substr(end + 1, close - end - 1));
        for (std::string range; std::getline(ranges, range, ',');) {
            const std::size_t dash = range.find('-');
            const std::string first = range.substr(0, dash);
            const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
            if (first.empty() || last.empty() || first.size() > 9 || last.size() > 9 ||
                (first + last).find_first_not_of("0123456789") != std::string::npos) {
                return false;
            }
            for (int number = std::stoi(first); number <= std::stoi(last); ++number) {
                std::string digits = std::to_string(number);
                digits.insert(0, first.size() - std::min(first.size(), digits.size()), '0');
                names.push_back(std::string(prefix).append(digits).append(suffix));
            }
        }
        at = after + 1;
    }
    return !names.empty();
}

bool expand_slurm_counts(const std::string& list, std::vector<std::uint32_t>& counts) {
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
        std::uint32_t count = 0;
        std::uint32_t times = 1;
        const std::size_t bracket = word.find("(x");
        if (!whole_number(word.substr(0, bracket), most_ranks, count) ||
            (bracket != std::string::npos &&
             (word.back() != ')' ||
              !whole_number(word.substr(bracket + 2, word.size() - bracket - 3), 1U << 20,
                            times)))) {
            return false;
        }
        counts.insert(counts.end(), times, count);
    }
    return !counts.empty();
}

Error hosts_of_allocation(std::vector<Host>& hosts) {
    const char* nodes = std::getenv("SLURM_JOB_NODELIST");
    if (nodes == nullptr || std::getenv("SLURM_JOB_ID") == nullptr) {
        return {};
    }
    std::vector<std::string> names;
    std::vector<std::uint32_t> slots;
    const char* tasks = std::getenv("SLURM_TASKS_PER_NODE");
    const char* processors = std::getenv("SLURM_JOB_CPUS_PER_NODE");
    const char* counts = tasks != nullptr ? tasks : processors != nullptr ? processors : "1";
    if (!expand_slurm_nodes(nodes, names) || !expand_slurm_counts(counts, slots)) {
        return fail(exit_usage,
                    "this is a Slurm job whose nodes Warren does not understand "
                    "(SLURM_JOB_NODELIST=%.200s, slots %.200s); name them with --hosts",
                    nodes, counts);
    }
    for (std::size_t node = 0; node < names.size(); ++node) {
        hosts.push_back(
            {.name = names[node], .slots = node < slots.size() ? slots[node] : slots.back()});
    }
    return {};
}

Error divide_ranks(std::uint32_t ranks, std::uint32_t per_node, bool dealt,
                   std::vector<Host>& hosts) {
    std::uint64_t slots = 0;
    for (Host& host : hosts) {
        host.slots = per_node != 0 ? per_node : host.slots;
        slots += host.slots;
    }
    if (per_node != 0 && ranks > slots) {
        const std::uint32_t needed = (ranks + per_node - 1) / per_node;
        return fail(exit_usage,
                    "%u ranks, %u per node, need %u nodes, and %s; --hosts or --hostfile names "
                    "them",
                    ranks, per_node, needed,
                    hosts.size() == 1 ? "there is one"
                                      : ("there are " + std::to_string(hosts.size())).c_str());
    }
    std::uint64_t before = 0; // slots of the nodes before
    std::uint32_t given = 0;
    for (std::size_t node = 0; node < hosts.size(); ++node) {
        Host& host = hosts[node];
        before += host.slots;
        if (dealt) {
            host.ranks = static_cast<std::uint32_t>(ranks / hosts.size() +
                                                    (node < ranks % hosts.size() ? 1 : 0));
            continue;
        }
        const std::uint64_t end =
            ranks > slots ? ranks * before / slots : std::min<std::uint64_t>(ranks, before);
        host.ranks = static_cast<std::uint32_t>(end) - given;
        given = static_cast<std::uint32_t>(end);
    }
    std::erase_if(hosts, [](const Host& host) { return host.ranks == 0; });
    for (const Host& host : hosts) {
        if (host.ranks > node::rank_limit) {
            return fail(exit_usage, "a node holds at most %u ranks, and %s would get %u",
                        node::rank_limit, host.name.c_str(), host.ranks);
        }
    }
    return {};
}

Error plan_hosts(CommandLine& line, std::vector<Host>& hosts) {
    if (!line.hosts.empty()) {
        if (Error error = parse_hosts("option --hosts", line.hosts, hosts)) {
            return error;
        }
    }
    if (!line.hostfile.empty()) {
        if (Error error = parse_hostfile("option --hostfile", line.hostfile, hosts)) {
            return error;
        }
    }
    const bool named = !hosts.empty();
    if (!named) {
        if (Error error = hosts_of_allocation(hosts)) {
            return error;
        }
        line.by_slurm = hosts.size() > 1;
        if (hosts.size() < 2) {
            hosts.assign(1, {.name = "localhost"});
        }
    }
    const std::uint64_t slots =
        line.ranks_per_node != 0
            ? std::uint64_t{line.ranks_per_node} * hosts.size()
            : std::accumulate(hosts.begin(), hosts.end(), std::uint64_t{0},
                              [](std::uint64_t sum, const Host& host) { return sum + host.slots; });
    // One node's slots say what may run there; several nodes' are what the job is to have.
    if (line.programs.size() == 1 && !line.programs[0].ranks_given &&
        (hosts.size() > 1 || line.ranks_per_node != 0)) {
        line.programs[0].ranks =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(slots, most_ranks));
    }
    if (Error error = divide_ranks(line.ranks(), line.ranks_per_node, line.dealt, hosts)) {
        return error;
    }
    const auto is_here = [](const Host& host) { return is_this_node(host.name); };
    if (line.launcher.empty() && !line.by_slurm &&
        std::all_of(hosts.begin(), hosts.end(), is_here)) {
        hosts.clear();
    }
    return {};
}

} // namespace warren::launch
