#include "mpi/job/mpiexec_bootstrap.hpp"

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "mpi.h"

namespace warren::node {

namespace {

std::string message_of(Error error) {
    EXPECT_TRUE(error);
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record != nullptr ? record->text : "";
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::string value_of(Bootstrap& bootstrap, std::uint32_t rank, std::string_view key) {
    std::vector<std::byte> value;
    if (Error error = bootstrap.get(rank, key, value)) {
        return "error: " + message_of(std::move(error));
    }
    return {reinterpret_cast<const char*>(value.data()), value.size()};
}

class MpiexecBootstrapTest : public testing::Test {
  protected:
    static constexpr std::uint32_t ranks = 4;

    void SetUp() override {
        Error error = Segment::create({.ranks = ranks, .cores = 1}, segment_);
        ASSERT_FALSE(error);
    }
    std::unique_ptr<Bootstrap> bootstrap(std::uint32_t rank, int lifeline = -1) {
        return std::make_unique<MpiexecBootstrap>(segment_, rank, lifeline);
    }
    void run(const std::function<void(Bootstrap&, std::uint32_t)>& program) {
        std::vector<std::thread> all;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            all.emplace_back([&, rank] { program(*bootstrap(rank), rank); });
        }
        for (std::thread& one : all) {
            one.join();
        }
    }

    Segment segment_;
};

TEST_F(MpiexecBootstrapTest, knows_its_node_and_its_world) {
    const RankNumbers numbers = bootstrap(2)->numbers();
    EXPECT_EQ(numbers.node_rank, 2u);
    EXPECT_EQ(numbers.node_size, ranks);
    EXPECT_EQ(numbers.world_rank, 2u);
    EXPECT_EQ(numbers.world_size, ranks);
    EXPECT_EQ(bootstrap(2)->node_of(3), 0u);
    EXPECT_EQ(bootstrap(2)->slot_of(3), 3u);
    EXPECT_EQ(numbers.node, 0u);
    EXPECT_EQ(numbers.nodes, 1u);
    EXPECT_EQ(bootstrap(2)->secret(), 0u);
    EXPECT_EQ(bootstrap(2)->name_of_node(0), "");
}

TEST_F(MpiexecBootstrapTest, hands_values_to_all_ranks) {
    run([](Bootstrap& own, std::uint32_t rank) {
        const std::string name = "address of " + std::to_string(rank);
        EXPECT_FALSE(own.put("address", bytes_of(name)));
        EXPECT_FALSE(own.put("empty", {}));
        EXPECT_FALSE(own.fence());
        for (std::uint32_t other = 0; other < ranks; ++other) {
            EXPECT_EQ(value_of(own, other, "address"), "address of " + std::to_string(other));
            EXPECT_EQ(value_of(own, other, "empty"), "");
        }
    });
}

TEST_F(MpiexecBootstrapTest, no_rank_leaves_a_fence_before_the_last_has_come) {
    std::atomic<std::uint32_t> come{0};
    run([&](Bootstrap& own, std::uint32_t rank) {
        for (std::uint32_t round = 1; round <= 200; ++round) {
            if (rank == round % ranks) {
                usleep(50);
            }
            come.fetch_add(1);
            EXPECT_FALSE(own.fence());
            EXPECT_GE(come.load(), round * ranks);
        }
    });
}

TEST_F(MpiexecBootstrapTest, refuses_what_was_not_put_and_what_was_put_before) {
    const auto own = bootstrap(1);
    EXPECT_EQ(value_of(*own, 3, "port"), "error: rank 3 has put nothing under \"port\"");
    EXPECT_EQ(value_of(*own, 4, "port"), "error: the world has no rank 4: it has 4 ranks");
    EXPECT_FALSE(own->put("port", bytes_of("80")));
    EXPECT_EQ(message_of(own->put("port", bytes_of("81"))),
              "rank 1 has put a value under \"port\" before");
    EXPECT_EQ(value_of(*own, 1, "port"), "80");
    EXPECT_EQ(value_of(*own, 1, "por"), "error: rank 1 has put nothing under \"por\"");
}

TEST_F(MpiexecBootstrapTest, refuses_what_does_not_fit_a_card) {
    const auto own = bootstrap(0);
    const std::string large(card_bytes - sizeof(std::uint32_t) - 3, 'x');
    EXPECT_FALSE(own->put("all", bytes_of(large)));
    EXPECT_EQ(value_of(*own, 0, "all"), large);
    EXPECT_EQ(message_of(own->put("", {})),
              "rank 0 puts 0 bytes under \"\", which do not fit its card of 4096 bytes, of which "
              "4096 are in use");
    EXPECT_EQ(value_of(*own, 1, "all"), "error: rank 1 has put nothing under \"all\"");
}

TEST_F(MpiexecBootstrapTest, counts_for_all_ranks) {
    run([](Bootstrap& own, std::uint32_t) {
        own.add(JobCount::finishing, 1);
        own.add(JobCount::withdrawing, 1);
        own.add(JobCount::withdrawing, -1);
    });
    EXPECT_EQ(bootstrap(0)->read(JobCount::finishing), ranks);
    EXPECT_EQ(bootstrap(0)->read(JobCount::withdrawing), 0u);
    EXPECT_EQ(bootstrap(0)->add(JobCount::finishing, 1), ranks + 1);
}

TEST_F(MpiexecBootstrapTest, remembers_that_all_were_finishing_when_some_have_come_back) {
    run([](Bootstrap& own, std::uint32_t) {
        EXPECT_EQ(own.read(JobCount::finishes), 0u);
        own.fence().drop();
        own.add(JobCount::finishing, 1);
        own.fence().drop();
        own.add(JobCount::finishing, -1);
        EXPECT_EQ(own.read(JobCount::finishes), 1u);
    });
    EXPECT_EQ(bootstrap(0)->read(JobCount::finishing), 0u);
    EXPECT_EQ(bootstrap(0)->read(JobCount::finishes), 1u);
}

TEST_F(MpiexecBootstrapTest, the_last_member_gives_a_context_back) {
    const auto one = bootstrap(0);
    const auto other = bootstrap(1);
    const std::uint32_t context = one->take_context(2);
    EXPECT_NE(context, 0u);
    EXPECT_EQ(other->give_back_context(context), 0u);
    EXPECT_NE(other->take_context(1), context);
    EXPECT_EQ(one->give_back_context(context), 0u);
    // The context table reuses the entry with another generation.
    const std::uint32_t again = other->take_context(1);
    EXPECT_NE(again, context);
    EXPECT_EQ(again % (1u << 21), context % (1u << 21));
}

TEST_F(MpiexecBootstrapTest, the_first_rank_that_aborts_tells_mpiexec_why) {
    int lifeline[2];
    ASSERT_EQ(pipe(lifeline), 0);
    EXPECT_EQ(bootstrap(2, lifeline[1])->abort(JobEnd::aborted, 7, "no convergence"),
              Bootstrap::Told::launcher);
    EXPECT_EQ(bootstrap(1, lifeline[1])->abort(JobEnd::aborted, 8, "neither"),
              Bootstrap::Told::before);
    char told[4];
    EXPECT_EQ(read(lifeline[0], told, sizeof told), 1);
    EXPECT_EQ(segment_.header().end_rank, 2u);
    EXPECT_EQ(segment_.header().end_code, 7);
    EXPECT_STREQ(segment_.header().end_text, "no convergence");
    close(lifeline[0]);
    close(lifeline[1]);
}

// Does the work of an agent: the second of two nodes has ranks 4 to 7.
class TwoNodesTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_FALSE(Segment::create({.ranks = 4, .cores = 1, .nodes = 2}, segment_));
        *segment_.at(node_place) = {
            .node = 1, .nodes = 2, .world_size = 8, .dealt = 0, .secret = 12345};
        const std::uint32_t first[] = {0, 4, 8};
        std::memcpy(segment_.at(first_ranks), first, sizeof first);
        ASSERT_FALSE(Book::create({"one", "two"}, book_));
        ASSERT_EQ(pipe(lifeline_), 0);
    }
    void TearDown() override {
        for (const int one : {book_, lifeline_[0], lifeline_[1]}) {
            close(one);
        }
    }
    std::unique_ptr<Bootstrap> bootstrap(std::uint32_t slot) {
        return std::make_unique<MpiexecBootstrap>(segment_, slot, lifeline_[1], book_);
    }

