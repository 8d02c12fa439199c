#include "runtime/fibres/balancing.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/fibres/test_fibres.hpp"

namespace warren::fibre {
namespace {

// All fibres, again and again: work, and a barrier.
struct Steps {
    std::atomic<std::uint32_t> step{0};
    std::atomic<std::uint32_t> arrived{0};

    void barrier(std::uint32_t count) {
        const std::uint32_t now = arrive(count);
        while (step.load() == now) {
            scheduler()->wait(step, now, nullptr, nullptr);
        }
    }
    // A barrier as well.
    void poll(std::uint32_t count) {
        const std::uint32_t now = arrive(count);
        while (step.load() == now) {
            scheduler()->give_way();
        }
    }
    std::uint32_t arrive(std::uint32_t count) {
        const std::uint32_t now = step.load();
        if (arrived.fetch_add(1) + 1 == count) {
            arrived.store(0);
            step.store(now + 1);
            scheduler()->wake(step, INT_MAX);
        }
        return now;
    }
};

void work(int amount) {
    static std::atomic<std::uint64_t> sink{0};
    for (int i = 0; i < amount; ++i) {
        sink.store(sink.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
}

TEST(BalancingTest, heavy_fibres_are_spread_over_the_workers) {
    for (const bool steals : {false, true}) {
        for (const char* name : {"greedy", "refine", "topology"}) {
            alone([&] {
                constexpr std::uint32_t count = 16;
                static Steps steps;
                static std::atomic<bool> spread{false};
                BalancingOptions options;
                options.balancer = balance::find_balancer(name);
                auto& fibres = *new Fibres(count, {-1, -1}, nullptr, options, steals);
                const auto home_worker_of = [](std::uint32_t number) {
                    return scheduler()->fibre(number).home_worker.load();
                };
                for (std::uint32_t number = 0; number < count; ++number) {
                    fibres.add([number, home_worker_of] {
                        for (int step = 0; step < 30; ++step) {
                            work(number < 4 ? 200'000 : 2'000);
                            scheduler()->at_point();
                            steps.barrier(count);
                            // (What the system gives others meanwhile counts as load, too.)
                            for (std::uint32_t other = 1; number == 0 && other < 4; ++other) {
                                spread = spread || home_worker_of(other) != home_worker_of(0);
                            }
                        }
                    });
                }
                fibres.run();
                EXPECT_TRUE(spread);
                EXPECT_EQ(fibres.loads.job->balancings.load(), 30U);
                EXPECT_GT(fibres.loads.job->first_imbalance.load(), 0.0);
            });
        }
    }
}

TEST(BalancingTest, idle_workers_take_what_the_balancer_has_not_foreseen) {
    alone([] {
        BalancingOptions options;
        options.balancer = balance::find_balancer("greedy");
        auto fibres = std::make_unique<Fibres>(8, std::vector<int>{-1, -1}, nullptr, options);
        static std::atomic<int> others{0};
        fibres->add([] { // with three behind it at first
            while (others != 7) {
                spin_pause();
            }
        });
        for (int number = 1; number < 8; ++number) {
            fibres->add([] { ++others; });
        }
        fibres->run();
        EXPECT_EQ(others, 7);
    });
}

// Where all have slept nobody looks by himself: who is woken first may compute until those that it
// has woken have run.
TEST(BalancingTest, a_worker_that_sleeps_for_good_is_called_for_what_stands_behind_another) {
    alone([] {
        BalancingOptions options;
        options.balancer = balance::find_balancer("greedy");
        auto fibres = std::make_unique<Fibres>(6, std::vector<int>{-1, -1}, nullptr, options);
        static std::atomic<std::uint32_t> go{0};
        static std::atomic<std::uint32_t> next{0};
        static std::atomic<int> others{0};
        fibres->add([] {
            scheduler()->wait(go, 0, nullptr, nullptr);
            next = 1;
            scheduler()->wake(next, 2);
            while (others != 2) {
                spin_pause();
            }
        });
        for (int number = 1; number < 3; ++number) { // of the same home
            fibres->add([] {
                scheduler()->wait(next, 0, nullptr, nullptr);
                ++others;
            });
        }
        for (int number = 3; number < 6; ++number) {
            fibres->add([] {});
        }
        EXPECT_EQ(fibres->made->start(), 0);
        const auto sleeps_for_good = [&](std::uint32_t number) {
            const Worker& worker = fibres->made->worker(number);
            return worker.sleeping && !worker.patrols;
        };
        while (fibres->done < 3 || !sleeps_for_good(0) || !sleeps_for_good(1)) {
            std::this_thread::yield();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10)); // both are in the kernel
        go = 1;
        scheduler()->wake(go, 1);
        fibres->finish();
        EXPECT_EQ(others, 2);
    });
}

TEST(BalancingTest, no_load_is_below_nothing_where_few_switches_read_the_clock) {
    alone([] {
        constexpr std::uint32_t count = 5;
        static std::uint64_t balancings = 0;
        static double most = 0; // seconds
        static const balance::Balancer looks{.name = "looks",
                                             .what = "at loads",
                                             .place =
                                                 [](const balance::Matrix& now) {
                                                     ++balancings;
                                                     for (const double load : now.loads) {
                                                         most = std::max(most, load);
                                                     }
                                                     return now.placement;
                                                 },
                                             .uses_distances = false};
        BalancingOptions options;
        options.balancer = &looks;
        auto& fibres = *new Fibres(count, {-1}, nullptr, options, false);
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres.add([] {
                for (int turn = 0; turn < 1000; ++turn) { // till few do
                    scheduler()->give_way();
                }
                for (int turn = 0; turn < 100'000; ++turn) {
                    work(turn % 7 * 10);
                    scheduler()->at_point();
                    scheduler()->give_way();
                }
            });
        }
        fibres.run();
        EXPECT_GT(balancings, 1000U);
        EXPECT_LT(most, 1000.0); // less than 0 ticks would be thousands of millions
    });
}

TEST(BalancingTest, what_is_counted_amid_a_stretch_is_no_switch) {
    alone([] {
        BalancingOptions options;
        options.balancer = balance::find_balancer("refine");
        auto& fibres = *new Fibres(1, {-1}, nullptr, options, false);
        fibres.add([] {
            for (int turn = 0; turn < 1000; ++turn) {
                scheduler()->at_point();
                scheduler()->found_nothing(100);
            }
            scheduler()->write_last_load();
        });
        fibres.run();
        EXPECT_EQ(fibres.loads.job->balancings.load(), 1000U);
        // Its worker's to it; and it may have begun as a thread does, asleep.
        EXPECT_GT(fibres.loads.workers[0].switches.load(), 0U);
        EXPECT_LT(fibres.loads.workers[0].switches.load(), 20U);
    });
}

TEST(BalancingTest, who_moves_memory_hears_of_homes_before_and_after) {
    alone([] {
        constexpr std::uint32_t count = 8;
        constexpr int rounds = 20;
        static Steps steps;
        static std::vector<std::uint32_t> home_workers{0, 0, 0, 0, 1, 1, 1, 1}; // as they begin
        static int told = 0;
        static int moves = 0;
        BalancingOptions options;
        options.balancer = balance::find_balancer("greedy");
        options.placed = [](const std::uint32_t* before, const std::uint32_t* now,
                            std::uint32_t fibres) {
            EXPECT_EQ(std::vector(before, before + fibres), home_workers);
            for (std::uint32_t number = 0; number < fibres; ++number) {
                moves += before[number] != now[number] ? 1 : 0;
            }
            home_workers.assign(now, now + fibres);
            ++told;
        };
        auto& fibres = *new Fibres(count, {-1, -1}, nullptr, options, false);
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres.add([number] {
                for (int step = 0; step < rounds; ++step) {
                    work(number < 2 ? 100'000 : 2'000);
                    scheduler()->at_point();
                    steps.barrier(count);
                }
            });
        }
        fibres.run();
        EXPECT_EQ(told, rounds);
        EXPECT_GT(moves, 0);
        for (std::uint32_t number = 0; number < count; ++number) {
            EXPECT_EQ(scheduler()->fibre(number).home_worker.load()->number, home_workers[number]);
        }
    });
}

// They never park: nobody wakes them.
TEST(BalancingTest, fibres_that_poll_go_to_their_homes) {
    alone([] {
        constexpr std::uint32_t count = 8;
        constexpr std::uint32_t rounds = 40;
        constexpr std::uint32_t most_rounds = 4000; // else the machine is loaded, which disguises
        static Steps steps;                         // what is heavy
        static std::atomic<std::uint32_t> where[count];
        static std::atomic<std::uint32_t> apart{0};
        static std::atomic<std::uint32_t> last{most_rounds};
        BalancingOptions options;
        options.balancer = balance::find_balancer("refine");
        options.collectives = 1;
        auto& fibres = *new Fibres(count, {-1, -1}, nullptr, options, false);
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres.add([number] {
                for (std::uint32_t step = 1; step <= last; ++step) {
                    where[number] = Scheduler::current()->worker.load()->number;
                    work(number < 2 ? 200'000 : 2'000); // these two begin on one worker
                    if (number == 0) { // says so before the others are past this step
                        apart += where[0] != where[1];
                        last = apart == 0 ? most_rounds : step < rounds ? +rounds : step;
                    }
                    scheduler()->at_collective();
                    steps.poll(count);
                }
            });
        }
        fibres.run();
        EXPECT_EQ(fibres.loads.job->balancings.load(), last);
        EXPECT_GT(apart, 0U);
    });
}

