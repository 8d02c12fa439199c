// A sender and a receiver that agree on ways, with messages that take as long as the test says.

#include "mpi/message/copy_methods.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace warren::message {
namespace {

struct Pair {
    // Sends a message of a class: returns the way that it took.
    Way send(std::uint32_t way_class, const std::function<std::uint64_t(Way)>& takes) {
        const Way way = ways.next(way_class, advice);
        const std::uint64_t stamp = ways.stamp(way_class, way);
        const bool measured = stamp != 0 && !Stamp::resting(stamp);
        ways.sent(way_class, advice);
        const std::uint64_t began = clock + 100 + (after ? after(last) : 0);
        last = way;
        clock = began + takes(way);
        ++(measured ? measured_messages : others);
        const Trial trial = {began, began, clock, false, !measured, way};
        Way best;
        const bool may_fetch = (advice & no_fetching) == 0;
        if (measured && judge.add(way_class, trial, 1 << 20, may_fetch, best, by_period)) {
            ++judged;
            advice = (advice & ~WayClass::mask(way_class)) | WayClass::advice(way_class, best);
        }
        Advice again;
        if (stamp != 0 && !measured && judge.drifts(way_class, trial, 1 << 20, again)) {
            ++wishes;
            advice = (advice & ~WayClass::again(way_class)) | again;
        }
        return way;
    }
    // How many of so many were fetched.
    int fetched(int messages, std::uint32_t way_class,
                const std::function<std::uint64_t(Way)>& takes) {
        int count = 0;
        for (int i = 0; i < messages; ++i) {
            count += send(way_class, takes) == Way::fetch ? 1 : 0;
        }
        return count;
    }

