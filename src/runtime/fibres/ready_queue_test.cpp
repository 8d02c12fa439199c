#include "runtime/fibres/ready_queue.hpp"

#include <array>
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <memory>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace warren::fibre {
namespace {

constexpr auto expects_nothing = [](const Fibre&) {};
constexpr auto holds = [] {};

ReadyQueue::Row row_of(Fibre& fibre) {
    fibre.next = nullptr;
    return {.first = &fibre, .last = &fibre, .count = 1};
}

std::vector<std::uint32_t> numbers(const ReadyQueue::Row& row) {
    std::vector<std::uint32_t> found;
    for (const Fibre* fibre = row.first; fibre != nullptr; fibre = fibre->next) {
        found.push_back(fibre->number);
    }
    EXPECT_EQ(found.size(), row.count);
    return found;
}

constexpr auto is_awake = [] { return false; };

enum class Fences : std::uint8_t { others, itself, refused_later };

std::atomic<int> fences_left{0};

// The kernel's as long as there are some left.
bool fence_until_refused() {
    return fences_left.fetch_sub(1) > 0 &&
           syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

class Ready : public testing::TestWithParam<Fences> {
  protected:
    Ready() : fibres(std::make_unique<Fibre[]>(size)), queue(std::make_unique<ReadyQueue>()) {
        if (GetParam() == Fences::itself) {
            queue = std::make_unique<ReadyQueue>(nullptr);
        } else if (GetParam() == Fences::refused_later) {
            fences_left = fences;
            queue = std::make_unique<ReadyQueue>(fence_until_refused);
        }
        for (std::uint32_t number = 0; number < size; ++number) {
            fibres[number].number = number;
        }
    }

    void put(std::uint32_t number) { queue->put(row_of(fibres[number])); }
    void bring(std::uint32_t number) { queue->bring(row_of(fibres[number]), holds); }
    std::uint32_t take() {
        const Fibre* const fibre = queue->take(expects_nothing);
        return fibre != nullptr ? fibre->number : size;
    }

    static constexpr std::uint32_t size = 16;
    static constexpr int fences = 100;
    std::unique_ptr<Fibre[]> fibres;
    std::unique_ptr<ReadyQueue> queue;
};

TEST_P(Ready, FibresComeInTheOrderInWhichTheyWerePutOrSeen) {
    EXPECT_EQ(take(), size);
    put(0);
    bring(1);
    bring(2);
    put(3); // sees 1 and 2
    EXPECT_EQ(queue->count(), 4U);
    for (std::uint32_t number = 0; number < 4; ++number) {
        EXPECT_EQ(take(), number);
    }
    EXPECT_EQ(take(), size);
    EXPECT_EQ(queue->count(), 0U);
}

TEST_P(Ready, WhoGivesWayGoesBehindAllThatAreThere) {
    EXPECT_EQ(queue->take_turns(fibres[0], expects_nothing), nullptr);
    EXPECT_EQ(queue->count(), 0U);
    put(1);
    EXPECT_EQ(queue->take_turns(fibres[0], expects_nothing)->number, 1U);
    bring(2);
    bring(3);
    EXPECT_EQ(queue->take_turns(fibres[1], expects_nothing)->number, 0U);
    EXPECT_EQ(take(), 2U);
    EXPECT_EQ(take(), 3U);
    EXPECT_EQ(take(), 1U);
    EXPECT_EQ(take(), size);
}

TEST_P(Ready, OthersTakeHalfOrAll) {
    EXPECT_EQ(queue->take_half().count, 0U);
    EXPECT_EQ(queue->take_all(is_awake).count, 0U);
    for (std::uint32_t number = 0; number < 4; ++number) {
        put(number);
    }
    bring(4);
    EXPECT_EQ(numbers(queue->take_half()), (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(queue->count(), 2U);
    bring(5);
    EXPECT_EQ(numbers(queue->take_all(is_awake)), (std::vector<std::uint32_t>{3, 4, 5}));
    EXPECT_EQ(take(), size);
    bring(6);
    bring(7);
    bring(8);
    EXPECT_EQ(numbers(queue->take_half()), (std::vector<std::uint32_t>{6, 7}));
    EXPECT_EQ(take(), 8U);
    EXPECT_EQ(take(), size);
}

// Fibres go round: the worker takes and puts them, others take from it and bring them back. `next`
// and `ran` of a fibre are who has taken it's.
TEST_P(Ready, NoneIsLostOrTakenTwiceWhoeverComesTogether) {
    constexpr int turns = 30'000; // at least, and until others have taken from it so many times
    constexpr int takings = 5'000;
    constexpr int others = 2;
    std::array<std::atomic<bool>, size> held{};
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0};
    std::atomic<int> taken{0};
    const auto hold = [&](Fibre& fibre) {
        wrong += held[fibre.number].exchange(true) ? 1 : 0;
        fibre.usual_ticks += 1; // TSan sees who does so at once
    };
    const auto release = [&](const Fibre& fibre) { held[fibre.number] = false; };
    for (std::uint32_t number = 0; number < size; ++number) {
        put(number);
    }
    std::vector<std::thread> threads;
    for (int other = 0; other < others; ++other) {
        threads.emplace_back([&, other] {
            while (!over) {
                ReadyQueue::Row row = other == 0 ? queue->take_half() : queue->take_all(is_awake);
                for (Fibre* fibre = row.first; fibre != nullptr; fibre = fibre->next) {
                    hold(*fibre);
                }
                for (const Fibre* fibre = row.first; fibre != nullptr; fibre = fibre->next) {
                    release(*fibre);
                }
                if (row.count != 0) {
                    queue->bring(row, holds);
                    ++taken;
                }
            }
        });
    }
    Fibre* running = nullptr;
    for (int turn = 0; turn < turns || taken < takings; ++turn) {
        Fibre* next = nullptr;
        if (running == nullptr) {
            next = queue->take(expects_nothing);
        } else {
            release(*running);
            next = queue->take_turns(*running, expects_nothing);
            if (next == nullptr) {
                hold(*running);
            }
        }
        if (next != nullptr) {
            running = next;
            hold(*running);
        }
        if (turn % 3 == 2 && running != nullptr) {
            release(*running);
            queue->put(row_of(*std::exchange(running, nullptr)));
        }
    }
    over = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    if (running != nullptr) {
        put(running->number);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(queue->count(), size);
    std::array<int, size> seen{};
    for (std::uint32_t number = take(); number != size; number = take()) {
        ++seen[number];
    }
    for (const int times : seen) {
        EXPECT_EQ(times, 1);
    }
}

std::string name_of(const testing::TestParamInfo<Fences>& tested) {
    constexpr std::array names{"by_others", "by_the_worker", "refused_later"};
    return names.at(static_cast<std::size_t>(tested.param));
}

INSTANTIATE_TEST_SUITE_P(Fenced, Ready,
                         testing::Values(Fences::others, Fences::itself, Fences::refused_later),
                         name_of);

TEST(ReadyTest, WhereTheFenceIsRefusedLaterOthersGetAllWhenTheWorkerHasFencedItselfOrSleeps) {
    std::array<Fibre, 3> fibres;
    fences_left = 0;
    const auto refused = std::make_unique<ReadyQueue>(fence_until_refused);
    for (Fibre& fibre : fibres) {
        refused->put(row_of(fibre));
    }
    EXPECT_EQ(refused->take_half().count, 0U);
    EXPECT_EQ(refused->take_all(is_awake).count, 0U);
    Fibre brought;
    refused->bring(row_of(brought), [] {});
    EXPECT_EQ(refused->take_half().first, &brought); // needs no fence
    EXPECT_EQ(refused->take_all([] { return true; }).count, 3U);
    for (Fibre& fibre : fibres) {
        refused->put(row_of(fibre)); // the worker fences itself, as it has been asked to
    }
    EXPECT_EQ(refused->take_half().count, 2U);
    EXPECT_EQ(refused->take_all(is_awake).count, 1U);
}

TEST(ReadyTest, NobodyIsInterruptedForAListThatTheWorkerIsAt) {
    static int asked;
    asked = 0;
    const auto queue = std::make_unique<ReadyQueue>([] {
        ++asked;
        return true;
    });
    std::array<Fibre, 3> fibres;
    for (Fibre& fibre : fibres) {
        queue->put(row_of(fibre));
    }
    EXPECT_EQ(queue->take([&](const Fibre&) { EXPECT_EQ(queue->take_half().count, 0U); }),
              fibres.data());
    EXPECT_EQ(asked, 0);
    std::array<Fibre, 2> brought;
    queue->put(row_of(fibres[0]));
    EXPECT_EQ(queue->take([&](const Fibre&) {
        for (Fibre& fibre : brought) {
            queue->bring(row_of(fibre), [] {});
        }
        EXPECT_EQ(queue->take_half().first, brought.data());
    }),
              &fibres[1]);
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(queue->take_half().count, 2U);
    EXPECT_EQ(asked, 1);
}

} // namespace
} // namespace warren::fibre
