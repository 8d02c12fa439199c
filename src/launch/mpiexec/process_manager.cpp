#include "launch/mpiexec/process_manager.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace warren::launch {

namespace {

// Announced to the ranks; a line that is much longer is not of this protocol.
constexpr const char* limits = "kvsname_max=256 keylen_max=256 vallen_max=4096";
constexpr std::size_t line_limit = 16384;

// The value of a word `name=value` in a line; the last word of a message may have blanks.
std::string value_of(std::string_view line, std::string_view name, bool to_the_end = false) {
    std::size_t at = 0;
    while (at < line.size()) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        const std::string_view word = line.substr(at, end - at);
        if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') {
            const std::size_t first = at + name.size() + 1;
            return std::string(line.substr(first, to_the_end ? line.size() : end - first));
        }
        at = end + 1;
    }
    return "";
}

} // namespace

ProcessManager::ProcessManager(std::uint32_t ranks, std::string job)
    : job_(std::move(job)), unfinished_(ranks), in_barrier_(ranks, false) {}

std::vector<ProcessManager::Reply> ProcessManager::take(std::uint32_t rank, std::uint32_t program,
                                                        std::string_view text) {
    std::vector<Reply> replies;
    std::string& line = unfinished_[rank];
    line += text;
    std::size_t end = 0;
    while ((end = line.find('\n')) != std::string::npos) {
        const std::string whole = line.substr(0, end);
        line.erase(0, end + 1);
        command(rank, program, whole, replies);
    }
    if (line.size() > line_limit) {
        line.clear();
    }
    return replies;
}

void ProcessManager::command(std::uint32_t rank, std::uint32_t program, std::string_view line,
                             std::vector<Reply>& replies) {
    const std::string command = value_of(line, "cmd");
    const auto reply = [&](const std::string& text) { replies.push_back({rank, text + "\n"}); };
    if (command == "init") {
        reply("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    } else if (command == "get_maxes") {
        reply(std::string("cmd=maxes ") + limits);
    } else if (command == "get_appnum") {
        reply("cmd=appnum appnum=" + std::to_string(program));
    } else if (command == "get_universe_size") {
        reply("cmd=universe_size size=" + std::to_string(unfinished_.size()));
    } else if (command == "get_my_kvsname") {
        reply("cmd=my_kvsname kvsname=" + job_);
    } else if (command == "put") {
        board_[value_of(line, "key")] = value_of(line, "value");
        reply("cmd=put_result rc=0 msg=success");
    } else if (command == "get") {
        const std::string found = look_up(value_of(line, "key"));
        reply(found.empty() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown"
                            : "cmd=get_result rc=0 msg=success value=" + found);
    } else if (command == "barrier_in") {
        enter_barrier(rank, replies);
    } else if (command == "finalize") {
        reply("cmd=finalize_ack");
    } else if (command == "abort") {
        abort_ = {true, std::atoi(value_of(line, "exitcode").c_str()),
                  value_of(line, "message", true)};
    } else {
        reply("cmd=" + command + "_result rc=-1 msg=not_supported");
    }
}

void ProcessManager::enter_barrier(std::uint32_t rank, std::vector<Reply>& replies) {
    if (in_barrier_[rank]) {
        return;
    }
    in_barrier_[rank] = true;
    if (++waiting_ < in_barrier_.size()) {
        return;
    }
    waiting_ = 0;
    in_barrier_.assign(in_barrier_.size(), false);
    for (std::uint32_t other = 0; other < in_barrier_.size(); ++other) {
        replies.push_back({other, "cmd=barrier_out\n"});
    }
}

std::string ProcessManager::look_up(const std::string& key) const {
    if (key == "PMI_process_mapping") { // from node 0 on, 1 node, all ranks on each
        return "(vector,(0,1," + std::to_string(in_barrier_.size()) + "))";
    }
    const auto found = board_.find(key);
    return found != board_.end() ? found->second : "";
}

} // namespace warren::launch
