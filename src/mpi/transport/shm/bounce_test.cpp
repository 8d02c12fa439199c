// Several ranks of one process, each with its own mapping of the node segment and its own stock.

#include "mpi/transport/shm/bounce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <unistd.h>
#include <vector>

namespace warren::transport {
namespace {

struct Member {
    Member(node::Segment&& segment, std::uint32_t index)
        : rank(std::move(segment), index), stock(rank) {}

    // Whether somebody has rung since `prepare`.
    bool was_rung(std::uint32_t prepared) const { return rank.slot.doorbell.load() != prepared; }

    Rank rank;
    BounceStock stock;
};

class BounceStockTest : public testing::Test {
  protected:
    void make(std::uint32_t ranks) {
        Error error = node::Segment::create({.ranks = ranks, .cores = ranks}, segment_);
        ASSERT_FALSE(error) << error.take()->text;
        for (std::uint32_t index = 0; index < ranks; ++index) {
            node::Segment own;
            ASSERT_FALSE(node::Segment::attach(dup(segment_.descriptor()), own));
            members_.push_back(std::make_unique<Member>(std::move(own), index));
        }
    }
    Member& member(std::size_t index) { return *members_[index]; }

  private:
    node::Segment segment_;
    std::vector<std::unique_ptr<Member>> members_;
};

std::vector<Bounce> take_all(BounceStock& stock) {
    std::vector<Bounce> taken;
    Bounce bounce;
    while (taken.size() <= bounce_buffers && stock.take(bounce)) {
        taken.push_back(bounce);
    }
    return taken;
}

TEST_F(BounceStockTest, a_rank_has_so_many_buffers_and_gets_them_back) {
    make(2);
    for (int round = 0; round < 3; ++round) {
        const std::vector<Bounce> taken = take_all(member(0).stock);
        EXPECT_EQ(taken.size(), bounce_buffers);
        std::uint32_t numbers = 0;
        for (const Bounce& bounce : taken) {
            numbers |= 1U << bounce.number;
            // Read by rank 1, which keeps none.
            member(1).stock.drop({.number = bounce.number, .may_be_kept = false});
        }
        EXPECT_EQ(numbers, (1U << bounce_buffers) - 1) << "each of them once";
    }
}

TEST_F(BounceStockTest, a_buffer_that_was_kept_is_used_next_and_goes_home_with_its_owner) {
    make(2);
    Bounce bounce;
    ASSERT_TRUE(member(0).stock.take(bounce));
    ASSERT_TRUE(bounce.may_be_kept);
    member(1).stock.drop(bounce);
    Bounce back;
    ASSERT_TRUE(member(1).stock.take(back));
    EXPECT_EQ(back.number, bounce.number);
    member(0).stock.drop(back);
    EXPECT_EQ(take_all(member(0).stock).size(), bounce_buffers);
}

// Every rank that has read from it keeps a buffer, and then never talks again.
TEST_F(BounceStockTest, idle_ranks_never_keep_all) {
    constexpr std::uint32_t ranks = bounce_buffers + 4;
    make(ranks);
    for (std::uint32_t reader = 1; reader < ranks; ++reader) {
        Bounce bounce;
        ASSERT_TRUE(member(0).stock.take(bounce)) << "before reader " << reader;
        member(reader).stock.drop(bounce);
    }
    EXPECT_GE(take_all(member(0).stock).size(), 2U);
}

// The attempt between the wish and the sleep must not forget the wish.
TEST_F(BounceStockTest, who_waits_for_a_buffer_is_rung_when_one_comes_back) {
    make(2);
    Member& owner = member(0);
    const std::vector<Bounce> taken = take_all(owner.stock);
    EXPECT_TRUE(owner.stock.ask_for_return());
    const std::uint32_t prepared = owner.rank.doorbell.prepare();
    Bounce bounce;
    ASSERT_FALSE(owner.stock.take(bounce));
    EXPECT_FALSE(owner.was_rung(prepared));
    member(1).stock.drop({.number = taken[5].number, .may_be_kept = false});
    EXPECT_TRUE(owner.was_rung(prepared));
    ASSERT_TRUE(owner.stock.take(bounce));
    EXPECT_EQ(bounce.number, taken[5].number);
}

TEST_F(BounceStockTest, who_asks_too_late_is_told) {
    make(2);
    Member& owner = member(0);
    const std::vector<Bounce> taken = take_all(owner.stock);
    member(1).stock.drop({.number = taken[0].number, .may_be_kept = false});
    EXPECT_FALSE(owner.stock.ask_for_return());
    Bounce bounce;
    EXPECT_TRUE(owner.stock.take(bounce));
}

TEST_F(BounceStockTest, one_wish_is_one_ring) {
    make(2);
    Member& owner = member(0);
    const std::vector<Bounce> taken = take_all(owner.stock);
    EXPECT_TRUE(owner.stock.ask_for_return());
    member(1).stock.drop({.number = taken[0].number, .may_be_kept = false});
    const std::uint32_t prepared = owner.rank.doorbell.prepare();
    member(1).stock.drop({.number = taken[1].number, .may_be_kept = false});
    EXPECT_FALSE(owner.was_rung(prepared));
}

TEST_F(BounceStockTest, blocks_follow_each_other_through_their_buffer) {
    make(1);
    constexpr std::size_t kilo = 1024;
    std::uint32_t number = 0;
    for (const std::size_t bytes : {2 * kilo + 1, 8 * kilo, 8 * kilo + 1, 60 * kilo, 128 * kilo,
                                    bounce_bytes - 1, bounce_bytes}) {
        const std::size_t length = (bytes + BouncePlace::turn_bytes - 1) / BouncePlace::turn_bytes *
                                   BouncePlace::turn_bytes;
        const std::size_t fitting = bounce_bytes / length;
        number = (number + 1) % bounce_buffers;
        for (std::size_t block = 0; block < 3 * fitting; ++block) {
            const BouncePlace place = {.number = number,
                                       .turn = member(0).stock.next_turn(number, bytes),
                                       .shift = node::cache_line_bytes - 1};
            ASSERT_EQ(place.turn * std::size_t{BouncePlace::turn_bytes}, block % fitting * length);
            ASSERT_LE(place.offset() + bytes, bounce_stride_bytes);
            ASSERT_EQ(BouncePlace::unpacked(place.packed()).offset(), place.offset());
        }
    }
}

TEST_F(BounceStockTest, blocks_of_many_sizes_stay_in_their_buffer) {
    make(1);
    std::size_t bytes = 1;
    for (int block = 0; block < 100000; ++block) {
        bytes = (bytes * 7919 + 104729) % bounce_bytes + 1;
        const std::uint32_t turn =
            member(0).stock.next_turn(static_cast<std::uint32_t>(block), bytes);
        ASSERT_LE(turn * std::size_t{BouncePlace::turn_bytes} + bytes, bounce_bytes);
    }
}

TEST(BouncePlace, is_what_was_packed) {
    const std::uint32_t last = node::rank_limit * bounce_buffers - 1;
    for (const std::uint32_t number : {0U, 1U, 77U, last}) {
        for (const std::uint32_t turn : {0U, 1U, BouncePlace::turns - 1}) {
            for (const std::uint32_t shift : {0U, 8U, 63U}) {
                const BouncePlace place = {.number = number, .turn = turn, .shift = shift};
                const BouncePlace back = BouncePlace::unpacked(place.packed());
                EXPECT_EQ(back.number, number);
                EXPECT_EQ(back.turn, turn);
                EXPECT_EQ(back.shift, shift);
            }
        }
    }
}

} // namespace
} // namespace warren::transport
