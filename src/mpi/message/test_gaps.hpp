// Common parts of the tests of messages with gaps.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "mpi/datatype/construct.hpp"
#include "mpi/message/test_node.hpp"

namespace warren::message {

inline constexpr Envelope streamed = {.context = 3, .source = 0, .tag = 2};
inline constexpr Envelope short_one = {.context = 3, .source = 0, .tag = 1};

// Every other one of so many words.
class Gaps {
  public:
    explicit Gaps(std::size_t words) : words_(words), data_(2 * words) {
        EXPECT_FALSE(datatype::make_vector(static_cast<MPI_Count>(words), 1, 2 * sizeof(int),
                                           datatype::basic(MPI_INT), draft_));
        datatype::retain(draft_.type); // it is never released for the last time
    }

    void fill(int number) {
        for (std::size_t i = 0; i < words_; ++i) {
            data_[2 * i] = number + static_cast<int>(i);
        }
    }
    bool has(int number) const {
        for (std::size_t i = 0; i < words_; ++i) {
            if (data_[2 * i] != number + static_cast<int>(i)) {
                return false;
            }
        }
        return true;
    }
    Buffer buffer() { return {data_.data(), 1, &draft_.type}; }

  private:
    std::size_t words_;
    std::vector<int> data_;
    datatype::Draft draft_;
};

inline void get_a_pair_ring(Engine& engine, std::uint32_t rank) {
    std::byte data[16] = {};
    for (int i = 0; i < 20; ++i) {
        if (rank == 0) {
            engine.send(Operation::send, {data, 16, &byte_type()}, 1, short_one).drop();
        } else {
            Outcome outcome;
            engine.receive({data, 16, &byte_type()}, short_one, outcome).drop();
        }
    }
}

inline Request* start_streaming(Engine& engine, Gaps& gaps) {
    Request* send = engine.make();
    Engine::prepare_send(*send, Operation::send, gaps.buffer(), 1, streamed);
    engine.start(*send).drop();
    EXPECT_FALSE(send->complete);
    return send;
}

inline Request* start_receiving(Engine& engine, Gaps& gaps) {
    Request* receive = engine.make();
    Engine::prepare_receive(*receive, gaps.buffer(), streamed);
    engine.start(*receive).drop();
    return receive;
}

} // namespace warren::message
