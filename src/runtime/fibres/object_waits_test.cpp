#include "runtime/fibres/object_waits.hpp"

#include <array>
#include <csignal>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "runtime/fibres/test_fibres.hpp"

namespace warren::fibre {
namespace {

constexpr Looks no_looks = {nullptr, 1'000'000, 1'000'000};

// A lock that is tried, and told of.
struct Flag {
    std::atomic<bool> taken{false};

    void lock() {
        ObjectWait wait(this, no_looks);
        while (taken.exchange(true)) {
            if (wait.park(UINT64_MAX)) {
                wait.repeat();
            }
        }
    }
    void unlock() {
        taken.store(false);
        scheduler()->object_waits().tell(this, 1);
    }
};

// Signals that tests send.
void no_signals_here() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

TEST(ObjectWaitsTest, nobody_who_waits_misses_that_an_object_is_free) {
    alone([] {
        // More objects than are looked at together, so that some share a place; threads, too.
        constexpr std::uint32_t count = 40;
        constexpr std::uint32_t objects = 70;
        constexpr std::uint32_t rounds = 400;
        static Flag flags[objects];
        static long held[objects];
        auto fibres = std::make_unique<Fibres>(count, std::vector<int>{-1, -1, -1});
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres->add([number] {
                for (std::uint32_t round = 0; round < rounds; ++round) {
                    const std::uint32_t object = (number % 4 + round / 8) % objects;
                    flags[object].lock();
                    ++held[object];
                    if (round % 4 == 0) {
                        scheduler()->give_way();
                    }
                    flags[object].unlock();
                }
            });
        }
        std::vector<std::thread> threads;
        for (int number = 0; number < 2; ++number) {
            threads.emplace_back([] {
                for (std::uint32_t round = 0; round < rounds; ++round) {
                    Flag& flag = flags[round / 8 % objects];
                    while (flag.taken.exchange(true)) {
                        std::this_thread::yield();
                    }
                    ++held[round / 8 % objects];
                    flag.unlock();
                }
            });
        }
        fibres->run();
        long all = 0;
        for (std::thread& thread : threads) {
            thread.join();
        }
        for (const long one : held) {
            all += one;
        }
        EXPECT_EQ(all, long{rounds} * (count + 2));
    });
}

TEST(ObjectWaitsTest, each_telling_reaches_one_that_waits_or_none) {
    alone([] {
        // Who is told at the moment when its time is over has been told.
        constexpr std::uint32_t count = 12;
        static int object;
        static std::atomic<std::uint32_t> told{0};
        static std::atomic<std::uint32_t> late{0};
        auto fibres = std::make_unique<Fibres>(count + 1, std::vector<int>{-1, -1});
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres->add([] {
                for (int round = 0; round < 100; ++round) {
                    ObjectWait wait(&object, no_looks);
                    if (wait.park(monotonic_ns() + 50'000) || !wait.withdraw()) {
                        ++told;
                    } else {
                        ++late;
                    }
                }
            });
        }
        static std::uint32_t tellings = 0;
        fibres->add([] {
            for (; told + late < 100 * count; ++tellings) {
                scheduler()->object_waits().tell(&object, 1);
                scheduler()->give_way();
            }
        });
        fibres->run();
        EXPECT_EQ(told + late, 100 * count);
        EXPECT_LE(told, tellings);
        EXPECT_GT(told, 0U);
    });
}

TEST(ObjectWaitsTest, the_first_come_are_told_first_and_all_at_once) {
    alone([] {
        static int object;
        static int other;
        static std::vector<std::uint32_t> order;
        static std::atomic<std::uint32_t> waiting{0};
        auto fibres = std::make_unique<Fibres>(5, std::vector<int>{-1});
        for (std::uint32_t number = 0; number < 4; ++number) {
            fibres->add([number] {
                while (waiting != number) {
                    scheduler()->give_way();
                }
                ObjectWait wait(number == 3 ? &other : &object, no_looks);
                ++waiting;
                EXPECT_TRUE(wait.park(UINT64_MAX));
                order.push_back(number);
            });
        }
        fibres->add([] {
            while (waiting != 4) {
                scheduler()->give_way();
            }
            scheduler()->object_waits().tell(&object, 2);
            scheduler()->give_way();
            scheduler()->give_way();
            EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1}));
            scheduler()->object_waits().tell(&object, UINT32_MAX);
            scheduler()->object_waits().tell(&other, UINT32_MAX);
        });
        fibres->run();
        EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3}));
    });
}

