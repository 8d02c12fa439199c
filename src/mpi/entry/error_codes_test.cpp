#include "mpi/entry/error_codes.hpp"

#include <gtest/gtest.h>

namespace warren::mpi {
namespace {

TEST(ErrorCodes, InstanceTellsItsSentenceAndItsClass) {
    ErrorCodes codes;
    const int code = codes.instance(MPI_ERR_RANK, "dest = 7 is not in 0 … 3");
    EXPECT_NE(code, MPI_ERR_RANK);
    EXPECT_TRUE(codes.known(code));
    EXPECT_EQ(codes.class_of(code), MPI_ERR_RANK);
    EXPECT_EQ(codes.text_of(code), "dest = 7 is not in 0 … 3");
}

TEST(ErrorCodes, OldInstanceKeepsItsClassOnly) {
    ErrorCodes codes;
    const int code = codes.instance(MPI_ERR_TAG, "the first");
    for (int i = 0; i < 100; ++i) {
        codes.instance(MPI_ERR_COUNT, "another");
    }
    EXPECT_EQ(codes.class_of(code), MPI_ERR_TAG);
    EXPECT_EQ(codes.text_of(code), "MPI_ERR_TAG: invalid tag argument");
}

TEST(ErrorCodes, EveryClassOfTheStandardHasAName) {
    for (int error_class = MPI_SUCCESS; error_class <= MPI_ERR_ABI; ++error_class) {
        EXPECT_NE(error_class_name(error_class), nullptr) << error_class;
    }
    for (int error_class = MPI_T_ERR_CANNOT_INIT; error_class <= MPI_T_ERR_PVAR_NO_ATOMIC;
         ++error_class) {
        EXPECT_NE(error_class_name(error_class), nullptr) << error_class;
    }
    EXPECT_EQ(error_class_name(12345), nullptr);
}

TEST(ErrorCodes, InStatusIsNotAnInstance) {
    ErrorCodes codes;
    EXPECT_EQ(codes.instance(MPI_ERR_IN_STATUS, "…"), MPI_ERR_IN_STATUS);
}

TEST(ErrorCodes, ProgramsAddAndRemoveTheirOwn) {
    ErrorCodes codes;
    const int error_class = codes.add_class();
    EXPECT_GT(error_class, MPI_ERR_LASTCODE);
    EXPECT_EQ(*codes.last_used(), error_class);
    const int code = codes.add_code(error_class);
    EXPECT_EQ(codes.class_of(code), error_class);
    EXPECT_FALSE(codes.set_text(code, "mine"));
    EXPECT_EQ(codes.text_of(code), "mine");
    EXPECT_EQ(codes.instance(code, "never seen"), code);

    Error error = codes.remove_class(error_class);
    EXPECT_EQ(error.error_class(), MPI_ERR_OTHER) << "it has a code";
    error.drop();
    error = codes.remove_code(code);
    EXPECT_EQ(error.error_class(), MPI_ERR_OTHER) << "it has a string";
    error.drop();
    EXPECT_FALSE(codes.remove_text(code));
    EXPECT_FALSE(codes.remove_code(code));
    EXPECT_FALSE(codes.remove_class(error_class));
    EXPECT_FALSE(codes.known(code));
    EXPECT_FALSE(codes.any_added());
}

TEST(ErrorCodes, StandardClassesCannotBeRemoved) {
    ErrorCodes codes;
    for (Error error : {codes.remove_class(MPI_ERR_RANK), codes.remove_code(MPI_ERR_RANK),
                        codes.set_text(MPI_ERR_RANK, "mine")}) {
        EXPECT_EQ(error.error_class(), MPI_ERR_ARG);
        error.drop();
    }
}

} // namespace
} // namespace warren::mpi
