// Common parts of the tests of the engine: ranks as threads of one process, each with its own
// engine on a shared node segment.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "mpi/message/engine.hpp"

namespace warren::message {

inline const datatype::Datatype& byte_type() {
    return datatype::basic(MPI_BYTE);
}

class Node {
  public:
    Node(std::uint32_t ranks, std::uint32_t cores) {
        Error error = node::Segment::create({.ranks = ranks, .cores = cores}, segment_);
        EXPECT_FALSE(error) << error.take()->text;
    }

    void run(const std::function<void(Engine&, std::uint32_t)>& program) {
        std::vector<std::thread> threads;
        for (std::uint32_t index = 0; index < segment_.ranks(); ++index) {
            threads.emplace_back([&, index] {
                node::Segment own;
                Error error = node::Segment::attach(dup(segment_.descriptor()), own);
                ASSERT_FALSE(error);
                Rank rank(std::move(own), index);
                rank.slot.pid = getpid();
                Engine engine(rank);
                program(engine, index);
                engine.flush();
                // Nobody leaves before all are done: a rendezvous may still be answered.
                finished_.fetch_add(1);
                engine.wait_until([&] { return finished_.load() == segment_.ranks(); }, {});
                for (std::uint32_t other = 0; other < segment_.ranks(); ++other) {
                    rank.ring(other);
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        finished_ = 0;
    }

    // From now on ranks read each other's buffers without the kernel, as thread ranks do. They map
    // the segment once each all the same: the thread sanitizer takes its words for different ones
    // and what they order for races.
    void share_space() {
        for (std::uint32_t rank = 0; rank < segment_.ranks(); ++rank) {
            segment_.slot(rank).process = 0;
        }
    }

  private:
    node::Segment segment_;
    std::atomic<std::uint32_t> finished_{0};
};

inline std::byte pattern(std::uint64_t seed, std::uint64_t i) {
    return static_cast<std::byte>((seed * 2654435761U + i * 40503U) >> 7);
}

// Data of that pattern, which repeats itself: in steps that sanitizers look at once.
inline std::vector<std::byte> patterned(std::uint64_t seed, std::size_t bytes) {
    constexpr std::size_t period = 1 << 15;
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < std::min(bytes, period); ++i) {
        data[i] = pattern(seed, i);
    }
    for (std::size_t done = period; done < bytes; done += period) {
        std::memcpy(&data[done], data.data(), std::min(period, bytes - done));
    }
    return data;
}

inline Request* start_send(Engine& engine, std::vector<std::byte>& data, std::uint32_t to,
                           int tag) {
    Request* request = engine.make();
    Engine::prepare_send(*request, Operation::send,
                         {data.data(), static_cast<MPI_Count>(data.size()), &byte_type()}, to,
                         {.context = 3, .source = 0, .tag = tag});
    engine.start(*request).drop();
    return request;
}

// Whether it comes to be within some seconds.
inline bool comes(Engine& engine, const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!condition() && std::chrono::steady_clock::now() < end) {
        engine.progress();
        sched_yield();
    }
    return condition();
}

inline void receive_all(Engine& engine, std::size_t bytes, int first, int end) {
    std::vector<std::byte> data(bytes);
    for (int tag = first; tag < end; ++tag) {
        Outcome outcome;
        engine
            .receive({data.data(), static_cast<MPI_Count>(bytes), &byte_type()},
                     {.context = 3, .source = 0, .tag = tag}, outcome)
            .drop();
        EXPECT_EQ(outcome.available, static_cast<MPI_Count>(bytes));
        EXPECT_EQ(data.back(), pattern(static_cast<std::uint64_t>(tag), bytes));
    }
}

// As of a job in which no process ends.
inline Unexpected* peek(Engine& engine, const Envelope& envelope) {
    bool in_vain = false;
    return engine.peek(envelope, in_vain);
}

} // namespace warren::message
