#include "mpi/tool/control_variables.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "mpi/coll/choice.hpp"
#include "mpi/coll/tuning.hpp"
#include "mpi/tool/tuning.hpp"
#include "mpi/transport/shm/segment_regions.hpp"
#include "mpi/transport/shm/tuning.hpp"

namespace warren::tool {

namespace {

// A count of the rank's waiting policy.
template <std::uint32_t WaitPolicy::*member>
std::uint64_t read_wait(const Subject& subject) {
    return subject.rank->waits.*member;
}
template <std::uint32_t WaitPolicy::*member>
void write_wait(const Subject& subject, std::uint64_t value) {
    subject.rank->waits.*member = static_cast<std::uint32_t>(value);
}

void write_pair_ring_after(const Subject& subject, std::uint64_t value) {
    message::EngineView(*subject.messages).transport().limits.cells_until_pair_ring =
        static_cast<std::uint32_t>(value);
}

void write_direct_limit(const Subject& subject, std::uint64_t value) {
    message::EngineView(*subject.messages).transport().limits.direct =
        std::clamp<std::uint64_t>(value, transport::direct_limit, transport::chunk_data_bytes);
}

void write_fetched_from(const Subject& subject, std::uint64_t value) {
    message::EngineView(*subject.messages).transport().memory().fetched_from = value;
}

std::uint64_t read_ranks(const Subject& subject) {
    const Rank& rank = *subject.rank;
    RanksKind kind = RanksKind::processes;
    if (rank.waits.functions != nullptr) {
        kind = RanksKind::fibres;
    } else {
        for (std::uint32_t other = 0; other < rank.size; ++other) {
            if (other != rank.index && rank.segment.slot(other).process == rank.slot.process) {
                kind = RanksKind::threads;
            }
        }
    }
    return static_cast<std::uint64_t>(kind);
}

std::uint64_t read_shares_processor(const Subject& subject) {
    return subject.rank->oversubscribed() ? 1 : 0;
}

std::uint64_t read_verbose(const Subject& subject) {
    return subject.rank->verbose() ? 1 : 0;
}

std::uint64_t read_pair_rings(const Subject& subject) {
    return subject.rank->segment.units(transport::pair_rings);
}

std::uint64_t read_processors(const Subject& subject) {
    return subject.rank->header().cores;
}

// As it was at first: readers have been told its length.
const char* memory_kinds() {
    static const std::string& kept = *new std::string([] {
        const char* kinds = std::getenv("WARREN_MEMORY_KINDS");
        return kinds != nullptr ? kinds : "";
    }());
    return kept.c_str();
}

// The algorithm of a collective operation. A number that names none stands for the automatic
// choice: MPI_T has no error for a value, and tools write any.
template <coll::Tag operation, const Enumeration& names>
void write_algorithm(const Subject& subject, std::uint64_t value) {
    const bool named = value < static_cast<std::uint64_t>(names.count);
    if (!named && subject.rank->verbose()) {
        std::fprintf(stderr,
                     "warren: rank %u has no %s numbered %d, and chooses one automatically\n",
                     subject.rank->world_rank, names.name, static_cast<int>(value));
    }
    coll::choose_algorithm(*subject.rank, operation,
                           named ? static_cast<std::uint8_t>(value) : std::uint8_t{0});
}
template <coll::Tag operation, const Enumeration& names>
ControlVariable algorithm(const char* name, const char* description) {
    return {.name = name,
            .description = description,
            .verbosity = MPI_T_VERBOSITY_TUNER_BASIC,
            .datatype = MPI_INT,
            .enumeration = &names,
            .scope = MPI_T_SCOPE_ALL_EQ,
            .write = write_algorithm<operation, names>};
}

const MPI_Datatype whole = MPI_UNSIGNED;
const MPI_Datatype bytes = MPI_UNSIGNED_LONG_LONG;

// clang-format off
const ControlVariable variables[] = {
    {.name = "wait_spins",
     .description = "Polls before a rank that has a processor of its own sleeps in a wait",
     .verbosity = MPI_T_VERBOSITY_TUNER_BASIC, .datatype = whole, .scope = MPI_T_SCOPE_LOCAL,
     .initial = wait_policy::spins_alone,
     .read = read_wait<&WaitPolicy::spins_alone>, .write = write_wait<&WaitPolicy::spins_alone>},
    {.name = "wait_spins_shared",
     .description = "Polls before a rank that shares its processor yields in a wait",
     .verbosity = MPI_T_VERBOSITY_TUNER_BASIC, .datatype = whole, .scope = MPI_T_SCOPE_LOCAL,
     .initial = wait_policy::spins_shared,
     .read = read_wait<&WaitPolicy::spins>, .write = write_wait<&WaitPolicy::spins>},
    {.name = "wait_yields",
     .description = "Yields before a rank that shares its processor sleeps in a wait",
     .verbosity = MPI_T_VERBOSITY_TUNER_BASIC, .datatype = whole, .scope = MPI_T_SCOPE_LOCAL,
     .initial = wait_policy::yields,
     .read = read_wait<&WaitPolicy::yields>, .write = write_wait<&WaitPolicy::yields>},
    {.name = "collective_yields",
     .description = "Yields before a rank that shares its processor sleeps in a collective operation in shared memory",
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL, .datatype = whole, .scope = MPI_T_SCOPE_LOCAL,
     .initial = wait_policy::collective_yields,
     .read = read_wait<&WaitPolicy::collective_yields>,
     .write = write_wait<&WaitPolicy::collective_yields>},
    {.name = "pair_ring_after",
     .description = "Messages to a rank that go through its queue before the pair gets a pair ring; from 255 on: never",
     .verbosity = MPI_T_VERBOSITY_TUNER_BASIC, .datatype = whole, .scope = MPI_T_SCOPE_LOCAL,
     .initial = transport::cells_until_pair_ring, .write = write_pair_ring_after},
    {.name = "direct_limit",
     .description = "Bytes above which ranks of one address space without a pair ring copy a message directly; 2048 to 4096, values beyond act as these",
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL, .datatype = bytes, .scope = MPI_T_SCOPE_LOCAL,
     .initial = transport::direct_limit, .write = write_direct_limit},
    {.name = "fetched_from",
     .description = "Bytes from which this rank fetches messages out of the sender's memory by the kernel (process_vm_readv); the largest value: never",
     .verbosity = MPI_T_VERBOSITY_TUNER_BASIC, .datatype = bytes, .scope = MPI_T_SCOPE_LOCAL,
     .initial = 0, .write = write_fetched_from},
    {.name = "long_wait_ns",
     .description = "Nanoseconds from which a wait is an event of type long_wait",
     .verbosity = MPI_T_VERBOSITY_USER_BASIC, .datatype = bytes, .scope = MPI_T_SCOPE_LOCAL,
     .initial = long_wait_ns},
    {.name = "ranks",
     .description = "Whether the ranks are processes, threads or fibres",
     .verbosity = MPI_T_VERBOSITY_USER_BASIC, .datatype = MPI_INT,
     .enumeration = &enumerations::ranks, .scope = MPI_T_SCOPE_READONLY, .read = read_ranks},
    {.name = "ranks_share_processors",
     .description = "Whether ranks are more than processors, so that waits give way",
     .verbosity = MPI_T_VERBOSITY_USER_BASIC, .datatype = MPI_INT,
     .enumeration = &enumerations::switches, .scope = MPI_T_SCOPE_READONLY,
     .read = read_shares_processor},
    {.name = "processors",
     .description = "Processors that the job may use on this node",
     .verbosity = MPI_T_VERBOSITY_USER_BASIC, .datatype = whole, .scope = MPI_T_SCOPE_READONLY,
     .read = read_processors},
    {.name = "verbose",
     .description = "Whether the library explains its choices on standard error (mpiexec --verbose)",
     .verbosity = MPI_T_VERBOSITY_USER_DETAIL, .datatype = MPI_INT,
     .enumeration = &enumerations::switches, .scope = MPI_T_SCOPE_READONLY, .read = read_verbose},
    {.name = "memory_kinds",
     .description = "Kinds of memory that the program's start asked for (WARREN_MEMORY_KINDS, mpiexec --memory-alloc-kinds)",
     .verbosity = MPI_T_VERBOSITY_USER_DETAIL, .datatype = MPI_CHAR,
     .scope = MPI_T_SCOPE_READONLY, .text = memory_kinds},
    {.name = "pair_rings",
     .description = "Pair rings that the node segment has room for; 0 where ranks share processors",
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL, .datatype = bytes, .scope = MPI_T_SCOPE_READONLY,
     .read = read_pair_rings},
    {.name = "cell_bytes",
     .description = "Bytes of a message that travel in the cache line of its envelope",
     .verbosity = MPI_T_VERBOSITY_TUNER_ALL, .datatype = bytes,
     .initial = transport::inline_bytes},
    {.name = "eager_limit_pair_ring",
     .description = "Largest message, in bytes, that goes at once through a pair ring",
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL, .datatype = bytes,
     .initial = transport::ring_preferred_limit},
    {.name = "eager_limit_queue",
     .description = "Largest message, in bytes, that goes at once through a receiver's queue",
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL, .datatype = bytes,
     .initial = transport::chunk_data_bytes},
    algorithm<coll::Tag::gather, enumerations::tree_algorithms>(
        "gather_algorithm",
        "Algorithm of MPI_Gather over messages; if not automatic, what is beyond a cache line goes so"),
    algorithm<coll::Tag::scatter, enumerations::tree_algorithms>(
        "scatter_algorithm",
        "Algorithm of MPI_Scatter over messages; if not automatic, what is beyond a cache line goes so"),
    algorithm<coll::Tag::allgather, enumerations::allgather_algorithms>(
        "allgather_algorithm",
        "Algorithm of MPI_Allgather over messages; if not automatic, what is beyond a cache line goes so"),
    algorithm<coll::Tag::allreduce, enumerations::allreduce_algorithms>(
        "allreduce_algorithm",
        "Algorithm of MPI_Allreduce over messages; if not automatic, what is beyond a cache line goes so"),
    algorithm<coll::Tag::reduce_scatter, enumerations::reduce_scatter_algorithms>(
        "reduce_scatter_algorithm",
        "Algorithm of MPI_Reduce_scatter over messages; if not automatic, what is beyond a cache line goes so"),
    algorithm<coll::Tag::scan, enumerations::scan_algorithms>(
        "scan_algorithm",
        "Algorithm of MPI_Scan over messages; if not automatic, what is beyond a cache line goes so"),
    {.name = "collective_short_block_bytes",
     .description = "Largest block, in bytes, of a collective operation that goes in one piece between few ranks",
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL, .datatype = bytes,
     .initial = coll::short_block_bytes},
    {.name = "collective_direct_from",
     .description = "Bytes from which ranks of one address space, with a processor each, copy from buffer to buffer in collective operations",
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL, .datatype = bytes,
     .initial = coll::direct_from_bytes},
    {.name = "collective_staging_bytes",
     .description = "Bytes of shared memory that a rank has in the larger staging area of a communicator",
     .verbosity = MPI_T_VERBOSITY_TUNER_DETAIL, .datatype = bytes,
     .initial = coll::staging::large_rank_bytes},
};
// clang-format on

} // namespace

std::span<const ControlVariable> control_variables() {
    return variables;
}

int long_wait_variable() {
    static const int found =
        static_cast<int>(std::find_if(std::begin(variables), std::end(variables),
                                      [](const ControlVariable& variable) {
                                          return std::strcmp(variable.name, "long_wait_ns") == 0;
                                      }) -
                         std::begin(variables));
    return found;
}

int ControlVariable::count() const {
    return text != nullptr ? static_cast<int>(std::strlen(text())) + 1 : 1;
}

std::size_t ControlVariable::element_bytes() const {
    return datatype == MPI_CHAR                 ? sizeof(char)
           : datatype == MPI_UNSIGNED_LONG_LONG ? sizeof(unsigned long long)
                                                : sizeof(int);
}

std::uint64_t Settings::read(int variable, const Subject* subject) const {
    static_assert(std::size(variables) <= most);
    const ControlVariable& its = variables[variable];
    if (its.read != nullptr && subject != nullptr) {
        return its.read(*subject);
    }
    return written_[variable].value_or(its.initial);
}

void Settings::write(int variable, std::uint64_t value, const Subject* subject) {
    written_[variable] = value;
    if (subject != nullptr && variables[variable].write != nullptr) {
        variables[variable].write(*subject, value);
    }
}

void Settings::apply(const Subject& subject) const {
    for (std::size_t i = 0; i < std::size(variables); ++i) {
        if (written_[i] && variables[i].write != nullptr) {
            variables[i].write(subject, *written_[i]);
        }
    }
}

} // namespace warren::tool
