// Both halves of a joint copy, in threads of one process that copy by memcpy.

#include "mpi/transport/shm/joint_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/futex.hpp"

namespace warren::transport {
namespace {

constexpr std::uint64_t kilo = 1024;

PeerCopy copy_plain(const JointCopy::Block& block) {
    std::memcpy(reinterpret_cast<void*>(block.to), reinterpret_cast<const void*>(block.from),
                block.bytes);
    return PeerCopy::done;
}

bool lives() {
    return false;
}

std::uint64_t address(const std::vector<std::byte>& data) {
    return reinterpret_cast<std::uint64_t>(data.data());
}

std::vector<std::byte> pattern(std::uint64_t bytes, std::uint32_t seed) {
    std::vector<std::byte> data(bytes);
    // In pieces of a few hundred bytes, since sanitizers make loops over bytes slow.
    constexpr std::uint64_t piece = 509;
    for (std::uint64_t i = 0; i < bytes; i += piece) {
        seed = seed * 1664525U + 1013904223U;
        std::memset(data.data() + i, static_cast<int>(seed >> 24), std::min(piece, bytes - i));
    }
    return data;
}

bool equal(const std::vector<std::byte>& one, const std::vector<std::byte>& other) {
    return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

TEST(joint_copy, a_receiver_without_help_copies_every_byte_once) {
    JointCopy joint = {};
    for (const std::uint64_t bytes : {std::uint64_t{1}, 4 * kilo, 64 * kilo, 64 * kilo + 1,
                                      1024 * kilo, 3333333 * kilo / 1000}) {
        const std::vector<std::byte> from = pattern(bytes, 1);
        std::vector<std::byte> to(bytes);
        std::uint64_t copied = 0;
        EXPECT_EQ(joint.receive(
                      address(from), address(to), bytes, false,
                      [&](const JointCopy::Block& block) {
                          copied += block.bytes;
                          return copy_plain(block);
                      },
                      lives),
                  PeerCopy::done);
        EXPECT_EQ(copied, bytes);
        EXPECT_TRUE(equal(from, to));
    }
}

std::vector<std::uint64_t> taken_without_help(std::uint64_t bytes, bool mutual) {
    JointCopy joint = {};
    std::vector<std::uint64_t> taken;
    EXPECT_EQ(joint.receive(
                  0, 0, bytes, mutual,
                  [&](const JointCopy::Block& block) {
                      taken.push_back(block.bytes / kilo);
                      return PeerCopy::done;
                  },
                  lives),
              PeerCopy::done);
    return taken;
}

TEST(joint_copy, a_receiver_without_help_takes_half_of_what_is_left_at_a_time) {
    using Kilobytes = std::vector<std::uint64_t>;
    EXPECT_EQ(taken_without_help(64 * kilo, false), (Kilobytes{32, 32}));
    EXPECT_EQ(taken_without_help(1024 * kilo, false), (Kilobytes{512, 256, 128, 128}));
    EXPECT_EQ(taken_without_help(4096 * kilo, false),
              (Kilobytes{1024, 1024, 1024, 512, 256, 128, 128}));
}

TEST(joint_copy, a_receiver_whose_sender_fetches_too_takes_more_at_a_time) {
    using Kilobytes = std::vector<std::uint64_t>;
    EXPECT_EQ(taken_without_help(256 * kilo, true), (Kilobytes{256}));
    EXPECT_EQ(taken_without_help(1024 * kilo, true), (Kilobytes{768, 256}));
    EXPECT_EQ(taken_without_help(4096 * kilo, true), (Kilobytes{1024, 1024, 1024, 768, 256}));
}

TEST(joint_copy, a_sender_that_comes_when_the_receiver_has_begun_can_copy_the_other_half) {
    JointCopy joint = {};
    const std::vector<std::byte> from = pattern(1024 * kilo, 5);
    std::vector<std::byte> to(from.size());
    std::uint64_t received = 0;
    std::uint64_t helped = 0;
    EXPECT_EQ(joint.receive(
                  address(from), address(to), from.size(), false,
                  [&](const JointCopy::Block& block) {
                      received += block.bytes;
                      while (joint.help([&](const JointCopy::Block& other) { // meanwhile
                          helped += other.bytes;
                          return copy_plain(other);
                      })) {
                      }
                      return copy_plain(block);
                  },
                  lives),
              PeerCopy::done);
    EXPECT_EQ(received, 512 * kilo);
    EXPECT_EQ(helped, 512 * kilo);
    EXPECT_TRUE(equal(from, to));
}

TEST(joint_copy, a_message_of_terabytes_has_no_more_blocks_than_can_be_counted) {
    JointCopy joint = {};
    constexpr std::uint64_t bytes = std::uint64_t{5} << 40;
    std::uint64_t next = 0;
    EXPECT_EQ(joint.receive(
                  0, 0, bytes, false,
                  [&](const JointCopy::Block& block) {
                      EXPECT_EQ(block.from, next);
                      next += block.bytes;
                      return PeerCopy::done;
                  },
                  lives),
              PeerCopy::done);
    EXPECT_EQ(next, bytes);
}

TEST(joint_copy, there_is_nothing_to_help_with_before_and_after) {
    JointCopy joint = {};
    EXPECT_FALSE(joint.help(copy_plain));
    std::vector<std::byte> data(64 * kilo);
    EXPECT_EQ(joint.receive(
                  address(data), address(data), data.size(), false,
                  [](const JointCopy::Block&) { return PeerCopy::done; }, lives),
              PeerCopy::done);
    EXPECT_FALSE(joint.help(copy_plain));
}

TEST(joint_copy, what_the_receiver_may_not_copy_the_sender_does_not_go_on_with) {
    JointCopy joint = {};
    const std::vector<std::byte> from(256 * kilo);
    std::vector<std::byte> to(256 * kilo);
    int calls = 0;
    EXPECT_EQ(joint.receive(
                  address(from), address(to), from.size(), false,
                  [&](const JointCopy::Block&) {
                      ++calls;
                      return PeerCopy::refused;
                  },
                  lives),
              PeerCopy::refused);
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(joint.help(copy_plain));
}

TEST(joint_copy, what_the_sender_may_not_copy_the_receiver_copies) {
    JointCopy joint = {};
    const std::vector<std::byte> from = pattern(512 * kilo, 7);
    std::vector<std::byte> to(from.size());
    bool helped = false;
    EXPECT_EQ(joint.receive(
                  address(from), address(to), from.size(), false,
                  [&](const JointCopy::Block& block) {
                      if (!helped) {
                          // As if at the same time.
                          helped =
                              joint.help([](const JointCopy::Block&) { return PeerCopy::refused; });
                          EXPECT_TRUE(helped);
                      }
                      return copy_plain(block);
                  },
                  lives),
              PeerCopy::done);
    EXPECT_TRUE(equal(from, to));
}

// The sender takes a block, and is `late` or never comes back.
PeerCopy receive_from_one_who_stops(bool dies) {
    JointCopy joint = {};
    const std::vector<std::byte> from = pattern(512 * kilo, 3);
    std::vector<std::byte> to(from.size());
    std::atomic<bool> taken{false}, woken{false};
    std::thread sender([&] {
        const auto stop = [&](const JointCopy::Block& block) {
            taken = true;
            while (!woken) {
                give_way();
            }
            return copy_plain(block);
        };
        while (!joint.help(stop)) {
            give_way();
        }
    });
    int asked = 0;
    const PeerCopy result = joint.receive(
        address(from), address(to), from.size(), false,
        [&](const JointCopy::Block& block) {
            while (!taken) {
                give_way();
            }
            return copy_plain(block);
        },
        [&] {
            if (!dies && ++asked >= 5) {
                woken = true;
            }
            return dies;
        });
    woken = true;
    sender.join();
    EXPECT_TRUE(dies || equal(from, to));
    return result;
}

TEST(joint_copy, a_sender_that_is_stopped_in_a_block_is_waited_for) {
    EXPECT_EQ(receive_from_one_who_stops(false), PeerCopy::done);
}

TEST(joint_copy, a_sender_that_dies_in_a_block_is_not_waited_for) {
    EXPECT_EQ(receive_from_one_who_stops(true), PeerCopy::failed);
}

// Copies of all sizes one behind the other, in the same two places, while the other side helps all
// the time: what it does late or of another turn would show.
TEST(joint_copy, stress_both_sides_copy_turn_after_turn) {
    auto joint = std::make_unique<JointCopy>();
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> helped{0};
    std::thread sender([&] {
        while (!over.load(std::memory_order_relaxed)) {
            if (joint->help(copy_plain)) {
                helped.fetch_add(1, std::memory_order_relaxed);
            } else {
                spin_pause();
            }
        }
    });
    std::uint32_t state = 99;
    std::vector<std::byte> to;
    std::uint64_t blocks = 0;
    for (int turn = 0; turn < 200; ++turn) {
        state = state * 1664525U + 1013904223U;
        const std::uint64_t bytes = joint_limit + (state >> 8) % (600 * kilo);
        const std::vector<std::byte> from = pattern(bytes, state);
        to.resize(bytes);
        std::memset(to.data(), 0, bytes);
        ASSERT_EQ(joint->receive(
                      address(from), address(to), bytes, turn % 2 != 0,
                      [&](const JointCopy::Block& block) {
                          ++blocks;
                          if (turn % 8 == 0) {
                              give_way();
                          }
                          return copy_plain(block);
                      },
                      lives),
                  PeerCopy::done);
        ASSERT_TRUE(equal(from, to)) << "turn " << turn;
    }
    over = true;
    sender.join();
    // (How many of them each side comes to is chance.)
    EXPECT_GT(blocks + helped, 200U);
}

} // namespace
} // namespace warren::transport
