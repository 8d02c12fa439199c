// The two rings of a pair: order and data whatever the sender knows, and the few lines that ranks
// keep to which answer each other.

#include "mpi/transport/shm/pair_ring.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace warren::transport {
namespace {

struct Deleter {
    void operator()(PairRing* pair_ring) const {
        ::operator delete (pair_ring, std::align_val_t{alignof(PairRing)});
    }
};
using OwnedPairRing = std::unique_ptr<PairRing, Deleter>;

OwnedPairRing empty_pair_ring() {
    void* memory = ::operator new (sizeof(PairRing), std::align_val_t{alignof(PairRing)});
    std::memset(memory, 0, sizeof(PairRing));
    return OwnedPairRing(static_cast<PairRing*>(memory));
}

// A rank of the pair, as the transport uses its ends of both pair rings.
class Side {
  public:
    Side(PairRing* out, PairRing* in) : out_(out), sender_(out), receiver_(in, 0) {}

    // Sends the next number, in the cell, or in a block of so many bytes. False: no space.
    bool send(std::uint32_t bytes = 0) {
        if (learns) {
            sender_.learn(receiver_.acknowledged(), receiver_.read());
        }
        Cell* cell = sender_.claim();
        if (cell == nullptr) {
            return false;
        }
        cell->turn.acknowledged = static_cast<std::uint16_t>(receiver_.read());
        if (bytes == 0) {
            cell->place = Place::cell;
            std::memcpy(cell->payload, &sent_, sizeof sent_);
        } else {
            BlockReference reference = {};
            std::byte* place = sender_.claim_ring(bytes, reference);
            if (place == nullptr) {
                return false;
            }
            std::memset(place, static_cast<unsigned char>(sent_), bytes);
            last_position = reference.position;
            sender_.commit_ring(reference);
            cell->place = Place::ring;
            std::memcpy(cell->payload, &reference, sizeof reference);
        }
        last_cell = static_cast<std::size_t>(cell - out_->cells);
        sender_.publish(*cell);
        ++sent_;
        return true;
    }

    // Takes the next message if it is there, and compares it with what is due.
    bool receive() {
        Cell* cell = receiver_.peek();
        if (cell == nullptr) {
            return false;
        }
        if (cell->place == Place::cell) {
            std::uint32_t number;
            std::memcpy(&number, cell->payload, sizeof number);
            good = good && number == received_;
        } else {
            const auto& reference = *reinterpret_cast<const BlockReference*>(cell->payload);
            const std::byte* data = receiver_.ring(reference.position);
            for (std::uint32_t i = 0; i < reference.bytes; ++i) {
                good = good && data[i] == static_cast<std::byte>(received_);
            }
            as_expected += reference.position == receiver_.expected_position() ? 1 : 0;
            receiver_.release_ring(reference.mark);
        }
        receiver_.pop();
        ++received_;
        return true;
    }

    std::uint32_t sent() const { return sent_; }
    std::uint32_t received() const { return received_; }

    std::size_t last_cell = 0;
    std::uint32_t last_position = 0;
    std::uint32_t as_expected = 0; // blocks that were where the receiver expected them
    bool good = true;
    bool learns = true; // it has accepted the pair ring the other way

  private:
    PairRing* out_;
    PairRingSender sender_;
    PairRingReceiver receiver_;
    std::uint32_t sent_ = 0;
    std::uint32_t received_ = 0;
};

class PairRingTest : public ::testing::Test {
  protected:
    const OwnedPairRing there_ = empty_pair_ring();
    const OwnedPairRing back_ = empty_pair_ring();
    Side one_{there_.get(), back_.get()};
    Side other_{back_.get(), there_.get()};

    void past_the_first_laps() {
        for (std::uint32_t i = 0; i < 3 * pair_ring_cells; ++i) {
            ASSERT_TRUE(one_.send() && other_.receive() && other_.send() && one_.receive());
        }
    }
};

TEST_F(PairRingTest, RanksThatAnswerEachOtherKeepToFewLines) {
    past_the_first_laps();
    std::set<std::size_t> cells;
    std::set<std::uint32_t> positions;
    other_.as_expected = 0;
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(one_.send(1000) && other_.receive() && other_.send() && one_.receive());
        if (i >= 10) {
            cells.insert(one_.last_cell);
            positions.insert(one_.last_position);
        }
    }
    EXPECT_EQ(cells, (std::set<std::size_t>{0, 1, 2, 3}));
    EXPECT_LE(*positions.rbegin(), hot_ring_bytes);
    EXPECT_GE(positions.size(), 2u); // never the lines that are being read
    EXPECT_GE(other_.as_expected, 990u);
    EXPECT_TRUE(one_.good && other_.good);
}

TEST_F(PairRingTest, OneWhoIsNotAnsweredUsesAllCells) {
    past_the_first_laps();
    std::set<std::size_t> cells;
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(one_.send() && other_.receive());
        cells.insert(one_.last_cell);
    }
    EXPECT_EQ(cells.size(), pair_ring_cells);
    EXPECT_TRUE(other_.good);
}

// Whether the sender has just gone back or not, there is space for all cells but one, and none is
// used again before it was read.
TEST_F(PairRingTest, BurstsBehindAnAnswerHaveTheWholeRing) {
    past_the_first_laps();
    for (int answers = 0; answers < 9; ++answers) {
        for (int i = 0; i < answers; ++i) {
            ASSERT_TRUE(one_.send() && other_.receive() && other_.send() && one_.receive());
        }
        for (int lap = 0; lap < 3; ++lap) {
            std::set<std::size_t> cells;
            while (one_.send()) {
                ASSERT_TRUE(cells.insert(one_.last_cell).second) << "used twice";
            }
            EXPECT_EQ(cells.size(), pair_ring_cells - 1);
            while (other_.receive()) {
            }
        }
        ASSERT_TRUE(other_.send() && one_.receive());
    }
    EXPECT_TRUE(one_.good && other_.good);
}

