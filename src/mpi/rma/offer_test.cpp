// Offers: who moves a box from `offered`, and when an origin makes none.
#include "mpi/rma/offer.hpp"

#include <gtest/gtest.h>

namespace warren::rma {
namespace {

TEST(OfferBoxTest, IsLeftOnceAndByItsNumberOnly) {
    OfferBox box{};
    box.state.store(OfferBox::word(7, OfferState::offered));
    EXPECT_FALSE(box.leave_offered(6, OfferState::claimed)) << "an older cell's";
    EXPECT_TRUE(box.leave_offered(7, OfferState::claimed));
    EXPECT_FALSE(box.leave_offered(7, OfferState::none)) << "it has been claimed";
    EXPECT_EQ(OfferBox::state_of(box.state.load()), OfferState::claimed);
}

TEST(OfferBoxTest, IsFreeAgainOnceTheTargetOfItsCellHasEnded) {
    OfferBox box{};
    EXPECT_TRUE(box.is_free([] { return false; })) << "no cell is under way";
    box.has_cell.store(1);
    EXPECT_FALSE(box.is_free([] { return false; })) << "the target will take the cell";
    EXPECT_TRUE(box.is_free([] { return true; })) << "nobody will";
    EXPECT_TRUE(box.is_free([] { return false; })) << "for good";
}

int skipped(OfferPolicy& policy) {
    int skips = 0;
    while (!policy.wants_one()) {
        ++skips;
    }
    return skips;
}

TEST(OfferPolicyTest, SkipsMoreAndMoreUntilAnOfferIsTaken) {
    OfferPolicy policy;
    EXPECT_EQ(skipped(policy), 0);
    int before = 0;
    for (int turn = 0; turn < 20; ++turn) {
        policy.note(false);
        const int now = skipped(policy);
        EXPECT_TRUE(now > before || now == 255) << now << " after " << before;
        before = now;
    }
    EXPECT_EQ(before, 255);
    policy.note(true);
    EXPECT_EQ(skipped(policy), 0);
}

} // namespace
} // namespace warren::rma
