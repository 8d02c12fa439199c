// Common parts of the tests of shared collectives: ranks as threads that each map the segment
// themselves, and as processes.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "mpi/coll/small_collectives.hpp"

namespace warren::coll {

struct Random {
    std::uint32_t state;
    std::uint32_t operator()() {
        state = state * 1664525U + 1013904223U;
        return state >> 8;
    }
};

struct Member {
    Rank rank;
    message::Engine engine;
    comm::Communicators communicators;

    Member(node::Segment&& segment, std::uint32_t index, std::uint32_t size)
        : rank(std::move(segment), index),
          engine(rank),
          communicators(comm::World::on_one_node(index, size)) {
        rank.slot.pid = getpid();
    }
};

// Time limit of a test's operations: enough for any order of events. On a busy machine, where
// spinning ranks lose their processor, fewer operations run.
constexpr std::uint64_t time_limit_ns = 4'000'000'000;

// On a busy machine all stop early together: whether any rank is past the time.
inline bool all_stop(Member& member, std::uint64_t end_ns) {
    std::int64_t late = monotonic_ns() > end_ns;
    SmallCollectives(member.engine, member.communicators.world())
        .allreduce(&late, &late, 1, datatype::basic(MPI_INT64_T), Op(OpKind::sum));
    return late != 0;
}

using Program = std::function<bool(Member&)>;

inline bool run_member(const node::Segment& segment, std::uint32_t index, const Program& program) {
    node::Segment own;
    Error error = node::Segment::attach(dup(segment.descriptor()), own);
    if (error) {
        error.drop();
        return false;
    }
    Member member(std::move(own), index, segment.ranks());
    const bool good = program(member);
    const std::lock_guard guard(member.rank.lock);
    SmallCollectives(member.engine, member.communicators.world()).barrier();
    return good;
}

inline bool run_threads(std::uint32_t ranks, std::uint32_t cores, const Program& program) {
    node::Segment segment;
    Error error = node::Segment::create({.ranks = ranks, .cores = cores}, segment);
    EXPECT_FALSE(error);
    std::atomic<std::uint32_t> good{0};
    std::vector<std::thread> threads;
    for (std::uint32_t index = 0; index < ranks; ++index) {
        threads.emplace_back([&, index] { good += run_member(segment, index, program); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return good == ranks;
}

inline bool run_processes(std::uint32_t ranks, std::uint32_t cores, const Program& program) {
    node::Segment segment;
    Error error = node::Segment::create({.ranks = ranks, .cores = cores}, segment);
    EXPECT_FALSE(error);
    for (std::uint32_t index = 0; index < ranks; ++index) {
        if (fork() == 0) {
            _exit(run_member(segment, index, program) ? 0 : 1);
        }
    }
    std::uint32_t good = 0;
    int status = 0;
    while (wait(&status) > 0) {
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good == ranks;
}

struct NodeShape {
    std::uint32_t ranks;
    std::uint32_t cores;
};

// For INSTANTIATE_TEST_SUITE_P.
inline std::string name_of(const testing::TestParamInfo<NodeShape>& tested) {
    return std::to_string(tested.param.ranks) + "_ranks_" + std::to_string(tested.param.cores) +
           "_cores";
}

// Random operations, the same at all ranks: functions of the member, the seed and their number.
using RandomOperations = bool (*)(Member& member, std::uint32_t seed, int operations);

// How many of them: `total` shared out among the ranks, fewer under the thread sanitizer; and a
// `slower`th where more ranks spin than there are real processors.
inline int operations_of(const NodeShape& shape, int total, int slower) {
#if defined(__SANITIZE_THREAD__)
    total /= 8;
#endif
    const bool slow = shape.ranks <= shape.cores && shape.ranks > 2;
    return total / static_cast<int>(shape.ranks) / (slow ? slower : 1);
}

inline void agree_as_threads(const NodeShape& shape, RandomOperations program, int operations) {
    EXPECT_TRUE(run_threads(shape.ranks, shape.cores,
                            [&](Member& member) { return program(member, 1, operations); }));
}

inline void agree_as_processes(const NodeShape& shape, RandomOperations program, int operations) {
#if defined(__SANITIZE_THREAD__)
    (void)shape, (void)program, (void)operations;
    GTEST_SKIP() << "the thread sanitizer follows no memory across processes";
#else
    EXPECT_TRUE(run_processes(shape.ranks, shape.cores,
                              [&](Member& member) { return program(member, 2, operations); }));
#endif
}

} // namespace warren::coll