    // What the program takes after a message that went so.
    std::function<std::uint64_t(Way)> after;
    Way last = Way::push;
    bool by_period = false;
    Ways ways;
    WayJudge judge;
    Advice advice = 0;
    std::uint64_t clock = 1;
    int judged = 0;
    int measured_messages = 0;
    int others = 0;
    int wishes = 0;
};

std::uint64_t fetching_is_quick(Way way) {
    return way == Way::fetch ? 1000 : 2000;
}
std::uint64_t pushing_is_quick(Way way) {
    return way == Way::fetch ? 2000 : 1000;
}

TEST(ways, classes_are_powers_of_two_and_the_largest_block_is_in_the_last_that_is_pushed_at_first) {
    EXPECT_FALSE(WayClass::has(8191));
    EXPECT_EQ(WayClass::of(8192), 0U);
    EXPECT_EQ(WayClass::of(16383), 0U);
    EXPECT_EQ(WayClass::of(16384), 1U);
    const std::uint32_t block = WayClass::of(WayClass::block_bytes);
    EXPECT_EQ(WayClass::of(WayClass::block_bytes - 1), block);
    EXPECT_EQ(WayClass::of(WayClass::block_bytes + 1), block + 1);
    EXPECT_EQ(WayClass::first_way(block), Way::push);
    EXPECT_EQ(WayClass::first_way(block + 1), Way::fetch);
    EXPECT_EQ(WayClass::of(std::uint64_t{1} << 24), WayClass::count - 1);
    EXPECT_EQ(WayClass::of(~std::uint64_t{0}), WayClass::count - 1);
}

TEST(ways, a_pair_takes_the_quicker_way_and_changes_with_it) {
    Pair pair;
    pair.fetched(1000, 2, fetching_is_quick);
    EXPECT_GT(pair.fetched(1000, 2, fetching_is_quick), 900);
    pair.fetched(20000, 2, pushing_is_quick);
    EXPECT_LT(pair.fetched(1000, 2, pushing_is_quick), 100);
}

TEST(ways, classes_do_not_touch_each_other) {
    Pair pair;
    pair.fetched(1000, 0, fetching_is_quick);
    pair.fetched(1000, 3, pushing_is_quick);
    EXPECT_GT(pair.fetched(500, 0, fetching_is_quick), 400);
    EXPECT_LT(pair.fetched(500, 3, pushing_is_quick), 100);
}

TEST(ways, measuring_gets_seldom_while_the_answer_stays) {
    Pair pair;
    pair.fetched(30000, 1, pushing_is_quick);
    pair.measured_messages = pair.others = 0;
    const int lost = pair.fetched(100000, 1, pushing_is_quick);
    EXPECT_LT(lost, 400) << "a slower way";
    EXPECT_GT(lost, 0) << "still it is looked at";
    EXPECT_LT(pair.measured_messages, 800);
}

TEST(ways, nearly_equal_ways_do_not_take_turns) {
    Pair pair;
    int flips = 0;
    Advice before = pair.advice;
    std::uint32_t state = 1;
    pair.fetched(50000, 0, [&](Way) {
        flips += before != pair.advice ? 1 : 0;
        before = pair.advice;
        state = state * 1664525U + 1013904223U;
        return 1000 + (state >> 8) % 60;
    });
    EXPECT_GT(pair.judged, 5);
    EXPECT_EQ(flips, 0);
}

TEST(ways, single_disturbances_do_not_count) {
    Pair pair;
    int message = 0;
    pair.fetched(5000, 0,
                 [&](Way way) { return ++message % 9 == 0 ? 1000000 : fetching_is_quick(way); });
    EXPECT_EQ(WayClass::advised(0, pair.advice), Way::fetch);
}

TEST(ways, what_a_way_costs_the_program_behind_its_messages_counts_where_periods_do) {
    for (const bool by_period : {false, true}) {
        for (const std::uint32_t way_class : {0U, WayClass::count - 1}) {
            Pair pair;
            pair.by_period = by_period;
            pair.after = [](Way way) { return way == Way::fetch ? 5000 : 1000; };
            pair.fetched(5000, way_class, fetching_is_quick);
            EXPECT_EQ(WayClass::advised(way_class, pair.advice) == Way::fetch, !by_period);
        }
    }
}

TEST(ways, between_periods_that_are_nearly_the_same_messages_decide) {
    Pair pair;
    pair.by_period = true;
    std::uint32_t state = 1;
    pair.after = [&](Way) {
        state = state * 1664525U + 1013904223U;
        return 100000 + (state >> 8) % 5000;
    };
    pair.fetched(5000, 0, fetching_is_quick);
    EXPECT_EQ(WayClass::advised(0, pair.advice), Way::fetch);
    pair.after = nullptr;
    pair.fetched(5000, 0, pushing_is_quick);
    EXPECT_NE(WayClass::advised(0, pair.advice), Way::fetch);
}

std::uint64_t passing_is_quick(Way way) {
    return way == Way::pass ? 1000 : 2000;
}

TEST(ways, a_pair_passes_the_caches_where_that_is_quicker_even_if_it_may_not_fetch) {
    if (!is_open(Way::pass, false)) {
        GTEST_SKIP() << "nothing passes the caches here";
    }
    for (const Advice at_first : {Advice{0}, no_fetching}) {
        for (const std::uint32_t way_class : {0U, WayClass::count - 1}) {
            Pair pair;
            pair.advice = at_first;
            pair.fetched(WayClass::short_rhythm.shortest_rest << 7, way_class, passing_is_quick);
            EXPECT_EQ(WayClass::advised(way_class, pair.advice), Way::pass);
            EXPECT_EQ(pair.advice & no_fetching, at_first);
            EXPECT_EQ(WayClass::advised(1, pair.advice), WayClass::advised(1, at_first));
        }
    }
}

TEST(ways, stamps_say_which_messages_pass) {
    for (const Way way : {Way::push, Way::pass}) {
        for (const bool resting : {false, true}) {
            const std::uint64_t stamp = Stamp::of(1003, way, resting);
            EXPECT_EQ(Stamp::time(stamp), 1000U);
            EXPECT_EQ(Stamp::way(stamp), way);
            EXPECT_EQ(Stamp::resting(stamp), resting);
        }
    }
    EXPECT_NE(Stamp::time(Stamp::of(way_clock(), Way::push, false)), 0U);
}

TEST(ways, messages_in_a_row_count_from_the_one_before) {
    WayJudge judge;
    Way best = Way::push;
    // All pushed ones began at once and came one per 500, fetched ones one per 400.
    std::uint64_t clock = 1000;
    bool decided = false;
    const auto in_row = [&](Way way, std::uint64_t takes) {
        const std::uint64_t looked = clock;
        return Trial{1000, looked, clock += takes, false, false, way};
    };
    for (std::uint32_t i = 0; i < WayClass::short_rhythm.row(); ++i) {
        decided |= judge.add(0, in_row(Way::push, 500), 8192, true, best);
    }
    for (std::uint32_t i = 0; i < WayClass::short_rhythm.row(); ++i) {
        decided |= judge.add(0, in_row(Way::pass, 600), 8192, true, best);
    }
    for (std::uint32_t i = 0; i < WayClass::short_rhythm.row(); ++i) {
        decided |= judge.add(0, in_row(Way::fetch, 400), 8192, true, best);
    }
    EXPECT_TRUE(decided);
    EXPECT_EQ(best, Way::fetch);
}

TEST(ways, long_messages_are_fetched_until_pushing_is_known_to_be_quicker) {
    const std::uint32_t way_class = WayClass::of(std::uint64_t{1} << 20);
    Pair pair;
    EXPECT_EQ(pair.send(way_class, pushing_is_quick), Way::fetch);
    EXPECT_GT(pair.fetched(30, way_class, pushing_is_quick), 10);
    EXPECT_LT(pair.fetched(2000, way_class, pushing_is_quick), 200);
    pair.fetched(2000, way_class, fetching_is_quick);
    EXPECT_GT(pair.fetched(1000, way_class, fetching_is_quick), 950);
}

TEST(ways, a_pair_measures_long_messages_anew_when_they_get_slow) {
    const std::uint32_t way_class = WayClass::count - 1;
    Pair pair;
    pair.fetched(5000, way_class, fetching_is_quick);
    EXPECT_EQ(pair.wishes, 0);
    // The two run elsewhere now.
    const auto elsewhere = [](Way way) -> std::uint64_t { return way == Way::fetch ? 3000 : 900; };
    EXPECT_LT(pair.fetched(100, way_class, elsewhere), 50);
    EXPECT_EQ(pair.wishes, 1);
    EXPECT_LT(pair.fetched(5000, way_class, elsewhere), 200);
    EXPECT_EQ(pair.wishes, 1);
    // All ways are slower, for good: that is looked at once.
    pair.fetched(5000, way_class, [&](Way way) { return 3 * elsewhere(way); });
    EXPECT_EQ(pair.wishes, 2);
}

TEST(ways, messages_of_two_kinds_do_not_have_pairs_measure_all_the_time) {
    const std::uint32_t way_class = WayClass::count - 1;
    Pair pair;
    int message = 0;
    pair.fetched(20000, way_class, [&](Way way) {
        return fetching_is_quick(way) * (++message / 10 % 2 == 0 ? 1 : 3);
    });
    EXPECT_LT(pair.wishes, 30); // not one for each ten
    EXPECT_LT(pair.measured_messages, 2000);
}

TEST(ways, single_disturbances_do_not_have_pairs_measure_anew) {
    const std::uint32_t way_class = WayClass::count - 1;
    Pair pair;
    int message = 0;
    pair.fetched(20000, way_class,
                 [&](Way way) { return ++message % 5 == 0 ? 1000000 : fetching_is_quick(way); });
    EXPECT_EQ(pair.wishes, 0);
}

// Messages whose receivers are so late that this hides all else.
Way best_for_late_receivers(bool unexpected, std::uint64_t fetched, std::uint64_t pushed) {
    WayJudge judge;
    Way best = Way::push;
    std::uint64_t clock = 1000;
    bool decided = false;
    for (const Way way : {Way::push, Way::pass, Way::fetch}) {
        for (std::uint32_t i = 0; i < WayClass::short_rhythm.row(); ++i) {
            const std::uint64_t began = clock + 1000000;
            const std::uint64_t late = way == Way::fetch ? 500000 : 400000;
            // Pushed data that nobody waits for yet is looked at when it comes.
            const std::uint64_t looked = began + (unexpected && way != Way::fetch ? 1000 : late);
            clock = looked + (way == Way::fetch ? fetched : (way == Way::push ? pushed : 9000));
            decided |=
                judge.add(0, {began, looked, clock, unexpected, false, way}, 8192, true, best);
        }
    }
    EXPECT_TRUE(decided);
    return best;
}

TEST(ways, how_late_receivers_come_is_no_matter_of_the_way) {
    // Of a pushed message the receiver sees the second of two copies, or of three.
    EXPECT_EQ(best_for_late_receivers(false, 3000, 2000), Way::fetch);
    EXPECT_EQ(best_for_late_receivers(false, 5000, 2000), Way::push);
    EXPECT_EQ(best_for_late_receivers(true, 5000, 2000), Way::fetch);
    EXPECT_EQ(best_for_late_receivers(true, 7000, 2000), Way::push);
}

// A judge to which rows of a long class come.
struct Rows {
    // A row of one way, each message of so many bytes, which takes so long: whether it decides.
    bool row(Way way, std::uint64_t bytes, std::uint64_t ns, bool failed = false) {
        bool decided = false;
        for (int i = 0; i < WayClass::long_rhythm.row(); ++i) {
            const std::uint64_t began = clock += 100;
            clock += ns;
            Trial trial = {began, began, clock, false, false, way};
            trial.failed = failed;
            decided |= judge.add(way_class, trial, bytes, true, best);
        }
        return decided;
    }
    bool all(std::uint64_t push_ns, std::uint64_t fetch_ns) {
        bool decided = row(Way::push, 1 << 20, push_ns);
        decided |= is_open(Way::pass, true) && row(Way::pass, 1 << 20, 2 * push_ns);
        return row(Way::fetch, 1 << 20, fetch_ns) || decided;
    }