// The share of body()'s time that a fibre reports as its load.
double share_run(const std::function<void()>& body) {
    const Fibre& self = *Scheduler::current();
    scheduler()->found_nothing(0); // what it ran before is accounted for
    const std::uint64_t begin = ticks();
    const std::uint64_t before = self.ran.load();
    body();
    return static_cast<double>(self.ran.load() - before) / static_cast<double>(ticks() - begin);
}

TEST(BalancingTest, who_only_looks_in_vain_has_waited_and_who_works_in_between_has_not) {
    alone([] {
        auto fibres = std::make_unique<Fibres>(1, std::vector<int>{-1});
        fibres->add([] {
            double least = 1;
            for (int attempt = 0; attempt < 50 && least > 0.1; ++attempt) {
                least = std::min(least, share_run([] { // once the system doesn't interrupt it
                                     for (int turn = 0; turn < 1000; ++turn) {
                                         scheduler()->found_nothing(500);
                                     }
                                 }));
            }
            EXPECT_LT(least, 0.1);
            // Also if it works no longer than a few microseconds at a time.
            for (const std::uint64_t amount_ticks : {200'000, 8'000}) {
                EXPECT_GT(share_run([&] {
                              for (int turn = 0; turn < 50; ++turn) {
                                  const std::uint64_t begin = ticks();
                                  while (ticks() - begin < amount_ticks) {
                                  }
                                  scheduler()->found_nothing(500);
                              }
                          }),
                          0.9);
            }
        });
        fibres->run();
    });
}

