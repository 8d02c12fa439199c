// Announcements are checked before a writer takes memory for them, and all ranks hear of it.
#include "mpi/io/exchange.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mutex>
#include <unistd.h>
#include <vector>

#include "mpi/coll/test_ranks.hpp"

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

// Rank 1 divides the file into smaller domains than rank 0, whose announcement it refuses.
Error write_with_other_domains(coll::Member& member, const char* path) {
    constexpr MPI_Count bytes = 64 << 10;
    const Representation native{.name = "native"};
    SystemFile file;
    std::shared_ptr<const View> view;
    if (Error error = file.open(path, O_RDWR, 0)) {
        return error;
    }
    const std::lock_guard guard(member.rank.lock);
    const datatype::Datatype& byte = datatype::basic(MPI_BYTE);
    if (Error error = View::make(0, byte, byte, native, true, member.rank.lock, view)) {
        return error;
    }
    Medium medium;
    medium.file = &file;
    std::vector<std::byte> data(bytes);
    const bool first = member.rank.index == 0;
    ExchangedAccess access(member.engine, member.communicators.world(),
                           {.medium = medium,
                            .view = *view,
                            .domain_bytes = first ? 32 << 10 : std::uint64_t{4096},
                            .writers = 0},
                           {.base = data.data(), .count = bytes, .type = &byte}, 0);
    return access.write({0, bytes});
}

TEST(Exchange, a_refused_announcement_is_an_error_at_all_ranks) {
    char path[] = "/tmp/mpi-test-exchange.XXXXXX";
    close(mkstemp(path));
    alarm(60); // it would wait for ever
    EXPECT_TRUE(coll::run_threads(2, 2, [&](coll::Member& member) {
        Error error = write_with_other_domains(member, path);
        const bool refused = error && error.error_class() == MPI_ERR_INTERN;
        error.drop();
        return refused;
    }));
    alarm(0);
    unlink(path);
}

} // namespace
} // namespace warren::io