    static constexpr std::uint32_t way_class = WayClass::count - 1;
    WayJudge judge;
    std::uint64_t clock = 1000;
    Way best = Way::fetch;
};

TEST(ways, messages_of_a_class_count_by_their_bytes) {
    Rows rows;
    rows.row(Way::push, 1 << 20, 1500);
    rows.row(Way::pass, 1 << 20, 3000);
    EXPECT_TRUE(rows.row(Way::fetch, 2 << 20, 2000)); // longer, but quicker
    EXPECT_EQ(rows.best, Way::fetch);
    rows.row(Way::push, 2 << 20, 1500);
    rows.row(Way::pass, 2 << 20, 3000);
    EXPECT_TRUE(rows.row(Way::fetch, 1 << 20, 1400));
    EXPECT_EQ(rows.best, Way::push);
}

TEST(ways, rows_of_a_round_that_came_to_no_end_are_not_compared_with_later_ones) {
    Rows rows;
    rows.row(Way::push, 1 << 20, 1000);
    rows.row(Way::pass, 1 << 20, 2000);
    EXPECT_TRUE(rows.all(5000, 3000));
    EXPECT_EQ(rows.best, Way::fetch);
}

TEST(ways, what_was_measured_long_before_is_not_compared_with_what_is_now) {
    Rows rows;
    rows.row(Way::push, 1 << 20, 1000);
    rows.row(Way::pass, 1 << 20, 2000);
    rows.clock += std::uint64_t{1} << 40;
    EXPECT_FALSE(rows.row(Way::fetch, 1 << 20, 3000));
    EXPECT_TRUE(rows.all(5000, 3000));
    EXPECT_EQ(rows.best, Way::fetch);
}

TEST(ways, a_way_that_fails_is_not_the_quickest) {
    Rows rows;
    rows.row(Way::push, 1 << 20, 1000);
    rows.row(Way::pass, 1 << 20, 2000);
    EXPECT_TRUE(rows.row(Way::fetch, 1 << 20, 10, true));
    EXPECT_EQ(rows.best, Way::push);
    // But it may come to work.
    EXPECT_TRUE(rows.all(1000, 500));
    EXPECT_EQ(rows.best, Way::fetch);
}

TEST(ways, a_receiver_that_may_not_fetch_is_asked_no_more) {
    Pair pair;
    pair.fetched(30, 0, pushing_is_quick); // in the first rows
    pair.advice = no_fetching;
    pair.fetched(100, 0, pushing_is_quick);
    EXPECT_EQ(pair.fetched(50000, 0, pushing_is_quick), 0);
    EXPECT_EQ(pair.fetched(5000, WayClass::count - 1, pushing_is_quick), 0);
}

// The first message that would be fetched is the one that is refused: it is pushed instead.
TEST(ways, a_pair_goes_on_to_decide_when_fetching_is_refused_in_the_midst_of_it) {
    if (!is_open(Way::pass, false)) {
        GTEST_SKIP() << "nothing passes the caches here";
    }
    for (const std::uint32_t way_class : {0U, WayClass::count - 1}) {
        Pair pair;
        for (int i = 0; i < WayClass::short_rhythm.shortest_rest << 7; ++i) {
            if (pair.ways.next(way_class, pair.advice) == Way::fetch) {
                pair.advice |= no_fetching;
                pair.ways.sent(way_class, pair.advice);
            } else {
                pair.send(way_class, passing_is_quick);
            }
        }
        EXPECT_NE(pair.advice & no_fetching, 0U);
        EXPECT_EQ(WayClass::advised(way_class, pair.advice), Way::pass);
    }
}

// A receiver that has all that comes pushed or fetches it, `window` messages at a time.
struct Receiver {
    int fetched(int windows, int window, const std::function<std::uint64_t(Way)>& takes) {
        constexpr std::uint64_t bytes = 1 << 20;
        int count = 0;
        for (int i = 0; i < windows; ++i) {
            std::vector<Trial> asked;
            const auto end = [&](Trial& trial) {
                clock += takes(trial.way);
                trial.ended = clock;
                asking.end(bytes, trial);
            };
            for (int j = 0; j < window; ++j) {
                Trial trial;
                const Way way = asking.next(bytes, trial);
                EXPECT_EQ(way, trial.way);
                trial.began = trial.looked = clock;
                if (way == Way::fetch) {
                    EXPECT_EQ(trial.ignored, !asked.empty()) << "what is under way disturbs it";
                    ++count;
                    end(trial);
                } else {
                    asked.push_back(trial);
                }
            }
            for (Trial& trial : asked) {
                end(trial);
            }
        }
        return count;
    }