TEST(BalancingTest, without_stealing_fibres_stay_where_they_begin) {
    alone([] {
        constexpr std::uint32_t count = 8;
        auto& fibres = *new Fibres(count, {-1, -1}, nullptr, {}, false);
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres.add([number] {
                for (int turn = 0; turn < 1000; ++turn) {
                    work(100);
                    scheduler()->give_way();
                    EXPECT_EQ(Scheduler::current()->worker.load()->number, number / 4);
                }
            });
        }
        fibres.run();
    });
}

// Fibres that say so at different times, some more often than others, and end at different times.
TEST(BalancingTest, points_of_fibres_that_do_not_keep_step_lose_nobody) {
    for (const std::uint64_t period_ns : {std::uint64_t{0}, std::uint64_t{1'000'000}}) {
        alone([&] {
            constexpr std::uint32_t count = 24;
            static std::atomic<std::uint32_t> word{0};
            BalancingOptions options;
            options.balancer = balance::find_balancer("greedy");
            options.period_ns = period_ns;
            auto& fibres = *new Fibres(count, {-1, -1, -1}, nullptr, options);
            for (std::uint32_t number = 0; number < count; ++number) {
                fibres.add([number] {
                    for (std::uint32_t turn = 0; turn < 200 + 20 * number; ++turn) {
                        work(static_cast<int>(50 * (1 + number % 5)));
                        if (turn % (1 + number % 3) == 0) {
                            scheduler()->at_point();
                        }
                        if (turn % 4 == 0) {
                            const timespec soon = time_of(20'000);
                            scheduler()->wait(word, word.load(), &soon, nullptr);
                        } else {
                            word.fetch_add(1);
                            scheduler()->wake(word, 2);
                            scheduler()->give_way();
                        }
                    }
                    scheduler()->write_last_load();
                });
            }
            fibres.run();
            EXPECT_GT(fibres.loads.job->written_ns.load(), 0U);
            EXPECT_GT(fibres.loads.ranks[count - 1].ran_ns.load(), 0U);
        });
    }
}

} // namespace
} // namespace warren::fibre
