#include "mpi/io/hints.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace warren::io {

namespace {

// The values of switches.
constexpr const char* switched[] = {"automatic", "enable", "disable"};

void take_switch(const comm::Info& info, const char* key, Sieving& chosen) {
    const std::string* value = info.find(key);
    for (int i = 0; value != nullptr && i < 3; ++i) {
        if (*value == switched[i]) {
            chosen = static_cast<Sieving>(i);
        }
    }
}

void take_switch(const comm::Info& info, const char* key, bool& on) {
    Sieving chosen = on ? Sieving::automatic : Sieving::never;
    take_switch(info, key, chosen);
    on = chosen != Sieving::never;
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
    take_switch(info, "romio_cb_read", stages_reads);
    take_switch(info, "romio_cb_write", stages_writes);
    take_switch(info, "romio_ds_read", sieved_reads);
    take_switch(info, "romio_ds_write", sieved_writes);
}

void Hints::report(comm::Info& info, int ranks) const {
    info.set("cb_buffer_size", std::to_string(staging_half));
    info.set("cb_nodes", std::to_string(writers > 0 ? std::min(writers, ranks) : ranks));
    info.set("romio_cb_read", stages_reads ? "automatic" : "disable");
    info.set("romio_cb_write", stages_writes ? "automatic" : "disable");
    info.set("romio_ds_read", switched[static_cast<int>(sieved_reads)]);
    info.set("romio_ds_write", switched[static_cast<int>(sieved_writes)]);
}

} // namespace warren::io
