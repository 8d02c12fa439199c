// A sender and a receiver that agree on ways, with messages that take as long as the test says.

#include "mpi/transport/shm/copy_methods.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace warren::transport {
namespace {

struct Pair {
    // Sends a message of a class: returns the way that it took.
    CopyMethod send(std::uint32_t size_class,
                    const std::function<std::uint64_t(CopyMethod)>& takes) {
        const CopyMethod method = methods.next(size_class, advice);
        const std::uint64_t stamp = methods.stamp(size_class, method);
        const bool measured = stamp != 0 && !Stamp::resting(stamp);
        methods.sent(size_class, advice);
        const std::uint64_t began = clock + 100 + (after ? after(last) : 0);
        last = method;
        clock = began + takes(method);
        ++(measured ? measured_messages : others);
        const Trial trial = {began, began, clock, false, !measured, method};
        CopyMethod best;
        const bool may_fetch = (advice & no_fetching) == 0;
        if (measured && judge.add(size_class, trial, 1 << 20, may_fetch, best, by_period)) {
            ++judged;
            advice = (advice & ~CopyMethodClass::mask(size_class)) |
                     CopyMethodClass::advice(size_class, best);
        }
        Advice again;
        if (stamp != 0 && !measured && judge.drifts(size_class, trial, 1 << 20, again)) {
            ++wishes;
            advice = (advice & ~CopyMethodClass::again(size_class)) | again;
        }
        return method;
    }
    // How many of so many were fetched.
    int fetched(int messages, std::uint32_t size_class,
                const std::function<std::uint64_t(CopyMethod)>& takes) {
        int count = 0;
        for (int i = 0; i < messages; ++i) {
            count += send(size_class, takes) == CopyMethod::fetch ? 1 : 0;
        }
        return count;
    }

