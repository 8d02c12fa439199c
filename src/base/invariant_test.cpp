// A violated invariant ends the process in the builds that check, and costs nothing in others.
#undef WARREN_INVARIANTS
#define WARREN_INVARIANTS 1
#include "base/invariant.hpp"

#include <gtest/gtest.h>

TEST(Invariant, EndsTheProcessWithItsPlaceWhenItDoesNotHold) {
    EXPECT_DEATH(WARREN_INVARIANT(1 + 1 == 3, "sums are right"),
                 "invariant_test.cpp:[0-9]+: .*sums are right");
}

TEST(Invariant, SaysNothingWhenItHolds) {
    int asked = 0;
    WARREN_INVARIANT(++asked == 1, "asked once");
    EXPECT_EQ(asked, 1);
}
