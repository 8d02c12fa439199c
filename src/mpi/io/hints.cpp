#include "mpi/io/hints.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <string_view>

#include "mpi/io/system_file.hpp"

namespace warren::io {

namespace {

// The values of switches.
constexpr const char* switched[] = {"automatic", "enable", "disable"};

// Files of hints are read up to here, as ROMIO reads them.
constexpr std::size_t file_limit_bytes = 4096;

bool take_switch(const comm::Info& info, const char* key, Choice& chosen) {
    const std::string* value = info.find(key);
    for (int i = 0; value != nullptr && i < 3; ++i) {
        if (*value == switched[i]) {
            chosen = static_cast<Choice>(i);
            return true;
        }
    }
    return false;
}

// 0: not set, or no positive number.
std::uint64_t number(const comm::Info& info, const char* key) {
    const std::string* value = info.find(key);
    if (value == nullptr) {
        return 0;
    }
    char* end = nullptr;
    const long long found = std::strtoll(value->c_str(), &end, 10);
    return end == value->c_str() || *end != '\0' || found < 0 ? 0
                                                              : static_cast<std::uint64_t>(found);
}

void take_sieve(const comm::Info& info, const char* key, std::uint64_t& sieve) {
    if (const std::uint64_t bytes = number(info, key); bytes > 0) {
        sieve = std::min(bytes, largest_sieve);
    }
}

// Removes the first line from `text`.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

// Removes the first word from `line`; empty: there is none.
std::string_view take_word(std::string_view& line) {
    constexpr const char* blanks = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

} // namespace

void Hints::take(const comm::Info& info) {
    if (const std::uint64_t bytes = number(info, "cb_buffer_size"); bytes > 0) {
        const std::uint64_t blocks = (bytes + block_bytes - 1) / block_bytes;
        staging_half = std::min(blocks * block_bytes, largest_staging_half);
    }
    if (const std::uint64_t nodes = number(info, "cb_nodes"); nodes > 0) {
        constexpr std::uint64_t many = 1 << 30;
        writers = static_cast<int>(std::min(nodes, many));
    }
    const bool told_reads = take_switch(info, "romio_cb_read", staged_reads);
    const bool told_writes = take_switch(info, "romio_cb_write", staged_writes);
    take_switch(info, "romio_ds_read", sieved_reads);
    take_switch(info, "romio_ds_write", sieved_writes);
    take_sieve(info, "ind_rd_buffer_size", read_sieve);
    take_sieve(info, "ind_wr_buffer_size", write_sieve);
    const std::string* only = info.find("romio_no_indep_rw");
    if (only != nullptr && *only == "true") {
        only_collective = true;
        staged_reads = staged_writes = Choice::always;
    } else if ((only != nullptr && *only == "false") ||
               (told_reads && staged_reads != Choice::always) ||
               (told_writes && staged_writes != Choice::always)) {
        only_collective = false;
    }
}

void Hints::take_file(const char* path) {
    SystemFile file;
    std::array<char, file_limit_bytes> content;
    std::size_t bytes = 0;
    Error error = file.open(path, O_RDONLY, 0);
    error = error ? error : file.read(content.data(), content.size(), 0, bytes);
    if (error) {
        error.drop();
        return;
    }
    comm::Info found;
    for (std::string_view rest(content.data(), bytes); !rest.empty();) {
        std::string_view line = take_line(rest);
        const std::string_view key = take_word(line);
        const std::string_view value = take_word(line);
        const bool is_pair = !value.empty() && take_word(line).empty() && key.front() != '#';
        if (is_pair && found.find(key) == nullptr) {
            found.set(key, value);
        }
    }
    take(found);
}

void Hints::report(comm::Info& info, int ranks) const {
    const auto set_switch = [&](const char* key, Choice chosen) {
        info.set(key, switched[static_cast<int>(chosen)]);
    };
    info.set("cb_buffer_size", std::to_string(staging_half));
    info.set("cb_nodes", std::to_string(writers > 0 ? std::min(writers, ranks) : ranks));
    set_switch("romio_cb_read", staged_reads);
    set_switch("romio_cb_write", staged_writes);
    set_switch("romio_ds_read", sieved_reads);
    set_switch("romio_ds_write", sieved_writes);
    info.set("ind_rd_buffer_size", std::to_string(read_sieve));
    info.set("ind_wr_buffer_size", std::to_string(write_sieve));
    info.set("romio_no_indep_rw", only_collective ? "true" : "false");
}

} // namespace warren::io
