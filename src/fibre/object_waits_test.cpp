#include "fibre/object_waits.hpp"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "fibre/test_fibres.hpp"

namespace warren::fibre {
namespace {

// A lock that is tried, and told of.
struct Flag {
    std::atomic<bool> taken{false};

    void lock() {
        ObjectWait wait(this);
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
                    ObjectWait wait(&object);
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
                ObjectWait wait(number == 3 ? &other : &object);
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

} // namespace
} // namespace warren::fibre
