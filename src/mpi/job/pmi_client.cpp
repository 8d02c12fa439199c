#include "mpi/job/pmi_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "mpi.h"

namespace warren::node {

namespace {

constexpr std::size_t smallest_value = 64;
constexpr std::size_t line_limit = std::size_t{1} << 20;
constexpr char digits[] = "0123456789abcdef";

long number_of(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') {
        return -1;
    }
    char* end = nullptr;
    const long number = std::strtol(text, &end, 10);
    return *end == '\0' ? number : -1;
}

// The value of a word `name=value` in a line; "" when it has none.
std::string value_of(std::string_view line, std::string_view name) {
    std::size_t at = 0;
    while (at < line.size()) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        const std::string_view word = line.substr(at, end - at);
        if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') {
            return std::string(word.substr(name.size() + 1));
        }
        at = end + 1;
    }
    return "";
}

bool take_number(std::string_view& text, std::uint32_t& number) {
    std::size_t length = 0;
    std::uint64_t value = 0;
    while (length < text.size() && length < 9 && text[length] >= '0' && text[length] <= '9') {
        value = value * 10 + static_cast<std::uint64_t>(text[length++] - '0');
    }
    text.remove_prefix(length);
    number = static_cast<std::uint32_t>(value);
    return length > 0;
}

bool take_letter(std::string_view& text, char letter) {
    const bool found = !text.empty() && text[0] == letter;
    text.remove_prefix(found ? 1 : 0);
    return found;
}

} // namespace

bool parse_process_mapping(std::string_view text, std::uint32_t size,
                           std::vector<std::uint32_t>& node_of_rank) {
    struct Block {
        std::uint32_t first;
        std::uint32_t nodes;
        std::uint32_t each;
    };
    constexpr std::string_view start = "(vector";
    std::vector<Block> blocks;
    if (!text.starts_with(start)) {
        return false;
    }
    text.remove_prefix(start.size());
    std::uint64_t processes = 0;
    while (take_letter(text, ',')) {
        Block block = {};
        if (!take_letter(text, '(') || !take_number(text, block.first) || !take_letter(text, ',') ||
            !take_number(text, block.nodes) || !take_letter(text, ',') ||
            !take_number(text, block.each) || !take_letter(text, ')')) {
            return false;
        }
        processes += std::uint64_t{block.nodes} * block.each;
        blocks.push_back(block);
    }
    if (text != ")" || processes == 0) {
        return false;
    }
    node_of_rank.clear();
    while (node_of_rank.size() < size) {
        for (const Block& block : blocks) {
            for (std::uint32_t node = 0; node < block.nodes && node_of_rank.size() < size; ++node) {
                node_of_rank.insert(node_of_rank.end(), block.each, block.first + node);
            }
        }
    }
    node_of_rank.resize(size);
    return true;
}

PmiClient::~PmiClient() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

bool PmiClient::has_launcher() {
    return number_of("PMI_FD") >= 0 && number_of("PMI_SIZE") > 1 && number_of("PMI_RANK") >= 0;
}

// Sends a line and takes the answer, whose command must be this one.
Error PmiClient::ask(const std::string& line, std::string_view answer, std::string& reply) {
    const std::string sent = line + "\n";
    for (std::size_t done = 0; done < sent.size();) {
        const ssize_t wrote =
            send(descriptor_, sent.data() + done, sent.size() - done, MSG_NOSIGNAL);
        if (wrote < 0 && errno != EINTR) {
            return fail(MPI_ERR_OTHER, "the launcher's PMI (PMI_FD=%d): %s", descriptor_,
                        std::strerror(errno));
        }
        done += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
    }
    std::size_t end = 0;
    while ((end = received_.find('\n')) == std::string::npos) {
        std::array<char, 4096> buffer;
        const ssize_t got = read(descriptor_, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0 || received_.size() > line_limit) {
            return fail(MPI_ERR_OTHER, "the launcher's PMI (PMI_FD=%d) has ended: %s", descriptor_,
                        got < 0 ? std::strerror(errno) : "no answer");
        }
        received_.append(buffer.data(), static_cast<std::size_t>(got));
    }
    reply = received_.substr(0, end);
    received_.erase(0, end + 1);
    if (value_of(reply, "cmd") != answer) {
        return fail(MPI_ERR_OTHER, "the launcher answered '%.80s' to '%.80s'", reply.c_str(),
                    line.c_str());
    }
    return {};
}