    Segment segment_;
    int book_ = -1;
    int lifeline_[2] = {-1, -1};
};

TEST_F(TwoNodesTest, RanksKnowTheirPlaces) {
    const auto own = bootstrap(2);
    EXPECT_EQ(own->numbers().world_rank, 6U);
    EXPECT_EQ(own->numbers().world_size, 8U);
    EXPECT_EQ(own->numbers().node_rank, 2U);
    EXPECT_EQ(own->numbers().node, 1U);
    EXPECT_EQ(own->node_of(3), 0U);
    EXPECT_EQ(own->world_rank_at(0, 3), 3U);
    EXPECT_EQ(own->secret(), 12345U);
    EXPECT_EQ(own->name_of_node(0), "one");
    EXPECT_EQ(own->name_of_node(1), "two");
    EXPECT_EQ(own->name_of_node(2), "");
}

TEST_F(TwoNodesTest, TheAgentEndsAFenceWithTheCardsOfAll) {
    std::vector<std::unique_ptr<Bootstrap>> all;
    std::uint32_t number = 0;
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
        all.push_back(bootstrap(slot));
        EXPECT_FALSE(all.back()->put("port", bytes_of(slot < 3 ? "p" : "q")));
        number = all.back()->enter_fence();
    }
    EXPECT_FALSE(all[0]->fence_is_over(number));
    char told[4];
    ASSERT_EQ(read(lifeline_[0], told, sizeof told), 1);
    EXPECT_EQ(told[0], MpiexecBootstrap::fences);
    const std::string here = collect_cards(segment_);
    EXPECT_TRUE(are_records(here));
    EXPECT_FALSE(are_records(here + "x"));
    EXPECT_FALSE(are_records(here.substr(1)));
    CardRecord first;
    std::memcpy(&first, here.data(), sizeof first);
    EXPECT_EQ(first.slots, 3U); // who has the same card shares a record
    EXPECT_EQ(value_of(*all[0], 1, "port"),
              "error: rank 1 has put nothing under \"port\""); // before the fence's end
    EXPECT_FALSE(Book(book_).write_cards({here, here}));       // as if the other node was alike
    MpiexecBootstrap::end_fence(segment_);
    EXPECT_TRUE(all[0]->fence_is_over(number));
    EXPECT_EQ(value_of(*all[0], 1, "port"), "p");
    EXPECT_EQ(value_of(*all[0], 3, "port"), "q");
    EXPECT_EQ(value_of(*all[0], 7, "port"), "q");
    EXPECT_EQ(value_of(*all[0], 8, "port"), "error: the world has no rank 8: it has 8 ranks");
}

TEST_F(TwoNodesTest, ACardOfAnotherNodeThatEndsTooEarlyHasNothing) {
    const std::unique_ptr<Bootstrap> own = bootstrap(0);
    for (std::uint32_t bytes = 1; bytes < 12; ++bytes) {
        const CardRecord record = {.first_slot = 0, .slots = 4, .bytes = bytes};
        std::string records(reinterpret_cast<const char*>(&record), sizeof record);
        records += std::string(bytes, '\x7f');
        ASSERT_TRUE(are_records(records));
        EXPECT_FALSE(Book(book_).write_cards({records, ""}));
        EXPECT_EQ(value_of(*own, 0, "port"), "error: rank 0 has put nothing under \"port\"");
    }
}

TEST_F(MpiexecBootstrapTest, a_program_that_was_started_alone_has_nobody_to_tell) {
    EXPECT_FALSE(bootstrap(0)->has_launcher());
    EXPECT_EQ(bootstrap(0)->abort(JobEnd::aborted, 1, "alone"), Bootstrap::Told::nobody);
}

} // namespace

} // namespace warren::node
