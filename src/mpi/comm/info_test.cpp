#include "mpi/comm/info.hpp"

#include <gtest/gtest.h>

namespace warren::comm {
namespace {

TEST(Info, KeysKeepTheOrderOfTheirFirstSetting) {
    Info info;
    info.set("b", "1");
    info.set("a", "2");
    info.set("b", "3");
    ASSERT_EQ(info.keys(), 2);
    EXPECT_EQ(info.key(0), "b");
    EXPECT_EQ(info.key(1), "a");
    EXPECT_EQ(*info.find("b"), "3");
    EXPECT_EQ(info.find("c"), nullptr);
    EXPECT_TRUE(info.remove("b"));
    EXPECT_FALSE(info.remove("b"));
    EXPECT_EQ(info.keys(), 1);
}

TEST(Infos, HandlesAreIntegersAndBack) {
    Infos infos;
    const MPI_Info handle = infos.handle_of(*infos.insert());
    const int integer = static_cast<int>(reinterpret_cast<std::uintptr_t>(handle));
    EXPECT_EQ(infos.of_integer(integer), handle);
    infos.remove(*infos.find(handle));
    EXPECT_EQ(infos.find(handle), nullptr);
    EXPECT_EQ(infos.of_integer(integer), MPI_INFO_NULL);
    EXPECT_EQ(infos.handle_of(*infos.find(MPI_INFO_ENV)), MPI_INFO_ENV);
    EXPECT_EQ(infos.find(MPI_INFO_NULL), nullptr);
}

} // namespace
} // namespace warren::comm
