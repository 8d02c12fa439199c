// Announcements are checked before a writer takes memory for them.
#include "mpi/io/exchange.hpp"

#include <gtest/gtest.h>

namespace warren::io {
namespace {

using Announcement = ExchangedAccess::Announcement;

TEST(Exchange, an_announcement_fits_its_domain_or_is_refused) {
    constexpr ByteRange domain = {4096, 4096 + 100};
    constexpr ByteRange none = {0, 0}; // of a rank that is no writer
    constexpr std::uint64_t huge = ~std::uint64_t{0};
    EXPECT_TRUE((Announcement{0, 0}.fits(domain)));
    EXPECT_TRUE((Announcement{0, 0}.fits(none)));
    EXPECT_TRUE((Announcement{100, 100}.fits(domain)));
    EXPECT_TRUE((Announcement{1, 100}.fits(domain)));
    EXPECT_FALSE((Announcement{1, 101}.fits(domain)));
    EXPECT_FALSE((Announcement{51, 50}.fits(domain)));
    EXPECT_FALSE((Announcement{0, 50}.fits(domain)));
    EXPECT_FALSE((Announcement{huge, 50}.fits(domain)));
    EXPECT_FALSE((Announcement{huge, huge}.fits(domain)));
    EXPECT_FALSE((Announcement{1, 1}.fits(none)));
}

} // namespace
} // namespace warren::io