    Asking asking;
    std::uint64_t clock = 1000;
};

TEST(asking, a_receiver_takes_the_quicker_way_and_learns_nothing_from_fetches_beside_others) {
    for (const int window : {1, 5, 64}) {
        Receiver receiver;
        const int windows = 4000 / window;
        receiver.fetched(windows, window, pushing_is_quick);
        EXPECT_LT(receiver.fetched(windows, window, pushing_is_quick), 4000 / 10);
        receiver.fetched(2 * windows, window, fetching_is_quick);
        EXPECT_GT(receiver.fetched(windows, window, fetching_is_quick), windows * window / 2);
    }
}

TEST(asking, a_receiver_that_may_not_fetch_asks_for_all) {
    Asking asking;
    Trial trial;
    for (int i = 0; i < 5000; ++i) {
        EXPECT_NE(asking.next(1 << 20, trial, false), Way::fetch);
        trial.ended = trial.began + 1000;
        asking.end(1 << 20, trial);
    }
}

std::uint64_t passing_is_slow(Way way) {
    return way == Way::pass ? 2000 : 1000;
}

// A rank that writes data of 64 kB or 1 MiB. How much of it passes its caches.
struct Writer {
    int passed(int count, std::uint64_t bytes, const std::function<std::uint64_t(Way)>& takes) {
        int passed = 0;
        for (int i = 0; i < count; ++i) {
            Trial trial;
            const Way way = writing.next(bytes, trial);
            EXPECT_NE(way, Way::fetch);
            passed += way == Way::pass ? 1 : 0;
            clock += 5000000; // something else
            trial.began = trial.looked = trial.began == 0 ? 0 : clock;
            clock += takes(way);
            trial.ended = clock;
            if (i % 1000 != 0) { // others come to nothing
                writing.end(bytes, trial);
            }
        }
        return passed;
    }

