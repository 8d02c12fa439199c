#include "runtime/fibres/stretches.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace warren::fibre {
namespace {

// Fibres that one worker runs, by a clock that is moved by hand.
struct Worker {
    explicit Worker(std::size_t fibres) : usual(fibres), counted(fibres), ran(fibres) {
        stretches.begin(now);
    }

    void run(std::size_t fibre, std::uint64_t ticks, bool monitor_looks = false) {
        now += ticks / 2;
        if (monitor_looks) {
            stretches.time_next();
        }
        now += ticks - ticks / 2;
        ran[fibre] += ticks;
        counted[fibre] += stretches.end(usual[fibre], [&] {
            ++readings;
            now += reading_ticks;
            ran[fibre] += reading_ticks;
            return now;
        });
    }

    std::uint64_t counted_in_all() const {
        return std::accumulate(counted.begin(), counted.end(), std::uint64_t{0});
    }

    std::uint64_t now = 12'345;
    std::uint64_t readings = 0;
    std::uint64_t reading_ticks = 0; // takes so long
    Stretches stretches;
    std::vector<std::uint32_t> usual;
    std::vector<std::uint64_t> counted;
    std::vector<std::uint64_t> ran;
};

constexpr int switches = 100'000;
constexpr std::uint64_t some = 100'000; // ticks: more than a row of short stretches come to

TEST(Stretches, OfShortOnesFewAreTimedAndEachFibreGetsItsShare) {
    for (const std::size_t fibres : {2, 3, 5, 15, 64}) {
        SCOPED_TRACE(fibres);
        Worker worker(fibres);
        std::mt19937 random(7);
        for (int turn = 0; turn < switches; ++turn) {
            const std::size_t fibre = static_cast<std::size_t>(turn) % fibres;
            worker.run(fibre, 50 + 100 * (fibre % 4) + random() % 100);
        }
        EXPECT_LT(worker.readings, switches / 5);
        for (std::size_t fibre = 0; fibre < fibres; ++fibre) {
            EXPECT_NEAR(static_cast<double>(worker.counted[fibre]),
                        static_cast<double>(worker.ran[fibre]),
                        0.1 * static_cast<double>(worker.ran[fibre]));
        }
    }
}

TEST(Stretches, LongOnesAreAllTimed) {
    Worker worker(2);
    for (int turn = 0; turn < 1000; ++turn) {
        worker.run(0, 300);
        worker.run(1, some);
    }
    EXPECT_EQ(worker.counted, worker.ran);
}

TEST(Stretches, AllTimeIsCountedOnce) {
    Worker worker(3);
    std::mt19937 random(8);
    for (int turn = 0; turn < switches; ++turn) {
        worker.run(random() % 3, random() % 1000 == 0 ? some : random() % 600);
    }
    worker.run(0, some);
    worker.stretches.time_all();
    worker.run(0, some); // whatever was counted too early
    EXPECT_EQ(worker.counted_in_all(), worker.now - 12'345);
    EXPECT_EQ(worker.stretches.unaccounted(worker.now), 0U);
}

TEST(Stretches, OneThatTheMonitorHasSeenIsItsFibres) {
    Worker worker(3);
    for (int row = 0; row < 50; ++row) {
        for (int turn = 0; turn < 1000 + row; ++turn) {
            worker.run(static_cast<std::size_t>(turn) % 2, 200);
        }
        worker.run(2, some, true);
    }
    EXPECT_NEAR(static_cast<double>(worker.counted[2]), 50.0 * some, 50 * 16 * 200);
}

TEST(Stretches, LongOnesAmongManyShortOnesAreMostlyTimedThoughNobodySeesThem) {
    Worker worker(3);
    for (int row = 0; row < 300; ++row) {
        for (int turn = 0; turn < 1000; ++turn) {
            worker.run(static_cast<std::size_t>(turn) % 2, 200);
        }
        worker.run(2, some);
    }
    EXPECT_GT(static_cast<double>(worker.counted[2]), 0.9 * static_cast<double>(worker.ran[2]));
}

TEST(Stretches, WhatReadingTheClockTakesIsLearnt) {
    for (const std::uint64_t reading : {10, 40, 80}) {
        SCOPED_TRACE(reading);
        Worker worker(2);
        worker.reading_ticks = reading;
        for (int turn = 0; turn < 10 * switches; ++turn) {
            worker.run(static_cast<std::size_t>(turn) % 2, turn % 2 == 0 ? 90 : 150);
        }
        EXPECT_LT(worker.readings, 10 * switches / 5);
        for (std::size_t fibre = 0; fibre < 2; ++fibre) {
            EXPECT_NEAR(static_cast<double>(worker.counted[fibre]),
                        static_cast<double>(worker.ran[fibre]),
                        0.1 * static_cast<double>(worker.ran[fibre]));
        }
    }
}

TEST(Stretches, InterruptionsNowAndThenDontHaveAllTimed) {
    Worker worker(2);
    constexpr int rows = 400;
    constexpr int row_switches = 5000;
    std::uint64_t before = 0;
    for (int row = 0; row < rows; ++row) {
        if (row == rows / 4) {
            before = worker.readings;
        }
        for (int turn = 0; turn < row_switches; ++turn) {
            worker.run(static_cast<std::size_t>(turn) % 2, 110);
        }
        worker.run(static_cast<std::size_t>(row) % 2, row % 4 == 0 ? 25'000 : 8'000);
    }
    EXPECT_LT(worker.readings - before, rows * 3 / 4 * row_switches / 5);
}

TEST(Stretches, OnesOfHalfAMicrosecondOrMoreAmongShortOnesAreTheirFibres) {
    for (const std::uint64_t ticks : {1'200, 2'500, 5'000, 12'000}) {
        for (const int others : {20, 100, 1'000}) {
            SCOPED_TRACE(std::to_string(ticks) + " " + std::to_string(others));
            Worker worker(3);
            for (int turn = 0; turn < 3'000'000; ++turn) {
                if (turn % others == 0) {
                    worker.run(2, ticks);
                } else {
                    worker.run(static_cast<std::size_t>(turn) % 2, 100);
                }
            }
            // But for what may be anybody's.
            const std::uint64_t missed = worker.ran[2] - std::min(worker.counted[2], worker.ran[2]);
            EXPECT_LT(missed, (worker.now - 12'345) / 30);
        }
    }
}

TEST(Stretches, WhoHasWaitedHasAllTimedForAWhile) {
    Worker worker(2);
    for (int turn = 0; turn < 1000; ++turn) {
        worker.run(static_cast<std::size_t>(turn) % 2, 200);
    }
    worker.now += 300;
    worker.stretches.end_at(worker.now, nullptr);
    worker.stretches.time_all();
    const std::uint64_t before = worker.counted[1];
    const std::uint64_t readings = worker.readings;
    for (int turn = 0; turn < 100; ++turn) {
        worker.run(1, 77);
    }
    EXPECT_EQ(worker.readings - readings, 100U);
    EXPECT_NEAR(static_cast<double>(worker.counted[1] - before), 7700, 3000); // what was missed
}

TEST(Stretches, OnesThatHaveBecomeShorterAreSoonCountedAsSuch) {
    constexpr std::size_t fibres = 1000;
    for (const std::uint64_t before : {std::uint64_t{900}, some}) {
        SCOPED_TRACE(before);
        Worker worker(fibres);
        for (std::size_t turn = 0; turn < 40 * fibres; ++turn) {
            worker.run(turn % fibres, before);
        }
        for (std::size_t turn = 0; turn < 2 * fibres; ++turn) {
            worker.run(turn % fibres, 50);
            ASSERT_LT(worker.counted_in_all(), worker.now - 12'345 + some / 4);
        }
        const std::uint64_t counted = worker.counted_in_all();
        worker.run(0, some);
        worker.stretches.time_all();
        worker.run(0, some);
        EXPECT_GT(worker.counted_in_all() - counted, 2 * some - some / 4);
    }
}

TEST(Stretches, NotAlwaysTheSameAreTimedAlsoWhereTheClockGoesByLargeSteps) {
    for (std::size_t fibres = 2; fibres < 22; ++fibres) {
        SCOPED_TRACE(fibres);
        Worker worker(fibres);
        std::vector<std::uint64_t> counted;
        std::vector<std::uint64_t> ran;
        for (int turn = 0; turn < 4 * switches; ++turn) {
            if (turn == switches) { // they have changed some time ago
                counted = worker.counted;
                ran = worker.ran;
            }
            const std::size_t fibre = static_cast<std::size_t>(turn) % fibres;
            worker.run(fibre, turn < switches / 2 ? 32 : 128 + 64 * (fibre % 4));
        }
        for (std::size_t fibre = 0; fibre < fibres; ++fibre) {
            const auto really = static_cast<double>(worker.ran[fibre] - ran[fibre]);
            EXPECT_NEAR(static_cast<double>(worker.counted[fibre] - counted[fibre]), really,
                        0.1 * really);
        }
    }
}

} // namespace
} // namespace warren::fibre