// Objects whose waits are in one place of the table, since there are but two fibres.
TEST(ObjectWaitsTest, waits_of_many_objects_come_and_go_in_any_order) {
    alone([] {
        constexpr std::size_t objects = 50;
        constexpr std::size_t each = 7;
        static std::array<int, objects> object;
        auto fibres = std::make_unique<Fibres>(2, std::vector<int>{-1});
        fibres->add([] {
            std::array<std::vector<std::unique_ptr<ObjectWait>>, objects> waits;
            for (std::size_t number = 0; number < objects * each; ++number) {
                const std::size_t which = number * 13 % objects;
                waits[which].push_back(std::make_unique<ObjectWait>(&object[which], no_looks));
            }
            // Some leave, from anywhere; how many are left, the tellings say.
            const auto tell = [](std::size_t which, std::uint32_t count) {
                return scheduler()->object_waits().tell(&object[which], count);
            };
            for (std::size_t which = 0; which < objects; ++which) {
                auto& those = waits[which];
                const std::size_t leaving = which % (each + 1);
                for (std::size_t step = 0; step < leaving; ++step) {
                    EXPECT_TRUE(those[(which + step * 3) % each]->withdraw());
                }
                EXPECT_EQ(scheduler()->object_waits().is_waited_for(&object[which]),
                          leaving != each);
            }
            for (std::size_t which = objects; which-- > 0;) {
                const auto left = static_cast<std::uint32_t>(each - which % (each + 1));
                EXPECT_EQ(tell(which, 2), std::min(left, 2U));
                EXPECT_EQ(tell(which, 100), left - std::min(left, 2U));
                EXPECT_EQ(tell(which, 1), 0U);
                std::size_t told = 0;
                for (const auto& wait : waits[which]) {
                    told += wait->withdraw() ? 0 : 1;
                }
                EXPECT_EQ(told, left);
            }
        });
        fibres->add([] {});
        fibres->run();
    });
}

// One whose look asks about its own object, under the same place's lock, as readers of locks that
// prefer writers do.
TEST(ObjectWaitsTest, only_those_are_looked_at_for_handlers_whose_looks_take_no_locks) {
    alone([] {
        static std::atomic<std::uint32_t> word{0};
        static std::atomic<bool> waits{false};
        static constexpr Looks looks = {[](const void* object, std::uint32_t) {
                                            return !scheduler()->object_waits().is_waited_for(
                                                object);
                                        },
                                        50'000'000'000, 50'000'000'000};
        auto fibres = std::make_unique<Fibres>(2, std::vector<int>{-1, -1});
        fibres->add([] {
            ObjectWait wait(&word, looks, 0);
            waits = true;
            EXPECT_TRUE(wait.park(UINT64_MAX));
        });
        fibres->add([] {
            while (!waits) {
                scheduler()->give_way();
            }
            scheduler()->object_waits().tell_soon(&word);
            for (int turn = 0; turn < 100; ++turn) {
                scheduler()->give_way();
            }
            scheduler()->object_waits().tell(&word, 1);
        });
        fibres->run();
    });
}

TEST(ObjectWaitsTest, who_is_not_told_finds_out_and_goes_on_only_then) {
    alone([] {
        constexpr std::uint32_t count = 20;
        static std::atomic<std::uint32_t> word{0};
        static std::atomic<std::uint32_t> went_on{0};
        static std::atomic<std::uint32_t> looked{0};
        static constexpr Looks looks = {
            [](const void* object, std::uint32_t expected) {
                ++looked;
                return static_cast<const std::atomic<std::uint32_t>*>(object)->load() != expected;
            },
            20'000, 10'000'000};
        auto fibres = std::make_unique<Fibres>(count, std::vector<int>{-1, -1});
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres->add([] {
                ObjectWait wait(&word, looks, 0);
                EXPECT_FALSE(wait.park(UINT64_MAX));
                EXPECT_EQ(word, 1U);
                ++went_on;
            });
        }
        std::thread setter([] {
            while (looked < 10 * count) {
                std::this_thread::yield();
            }
            EXPECT_EQ(went_on, 0U);
            word = 1;
        });
        fibres->run();
        setter.join();
        EXPECT_EQ(went_on, count);
    });
}

