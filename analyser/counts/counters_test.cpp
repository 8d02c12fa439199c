#include "analyser/counts/counters.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include "analyser/counts/settings.hpp"

namespace warren::locality::counts {
namespace {

// Counts as inline code does, without DynamoRIO.
class Counters : public testing::Test {
  protected:
    void SetUp() override {
        process_.layout = Layout::of(4096);
        process_.touched = static_cast<std::uint8_t*>(reserve(process_.layout.units()));
        process_.owners = static_cast<std::uint32_t*>(reserve(4096));
        ASSERT_NE(process_.touched, nullptr);
        ASSERT_TRUE(make_tables(thread_, process_));
        ASSERT_TRUE(make_tables(other_, process_));
    }
    void TearDown() override {
        free_tables(thread_);
        free_tables(other_);
        release(process_.touched, process_.layout.units());
        release(process_.owners, 4096);
    }

    static Site site_of(std::initializer_list<Access> accesses) {
        Site site{};
        for (const Access& access : accesses) {
            site.constants[access.write ? writing : reading] += constant_of(1, access.bytes);
            site.access[site.accesses++] = access;
        }
        return site;
    }

    void run(ThreadCounters& thread, const Site& site, std::uint64_t address) {
        std::uint64_t low = address;
        std::uint64_t high = address;
        for (unsigned index = 0; index < site.accesses; ++index) {
            const std::uint64_t at =
                address + static_cast<std::uint64_t>(site.access[index].offset);
            low = at < low ? at : low;
            high = at + site.access[index].bytes > high ? at + site.access[index].bytes : high;
        }
        const auto number = reinterpret_cast<std::uint64_t>(&site);
        if (low >> 12 != (high - 1) >> 12) {
            warren_counts_event(&thread, address, number | crossing);
            return;
        }
        for (const bool second : {false, true}) {
            const Direction direction = (site.first() == writing) != second ? writing : reading;
            if (site.constants[direction] == 0) {
                continue;
            }
            std::uint32_t& word = thread.words[2 * process_.layout.index(address) + direction];
            const std::uint32_t before = word;
            word -= site.constants[direction];
            if (before < site.constants[direction]) {
                warren_counts_event(&thread, address,
                                    number | (second ? second_borrow : first_borrow));
                if (!second) {
                    return; // which has counted the other direction
                }
            }
        }
    }

    Sums sums(const ThreadCounters& thread, std::uint64_t address) const {
        return sums_of(thread, process_.layout.index(address));
    }