    // Time that the program takes after a message that went so.
    std::function<std::uint64_t(CopyMethod)> after;
    CopyMethod last = CopyMethod::push;
    bool by_period = false;
    CopyMethods methods;
    CopyMethodJudge judge;
    Advice advice = 0;
    std::uint64_t clock = 1;
    int judged = 0;
    int measured_messages = 0;
    int others = 0;
    int wishes = 0;
};

std::uint64_t fetching_is_quick(CopyMethod method) {
    return method == CopyMethod::fetch ? 1000 : 2000;
}
std::uint64_t pushing_is_quick(CopyMethod method) {
    return method == CopyMethod::fetch ? 2000 : 1000;
}

TEST(methods,
     classes_are_powers_of_two_and_the_largest_block_is_in_the_last_that_is_pushed_at_first) {
    EXPECT_FALSE(CopyMethodClass::has(8191));
    EXPECT_EQ(CopyMethodClass::of(8192), 0U);
    EXPECT_EQ(CopyMethodClass::of(16383), 0U);
    EXPECT_EQ(CopyMethodClass::of(16384), 1U);
    const std::uint32_t block = CopyMethodClass::of(CopyMethodClass::block_bytes);
    EXPECT_EQ(CopyMethodClass::of(CopyMethodClass::block_bytes - 1), block);
    EXPECT_EQ(CopyMethodClass::of(CopyMethodClass::block_bytes + 1), block + 1);
    EXPECT_EQ(CopyMethodClass::first_method(block), CopyMethod::push);
    EXPECT_EQ(CopyMethodClass::first_method(block + 1), CopyMethod::fetch);
    EXPECT_EQ(CopyMethodClass::of(std::uint64_t{1} << 24), CopyMethodClass::count - 1);
    EXPECT_EQ(CopyMethodClass::of(~std::uint64_t{0}), CopyMethodClass::count - 1);
}

TEST(methods, a_pair_takes_the_quicker_way_and_changes_with_it) {
    Pair pair;
    pair.fetched(1000, 2, fetching_is_quick);
    EXPECT_GT(pair.fetched(1000, 2, fetching_is_quick), 900);
    pair.fetched(20000, 2, pushing_is_quick);
    EXPECT_LT(pair.fetched(1000, 2, pushing_is_quick), 100);
}

TEST(methods, classes_do_not_touch_each_other) {
    Pair pair;
    pair.fetched(1000, 0, fetching_is_quick);
    pair.fetched(1000, 3, pushing_is_quick);
    EXPECT_GT(pair.fetched(500, 0, fetching_is_quick), 400);
    EXPECT_LT(pair.fetched(500, 3, pushing_is_quick), 100);
}

TEST(methods, measuring_gets_seldom_while_the_answer_stays) {
    Pair pair;
    pair.fetched(30000, 1, pushing_is_quick);
    pair.measured_messages = pair.others = 0;
    const int lost = pair.fetched(100000, 1, pushing_is_quick);
    EXPECT_LT(lost, 400) << "a slower way";
    EXPECT_GT(lost, 0) << "still it is looked at";
    EXPECT_LT(pair.measured_messages, 800);
}

TEST(methods, nearly_equal_ways_do_not_take_turns) {
    Pair pair;
    int flips = 0;
    Advice before = pair.advice;
    std::uint32_t state = 1;
    pair.fetched(50000, 0, [&](CopyMethod) {
        flips += before != pair.advice ? 1 : 0;
        before = pair.advice;
        state = state * 1664525U + 1013904223U;
        return 1000 + (state >> 8) % 60;
    });
    EXPECT_GT(pair.judged, 5);
    EXPECT_EQ(flips, 0);
}

TEST(methods, single_disturbances_do_not_count) {
    Pair pair;
    int message = 0;
    pair.fetched(5000, 0, [&](CopyMethod method) {
        return ++message % 9 == 0 ? 1000000 : fetching_is_quick(method);
    });
    EXPECT_EQ(CopyMethodClass::advised(0, pair.advice), CopyMethod::fetch);
}

TEST(methods, what_a_way_costs_the_program_behind_its_messages_counts_where_periods_do) {
    for (const bool by_period : {false, true}) {
        for (const std::uint32_t size_class : {0U, CopyMethodClass::count - 1}) {
            Pair pair;
            pair.by_period = by_period;
            pair.after = [](CopyMethod method) {
                return method == CopyMethod::fetch ? 5000 : 1000;
            };
            pair.fetched(5000, size_class, fetching_is_quick);
            EXPECT_EQ(CopyMethodClass::advised(size_class, pair.advice) == CopyMethod::fetch,
                      !by_period);
        }
    }
}

TEST(methods, between_periods_that_are_nearly_the_same_messages_decide) {
    Pair pair;
    pair.by_period = true;
    std::uint32_t state = 1;
    pair.after = [&](CopyMethod) {
        state = state * 1664525U + 1013904223U;
        return 100000 + (state >> 8) % 5000;
    };
    pair.fetched(5000, 0, fetching_is_quick);
    EXPECT_EQ(CopyMethodClass::advised(0, pair.advice), CopyMethod::fetch);
    pair.after = nullptr;
    pair.fetched(5000, 0, pushing_is_quick);
    EXPECT_NE(CopyMethodClass::advised(0, pair.advice), CopyMethod::fetch);
}

std::uint64_t passing_is_quick(CopyMethod method) {
    return method == CopyMethod::pass ? 1000 : 2000;
}

TEST(methods, a_pair_passes_the_caches_where_that_is_quicker_even_if_it_may_not_fetch) {
    if (!is_open(CopyMethod::pass, false)) {
        GTEST_SKIP() << "nothing passes the caches here";
    }
    for (const Advice at_first : {Advice{0}, no_fetching}) {
        for (const std::uint32_t size_class : {0U, CopyMethodClass::count - 1}) {
            Pair pair;
            pair.advice = at_first;
            pair.fetched(CopyMethodClass::short_rhythm.shortest_rest << 7, size_class,
                         passing_is_quick);
            EXPECT_EQ(CopyMethodClass::advised(size_class, pair.advice), CopyMethod::pass);
            EXPECT_EQ(pair.advice & no_fetching, at_first);
            EXPECT_EQ(CopyMethodClass::advised(1, pair.advice),
                      CopyMethodClass::advised(1, at_first));
        }
    }
}

TEST(methods, stamps_say_which_messages_pass) {
    for (const CopyMethod method : {CopyMethod::push, CopyMethod::pass}) {
        for (const bool resting : {false, true}) {
            const std::uint64_t stamp = Stamp::of(1003, method, resting);
            EXPECT_EQ(Stamp::time(stamp), 1000U);
            EXPECT_EQ(Stamp::method(stamp), method);
            EXPECT_EQ(Stamp::resting(stamp), resting);
        }
    }
    EXPECT_NE(Stamp::time(Stamp::of(node_time_ns(), CopyMethod::push, false)), 0U);
}

TEST(methods, messages_in_a_row_count_from_the_one_before) {
    CopyMethodJudge judge;
    CopyMethod best = CopyMethod::push;
    // All pushed ones began at once and came one per 500, fetched ones one per 400.
    std::uint64_t clock = 1000;
    bool decided = false;
    const auto in_row = [&](CopyMethod method, std::uint64_t takes) {
        const std::uint64_t looked = clock;
        return Trial{1000, looked, clock += takes, false, false, method};
    };
    for (std::uint32_t i = 0; i < CopyMethodClass::short_rhythm.row(); ++i) {
        decided |= judge.add(0, in_row(CopyMethod::push, 500), 8192, true, best);
    }
    for (std::uint32_t i = 0; i < CopyMethodClass::short_rhythm.row(); ++i) {
        decided |= judge.add(0, in_row(CopyMethod::pass, 600), 8192, true, best);
    }
    for (std::uint32_t i = 0; i < CopyMethodClass::short_rhythm.row(); ++i) {
        decided |= judge.add(0, in_row(CopyMethod::fetch, 400), 8192, true, best);
    }
    EXPECT_TRUE(decided);
    EXPECT_EQ(best, CopyMethod::fetch);
}

TEST(methods, long_messages_are_fetched_until_pushing_is_known_to_be_quicker) {
    const std::uint32_t size_class = CopyMethodClass::of(std::uint64_t{1} << 20);
    Pair pair;
    EXPECT_EQ(pair.send(size_class, pushing_is_quick), CopyMethod::fetch);
    EXPECT_GT(pair.fetched(30, size_class, pushing_is_quick), 10);
    EXPECT_LT(pair.fetched(2000, size_class, pushing_is_quick), 200);
    pair.fetched(2000, size_class, fetching_is_quick);
    EXPECT_GT(pair.fetched(1000, size_class, fetching_is_quick), 950);
}

TEST(methods, a_pair_measures_long_messages_anew_when_they_get_slow) {
    const std::uint32_t size_class = CopyMethodClass::count - 1;
    Pair pair;
    pair.fetched(5000, size_class, fetching_is_quick);
    EXPECT_EQ(pair.wishes, 0);
    // The two run elsewhere now.
    const auto elsewhere = [](CopyMethod method) -> std::uint64_t {
        return method == CopyMethod::fetch ? 3000 : 900;
    };
    EXPECT_LT(pair.fetched(100, size_class, elsewhere), 50);
    EXPECT_EQ(pair.wishes, 1);
    EXPECT_LT(pair.fetched(5000, size_class, elsewhere), 200);
    EXPECT_EQ(pair.wishes, 1);
    // All ways are slower, for good: that is looked at once.
    pair.fetched(5000, size_class, [&](CopyMethod method) { return 3 * elsewhere(method); });
    EXPECT_EQ(pair.wishes, 2);
}

TEST(methods, messages_of_two_kinds_do_not_have_pairs_measure_all_the_time) {
    const std::uint32_t size_class = CopyMethodClass::count - 1;
    Pair pair;
    int message = 0;
    pair.fetched(20000, size_class, [&](CopyMethod method) {
        return fetching_is_quick(method) * (++message / 10 % 2 == 0 ? 1 : 3);
    });
    EXPECT_LT(pair.wishes, 30); // not one for each ten
    EXPECT_LT(pair.measured_messages, 2000);
}

TEST(methods, single_disturbances_do_not_have_pairs_measure_anew) {
    const std::uint32_t size_class = CopyMethodClass::count - 1;
    Pair pair;
    int message = 0;
    pair.fetched(20000, size_class, [&](CopyMethod method) {
        return ++message % 5 == 0 ? 1000000 : fetching_is_quick(method);
    });
    EXPECT_EQ(pair.wishes, 0);
}

// Messages whose receivers are so late that this hides all else.
CopyMethod best_for_late_receivers(bool unexpected, std::uint64_t fetched, std::uint64_t pushed) {
    CopyMethodJudge judge;
    CopyMethod best = CopyMethod::push;
    std::uint64_t clock = 1000;
    bool decided = false;
    for (const CopyMethod method : {CopyMethod::push, CopyMethod::pass, CopyMethod::fetch}) {
        for (std::uint32_t i = 0; i < CopyMethodClass::short_rhythm.row(); ++i) {
            const std::uint64_t began = clock + 1000000;
            const std::uint64_t late = method == CopyMethod::fetch ? 500000 : 400000;
            // Pushed data that nobody waits for yet is looked at when it comes.
            const std::uint64_t looked =
                began + (unexpected && method != CopyMethod::fetch ? 1000 : late);
            clock = looked + (method == CopyMethod::fetch
                                  ? fetched
                                  : (method == CopyMethod::push ? pushed : 9000));
            decided |=
                judge.add(0, {began, looked, clock, unexpected, false, method}, 8192, true, best);
        }
    }
    EXPECT_TRUE(decided);
    return best;
}

TEST(methods, how_late_receivers_come_is_no_matter_of_the_way) {
    // The receiver of a pushed message sees the second of two copies, or of three.
    EXPECT_EQ(best_for_late_receivers(false, 3000, 2000), CopyMethod::fetch);
    EXPECT_EQ(best_for_late_receivers(false, 5000, 2000), CopyMethod::push);
    EXPECT_EQ(best_for_late_receivers(true, 5000, 2000), CopyMethod::fetch);
    EXPECT_EQ(best_for_late_receivers(true, 7000, 2000), CopyMethod::push);
}

// A judge to which rows of a long class come.
struct Rows {
    // A row of one way, each message of so many bytes, which takes so long: whether it decides.
    bool row(CopyMethod method, std::uint64_t bytes, std::uint64_t ns, bool failed = false) {
        bool decided = false;
        for (int i = 0; i < CopyMethodClass::long_rhythm.row(); ++i) {
            const std::uint64_t began = clock += 100;
            clock += ns;
            Trial trial = {began, began, clock, false, false, method};
            trial.failed = failed;
            decided |= judge.add(size_class, trial, bytes, true, best);
        }
        return decided;
    }
    bool all(std::uint64_t push_ns, std::uint64_t fetch_ns) {
        bool decided = row(CopyMethod::push, 1 << 20, push_ns);
        decided |= is_open(CopyMethod::pass, true) && row(CopyMethod::pass, 1 << 20, 2 * push_ns);
        return row(CopyMethod::fetch, 1 << 20, fetch_ns) || decided;
    }