// The handler may interrupt anything, so also who has a lock.
TEST(ObjectWaitsTest, handlers_of_signals_tell_of_what_they_have_brought_about) {
    alone([] {
        constexpr std::uint32_t count = 6;
        constexpr int rounds = 300;
        static std::atomic<std::uint32_t> posts{0};
        static constexpr Looks looks = {
            [](const void* object, std::uint32_t) {
                return static_cast<const std::atomic<std::uint32_t>*>(object)->load() != 0;
            },
            50'000'000'000, 50'000'000'000,
            Looks::ByHandlers::if_free}; // later than the test may take
        static std::atomic<int> taken{0};
        static std::atomic<int> handled{0};
        struct sigaction action {};
        action.sa_handler = [](int) {
            ++handled;
            ++posts;
            scheduler()->object_waits().tell_soon(&posts);
        };
        sigaction(SIGUSR1, &action, nullptr);
        auto fibres = std::make_unique<Fibres>(count, std::vector<int>{-1, -1});
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres->add([] {
                for (int round = 0; round < rounds; ++round) {
                    ObjectWait wait(&posts, looks);
                    for (std::uint32_t seen = posts;;) {
                        if (seen != 0) {
                            if (posts.compare_exchange_weak(seen, seen - 1)) {
                                break;
                            }
                            continue;
                        }
                        if (wait.park(UINT64_MAX)) {
                            wait.repeat();
                        }
                        seen = posts;
                    }
                    if (!wait.withdraw() || posts != 0) {
                        scheduler()->object_waits().tell(&posts, 1);
                    }
                    ++taken;
                }
            });
        }
        std::thread sender([] {
            // To whoever runs: most often a worker, which sleeps, or is in the middle of something.
            for (int sent = 0; taken < rounds * static_cast<int>(count); ++sent) {
                const int seen = taken;
                const int seen_handled = handled;
                for (int burst = 0; burst < 1 + sent % 3; ++burst) {
                    kill(getpid(), SIGUSR1);
                }
                if (sent % 16 == 0) {
                    const std::uint64_t begin = monotonic_ns();
                    while (taken == seen && taken < rounds * static_cast<int>(count)) {
                        std::this_thread::yield();
                        const std::uint64_t waited = monotonic_ns() - begin;
                        if (waited > 100'000'000 && handled == seen_handled) {
                            // ThreadSanitizer puts off the handlers of threads that sleep.
                            pthread_kill(pthread_self(), SIGUSR1);
                        }
                        if (waited > 20'000'000'000) {
                            ADD_FAILURE() << "nobody goes on: " << posts << " are there, " << taken
                                          << " taken, " << handled << " handled";
                            fflush(stdout);
                            _exit(1);
                        }
                    }
                }
            }
        });
        EXPECT_EQ(fibres->made->start(), 0);
        no_signals_here(); // else this thread, which does nothing, would get most of them
        fibres->finish();
        sender.join();
        EXPECT_EQ(taken, rounds * static_cast<int>(count));
    });
}

// At most a minute; every 100 ms the thread also does something else.
template <typename Else>
void wait_until(const std::atomic<std::uint32_t>& number, std::uint32_t reached, Else something) {
    const std::uint64_t begin = monotonic_ns();
    std::uint64_t last = begin;
    while (number < reached) {
        std::this_thread::yield();
        const std::uint64_t now = monotonic_ns();
        if (now - last > 100'000'000) {
            last = now;
            something();
        }
        if (now - begin > 60'000'000'000) {
            ADD_FAILURE() << "nobody goes on: " << number << " of " << reached;
            fflush(stdout);
            _exit(1);
        }
    }
}