Error PmiClient::connect() {
    descriptor_ = static_cast<int>(number_of("PMI_FD"));
    rank_ = static_cast<std::uint32_t>(number_of("PMI_RANK"));
    size_ = static_cast<std::uint32_t>(number_of("PMI_SIZE"));
    if (fcntl(descriptor_, F_SETFD, FD_CLOEXEC) != 0) {
        const int descriptor = std::exchange(descriptor_, -1);
        return fail(MPI_ERR_OTHER,
                    "this process has the variables of a PMI launcher's rank, but not its "
                    "connection (PMI_FD=%d): a rank's children can't use MPI; unset PMI_RANK, "
                    "PMI_SIZE and PMI_FD to make it a job of its own",
                    descriptor);
    }
    if (rank_ >= size_) {
        return fail(MPI_ERR_OTHER, "PMI_RANK is %u, PMI_SIZE %u", rank_, size_);
    }
    std::string reply;
    if (Error error = ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", reply)) {
        return error;
    }
    if (value_of(reply, "rc") != "0") {
        return fail(MPI_ERR_OTHER, "the launcher does not speak PMI 1.1: %.80s", reply.c_str());
    }
    if (Error error = ask("cmd=get_maxes", "maxes", reply)) {
        return error;
    }
    value_limit_ = static_cast<std::size_t>(std::atol(value_of(reply, "vallen_max").c_str()));
    if (value_limit_ < smallest_value) {
        return fail(MPI_ERR_OTHER, "the launcher's PMI holds too little: %.80s", reply.c_str());
    }
    if (Error error = ask("cmd=get_my_kvsname", "my_kvsname", reply)) {
        return error;
    }
    board_ = value_of(reply, "kvsname");
    return {};
}

Error PmiClient::nodes(std::vector<std::uint32_t>& node_of_rank) {
    std::string mapping;
    if (Error error = get_value("PMI_process_mapping", mapping)) {
        return error;
    }
    if (!parse_process_mapping(mapping, size_, node_of_rank)) {
        return fail(MPI_ERR_OTHER,
                    "the launcher does not say which processes are on which node "
                    "(PMI_process_mapping is '%.200s')",
                    mapping.c_str());
    }
    return {};
}

Error PmiClient::get_value(const std::string& key, std::string& value) {
    std::string reply;
    if (Error error = ask("cmd=get kvsname=" + board_ + " key=" + key, "get_result", reply)) {
        return error;
    }
    // Some launchers leave rc out when all is well.
    const std::string code = value_of(reply, "rc");
    if (!code.empty() && code != "0") {
        return fail(MPI_ERR_OTHER, "the launcher has nothing under '%s'", key.c_str());
    }
    value = value_of(reply, "value");
    return {};
}

Error PmiClient::put(const std::string& key, std::string_view bytes) {
    std::string text;
    for (const char letter : bytes) {
        const auto byte = static_cast<unsigned char>(letter);
        text += {digits[byte >> 4], digits[byte & 15]};
    }
    // The first value begins with the number of them.
    const std::size_t each = value_limit_ - smallest_value / 2;
    const std::size_t values = text.size() / each + 1;
    for (std::size_t part = 0; part < values; ++part) {
        const std::string name = part == 0 ? key : key + "-" + std::to_string(part);
        const std::string start = part == 0 ? std::to_string(values) + "x" : "x";
        std::string command = "cmd=put kvsname=";
        command.append(board_).append(" key=").append(name).append(" value=").append(start);
        command.append(text, part * each, each);
        std::string reply;
        if (Error error = ask(command, "put_result", reply)) {
            return error;
        }
        if (value_of(reply, "rc") != "0") {
            return fail(MPI_ERR_OTHER, "the launcher refuses a value: %.80s", reply.c_str());
        }
    }
    return {};
}

Error PmiClient::get(std::uint32_t /*rank*/, const std::string& key, std::string& bytes) {
    std::string text;
    long values = 1;
    for (long part = 0; part < values; ++part) {
        std::string value;
        if (Error error = get_value(part == 0 ? key : key + "-" + std::to_string(part), value)) {
            return error;
        }
        const std::size_t mark = value.find('x');
        if (mark == std::string::npos) {
            return fail(MPI_ERR_OTHER, "the launcher has a strange value under '%s'", key.c_str());
        }
        values = part == 0 ? std::atol(value.c_str()) : values;
        text += value.substr(mark + 1);
    }
    bytes.clear();
    for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
        const char* high = std::strchr(digits, text[at]);
        const char* low = std::strchr(digits, text[at + 1]);
        if (high == nullptr || low == nullptr) {
            return fail(MPI_ERR_OTHER, "the launcher has a strange value under '%s'", key.c_str());
        }
        bytes += static_cast<char>((high - digits) << 4 | (low - digits));
    }
    return {};
}

Error PmiClient::barrier() {
    std::string reply;
    return ask("cmd=barrier_in", "barrier_out", reply);
}

void PmiClient::abort(int code, const char* /*text*/) {
    const std::string line = "cmd=abort exitcode=" + std::to_string(code) + "\n";
    (void)send(descriptor_, line.data(), line.size(), MSG_NOSIGNAL);
}

void PmiClient::finalize() {
    std::string reply;
    Error error = ask("cmd=finalize", "finalize_ack", reply);
    error.drop(); // it knows by the process's end, too
}

} // namespace warren::node