    static constexpr std::uint32_t size_class = CopyMethodClass::count - 1;
    CopyMethodJudge judge;
    std::uint64_t clock = 1000;
    CopyMethod best = CopyMethod::fetch;
};

TEST(methods, messages_of_a_class_count_by_their_bytes) {
    Rows rows;
    rows.row(CopyMethod::push, 1 << 20, 1500);
    rows.row(CopyMethod::pass, 1 << 20, 3000);
    EXPECT_TRUE(rows.row(CopyMethod::fetch, 2 << 20, 2000)); // longer, but quicker
    EXPECT_EQ(rows.best, CopyMethod::fetch);
    rows.row(CopyMethod::push, 2 << 20, 1500);
    rows.row(CopyMethod::pass, 2 << 20, 3000);
    EXPECT_TRUE(rows.row(CopyMethod::fetch, 1 << 20, 1400));
    EXPECT_EQ(rows.best, CopyMethod::push);
}

TEST(methods, rows_of_a_round_that_came_to_no_end_are_not_compared_with_later_ones) {
    Rows rows;
    rows.row(CopyMethod::push, 1 << 20, 1000);
    rows.row(CopyMethod::pass, 1 << 20, 2000);
    EXPECT_TRUE(rows.all(5000, 3000));
    EXPECT_EQ(rows.best, CopyMethod::fetch);
}

TEST(methods, what_was_measured_long_before_is_not_compared_with_what_is_now) {
    Rows rows;
    rows.row(CopyMethod::push, 1 << 20, 1000);
    rows.row(CopyMethod::pass, 1 << 20, 2000);
    rows.clock += std::uint64_t{1} << 40;
    EXPECT_FALSE(rows.row(CopyMethod::fetch, 1 << 20, 3000));
    EXPECT_TRUE(rows.all(5000, 3000));
    EXPECT_EQ(rows.best, CopyMethod::fetch);
}

TEST(methods, a_way_that_fails_is_not_the_quickest) {
    Rows rows;
    rows.row(CopyMethod::push, 1 << 20, 1000);
    rows.row(CopyMethod::pass, 1 << 20, 2000);
    EXPECT_TRUE(rows.row(CopyMethod::fetch, 1 << 20, 10, true));
    EXPECT_EQ(rows.best, CopyMethod::push);
    // But it may come to work.
    EXPECT_TRUE(rows.all(1000, 500));
    EXPECT_EQ(rows.best, CopyMethod::fetch);
}

TEST(methods, a_receiver_that_may_not_fetch_is_asked_no_more) {
    Pair pair;
    pair.fetched(30, 0, pushing_is_quick); // in the first rows
    pair.advice = no_fetching;
    pair.fetched(100, 0, pushing_is_quick);
    EXPECT_EQ(pair.fetched(50000, 0, pushing_is_quick), 0);
    EXPECT_EQ(pair.fetched(5000, CopyMethodClass::count - 1, pushing_is_quick), 0);
}

// The first message that would be fetched is the one that is refused: it is pushed instead.
TEST(methods, a_pair_goes_on_to_decide_when_fetching_is_refused_in_the_midst_of_it) {
    if (!is_open(CopyMethod::pass, false)) {
        GTEST_SKIP() << "nothing passes the caches here";
    }
    for (const std::uint32_t size_class : {0U, CopyMethodClass::count - 1}) {
        Pair pair;
        for (int i = 0; i < CopyMethodClass::short_rhythm.shortest_rest << 7; ++i) {
            if (pair.methods.next(size_class, pair.advice) == CopyMethod::fetch) {
                pair.advice |= no_fetching;
                pair.methods.sent(size_class, pair.advice);
            } else {
                pair.send(size_class, passing_is_quick);
            }
        }
        EXPECT_NE(pair.advice & no_fetching, 0U);
        EXPECT_EQ(CopyMethodClass::advised(size_class, pair.advice), CopyMethod::pass);
    }
}

// A receiver that has all that comes pushed or fetches it, `window` messages at a time.
struct Receiver {
    int fetched(int windows, int window, const std::function<std::uint64_t(CopyMethod)>& takes) {
        constexpr std::uint64_t bytes = 1 << 20;
        int count = 0;
        for (int i = 0; i < windows; ++i) {
            std::vector<Trial> asked;
            const auto end = [&](Trial& trial) {
                clock += takes(trial.method);
                trial.ended = clock;
                asking.end(bytes, trial);
            };
            for (int j = 0; j < window; ++j) {
                Trial trial;
                const CopyMethod method = asking.next(bytes, trial);
                EXPECT_EQ(method, trial.method);
                trial.began = trial.looked = clock;
                if (method == CopyMethod::fetch) {
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
        EXPECT_NE(asking.next(1 << 20, trial, false), CopyMethod::fetch);
        trial.ended = trial.began + 1000;
        asking.end(1 << 20, trial);
    }
}

std::uint64_t passing_is_slow(CopyMethod method) {
    return method == CopyMethod::pass ? 2000 : 1000;
}

// A rank that writes data of 64 kB or 1 MiB. How much of it passes its caches.
struct Writer {
    int passed(int count, std::uint64_t bytes,
               const std::function<std::uint64_t(CopyMethod)>& takes) {
        int passed = 0;
        for (int i = 0; i < count; ++i) {
            Trial trial;
            const CopyMethod method = writing.next(bytes, trial);
            EXPECT_NE(method, CopyMethod::fetch);
            passed += method == CopyMethod::pass ? 1 : 0;
            clock += 5000000; // something else
            trial.began = trial.looked = trial.began == 0 ? 0 : clock;
            clock += takes(method);
            trial.ended = clock;
            if (i % 1000 != 0) { // others come to nothing
                writing.end(bytes, trial);
            }
        }
        return passed;
    }

    OwnCopyMethods writing{false};
    std::uint64_t clock = 1000;
};

TEST(writing, a_writer_takes_the_quicker_way_and_notices_when_that_changes) {
    if (!is_open(CopyMethod::pass, false)) {
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
    while (receiver.asking.next(1 << 20, trial) == CopyMethod::fetch) {
        trial.ended = trial.began + 1000;
        receiver.asking.end(1 << 20, trial);
    }
    trial.ignored = true;
    receiver.asking.end(0, trial);
    receiver.fetched(4000, 1, fetching_is_quick);
    EXPECT_GT(receiver.fetched(1000, 1, fetching_is_quick), 500);
}

} // namespace
} // namespace warren::transport
