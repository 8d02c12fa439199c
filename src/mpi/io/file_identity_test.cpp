// Which files two nodes take for one.
#include "mpi/io/file_identity.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace warren::io {
namespace {

TEST(FileIdentity, a_file_of_one_kernel_has_that_kernel_device_and_number) {
    const FileIdentity one = {.kernel = 5, .device = 1, .number = 12, .made_ns = 7};
    FileIdentity other = one;
    EXPECT_TRUE(is_same_file(one, other));
    other.made_ns = 0;
    EXPECT_TRUE(is_same_file(one, other));
    other.kernel = 6;
    EXPECT_FALSE(is_same_file(one, other));
    other = one;
    other.device = 2;
    EXPECT_FALSE(is_same_file(one, other));
    other = one;
    other.number = 13;
    EXPECT_FALSE(is_same_file(one, other));
    other = one;
    other.kernel = 0; // of a shared file system
    EXPECT_FALSE(is_same_file(one, other));
}

TEST(FileIdentity, a_file_of_a_shared_file_system_has_other_devices_on_other_nodes) {
    const FileIdentity one = {.kernel = 0, .device = 1, .number = 12, .made_ns = 7};
    FileIdentity other = one;
    other.device = 2;
    EXPECT_TRUE(is_same_file(one, other));
    other.made_ns = 8;
    EXPECT_FALSE(is_same_file(one, other));
    other.made_ns = 0; // the other node does not know
    EXPECT_TRUE(is_same_file(one, other));
    other.number = 13;
    EXPECT_FALSE(is_same_file(one, other));
}

TEST(FileIdentity, two_descriptors_of_one_file_are_the_same) {
    std::string names[2] = {"file_identity_XXXXXX", "file_identity_XXXXXX"};
    const int first = mkstemp(names[0].data());
    const int second = mkstemp(names[1].data());
    const int again = open(names[0].c_str(), O_RDONLY);
    ASSERT_TRUE(first >= 0 && second >= 0 && again >= 0);
    EXPECT_TRUE(is_same_file(identity_of(first), identity_of(again)));
    EXPECT_FALSE(is_same_file(identity_of(first), identity_of(second)));
    for (const std::string& name : names) {
        unlink(name.c_str());
    }
    for (const int descriptor : {first, second, again}) {
        close(descriptor);
    }
}

} // namespace
} // namespace warren::io
