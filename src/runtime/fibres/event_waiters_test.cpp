#include "runtime/fibres/event_waiters.hpp"

#include <gtest/gtest.h>
#include <thread>

#include "runtime/fibres/test_fibres.hpp"

namespace warren::fibre {
namespace {

// Events, each a cache line, and the bells of fibres that wait for them.
struct alignas(64) Event {
    std::atomic<std::uint32_t> come{0};
    std::atomic<std::uint32_t> round{0};
};
struct alignas(64) Bell {
    std::atomic<std::uint32_t> word{0};
};

// Waits for a round's end; counts how often it has gone on before that.
void wait_for_event(Event& event, std::uint32_t round, Bell& bell, std::atomic<int>& early) {
    struct Condition {
        Event& event;
        std::uint32_t round;
    } condition{event, round};
    const auto happened = [](void* given) {
        const auto& its = *static_cast<Condition*>(given);
        return its.event.round.load() > its.round;
    };
    while (!happened(&condition)) {
        const std::uint32_t seen = bell.word.load();
        scheduler()->wait_for_event(&event, happened, &condition, bell.word, seen, nullptr);
        early += !happened(&condition);
    }
}

// With home workers, each goes from list to list of several workers while it is rung.
void ring_and_release(bool home_workers) {
    alone([home_workers] {
        // Groups of fibres meet again and again, more of them than a worker has lists, so
        // that some share one; who is not the last to come rings somebody.
        constexpr std::uint32_t groups = 12;
        constexpr std::uint32_t members = 6;
        constexpr std::uint32_t rounds = 150;
        static Event events[groups];
        static Bell bells[groups * members];
        static std::atomic<int> early{0};
        static std::atomic<int> wrong{0};
        BalancingOptions options;
        options.balancer = home_workers ? balance::find_balancer("none") : nullptr;
        auto fibres = std::make_unique<Fibres>(groups * members, std::vector<int>{-1, -1, -1},
                                               nullptr, options, !home_workers);
        for (std::uint32_t number = 0; number < groups * members; ++number) {
            fibres->add([number, home_workers] {
                Event& event = events[number % groups];
                for (std::uint32_t round = 0; round < rounds; ++round) {
                    if (home_workers) {
                        scheduler()->set_home(number, (number + round) % 3);
                        scheduler()->at_point();
                    }
                    if (event.come.fetch_add(1) + 1 == members) {
                        event.come.store(0);
                        event.round.store(round + 1);
                        scheduler()->release(&event);
                        continue;
                    }
                    Bell& other = bells[(number * 7 + round) % (groups * members)];
                    other.word.fetch_add(1);
                    scheduler()->wake(other.word, 1);
                    wait_for_event(event, round, bells[number], early);
                    wrong += event.round.load() < round + 1;
                }
            });
        }
        fibres->run();
        EXPECT_EQ(wrong, 0);
        for (const Event& event : events) {
            EXPECT_EQ(event.round, rounds);
        }
    });
}

TEST(EventWaitersTest, all_go_on_when_the_event_is_released_whatever_rings_meanwhile) {
    ring_and_release(false);
}

TEST(EventWaitersTest, all_go_on_when_it_is_released_wherever_they_are_at_home_meanwhile) {
    ring_and_release(true);
}

TEST(EventWaitersTest, a_bell_has_one_fibre_go_on_and_the_others_stay) {
    alone([] {
        static Event event;
        static Bell bells[3];
        static std::atomic<int> early[3];
        static std::atomic<int> here{0};
        auto fibres = std::make_unique<Fibres>(4, std::vector<int>{-1});
        for (std::uint32_t number = 0; number < 3; ++number) {
            fibres->add([number] {
                ++here;
                wait_for_event(event, 0, bells[number], early[number]);
            });
        }
        fibres->add([] {
            while (here < 3) {
                scheduler()->give_way();
            }
            for (const std::uint32_t rung : {1, 2, 1}) {
                bells[rung].word.fetch_add(1);
                scheduler()->wake(bells[rung].word, 1);
                scheduler()->give_way(); // it waits for the event again
            }
            event.round.store(1);
            scheduler()->release(&event);
        });
        fibres->run();
        EXPECT_EQ(early[0], 0);
        EXPECT_EQ(early[1], 2);
        EXPECT_EQ(early[2], 1);
    });
}

TEST(EventWaitersTest, who_has_been_released_is_ready_before_it_runs) {
    alone([] {
        static Event event;
        static Bell bells[3];
        static std::atomic<int> early{0};
        static std::atomic<int> here{0};
        auto fibres = std::make_unique<Fibres>(4, std::vector<int>{-1});
        for (std::uint32_t number = 0; number < 3; ++number) {
            fibres->add([number] {
                ++here;
                wait_for_event(event, 0, bells[number], early);
            });
        }
        const balance::LoadTable loads = fibres->loads;
        fibres->add([loads] {
            while (here < 3) {
                scheduler()->give_way();
            }
            // (The monitor writes them now and then, too: what it saw before may come late.)
            const auto all = [&](balance::RunState state) {
                const auto is = [&](std::uint32_t number) {
                    return loads.ranks[number].state.load() == state;
                };
                for (int attempt = 0; attempt < 100; ++attempt) {
                    scheduler()->write_loads();
                    if (is(0) && is(1) && is(2)) {
                        return true;
                    }
                }
                return false;
            };
            EXPECT_TRUE(all(balance::RunState::waits));
            event.round.store(1);
            scheduler()->release(&event);
            EXPECT_TRUE(all(balance::RunState::ready));
        });
        fibres->run();
    });
}

TEST(EventWaitersTest, with_balancing_each_goes_on_at_home) {
    alone([] {
        constexpr std::uint32_t count = 6;
        constexpr std::uint32_t rounds = 40;
        static Event event;
        static Bell bells[count];
        // (By a release that has yet to come to the worker where one waits for the
        // next.)
        static std::atomic<int> early{0};
        static std::atomic<int> away{0};
        BalancingOptions options;
        options.balancer = balance::find_balancer("none");
        auto fibres = std::make_unique<Fibres>(count + 1, std::vector<int>{-1, -1, -1}, nullptr,
                                               options, false);
        for (std::uint32_t number = 0; number < count; ++number) {
            fibres->add([number] {
                for (std::uint32_t round = 0; round < rounds; ++round) {
                    EXPECT_TRUE(scheduler()->may_wait_for_event());
                    wait_for_event(event, round, bells[number], early);
                    const Fibre& self = *Scheduler::current();
                    away += self.worker.load() != &scheduler()->worker((number + round) % 3);
                }
            });
        }
        fibres->add([] {
            const auto waits_for_event = [](std::uint32_t number) {
                return scheduler()->fibre(number).state.load() == State::waits_for_event &&
                       still_waits_for_event(scheduler()->fibre(number));
            };
            for (std::uint32_t round = 0; round < rounds; ++round) {
                for (std::uint32_t number = 0; number < count; ++number) {
                    while (!waits_for_event(number)) {
                        scheduler()->give_way();
                    }
                    scheduler()->set_home(number, (number + round) % 3);
                }
                event.round.store(round + 1);
                scheduler()->release(&event);
            }
        });
        fibres->run();
        EXPECT_EQ(away, 0);
    });
}

TEST(EventWaitersTest, fibres_that_wait_for_an_event_that_nobody_brings_about_are_stuck) {
    alone([] {
        static Event event;
        static Bell bells[4];
        static std::atomic<int> shown{0};
        static std::atomic<std::uint32_t> told{0};
        std::thread([] {}).join(); // a sanitizer starts a thread of its own with the first
        auto* fibres = new Fibres(4, {-1, -1}, [] {
            told.fetch_add(1);
            kernel_wake(told, 1);
        });
        for (std::uint32_t number = 0; number < 4; ++number) {
            fibres->add([number] {
                WaitNote note{.show = [](void*) { ++shown; }};
                scheduler()->wait_for_event(
                    &event, [](void*) { return false; }, nullptr, bells[number].word, 0, &note);
            });
        }
        EXPECT_EQ(fibres->made->start(), 0);
        while (told.load() == 0) {
            kernel_wait(told, 0, nullptr);
        }
        EXPECT_EQ(shown, 4);
    });
}

} // namespace
} // namespace warren::fibre
