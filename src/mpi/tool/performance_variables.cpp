#include "mpi/tool/performance_variables.hpp"

#include <cstring>
#include <sys/stat.h>

namespace warren::tool {

namespace {

template <Count Counts::*member>
std::uint64_t count(const Subject& subject) {
    return (subject.rank->counts.*member).read();
}
template <MessageCount Counts::*member>
std::uint64_t messages(const Subject& subject) {
    return (subject.rank->counts.*member).messages.read();
}
template <MessageCount Counts::*member>
std::uint64_t message_bytes(const Subject& subject) {
    return (subject.rank->counts.*member).bytes.read();
}

std::uint64_t posted(const Subject& subject) {
    return message::EngineView(*subject.messages).posted();
}
std::uint64_t unexpected(const Subject& subject) {
    return message::EngineView(*subject.messages).unexpected().count();
}
std::uint64_t unexpected_bytes(const Subject& subject) {
    return message::EngineView(*subject.messages).unexpected().bytes();
}
std::uint64_t unexpected_attempts(const Subject& subject) {
    return message::EngineView(*subject.messages).unexpected().attempts();
}
std::uint64_t pending_sends(const Subject& subject) {
    return message::EngineView(*subject.messages).pending_sends();
}
std::uint64_t requests(const Subject& subject) {
    return message::EngineView(*subject.messages).requests();
}
std::uint64_t windows(const Subject& subject) {
    return subject.windows->live();
}
std::uint64_t files(const Subject& subject) {
    return subject.files->live();
}
std::uint64_t segment_bytes(const Subject& subject) {
    return subject.rank->header().bytes;
}
std::uint64_t segment_used(const Subject& subject) {
    struct stat status = {};
    constexpr std::uint64_t block = 512; // unit of st_blocks
    return fstat(subject.rank->segment.descriptor(), &status) == 0
               ? static_cast<std::uint64_t>(status.st_blocks) * block
               : 0;
}
std::uint64_t long_wait(const Subject& subject) {
    return subject.rank->slot.activity.since_ns.load(std::memory_order_relaxed) != 0 ? 1 : 0;
}
std::uint64_t lock_waits(const Subject& subject) {
    return subject.rank->lock.waits.read();
}

constexpr int level = MPI_T_PVAR_CLASS_LEVEL;
constexpr int size = MPI_T_PVAR_CLASS_SIZE;
constexpr int counter = MPI_T_PVAR_CLASS_COUNTER;
constexpr int aggregate = MPI_T_PVAR_CLASS_AGGREGATE;
constexpr int mark = MPI_T_PVAR_CLASS_HIGHWATERMARK;
constexpr int basic = MPI_T_VERBOSITY_USER_BASIC;
constexpr int detail = MPI_T_VERBOSITY_USER_DETAIL;
constexpr int tuner = MPI_T_VERBOSITY_TUNER_BASIC;
constexpr int tuner_detail = MPI_T_VERBOSITY_TUNER_DETAIL;
const MPI_Datatype whole = MPI_UNSIGNED;
const MPI_Datatype large = MPI_UNSIGNED_LONG_LONG;
constexpr const Enumeration* no_names = nullptr;

// clang-format off
const PerformanceVariable variables[] = {
    // Queues
    {"posted_recvq_length", "Receives that wait for their message", basic, level, whole, no_names, false, posted},
    {"unexpected_recvq_length", "Messages that wait for their receive", basic, level, whole, no_names, false, unexpected},
    {"unexpected_recvq_buffer_size", "Bytes of the messages that wait for their receive", basic, level, large, no_names, false, unexpected_bytes},
    {"unexpected_recvq_length_max", "The most messages that waited for their receive", basic, mark, whole, no_names, false, unexpected},
    {"unexpected_recvq_buffer_size_max", "The most bytes of messages that waited for their receive", basic, mark, large, no_names, false, unexpected_bytes},
    {"posted_recvq_match_attempts", "Posted receives that arriving messages were compared with", tuner, counter, large, no_names, true, count<&Counts::posted_attempts>},
    {"unexpected_recvq_match_attempts", "Unexpected messages that receives and probes were compared with", tuner, counter, large, no_names, false, unexpected_attempts},
    {"pending_sends", "Sends and answers that wait for room", tuner, level, whole, no_names, false, pending_sends},
    {"requests", "Requests that exist", basic, level, whole, no_names, false, requests},
    // Messages, also those of the library's own operations
    {"eager_sent", "Messages sent at once", basic, counter, large, no_names, true, messages<&Counts::eager>},
    {"eager_sent_bytes", "Bytes of messages sent at once", basic, aggregate, large, no_names, true, message_bytes<&Counts::eager>},
    {"streams_sent", "Messages sent as streams", basic, counter, large, no_names, false, messages<&Counts::streams>},
    {"streams_sent_bytes", "Bytes of messages sent as streams", basic, aggregate, large, no_names, false, message_bytes<&Counts::streams>},
    {"rendezvous_sent", "Messages offered to their receivers", basic, counter, large, no_names, false, messages<&Counts::rendezvous>},
    {"rendezvous_sent_bytes", "Bytes of messages offered to their receivers", basic, aggregate, large, no_names, false, message_bytes<&Counts::rendezvous>},
    {"direct_sent", "Messages copied directly between ranks of one address space", basic, counter, large, no_names, false, messages<&Counts::direct>},
    {"direct_sent_bytes", "Bytes of messages copied directly between ranks of one address space", basic, aggregate, large, no_names, false, message_bytes<&Counts::direct>},
    {"self_sent", "Messages from the rank to itself", detail, counter, large, no_names, false, messages<&Counts::to_self>},
    {"self_sent_bytes", "Bytes of messages from the rank to itself", detail, aggregate, large, no_names, false, message_bytes<&Counts::to_self>},
    {"received", "Messages that have arrived from other ranks", basic, counter, large, no_names, true, messages<&Counts::received>},
    {"received_bytes", "Bytes of messages that have arrived from other ranks", basic, aggregate, large, no_names, true, message_bytes<&Counts::received>},
    {"unexpected", "Messages that came before their receive", basic, counter, large, no_names, false, messages<&Counts::unexpected>},
    {"unexpected_bytes", "Bytes of messages that came before their receive", basic, aggregate, large, no_names, false, message_bytes<&Counts::unexpected>},
    {"fetches", "Reads of other ranks' memory by the kernel (process_vm_readv)", tuner, counter, large, no_names, false, messages<&Counts::fetched>},
    {"fetched_bytes", "Bytes read from other ranks' memory by the kernel", tuner, aggregate, large, no_names, false, message_bytes<&Counts::fetched>},
    {"fetches_refused", "Refusals by the kernel to read other ranks' memory; after the first, messages take other ways", tuner, counter, large, no_names, false, count<&Counts::fetches_refused>},
    // Waiting
    {"wait_state", "Whether the rank waits for long in a call", basic, MPI_T_PVAR_CLASS_STATE, MPI_INT, &enumerations::waits, false, long_wait},
    {"waits", "Waits in calls", basic, counter, large, no_names, true, count<&Counts::waits>},
    {"waiting_time", "Seconds that calls have waited", basic, MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE, no_names, true, count<&Counts::waiting_ns>},
    {"yields", "Yields of the processor in waits", tuner, counter, large, no_names, false, count<&Counts::yields>},
    {"sleeps", "Sleeps in waits", tuner, counter, large, no_names, false, count<&Counts::sleeps>},
    {"wakes", "Sleeps that another rank or thread has ended", tuner, counter, large, no_names, false, count<&Counts::wakes>},
    {"thread_lock_waits", "Calls that had to wait for another thread of the rank", tuner, counter, large, no_names, false, lock_waits},
    // Windows
    {"windows", "Windows that exist", basic, level, whole, no_names, false, windows},
    {"window_operations", "Puts, gets and accumulates", basic, counter, large, no_names, true, messages<&Counts::window_operations>},
    {"window_bytes", "Bytes of puts, gets and accumulates, by the origin's datatype", basic, aggregate, large, no_names, true, message_bytes<&Counts::window_operations>},
    {"window_lock_waits", "Locks of windows that others held", basic, counter, large, no_names, false, count<&Counts::window_lock_waits>},
    // Files
    {"files", "Files that are open", basic, level, whole, no_names, false, files},
    {"file_bytes_read", "Bytes read from files", basic, aggregate, large, no_names, false, count<&Counts::file_bytes_read>},
    {"file_bytes_written", "Bytes written to files", basic, aggregate, large, no_names, false, count<&Counts::file_bytes_written>},
    // Memory
    {"segment_bytes", "Address space of the node segment, which the ranks of the node share", tuner_detail, size, large, no_names, false, segment_bytes},
    {"segment_bytes_in_use", "Memory that the node segment has taken", basic, level, large, no_names, false, segment_used},
};
// clang-format on

} // namespace

std::span<const PerformanceVariable> performance_variables() {
    return variables;
}

void store_value(const PerformanceVariable& variable, std::uint64_t value, void* buffer) {
    if (variable.datatype == MPI_DOUBLE) {
        const double seconds = static_cast<double>(value) * 1e-9;
        std::memcpy(buffer, &seconds, sizeof seconds);
    } else if (variable.datatype == MPI_UNSIGNED_LONG_LONG) {
        std::memcpy(buffer, &value, sizeof value);
    } else {
        const auto number = static_cast<unsigned>(value);
        std::memcpy(buffer, &number, sizeof number);
    }
}

std::uint64_t load_value(const PerformanceVariable& variable, const void* buffer) {
    if (variable.datatype == MPI_DOUBLE) {
        double seconds;
        std::memcpy(&seconds, buffer, sizeof seconds);
        return seconds > 0 ? static_cast<std::uint64_t>(seconds * 1e9) : 0;
    }
    if (variable.datatype == MPI_UNSIGNED_LONG_LONG) {
        std::uint64_t value;
        std::memcpy(&value, buffer, sizeof value);
        return value;
    }
    unsigned number;
    std::memcpy(&number, buffer, sizeof number);
    return number;
}

} // namespace warren::tool
