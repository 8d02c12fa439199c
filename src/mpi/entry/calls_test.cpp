#include "mpi/calls.hpp"

#include <gtest/gtest.h>

namespace warren::mpi {
namespace {

TEST(Calls, NumbersHaveTheirNames) {
    EXPECT_STREQ(call_name(calls::MPI_Send), "MPI_Send");
    EXPECT_STREQ(call_name(calls::MPI_Send_c), "MPI_Send_c");
    EXPECT_STREQ(call_name(calls::MPI_Wtime), "MPI_Wtime");
    EXPECT_EQ(calls::count, 665U);
    EXPECT_STREQ(call_name(calls::count - 1), "MPI_Wtime");
    EXPECT_STREQ(call_name(calls::count), "an unknown call");
}

} // namespace
} // namespace warren::mpi
