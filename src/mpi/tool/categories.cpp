#include "mpi/tool/categories.hpp"

namespace warren::tool {

namespace {

constexpr const char* parts[] = {"messages", "matching", "waiting",    "windows",
                                 "files",    "memory",   "collectives"};

constexpr const char* message_controls[] = {
    "pair_ring_after", "direct_limit",          "fetched_from",     "pair_rings",
    "cell_bytes",      "eager_limit_pair_ring", "eager_limit_queue"};
constexpr const char* message_values[] = {
    "pending_sends",  "requests",           "eager_sent",      "eager_sent_bytes",
    "streams_sent",   "streams_sent_bytes", "rendezvous_sent", "rendezvous_sent_bytes",
    "direct_sent",    "direct_sent_bytes",  "self_sent",       "self_sent_bytes",
    "received",       "received_bytes",     "fetches",         "fetched_bytes",
    "fetches_refused"};

constexpr const char* matching_values[] = {"posted_recvq_length",
                                           "unexpected_recvq_length",
                                           "unexpected_recvq_buffer_size",
                                           "unexpected_recvq_length_max",
                                           "unexpected_recvq_buffer_size_max",
                                           "posted_recvq_match_attempts",
                                           "unexpected_recvq_match_attempts",
                                           "unexpected",
                                           "unexpected_bytes"};
constexpr const char* matching_events[] = {"unexpected_message"};

constexpr const char* waiting_controls[] = {
    "wait_spins",   "wait_spins_shared",      "wait_yields", "collective_yields",
    "long_wait_ns", "ranks_share_processors", "processors"};
constexpr const char* waiting_values[] = {"wait_state", "waits", "waiting_time",     "yields",
                                          "sleeps",     "wakes", "thread_lock_waits"};
constexpr const char* waiting_events[] = {"long_wait", "thread_lock_wait"};

constexpr const char* window_values[] = {"windows", "window_operations", "window_bytes",
                                         "window_lock_waits"};
constexpr const char* file_values[] = {"files", "file_bytes_read", "file_bytes_written"};
constexpr const char* memory_controls[] = {"memory_kinds"};
constexpr const char* memory_values[] = {"segment_bytes", "segment_bytes_in_use"};
constexpr const char* collective_controls[] = {
    "collective_yields",        "collective_short_block_bytes",
    "collective_direct_from",   "collective_staging_bytes",
    "gather_algorithm",         "scatter_algorithm",
    "allgather_algorithm",      "allreduce_algorithm",
    "reduce_scatter_algorithm", "scan_algorithm"};
constexpr const char* job_controls[] = {"ranks", "verbose"};

const Category all[] = {
    {"warren", "The whole library", job_controls, {}, {}, parts},
    {"messages", "How messages move", message_controls, message_values, {}, {}},
    {"matching", "Receives and the messages for them", {}, matching_values, matching_events, {}},
    {"waiting", "How calls wait", waiting_controls, waiting_values, waiting_events, {}},
    {"windows", "One-sided communication", {}, window_values, {}, {}},
    {"files", "Files", {}, file_values, {}, {}},
    {"memory", "Memory that ranks share", memory_controls, memory_values, {}, {}},
    {"collectives", "Collective operations", collective_controls, {}, {}, {}},
};

} // namespace

std::span<const Category> categories() {
    return all;
}

} // namespace warren::tool