// An old sequence would be taken for a new one if a cell were left alone for 2^32 messages.
TEST_F(PairRingTest, EveryCellIsWrittenNowAndThen) {
    std::vector<std::uint32_t> last(pair_ring_cells, 0);
    std::uint32_t longest = 0;
    for (std::uint32_t i = 1; i < (1u << 22); ++i) {
        ASSERT_TRUE(one_.send() && other_.receive() && other_.send() && one_.receive());
        longest = std::max(longest, i - last[one_.last_cell]);
        last[one_.last_cell] = i;
    }
    for (const std::uint32_t when : last) {
        EXPECT_GT(when, (1u << 22) - (1u << 20) - 3 * pair_ring_cells);
    }
    EXPECT_LE(longest, (1u << 20) + 3 * pair_ring_cells);
    EXPECT_TRUE(one_.good && other_.good);
}

// Acknowledgements have 16 bits: one of long ago says nothing, whether it was taken long ago or
// just now, and however far the receiver is behind.
TEST_F(PairRingTest, OldAcknowledgementsAreNotBelieved) {
    for (const std::uint32_t behind : {1U, 4U, 32U, 100U, 126U}) {
        for (const std::uint32_t bytes : {0U, 40U}) {
            for (const bool at_once : {true, false}) {
                past_the_first_laps();
                ASSERT_TRUE(other_.send());
                if (at_once) {
                    ASSERT_TRUE(one_.receive());
                }
                for (std::uint32_t sent = 0; sent < 3 * 65536 + 200; ++sent) {
                    if (!one_.send(bytes)) {
                        for (std::uint32_t i = 0; i < behind; ++i) {
                            other_.receive();
                        }
                        ASSERT_TRUE(one_.send(bytes));
                    }
                    if (!at_once && sent > 65000 && one_.receive()) {
                        ASSERT_LT(sent, 65100U);
                    }
                }
                while (other_.receive()) {
                }
                ASSERT_TRUE(one_.good && other_.good) << behind << ' ' << bytes << ' ' << at_once;
                ASSERT_EQ(other_.received(), one_.sent());
            }
        }
    }
}

TEST_F(PairRingTest, OldAcknowledgementsAreNotBelievedWhenThePairRingWasAcceptedLate) {
    for (int turn = 0; turn < 3; ++turn) {
        ASSERT_TRUE(other_.send()); // acknowledges 0
    }
    one_.learns = false;
    for (std::uint32_t sent = 0; sent < 60000; ++sent) {
        ASSERT_TRUE(one_.send() && other_.receive()); // who keeps up
    }
    one_.learns = true;
    while (one_.receive()) {
    }
    // Position 2^16 comes while the receiver is behind.
    for (std::uint32_t sent = 0; sent < 10000; ++sent) {
        if (!one_.send()) {
            for (int turn = 0; turn < 32; ++turn) {
                other_.receive();
            }
            ASSERT_TRUE(one_.send());
        }
    }
    while (other_.receive()) {
    }
    EXPECT_TRUE(one_.good && other_.good);
    EXPECT_EQ(other_.received(), one_.sent());
}

TEST_F(PairRingTest, AnyMixtureArrivesInOrder) {
    std::mt19937 random(7);
    const auto below = [&random](std::uint32_t limit) {
        return static_cast<std::uint32_t>(random() % limit);
    };
    for (int round = 0; round < 20000; ++round) {
        Side& from = below(2) == 0 ? one_ : other_;
        Side& to = &from == &one_ ? other_ : one_;
        const std::uint32_t burst = below(8) == 0 ? below(300) : 1;
        for (std::uint32_t i = 0; i < burst; ++i) {
            from.send(below(2) == 0 ? 0 : 1 + below(below(2) == 0 ? 4096 : 100));
        }
        const std::uint32_t taken = below(3) == 0 ? below(200) : 2;
        for (std::uint32_t i = 0; i < taken && to.receive(); ++i) {
        }
    }
    while (one_.receive() || other_.receive()) {
    }
    EXPECT_TRUE(one_.good && other_.good);
}

// Two threads send and receive at once.
TEST_F(PairRingTest, ThreadsExchangeBurstsAndAnswers) {
    constexpr std::uint32_t rounds = 3000;
    const auto run = [](Side& side, std::uint32_t seed, bool begins) {
        std::mt19937 random(seed);
        std::mt19937 others(seed ^ 1);
        const auto burst_of = [](std::mt19937& drawn) {
            const auto number = static_cast<std::uint32_t>(drawn());
            return number % 4 == 0 ? 1 + number / 4 % 200 : 1;
        };
        for (std::uint32_t round = 0; round < rounds; ++round) {
            const bool sends = (round % 2 == 0) == begins;
            std::uint32_t left = burst_of(sends ? random : others);
            while (left > 0) {
                const std::uint32_t bytes = left % 3 == 0 ? 0 : 64 * left % 2048 + 1;
                if (sends ? side.send(bytes) : side.receive()) {
                    --left;
                } else {
                    std::this_thread::yield();
                }
            }
        }
    };
    std::thread other([&] { run(other_, 3, false); });
    run(one_, 2, true);
    other.join();
    EXPECT_TRUE(one_.good && other_.good);
}

} // namespace
} // namespace warren::transport