    Process process_{};
    ThreadCounters thread_{};
    ThreadCounters other_{};
};

constexpr std::uint64_t page = 0x7fff'1234'5000;

TEST_F(Counters, CountExactlyHoweverOftenWordsGoRound) {
    const Site site = site_of({{1, 0, 64, false}, {2, 8, 8, true}, {3, 16, 1, true}});
    constexpr std::uint64_t times = 100'000;
    for (std::uint64_t time = 0; time < times; ++time) {
        run(thread_, site, page);
    }
    const Sums all = sums(thread_, page);
    EXPECT_EQ(all.reads, times);
    EXPECT_EQ(all.writes, 2 * times);
    EXPECT_EQ(all.bytes_read, 64 * times);
    EXPECT_EQ(all.bytes_written, 9 * times);
}

TEST_F(Counters, HoldTheLargestSite) {
    Site site{};
    for (unsigned index = 0; index < accesses_at_once; ++index) {
        site.access[site.accesses++] = {index, 0, 64, true};
        site.constants[writing] += constant_of(1, 64);
    }
    for (int time = 0; time < 5000; ++time) {
        run(thread_, site, page);
    }
    EXPECT_EQ(sums(thread_, page).writes, 5000U * accesses_at_once);
    EXPECT_EQ(sums(thread_, page).bytes_written, 5000U * bytes_at_once);
}

TEST_F(Counters, SplitWhatCrossesUnits) {
    const Site site = site_of({{1, 0, 32, true}});
    run(thread_, site, page + 4096 - 10);
    EXPECT_EQ(sums(thread_, page).writes, 1U);
    EXPECT_EQ(sums(thread_, page).bytes_written, 10U);
    EXPECT_EQ(sums(thread_, page + 4096).writes, 1U);
    EXPECT_EQ(sums(thread_, page + 4096).bytes_written, 22U);
}

TEST_F(Counters, CountLargeAndRepeatedAccesses) {
    count_row(thread_, page + 4090, 1000, 8, writing, 7); // the first crosses
    EXPECT_EQ(sums(thread_, page).writes, 1U);
    EXPECT_EQ(sums(thread_, page).bytes_written, 6U);
    EXPECT_EQ(sums(thread_, page + 4096).writes, 513U); // one from before, one into the next
    EXPECT_EQ(sums(thread_, page + 4096).bytes_written, 4096U);
    EXPECT_EQ(sums(thread_, page + 8192).bytes_written, 8000U - 6 - 4096);
    const Site site = site_of({{1, 0, 2696, true}}); // xsave
    warren_counts_event(&other_, page, reinterpret_cast<std::uint64_t>(&site) | crossing);
    EXPECT_EQ(sums(other_, page).writes, 1U);
    EXPECT_EQ(sums(other_, page).bytes_written, 2696U);
}

TEST_F(Counters, CountNothingBehindTheEndOfMemory) {
    constexpr std::uint64_t end = std::uint64_t{1} << 47;
    const Site site = site_of({{1, 0, 2696, true}}); // xsave, of which the kernel saves less
    warren_counts_event(&thread_, end - 100, reinterpret_cast<std::uint64_t>(&site) | crossing);
    EXPECT_EQ(sums(thread_, end - 100).bytes_written, 100U);
    EXPECT_EQ(sums(thread_, end).writes, 0U);
}

TEST_F(Counters, KnowTheFirstTouchOfAllThreads) {
    const Site read = site_of({{11, 0, 8, false}});
    const Site write = site_of({{22, 0, 8, true}});
    run(thread_, read, page);
    run(other_, write, page);
    run(thread_, write, page);
    ASSERT_NE(thread_.first_firsts, nullptr);
    ASSERT_EQ(thread_.first_firsts->count, 1U); // it read first …
    EXPECT_EQ(thread_.first_firsts->items[0].instruction, 11U);
    EXPECT_EQ(thread_.first_firsts->items[0].write, 0U);
    ASSERT_EQ(other_.first_firsts->count, 1U); // … and the other wrote first
    EXPECT_EQ(other_.first_firsts->items[0].instruction, 22U);
    EXPECT_EQ(other_.first_firsts->items[0].write, 1U);
}

TEST_F(Counters, BeginAnewWhenMemoryIsGone) {
    const Site write = site_of({{22, 0, 8, true}});
    for (int time = 0; time < 10'000; ++time) {
        run(thread_, write, page);
    }
    forget(thread_, process_.layout.index(page));
    process_.touched[process_.layout.index(page)] = 0;
    run(other_, write, page);
    run(thread_, write, page);
    EXPECT_EQ(sums(thread_, page).writes, 1U);
    EXPECT_EQ(other_.first_firsts->count, 1U);
    EXPECT_EQ(thread_.first_units->count, 1U); // listed once, however often it comes back
}

TEST_F(Counters, KnowWhichPagesAreThere) {
    constexpr std::uint64_t pages = 192;
    constexpr std::uint64_t bytes = pages * 4096;
    auto* const memory = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    const auto is_there = [&](std::uint64_t number) {
        return is_resident(thread_, reinterpret_cast<std::uint64_t>(memory) + number * 4096 + 8);
    };
    for (std::uint64_t number = 0; number < pages; number += 2) {
        memory[number * 4096] = 1;
    }
    for (std::uint64_t number = 0; number < pages; ++number) {
        EXPECT_EQ(is_there(number), number % 2 == 0) << number;
    }
    memory[3 * 4096] = 1; // a neighbour of what is known
    EXPECT_TRUE(is_there(3));
    madvise(memory, bytes, MADV_DONTNEED);
    EXPECT_TRUE(is_there(pages / 2)); // neighbours are known, without a call
    pages_changed(process_);
    for (std::uint64_t number = 0; number < pages; ++number) {
        EXPECT_FALSE(is_there(number)) << number;
    }
    munmap(memory, bytes);
    pages_changed(process_);
    EXPECT_TRUE(is_there(0)); // it can't be told
}

TEST_F(Counters, NoticeAddressesThatShareThem) {
    const Site write = site_of({{22, 0, 8, true}});
    run(thread_, write, page);
    EXPECT_EQ(process_.clashes, 0U);
    run(thread_, site_of({{23, 0, 8, false}}), page ^ process_.layout.span_bytes());
    EXPECT_EQ(process_.clashes, 1U);
}

TEST(Communication, IsWhatCachesWouldTransfer) {
    Process process{};
    process.layout = Layout::of(64, true);
    process.touched = static_cast<std::uint8_t*>(reserve(process.layout.units()));
    process.owners = static_cast<std::uint32_t*>(reserve(4096));
    ASSERT_TRUE(make_communication(process));
    ThreadCounters threads[3] = {};
    for (std::uint32_t number = 0; number < 3; ++number) {
        ASSERT_TRUE(make_tables(threads[number], process));
        threads[number].number = number;
        join(threads[number]);
    }
    constexpr std::uint64_t line = 0x7000'0000'1000;
    const auto access = [&](std::uint32_t thread, Direction direction) {
        count_row(threads[thread], line + 8, 3, 8, direction, 0x400);
    };
    const auto got = [&](std::uint32_t consumer, std::uint32_t producer) {
        return threads[consumer].transfers[producer];
    };
    access(0, reading);
    access(1, reading);
    EXPECT_EQ(got(1, 0), 0U) << "nobody has written it";
    access(0, writing);
    access(0, writing);
    access(1, reading);
    access(1, reading);
    access(2, reading);
    EXPECT_EQ(got(1, 0), 1U);
    EXPECT_EQ(got(2, 0), 1U);
    access(1, writing); // which knows it
    EXPECT_EQ(got(1, 0), 1U);
    access(2, writing);
    EXPECT_EQ(got(2, 1), 1U);
    leave(threads[1]);
    free_tables(threads[1]);
    access(0, reading);
    EXPECT_EQ(got(0, 2), 1U);
    EXPECT_EQ(got(0, 1), 0U) << "what it wrote is gone";
    forget(threads[0], process.layout.index(line));
    forget(threads[2], process.layout.index(line));
    access(0, reading);
    EXPECT_EQ(got(0, 2), 1U) << "the memory is another";
    threads[2].number = most_producers - 1;
    access(2, writing);
    access(0, reading);
    EXPECT_EQ(got(0, most_producers - 1), 1U);
    EXPECT_EQ(process.lost_transfers, 0U);
    threads[2].number = most_producers;
    access(0, writing);
    access(2, writing);
    access(0, reading);
    EXPECT_EQ(process.lost_transfers, 1U) << "there is no room for its number";
    for (const std::uint32_t number : {0U, 2U}) {
        leave(threads[number]);
        free_tables(threads[number]);
    }
    release(process.touched, process.layout.units());
    release(process.owners, 4096);
    release(process.writers, process.layout.units() * sizeof(std::uint32_t));
}

TEST(Layout, CoversAllGranularities) {
    for (std::uint64_t unit = least_granularity; unit <= largest_granularity; unit *= 2) {
        const Layout layout = Layout::of(unit);
        EXPECT_EQ(std::uint64_t{1} << layout.unit_shift, unit);
        EXPECT_GE(layout.span_bytes(), std::uint64_t{128} << 30);
        EXPECT_LT(layout.index(~std::uint64_t{0}), layout.units());
    }
}

TEST_F(Counters, NobodySeesMoreThanThereIs) {
    constexpr std::uint64_t address = 0x10000;
    constexpr std::uint64_t accesses = 3'000'000; // the word goes round every 4,096
    const Site site = site_of({{1, 0, 8, true}});
    std::atomic<std::uint64_t> begun{0};
    std::thread counting([&] {
        for (std::uint64_t access = 1; access <= accesses; ++access) {
            begun.store(access, std::memory_order_release);
            run(thread_, site, address);
        }
    });
    std::uint64_t too_many = 0;
    for (std::uint64_t done = 0; done < accesses;) {
        const Sums sums = sums_of(thread_, process_.layout.index(address));
        done = begun.load(std::memory_order_acquire);
        too_many += sums.writes > done || sums.bytes_written > 8 * done ? 1 : 0;
    }
    counting.join();
    EXPECT_EQ(too_many, 0U);
    EXPECT_EQ(sums_of(thread_, process_.layout.index(address)).writes, accesses);
}

// Advances the thread's bursts as if its instructions were executed.
class SampledCounters : public Counters {
  protected:
    void start() {
        process_.pool = {};
        thread_.inline_words = &inline_words_;
        thread_.idle_words = other_.words;
        start_bursts(thread_, bursts_, &budget_);
    }
    void turn_until_weighty() {
        const Site none{};
        do {
            budget_ = bursts_.counting() ? in_burst - 1 : -1;
            warren_counts_event(&thread_, 0, reinterpret_cast<std::uint64_t>(&none) | burst_turn);
        } while (!bursts_.counting() || bursts_.weight() == 1);
    }