    OwnWays writing{false};
    std::uint64_t clock = 1000;
};

TEST(writing, a_writer_takes_the_quicker_way_and_notices_when_that_changes) {
    if (!is_open(Way::pass, false)) {
        GTEST_SKIP() << "nothing passes the caches here";
    }
    for (const std::uint64_t bytes : {64 << 10, 1 << 20}) {
        Writer writer;
        EXPECT_EQ(writer.passed(8, bytes, passing_is_slow), 0);
        EXPECT_LT(writer.passed(20000, bytes, passing_is_slow), 2000);
        writer.passed(20000, bytes, passing_is_quick);
        EXPECT_GT(writer.passed(20000, bytes, passing_is_quick), 18000);
        writer.passed(20000, bytes, passing_is_slow);
        EXPECT_LT(writer.passed(20000, bytes, passing_is_slow), 2000);
    }
}

TEST(asking, what_never_comes_holds_up_nothing) {
    Receiver receiver;
    Trial trial;
    while (receiver.asking.next(1 << 20, trial) == Way::fetch) {
        trial.ended = trial.began + 1000;
        receiver.asking.end(1 << 20, trial);
    }
    trial.ignored = true;
    receiver.asking.end(0, trial);
    receiver.fetched(4000, 1, fetching_is_quick);
    EXPECT_GT(receiver.fetched(1000, 1, fetching_is_quick), 500);
}

} // namespace
} // namespace warren::message
