// Tests of spare workers (spares.cpp).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <gtest/gtest.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/fibres/test_fibres.hpp"

namespace warren::fibre {
namespace {

TEST(SparesTest, fibres_that_sleep_in_the_kernel_do_not_keep_others_from_running) {
    alone([] {
        static int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        static std::atomic<int> read_bytes{0};
        auto fibres = std::make_unique<Fibres>(7, std::vector<int>{-1, -1});
        for (int number = 0; number < 6; ++number) {
            fibres->add([] {
                char byte = 0;
                read_bytes += static_cast<int>(read(ends[0], &byte, 1));
                for (int turn = 0; turn < 5; ++turn) {
                    scheduler()->give_way();
                    scheduler()->sleep_until(monotonic_ns() + 1'000'000);
                }
            });
        }
        fibres->add([] { EXPECT_EQ(write(ends[1], "123456", 6), 6); });
        fibres->run();
        EXPECT_EQ(read_bytes, 6);
    });
}

// A program may have the kernel refuse what it doesn't call itself, when it has begun.
TEST(SparesTest, fibres_of_a_blocked_worker_run_also_where_membarrier_is_refused_meanwhile) {
    alone([] {
        static int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        static std::atomic<bool> refused{false};
        auto fibres = std::make_unique<Fibres>(3, std::vector<int>{-1});
        fibres->add([] { // (what is behind it has come to the worker's own list)
            sock_filter rules[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            const sock_fprog program = {std::size(rules), rules};
            refused = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                              &program) == 0;
            char byte = 0;
            EXPECT_EQ(read(ends[0], &byte, 1), 1);
        });
        fibres->add([] { scheduler()->give_way(); });
        fibres->add([] { EXPECT_EQ(write(ends[1], "1", 1), 1); });
        fibres->run();
        if (!refused) {
            puts("the kernel takes no filter: nothing was refused");
        }
    });
}

TEST(SparesTest, without_stealing_a_spare_worker_that_blocks_is_stood_in_for) {
    alone([] {
        static int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        static std::atomic<int> read_bytes{0};
        auto fibres =
            std::make_unique<Fibres>(4, std::vector<int>{-1}, nullptr, BalancingOptions{}, false);
        for (int number = 0; number < 3; ++number) {
            fibres->add([] {
                char byte = 0;
                read_bytes += static_cast<int>(read(ends[0], &byte, 1));
            });
        }
        fibres->add([] { EXPECT_EQ(write(ends[1], "123", 3), 3); });
        fibres->run();
        EXPECT_EQ(read_bytes, 3);
    });
}

// Who stands in has taken some of them, which are never done with looking for what the others do.
TEST(SparesTest, fibres_that_give_way_in_vain_do_not_keep_others_from_running) {
    for (const int count : {3, 4, 17}) {
        for (const bool steals : {false, true}) {
            alone([count, steals] {
                alarm(30);
                static int ends[2];
                ASSERT_EQ(pipe(ends), 0);
                static std::atomic<int> ready{0};
                static std::atomic<int> there{0};
                auto fibres = std::make_unique<Fibres>(static_cast<std::uint32_t>(count),
                                                       std::vector<int>{-1}, nullptr,
                                                       BalancingOptions{}, steals);
                for (int number = 0; number < count; ++number) {
                    fibres->add([number, count] {
                        for (++ready; ready < count;) {
                            scheduler()->give_way();
                        }
                        if (number == 0) {
                            char byte = 0;
                            EXPECT_EQ(read(ends[0], &byte, 1), 1);
                            return;
                        }
                        while (scheduler()->workers() == 1) { // the first one has yet to block
                            scheduler()->give_way();
                        }
                        for (++there; there < count - 1;) {
                            scheduler()->give_way();
                        }
                        EXPECT_EQ(write(ends[1], "1", 1), 1);
                    });
                }
                fibres->run();
            });
        }
    }
}

// Nobody stands in for a worker that nobody waits for: none, first, then one that is relieved.
TEST(SparesTest, fibres_that_sleep_go_on_while_their_worker_is_blocked) {
    for (const bool steals : {false, true}) {
        alone([steals] {
            alarm(30);
            static int ends[2];
            ASSERT_EQ(pipe(ends), 0);
            static std::atomic<int> rounds{0};
            auto fibres = std::make_unique<Fibres>(2, std::vector<int>{-1}, nullptr,
                                                   BalancingOptions{}, steals);
            fibres->add([] {
                while (rounds < 3) {
                    while (scheduler()->fibre(1).state.load() != State::parked_till) {
                        scheduler()->give_way();
                    }
                    char byte = 0;
                    EXPECT_EQ(read(ends[0], &byte, 1), 1);
                    ++rounds;
                }
            });
            fibres->add([] {
                for (int round = 0; round < 3; ++round) {
                    scheduler()->sleep_until(monotonic_ns() + 20'000'000);
                    EXPECT_EQ(write(ends[1], "1", 1), 1);
                    while (rounds == round) {
                        scheduler()->give_way();
                    }
                }
            });
            fibres->run();
        });
    }
}

// Who stands in has two that give way to each other, and so never looks at what others have.
TEST(SparesTest, what_becomes_ready_for_a_blocked_worker_runs_soon_where_one_stands_in) {
    for (const bool steals : {false, true}) {
        alone([steals] {
            alarm(30);
            constexpr std::uint32_t rounds = 20;
            static int ends[2];
            ASSERT_EQ(pipe(ends), 0);
            static std::atomic<std::uint32_t> asked{0};
            static std::atomic<std::uint32_t> answered{0};
            static std::atomic<bool> ended{false};
            static std::array<std::uint32_t, rounds> turns{};
            auto fibres = std::make_unique<Fibres>(4, std::vector<int>{-1}, nullptr,
                                                   BalancingOptions{}, steals);
            fibres->add([] {
                while (scheduler()->fibre(3).state.load() != State::parked) {
                    scheduler()->give_way();
                }
                char byte = 0;
                EXPECT_EQ(read(ends[0], &byte, 1), 1);
            });
            const auto number = [] { return Scheduler::current()->worker.load()->number; };
            fibres->add([number] {
                while (number() == 0) {
                    scheduler()->give_way();
                }
                for (std::uint32_t& turn : turns) {
                    while (scheduler()->fibre(3).state.load() != State::parked) {
                        scheduler()->give_way();
                    }
                    scheduler()->set_home(3, 0); // as if it had run there last
                    ++asked;
                    scheduler()->wake(asked, 1);
                    for (turn = 0; answered != asked; ++turn) {
                        scheduler()->give_way();
                    }
                }
                EXPECT_EQ(write(ends[1], "1", 1), 1);
                ended = true;
            });
            fibres->add([] {
                while (!ended) {
                    scheduler()->give_way();
                }
            });
            fibres->add([] {
                for (std::uint32_t seen = 0; seen < rounds; ++seen) {
                    while (asked == seen) {
                        scheduler()->wait(asked, seen, nullptr, nullptr);
                    }
                    ++answered;
                }
            });
            fibres->run();
            std::nth_element(turns.begin(), turns.begin() + rounds / 2, turns.end());
            EXPECT_LT(turns[rounds / 2], 100U); // in 5 ms there are a hundred thousand
        });
    }
}

// Neither of them ever parks.
TEST(SparesTest, a_fibre_that_polls_goes_back_to_the_worker_that_is_back) {
    for (const bool steals : {false, true}) {
        alone([steals] {
            alarm(30);
            static int ends[2];
            ASSERT_EQ(pipe(ends), 0);
            static std::atomic<int> ready{0};
            static std::atomic<bool> is_back{false};
            auto fibres = std::make_unique<Fibres>(2, std::vector<int>{-1}, nullptr,
                                                   BalancingOptions{}, steals);
            fibres->add([] {
                for (++ready; ready < 2;) {
                    scheduler()->give_way();
                }
                char byte = 0;
                EXPECT_EQ(read(ends[0], &byte, 1), 1);
                while (!is_back) {
                    scheduler()->give_way();
                }
            });
            fibres->add([] {
                for (++ready; ready < 2;) {
                    scheduler()->give_way();
                }
                const auto worker = [] { return Scheduler::current()->worker.load()->number; };
                while (worker() == 0) {
                    scheduler()->give_way();
                }
                EXPECT_EQ(write(ends[1], "1", 1), 1);
                while (worker() != 0) {
                    scheduler()->give_way();
                }
                is_back = true;
            });
            fibres->run();
        });
    }
}

// Releasers look at all workers that may be there. (Which of the fibres is ready first is up to
// their donors, and they may run before the monitor is there, which needs a thread, too.)
TEST(SparesTest, a_spare_worker_that_can_not_be_started_keeps_its_event_waiters) {
    alone([] {
        auto fibres =
            std::make_unique<Fibres>(2, std::vector<int>{-1}, nullptr, BalancingOptions{}, false);
        static std::atomic<const EventTable*> first{nullptr};
        static std::atomic<bool> started{false};
        static std::atomic<bool> keeps{false};
        static std::atomic<bool> waits{true};
        fibres->add([] {
            while (!started) {
                scheduler()->give_way();
            }
            // The worker is kept, in the kernel, while the other fibre waits for it. No thread can
            // be made with such a stack.
            pthread_attr_t usual;
            pthread_attr_t impossible;
            pthread_getattr_default_np(&usual);
            pthread_attr_init(&impossible);
            ASSERT_EQ(pthread_attr_setstacksize(&impossible, std::size_t{1} << 47), 0);
            ASSERT_EQ(pthread_setattr_default_np(&impossible), 0);
            keeps = true;
            const Worker& spare = scheduler()->worker(1);
            const timespec soon = {0, 1'000'000};
            for (std::uint64_t begun = 0, tries = 0; tries < 5; ++tries) {
                while (spare.begin.load(std::memory_order_acquire) == begun) {
                    nanosleep(&soon, nullptr);
                }
                begun = spare.begin.load(std::memory_order_acquire);
                const EventTable* now = spare.event_table.get();
                EXPECT_NE(now, nullptr);
                EXPECT_EQ(tries == 0 ? now : first.load(), now);
                first = now;
                EXPECT_TRUE(waits);
            }
            pthread_setattr_default_np(&usual);
            while (waits) {
                nanosleep(&soon, nullptr);
            }
        });
        fibres->add([] {
            while (!keeps) {
                scheduler()->give_way();
            }
            waits = false;
        });
        EXPECT_EQ(fibres->made->start(), 0);
        started = true;
        fibres->finish();
        EXPECT_EQ(scheduler()->worker(1).event_table.get(), first);
    });
}

TEST(SparesTest, without_stealing_a_worker_that_is_back_does_what_waits_where_one_stood_in) {
    alone([] {
        static int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        static std::atomic<std::uint32_t> asked{0};
        static std::atomic<bool> answered{false};
        static std::atomic<bool> back{false};
        auto fibres =
            std::make_unique<Fibres>(3, std::vector<int>{-1}, nullptr, BalancingOptions{}, false);
        static std::atomic<int> ready{0};
        const auto meet = [] {
            for (++ready; ready < 3;) {
                scheduler()->give_way();
            }
        };
        fibres->add([meet] {
            meet();
            char byte = 0;
            EXPECT_EQ(read(ends[0], &byte, 1), 1);
            back = true;
        });
        fibres->add([meet] {
            meet();
            while (scheduler()->workers() == 1) { // the first one has yet to block its worker
                scheduler()->give_way();
            }
            while (asked == 0) { // from here on it is the spare worker's
                scheduler()->wait(asked, 0, nullptr, nullptr);
            }
            answered = true;
        });
        fibres->add([meet] {
            meet();
            while (scheduler()->fibre(1).state.load() != State::parked) {
                scheduler()->give_way();
            }
            EXPECT_EQ(write(ends[1], "1", 1), 1);
            while (!back) {
            }
            const timespec relieves = {0, 20'000'000};
            nanosleep(&relieves, nullptr); // the monitor has seen that the first worker is back
            asked = 1;
            scheduler()->wake(asked, 1);
            while (!answered) { // without ever giving way
            }
        });
        fibres->run();
    });
}

// Who is back has two that give way to each other, and never looks at what others have.
TEST(SparesTest,
     what_comes_to_where_one_stood_in_runs_while_those_of_the_worker_that_is_back_poll) {
    for (const bool steals : {false, true}) {
        alone([steals] {
            alarm(30);
            static int ends[2];
            ASSERT_EQ(pipe(ends), 0);
            static std::atomic<std::uint32_t> asked{0};
            static std::atomic<bool> answered{false};
            static std::atomic<bool> back{false};
            static std::atomic<int> ready{0};
            auto fibres = std::make_unique<Fibres>(4, std::vector<int>{-1}, nullptr,
                                                   BalancingOptions{}, steals);
            const auto meet = [] {
                for (++ready; ready < 3;) {
                    scheduler()->give_way();
                }
            };
            fibres->add([meet] {
                meet();
                char byte = 0;
                EXPECT_EQ(read(ends[0], &byte, 1), 1);
                back = true;
                while (!answered) {
                    scheduler()->give_way();
                }
            });
            fibres->add([meet] {
                meet();
                while (scheduler()->workers() == 1) { // the first one has yet to block its worker
                    scheduler()->give_way();
                }
                while (asked == 0) { // from here on it is the spare worker's
                    scheduler()->wait(asked, 0, nullptr, nullptr);
                }
                answered = true;
            });
            fibres->add([meet] {
                meet();
                while (scheduler()->fibre(1).state.load() != State::parked) {
                    scheduler()->give_way();
                }
                EXPECT_EQ(write(ends[1], "1", 1), 1);
                while (!back) {
                }
                const timespec relieves = {0, 20'000'000};
                nanosleep(&relieves, nullptr); // the monitor has seen that the first one is back
                asked = 1;
                scheduler()->wake(asked, 1);
                while (!answered) { // without ever giving way
                }
            });
            fibres->add([] {
                while (!back) {
                    scheduler()->sleep_until(monotonic_ns() + 1'000'000);
                }
                while (!answered) {
                    scheduler()->give_way();
                }
            });
            fibres->run();
        });
    }
}

// Another worker sleeps, too, whom that is no business of, and whose number is lower.
TEST(SparesTest, without_stealing_who_stands_in_is_called_when_several_become_ready) {
    alone([] {
        alarm(60);
        constexpr int rounds = 21;
        constexpr int attempts = 40; // should the machine have had other things to do
        static int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        static std::atomic<std::uint32_t> round{0};
        static std::atomic<std::uint32_t> went_on{0};
        static std::atomic<bool> ended{false};
        static std::uint64_t least_ns = UINT64_MAX; // the median of an attempt
        auto fibres = std::make_unique<Fibres>(9, std::vector<int>{-1, -1, -1}, nullptr,
                                               BalancingOptions{}, false);
        const auto is_parked = [](std::uint32_t number) {
            return scheduler()->fibre(number).state.load() == State::parked;
        };
        fibres->add([] { // the first worker's, as the next two
            char byte = 0;
            EXPECT_EQ(read(ends[0], &byte, 1), 1);
        });
        for (std::uint32_t number = 1; number < 3; ++number) {
            fibres->add([number] {
                scheduler()->set_home(number, 0);
                for (std::uint32_t seen = 0; !ended; ++seen) {
                    while (round == seen) {
                        scheduler()->wait(round, seen, nullptr, nullptr);
                    }
                    ++went_on;
                }
            });
        }
        for (int number = 3; number < 6; ++number) {
            fibres->add([] {});
        }
        fibres->add([is_parked] {
            const auto turn_ns = [is_parked] {
                while (!is_parked(1) || !is_parked(2)) {
                }
                const std::uint64_t before = monotonic_ns();
                while (monotonic_ns() - before < 1'000'000) { // their worker sleeps
                }
                const std::uint64_t begin = monotonic_ns();
                went_on = 0;
                ++round;
                scheduler()->wake(round, 2);
                while (went_on < 2) {
                }
                return monotonic_ns() - begin;
            };
            while (scheduler()->workers() == 3) { // somebody stands in when they are ready
                turn_ns();
            }
            for (int attempt = 0; attempt < attempts && least_ns > 1'000'000; ++attempt) {
                std::array<std::uint64_t, rounds> taken{};
                std::generate(taken.begin(), taken.end(), turn_ns);
                std::nth_element(taken.begin(), taken.begin() + rounds / 2, taken.end());
                least_ns = std::min(least_ns, taken[rounds / 2]);
            }
            ended = true;
            turn_ns();
            EXPECT_EQ(write(ends[1], "1", 1), 1);
        });
        for (int number = 7; number < 9; ++number) {
            fibres->add([] {});
        }
        fibres->run();
        EXPECT_LT(least_ns, 1'000'000U);
    });
}

} // namespace
} // namespace warren::fibre