    Bursts bursts_;
    std::int64_t budget_ = 0;
    std::uint32_t* inline_words_ = nullptr;
};

TEST_F(SampledCounters, WeighWhatIsCountedSinceTheWeightIsAnother) {
    const Site site = site_of({{1, 0, 8, true}, {2, 8, 4, true}});
    start();
    run(thread_, site, page);
    run(thread_, site, page);
    turn_until_weighty();
    EXPECT_EQ(sums(thread_, page).writes, 4U);
    EXPECT_EQ(sums(thread_, page).bytes_written, 24U);
    run(thread_, site, page);
    EXPECT_EQ(sums(thread_, page).writes, 4U + 2 * usual_weight);
    EXPECT_EQ(sums(thread_, page).bytes_written, 24U + 12 * usual_weight);
    for (int time = 0; time < 5000; ++time) { // the first one is the unit's first
        run(thread_, site, page + 4096);
    }
    EXPECT_EQ(sums(thread_, page + 4096).writes, 2U * 5000 * usual_weight);
    EXPECT_EQ(sums(thread_, page + 4096).bytes_written, 12U * 5000 * usual_weight);
}

TEST_F(SampledCounters, CountRowsExactlyWithinBurstsAndOutside) {
    start();
    turn_until_weighty();
    count_row(thread_, page + 4090, 1000, 8, writing, 7); // the first crosses
    EXPECT_EQ(sums(thread_, page).writes, 1U);
    EXPECT_EQ(sums(thread_, page).bytes_written, 6U);
    EXPECT_EQ(sums(thread_, page + 4096).writes, 513U);
    EXPECT_EQ(sums(thread_, page + 4096).bytes_written, 4096U);
    while (bursts_.counting()) {
        const Site none{};
        budget_ = in_burst - 1;
        warren_counts_event(&thread_, 0, reinterpret_cast<std::uint64_t>(&none) | burst_turn);
    }
    count_row(thread_, page, 512, 8, reading, 7);
    EXPECT_EQ(sums(thread_, page).reads, 512U);
    EXPECT_EQ(sums(thread_, page).bytes_read, 4096U);
}

TEST_F(SampledCounters, NobodySeesMoreThanThereIsWhileWeightsChange) {
    const Site site = site_of({{1, 0, 8, true}});
    constexpr std::uint64_t pages = 20'000;
    for (int turn = 0; turn < 10; ++turn) {
        start();
        for (std::uint64_t at = 0; at < pages; ++at) {
            run(thread_, site, page + at * 4096);
            run(thread_, site, page + at * 4096);
        }
        std::atomic<bool> reads{false};
        std::atomic<bool> done{false};
        std::uint64_t too_many = 0;
        std::thread reading([&] {
            for (std::uint64_t at = 0; !done.load(); at = (at + 1) % 4) {
                const Sums sums = sums_of(thread_, process_.layout.index(page + at * 4096));
                too_many += sums.writes > 2 || sums.bytes_written > 16 ? 1 : 0;
                reads.store(true);
            }
        });
        while (!reads.load()) {
            std::this_thread::yield();
        }
        turn_until_weighty();
        done.store(true);
        reading.join();
        EXPECT_EQ(too_many, 0U);
        EXPECT_EQ(sums(thread_, page).writes, 2U);
        free_tables(thread_);
        thread_ = {};
        ASSERT_TRUE(make_tables(thread_, process_));
    }
}

TEST(Settings, ComeBackAsTheyWere) {
    Settings settings;
    settings.folder = "/tmp/a b;'\"`%41\n/ü";
    settings.granularity = 64;
    settings.save_ns = 2;
    const std::string text = "client " + write_settings(settings);
    std::vector<std::string> words;
    for (std::size_t at = 0; at != std::string::npos;) {
        const std::size_t blank = text.find(' ', at);
        words.push_back(text.substr(at, blank - at));
        at = blank == std::string::npos ? blank : blank + 1;
    }
    std::vector<const char*> pointers;
    for (const std::string& word : words) {
        pointers.push_back(word.c_str());
    }
    Settings read;
    std::string problem;
    ASSERT_TRUE(read_settings(static_cast<int>(pointers.size()), pointers.data(), read, problem))
        << problem;
    EXPECT_EQ(read.folder, settings.folder);
    EXPECT_EQ(read.mode, settings.mode);
    EXPECT_EQ(read.granularity, 64U);
    EXPECT_EQ(read.save_ns, 2U);
}

TEST(Settings, RefuseWhatIsWrong) {
    const auto refused = [](const char* word) {
        const char* const words[] = {"client", "folder=x", word};
        Settings settings;
        std::string problem;
        return !read_settings(3, words, settings, problem) && !problem.empty();
    };
    EXPECT_TRUE(refused("granularity=100"));
    EXPECT_TRUE(refused("granularity=32"));
    EXPECT_TRUE(refused("granularity=4194304"));
    EXPECT_TRUE(refused("granularity="));
    EXPECT_TRUE(refused("granularity=12x"));
    EXPECT_TRUE(refused("mode=first-touch"));
    EXPECT_TRUE(refused("mode=exact"));
    EXPECT_TRUE(refused("colour=red"));
    EXPECT_TRUE(refused("folder="));
}

} // namespace
} // namespace warren::locality::counts
