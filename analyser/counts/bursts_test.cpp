#include "analyser/counts/bursts.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace warren::locality::counts {
namespace {

// A thread whose instructions take a nanosecond each, and within bursts a multiple of that.
class SampledThread : public testing::Test {
  protected:
    void start(std::uint64_t slower, std::uint64_t seed = 1) {
        slower_ = slower;
        bursts_.start(&budget_, pool_, seed, now_ns_);
    }
    // Executes a basic block as inline code does. Returns whether it is counted.
    bool run(std::int64_t instructions) {
        budget_ -= instructions;
        if (budget_ < 0 && budget_ >> 32 != in_burst_half) {
            bursts_.turn(now_ns_);
        }
        const bool counted = bursts_.counting();
        if (counted) {
            estimate_ += static_cast<double>(instructions) * bursts_.weight();
            within_ns_ += static_cast<std::uint64_t>(instructions) * slower_;
        }
        now_ns_ += static_cast<std::uint64_t>(instructions) * (counted ? slower_ : 1);
        all_ += static_cast<std::uint64_t>(instructions);
        return counted;
    }
    void run_until(std::uint64_t instructions) {
        while (all_ < instructions) {
            run(block);
        }
    }

    static constexpr std::int64_t block = 500;
    std::int64_t budget_ = 0;
    Pool pool_;
    Bursts bursts_;
    std::uint64_t slower_ = 1;
    std::uint64_t now_ns_ = 0;
    std::uint64_t all_ = 0;
    std::uint64_t within_ns_ = 0;
    double estimate_ = 0;
};

TEST_F(SampledThread, CountsShortThreadsFromBeginningToEnd) {
    start(5);
    run_until(first_burst_instructions - block);
    EXPECT_EQ(estimate_, static_cast<double>(all_));
    EXPECT_EQ(bursts_.instructions(), all_);
    EXPECT_EQ(bursts_.bursts(), 1U);
}

TEST_F(SampledThread, EstimatesAllInstructionsWhateverTheSlowDown) {
    for (const std::uint64_t slower : {1, 2, 5, 40}) {
        now_ns_ = all_ = within_ns_ = 0;
        estimate_ = 0;
        pool_ = {};
        start(slower);
        run_until(3'000'000'000);
        EXPECT_EQ(bursts_.instructions(), all_);
        EXPECT_GT(bursts_.bursts(), slower == 40 ? 5U : 40U);
        // Each stratum has a burst. Only the last stratum, which may have none, adds to the error.
        const double weight = bursts_.weight();
        EXPECT_NEAR(estimate_ / static_cast<double>(all_), 1,
                    2 * weight * burst_instructions / static_cast<double>(all_) + 0.01)
            << slower;
    }
}

TEST_F(SampledThread, CostsLittleHoweverMuchBurstsSlowItDown) {
    for (const std::uint64_t slower : {2, 5, 20, 60}) {
        now_ns_ = all_ = within_ns_ = 0;
        pool_ = {};
        start(slower);
        run_until(1'000'000'000);
        const std::uint64_t from = all_;
        const std::uint64_t from_ns = now_ns_;
        run_until(9'000'000'000);
        const double cost =
            static_cast<double>(now_ns_ - from_ns) / static_cast<double>(all_ - from);
        EXPECT_LT(cost, 1.045) << slower;
    }
}

TEST_F(SampledThread, MeetsEveryPlaceWithTheSameProbability) {
    // The program's period equals the usual stratum. Each tenth of it must get its share.
    constexpr std::uint64_t period = burst_instructions * usual_weight;
    double parts[10] = {};
    start(3, 7);
    run_until(first_burst_instructions);
    while (bursts_.bursts() < 2000) {
        const std::uint64_t part = all_ % period * 10 / period;
        const bool counted = run(block);
        parts[part] += counted ? 1.0 * block * bursts_.weight() : 0;
    }
    double sum = 0;
    for (const double part : parts) {
        sum += part;
    }
    for (const double part : parts) {
        EXPECT_NEAR(part / sum, 0.1, 4 * std::sqrt(0.1 * 0.9 / 2000));
    }
}

TEST_F(SampledThread, EstimatesShortThreads) {
    // With strata of S instructions and bursts of B, a thread of n instructions meets a burst with
    // probability (n + B) / S at least. Then at most its length is counted.
    constexpr int threads = 50'000;
    for (const std::uint64_t length : {25'000, 100'000, 1'000'000}) {
        estimate_ = 0;
        for (int thread = 0; thread < threads; ++thread) {
            pool_ = {0, 0};
            now_ns_ = all_ = 0;
            start(2, static_cast<std::uint64_t>(thread) * 77'777 + 5);
            run_until(length);
            bursts_.stop();
        }
        const double draws = threads * static_cast<double>(length + burst_instructions) /
                             (double{usual_weight} * burst_instructions);
        EXPECT_NEAR(estimate_ / (threads * static_cast<double>(length)), 1, 4 / std::sqrt(draws))
            << length;
    }
}

TEST_F(SampledThread, MeetsTheBeginningOfStrataAsOften) {
    // A stratum is a multiple of the period of four bursts, so that its parts have all phases.
    constexpr std::uint64_t stratum = burst_instructions * usual_weight;
    constexpr std::uint64_t places = 4 * usual_weight;
    constexpr double strata = 4000;
    double counted[places] = {};
    for (std::uint64_t turn = 0; turn < 4000; ++turn) { // of threads, which begin with a stratum
        pool_ = {0, 0};
        now_ns_ = all_ = 0;
        start(2, turn * 31 + 1);
        while (all_ < stratum) {
            const std::uint64_t place = all_ * places / stratum;
            const bool is_counted = run(12'500);
            counted[place] += is_counted ? 12'500.0 * bursts_.weight() : 0;
        }
        bursts_.stop();
    }
    // Neighbouring places are summed, as each alone is met too seldom.
    for (const std::uint64_t from : {std::uint64_t{0}, places / 2, places - 8}) {
        double sum = 0;
        for (std::uint64_t place = from; place < from + 8; ++place) {
            sum += counted[place];
        }
        const double true_sum = strata * 8 * stratum / places;
        EXPECT_NEAR(sum / true_sum, 1, 0.4) << from;
    }
    // Only bursts that wrapped around meet the first quarter of a burst.
    EXPECT_NEAR(counted[0] / (strata * stratum / places), 1, 0.6);
}

TEST_F(SampledThread, TakesNoMoreFirstBurstsThanThereIsAllowanceFor) {
    std::uint64_t counted = 0;
    for (std::uint64_t thread = 0; thread < 10'000; ++thread) {
        now_ns_ = 0;
        start(5, thread);
        for (int turn = 0; turn < 200; ++turn) {
            counted += run(block) ? block : 0;
        }
        bursts_.stop();
        EXPECT_EQ(bursts_.instructions(), 100'000U);
    }
    EXPECT_LT(counted, 10'000U * 100'000U / 10);
    EXPECT_GT(counted, 10'000U * 100'000U / 200);
}

} // namespace
} // namespace warren::locality::counts