// The handler wakes words at any moment, also while its thread has locks, as FUTEX_WAKE does; a
// wake need not have changed the word. Each telling is the only one for those that wait. (That a
// worker which sleeps is called for it isn't seen here: others see to it before long.)
TEST(ObjectWaitsTest, handlers_of_signals_wake_words) {
    alone([] {
        constexpr std::uint32_t count = 6;
        constexpr std::uint32_t busy = 2;
        constexpr std::uint32_t rounds = 200;
        static std::atomic<std::uint32_t> word{0};
        static std::atomic<std::uint32_t> waiting{0};
        static std::atomic<std::uint32_t> went_on{0};
        static std::atomic<std::uint32_t> handled{0};
        static std::atomic<std::uint32_t> interrupted{0}; // fibres that had, or might have, locks
        static constexpr Looks looks = {[](const void*, std::uint32_t) { return false; },
                                        50'000'000'000,
                                        50'000'000'000, // later than the test may take
                                        Looks::ByHandlers::for_nothing};
        struct sigaction action {};
        action.sa_handler = [](int) {
            ++handled;
            interrupted += Inside::has_caller() && Scheduler::current() != nullptr ? 1 : 0;
            scheduler()->object_waits().tell_safely(&word, UINT32_MAX);
        };
        sigaction(SIGUSR1, &action, nullptr);
        auto fibres = std::make_unique<Fibres>(count + busy, std::vector<int>{-1, -1});
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres->add([] {
                for (std::uint32_t round = 0; round < rounds; ++round) {
                    ObjectWait wait(&word, looks);
                    ++waiting;
                    while (!wait.park(UINT64_MAX)) {
                    } // woken by who had told the last one, at the same place
                    ++went_on;
                    while (went_on < (round + 1) * count) {
                        scheduler()->sleep_until(monotonic_ns() + 50'000);
                    }
                }
            });
        }
        for (std::uint32_t number = 0; number < busy; ++number) {
            fibres->add([] {
                // In some rounds they lock again and again, in the others workers sleep.
                while (went_on < rounds * count) {
                    if (went_on / count % 4 == 0) {
                        scheduler()->sleep_until(monotonic_ns() + 50'000);
                        continue;
                    }
                    for (int turn = 0; turn < 100; ++turn) {
                        const ObjectWait wait(&waiting, no_looks);
                    }
                    scheduler()->give_way();
                }
            });
        }
        std::thread sender([&] {
            for (std::uint32_t round = 0; round < rounds; ++round) {
                wait_until(waiting, (round + 1) * count, [] {});
                const std::atomic<int>& thread = fibres->made->worker(round % 2).thread;
                while (thread == 0) { // it has yet to begin
                    std::this_thread::yield();
                }
                const auto send = [&] {
                    EXPECT_EQ(syscall(SYS_tgkill, getpid(), thread.load(), SIGUSR1), 0);
                };
                const std::uint32_t before = handled;
                send();
                // ThreadSanitizer keeps a signal until its fibre runs again, if ever.
                wait_until(went_on, (round + 1) * count, [&] {
                    if (handled == before) {
                        send();
                    }
                });
            }
        });
        EXPECT_EQ(fibres->made->start(), 0);
        no_signals_here();
        fibres->finish();
        sender.join();
        EXPECT_GT(interrupted, 0U);
    });
}

// More than a place of the table tells at once. (Who else sees to what is due may take places as
// soon as they are marked, and some twice.)
TEST(ObjectWaitsTest, handlers_of_signals_tell_of_any_number_of_objects) {
    alone([] {
        static constexpr std::size_t objects = 16 * 40;
        static std::array<std::atomic<std::uint32_t>, objects> object{};
        static constexpr Looks free_looks = {[](const void*, std::uint32_t) { return true; },
                                             50'000'000'000, 50'000'000'000,
                                             Looks::ByHandlers::if_free};
        auto fibres = std::make_unique<Fibres>(1, std::vector<int>{-1});
        fibres->add([] {
            std::vector<std::unique_ptr<ObjectWait>> waits;
            for (auto& one : object) {
                waits.push_back(std::make_unique<ObjectWait>(&one, free_looks));
            }
            for (auto& one : object) { // marks all places
                scheduler()->object_waits().tell_soon(&one);
            }
            scheduler()->object_waits().tell_due();
            const std::uint64_t limit = monotonic_ns() + 30'000'000'000;
            std::size_t told = 0;
            for (auto& wait : waits) {
                told += wait->park(limit) ? 1 : 0;
            }
            EXPECT_EQ(told, objects);
        });
        fibres->run();
    });
}

// Each time that a place is seen to, one that waits for each free object goes on. (Objects that
// have been marked once are told by one who sees to them, wherever that runs.)
TEST(ObjectWaitsTest, a_handler_that_tells_once_has_the_first_that_waits_go_on) {
    alone([] {
        static std::atomic<std::uint32_t> object{0};
        static constexpr Looks free_looks = {[](const void*, std::uint32_t) { return true; },
                                             50'000'000'000, 50'000'000'000,
                                             Looks::ByHandlers::if_free};
        auto fibres = std::make_unique<Fibres>(1, std::vector<int>{-1});
        fibres->add([] {
            ObjectWait first(&object, free_looks);
            ObjectWait second(&object, free_looks);
            scheduler()->object_waits().tell_soon(&object);
            scheduler()->object_waits().tell_due();
            EXPECT_TRUE(first.park(monotonic_ns() + 30'000'000'000));
            EXPECT_FALSE(second.park(monotonic_ns() + 100'000'000));
            EXPECT_TRUE(second.withdraw());
        });
        fibres->run();
    });
}

} // namespace
} // namespace warren::fibre
