#include "runtime/fibres/scheduler.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <clocale>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "runtime/fibres/test_fibres.hpp"
#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {
namespace {

TEST(SchedulerTest, a_fibre_has_all_that_a_thread_has) {
    alone([] {
        static thread_local int own = 5;
        static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
        static std::atomic<int> failed{0};
        auto fibres = std::make_unique<Fibres>(8);
        for (int number = 0; number < 8; ++number) {
            fibres->add([number] {
                const auto expect = [](bool holds) { failed += !holds; };
                own += number;
                errno = 100 + number;
                scheduler()->give_way();
                expect(own == 5 + number);
                expect(errno == 100 + number);
                try {
                    try {
                        throw std::runtime_error(std::to_string(number));
                    } catch (const std::runtime_error&) {
                        scheduler()->sleep_until(monotonic_ns() + 1'000'000);
                        throw; // the one that is being handled here, after others' were
                    }
                } catch (const std::runtime_error& error) {
                    expect(error.what() == std::to_string(number));
                }
                void* memory = std::malloc(1000);
                scheduler()->give_way();
                std::free(memory);
                // Owners are told apart.
                if (pthread_mutex_trylock(&recursive) == 0) {
                    expect(pthread_mutex_lock(&recursive) == 0);
                    pthread_mutex_unlock(&recursive);
                    scheduler()->give_way();
                    pthread_mutex_unlock(&recursive);
                }
                expect(sched_getcpu() >= 0);
                // Flags and control words of floating-point arithmetic.
                unsigned mode = 0x1f80 | (number % 4 << 13);
                __asm__ volatile("ldmxcsr %0" ::"m"(mode));
                scheduler()->give_way();
                unsigned now = 0;
                __asm__ volatile("stmxcsr %0" : "=m"(now));
                expect(now == mode);
            });
        }
        fibres->run();
        EXPECT_EQ(failed, 0);
    });
}

// A ring of tokens through words: each fibre waits for its own, and wakes the next.
void pass_tokens(std::uint32_t count, int rounds, std::vector<int> processors) {
    struct alignas(64) Word {
        std::atomic<std::uint32_t> value{0};
    };
    auto words = std::make_unique<Word[]>(count);
    auto fibres = std::make_unique<Fibres>(count, std::move(processors));
    for (std::uint32_t number = 0; number < count; ++number) {
        fibres->add([&words, count, number, rounds] {
            Word& own = words[number];
            Word& next = words[(number + 1) % count];
            for (int round = 1; round <= rounds; ++round) {
                if (number != 0 || round != 1) {
                    for (std::uint32_t seen = own.value.load(); seen == 0;
                         seen = own.value.load()) {
                        scheduler()->wait(own.value, 0, nullptr, nullptr);
                    }
                    own.value.fetch_sub(1);
                }
                next.value.fetch_add(1);
                scheduler()->wake(next.value, 1);
            }
        });
    }
    fibres->run();
    EXPECT_EQ(words[0].value, 1U); // it started the ring with one that it didn't wait for
}

TEST(SchedulerTest, no_wake_is_lost_on_one_worker) {
    alone([] { pass_tokens(7, 300, {-1}); });
}

TEST(SchedulerTest, no_wake_is_lost_among_workers) {
    alone([] { pass_tokens(64, 50, {-1, -1, -1}); });
}

TEST(SchedulerTest, many_fibres_wake_each_other_at_once) {
    alone([] {
        // All meet again and again: the last to come wakes the others.
        constexpr std::uint32_t count = 40;
        constexpr std::uint32_t rounds = 60;
        static std::atomic<std::uint32_t> come{0};
        static std::atomic<std::uint32_t> round{0};
        auto fibres = std::make_unique<Fibres>(count, std::vector<int>{-1, -1, -1, -1});
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres->add([] {
                for (std::uint32_t turn = 0; turn < rounds; ++turn) {
                    if (come.fetch_add(1) + 1 == count) {
                        come = 0;
                        round.fetch_add(1);
                        scheduler()->wake(round, INT_MAX);
                    } else {
                        while (round.load() == turn) {
                            scheduler()->wait(round, turn, nullptr, nullptr);
                        }
                    }
                }
            });
        }
        fibres->run();
        EXPECT_EQ(round, rounds);
    });
}

