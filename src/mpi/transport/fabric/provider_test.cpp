#include "mpi/transport/fabric/provider.hpp"

#include <gtest/gtest.h>

#include "mpi.h"

namespace warren::transport::fabric {
namespace {

const std::vector<Offer> usual = {
    {.provider = "shm", .interface = "shm", .address = ""},
    {.provider = "tcp", .interface = "docker0", .address = "172.17.0.1"},
    {.provider = "tcp", .interface = "lo", .address = "127.0.0.1"},
    {.provider = "tcp", .interface = "eth0", .address = "fd00::2"},
    {.provider = "tcp", .interface = "eth0", .address = "10.0.0.2"},
    {.provider = "udp;ofi_rxd", .interface = "eth1", .address = "10.1.0.2"},
};

std::string text_of(Error error) {
    ErrorRecord* const record = error.take();
    std::string text = record == nullptr ? "" : record->text;
    delete record;
    return text;
}

Choice choice_of(const std::vector<Offer>& offers, const char* wish_text) {
    Wish wish;
    EXPECT_EQ(text_of(Wish::parse(wish_text, wish)), "");
    Choice choice;
    EXPECT_EQ(text_of(choose(offers, wish, choice)), "");
    return choice;
}

TEST(NetworkChoice, IsAnInterfaceThatOtherNodesReach) {
    const Choice choice = choice_of(usual, nullptr);
    EXPECT_EQ(choice.number, 4U);
    EXPECT_EQ(choice.why, "tcp on eth0 (10.0.0.2); passed over: docker0, lo");
}

TEST(NetworkChoice, IsLoopbackWhenThereIsNothingElse) {
    const Choice choice = choice_of({usual[0], usual[2]}, "");
    EXPECT_EQ(choice.number, 1U);
    EXPECT_NE(choice.why.find("can't reach"), std::string::npos);
}

TEST(NetworkChoice, ObeysTheUser) {
    EXPECT_EQ(choice_of(usual, "udp;ofi_rxd").number, 5U);
    EXPECT_EQ(choice_of(usual, "tcp,docker0").number, 1U);
    EXPECT_EQ(choice_of(usual, ",fd00::2").number, 3U);
    EXPECT_EQ(
        choice_of({{.provider = "net", .interface = "eth0", .address = "10.0.0.2"}}, "tcp").number,
        0U);
}

TEST(NetworkChoice, IsNeverSharedMemory) {
    Choice choice;
    Error error = choose({usual[0]}, {}, choice);
    EXPECT_EQ(error.error_class(), MPI_ERR_OTHER);
    EXPECT_NE(text_of(std::move(error)).find("shm on shm"), std::string::npos);
}

TEST(NetworkChoice, SaysWhatThereIsWhenTheWishFails) {
    Choice choice;
    const std::string text =
        text_of(choose(usual, {.provider = "tcp", .interface = "ib0"}, choice));
    EXPECT_NE(text.find("tcp on ib0 (WARREN_NETWORK)"), std::string::npos) << text;
    EXPECT_NE(text.find("tcp on eth0 (10.0.0.2)"), std::string::npos) << text;
}

TEST(NetworkChoice, RefusesWhatItCannotRead) {
    Wish wish;
    for (const char* wrong : {"tcp,", "tcp,a,b", "shm", "nonsense,eth0"}) {
        EXPECT_NE(text_of(Wish::parse(wrong, wish)), "") << wrong;
    }
}

} // namespace
} // namespace warren::transport::fabric