TEST(SchedulerTest, threads_and_fibres_wake_each_other) {
    alone([] {
        constexpr std::uint32_t rounds = 400;
        static std::atomic<std::uint32_t> turn{0}; // even: the fibre's
        const auto play = [](std::uint32_t mine) {
            for (std::uint32_t round = 0; round < rounds; ++round) {
                for (std::uint32_t seen = turn.load(); seen % 2 != mine; seen = turn.load()) {
                    scheduler()->wait(turn, seen, nullptr, nullptr);
                }
                turn.fetch_add(1);
                scheduler()->wake(turn, 1);
            }
        };
        auto fibres = std::make_unique<Fibres>(1);
        fibres->add([&] { play(0); });
        std::thread thread([&] { play(1); });
        fibres->run();
        thread.join();
        EXPECT_EQ(turn, 2 * rounds);
    });
}

TEST(SchedulerTest, sleepers_wake_in_time_and_others_run_meanwhile) {
    alone([] {
        static std::atomic<std::uint64_t> slept_ns{0};
        static std::atomic<int> turns{0};
        auto fibres = std::make_unique<Fibres>(2, std::vector<int>{-1});
        fibres->add([] {
            const std::uint64_t start = monotonic_ns();
            scheduler()->sleep_until(start + 20'000'000);
            slept_ns = monotonic_ns() - start;
        });
        fibres->add([] {
            while (slept_ns == 0) {
                ++turns;
                scheduler()->give_way();
                scheduler()->sleep_until(monotonic_ns() + 100'000);
            }
        });
        fibres->run();
        EXPECT_GE(slept_ns, 20'000'000U);
        EXPECT_GT(turns, 1);
    });
}

// Each of them would wake once per sleep if all watched the timers.
TEST(SchedulerTest, one_of_many_idle_workers_watches_the_timers) {
    alone([] {
        constexpr int sleeps = 200;
        static std::atomic<long> switches{0};
        auto fibres = std::make_unique<Fibres>(1, std::vector<int>(16, -1));
        fibres->add([] {
            const auto count = [] {
                rusage usage = {};
                getrusage(RUSAGE_SELF, &usage);
                return usage.ru_nvcsw;
            };
            scheduler()->sleep_until(monotonic_ns() + 50'000'000); // the others have gone to sleep
            const long before = count();
            for (int number = 0; number < sleeps; ++number) {
                scheduler()->sleep_until(monotonic_ns() + 500'000);
            }
            switches = count() - before;
        });
        fibres->run();
        EXPECT_LT(switches, 6 * sleeps); // 1.5 to 3 per sleep; 17 if all wake
    });
}

// The worker that watched the timers computes then: another one is to watch.
TEST(SchedulerTest, a_sleeper_wakes_in_time_after_one_that_computes_then) {
    for (const bool steals : {false, true}) {
        alone([steals] {
            static std::atomic<std::uint64_t> late_ns{0};
            auto fibres = std::make_unique<Fibres>(3, std::vector<int>(3, -1), nullptr,
                                                   BalancingOptions{}, steals);
            const std::uint64_t begin = monotonic_ns() + 250'000'000; // all have long been asleep
            for (int number = 0; number < 2; ++number) {
                fibres->add([begin] {
                    scheduler()->sleep_until(begin);
                    while (monotonic_ns() < begin + 300'000'000) { // without giving way
                    }
                });
            }
            fibres->add([begin] {
                const std::uint64_t end = begin + 3'000'000;
                scheduler()->sleep_until(end);
                late_ns = monotonic_ns() - end;
            });
            fibres->run();
            EXPECT_LT(late_ns, 60'000'000U) << "steals: " << steals;
        });
    }
}

TEST(SchedulerTest, a_fibre_that_waits_behind_one_that_computes_is_taken_by_an_idle_worker) {
    alone([] {
        static std::atomic<bool> helped{false};
        auto fibres = std::make_unique<Fibres>(2);
        const auto body = [](bool computes) {
            if (computes) {
                while (!helped) { // without ever giving way
                }
            } else {
                helped = true;
            }
        };
        // Both begin on the first worker if it is the quicker; either way both must end.
        fibres->add([&] { body(true); });
        fibres->add([&] { body(false); });
        fibres->run();
    });
}

TEST(SchedulerTest, all_fibres_waiting_for_each_other_is_told_once) {
    alone([] {
        static std::atomic<std::uint32_t> told{0};
        static std::atomic<std::uint32_t> shown{0};
        static std::atomic<std::uint32_t> word{0};
        std::thread([] {}).join(); // a sanitizer starts a thread of its own with the first
        auto fibres = std::make_unique<Fibres>(3, std::vector<int>{-1, -1}, [] {
            told.fetch_add(1);
            kernel_wake(told, 1);
        });
        for (int number = 0; number < 3; ++number) {
            fibres->add([number] {
                if (number == 0) {
                    scheduler()->sleep_until(monotonic_ns() + 5'000'000); // which may be waited for
                }
                WaitNote note{.show = [](void*) { ++shown; }};
                scheduler()->wait(word, 0, nullptr, &note);
                EXPECT_TRUE(note.shown);
            });
        }
        EXPECT_EQ(fibres->made->start(), 0);
        while (told == 0) {
            kernel_wait(told, 0, nullptr);
        }
        EXPECT_EQ(told, 1U);
        EXPECT_EQ(shown, 3U);
    });
}

TEST(SchedulerTest, a_child_of_fork_is_a_thread_that_can_wait_and_end) {
    alone([] {
        static std::atomic<int> status{-1};
        auto fibres = std::make_unique<Fibres>(2);
        fibres->add([] {
            const pid_t child = fork();
            if (child == 0) {
                std::atomic<std::uint32_t> word{0};
                const timespec limit = {.tv_sec = 0, .tv_nsec = 1'000'000};
                scheduler()->wait(word, 0, &limit, nullptr);
                scheduler()->wake(word, 1);
                scheduler()->give_way();
                _exit(Scheduler::current() == nullptr ? 7 : 1);
            }
            int its_status = 0;
            waitpid(child, &its_status, 0);
            status = WEXITSTATUS(its_status);
        });
        fibres->add([] {});
        fibres->run();
        EXPECT_EQ(status, 7);
    });
}

// (By calls that tell what a kernel would: however fast the machine is, the worker yields and then
// has its fibres sleep. A slow machine repeats it.)
TEST(SchedulerTest, a_worker_whose_fibres_poll_in_vain_gives_its_processor_away) {
    alone([] {
        static std::atomic<long> taken{0};
        static std::atomic<int> yields{0};
        const ProcessorCalls calls{.switches = [] { return ++taken; },
                                   .yield =
                                       [] {
                                           ++yields;
                                           const std::uint64_t begin = ticks();
                                           while (ticks() - begin < long_yield_ticks) {
                                           }
                                       }};
        constexpr std::uint64_t long_look = 1'000'000'000;
        auto fibres = std::make_unique<Fibres>(2, std::vector<int>{-1}, nullptr, BalancingOptions{},
                                               true, calls);
        static std::atomic<int> sleepers{0};
        for (int number = 0; number < 2; ++number) {
            fibres->add([] {
                while (!scheduler()->found_nothing(long_look)) {
                }
                ++sleepers;
            });
        }
        fibres->run();
        EXPECT_GE(yields, 1);
        EXPECT_EQ(sleepers, 2);
    });
}

} // namespace
} // namespace warren::fibre
