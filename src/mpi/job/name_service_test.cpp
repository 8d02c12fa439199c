#include "mpi/job/name_service.hpp"

#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "mpi.h"

namespace warren::node {
namespace {

std::string own_name(const char* name) {
    return std::to_string(getpid()) + "." + name;
}

int class_of(Error error) {
    const int its = error.error_class();
    error.drop();
    return its;
}

TEST(NameService, PublishedNamesAreFoundUntilTheyAreNot) {
    NameService names;
    const std::string service = own_name("service");
    const std::string longer = service + std::string(300, 'x');
    std::string found;
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_ERR_NAME);
    EXPECT_EQ(class_of(names.publish(service, "port one")), MPI_SUCCESS);
    EXPECT_EQ(class_of(names.publish(longer, "port two")), MPI_SUCCESS);
    EXPECT_EQ(class_of(names.publish(longer + "y", "port three")), MPI_SUCCESS);
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_SUCCESS);
    EXPECT_EQ(found, "port one");
    EXPECT_EQ(class_of(NameService::look_up(longer, found)), MPI_SUCCESS);
    EXPECT_EQ(found, "port two");
    NameService others;
    EXPECT_EQ(class_of(others.publish(service, "another")), MPI_ERR_SERVICE);
    EXPECT_EQ(class_of(others.unpublish(service)), MPI_ERR_SERVICE);
    EXPECT_EQ(class_of(names.unpublish(service)), MPI_SUCCESS);
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_ERR_NAME);
    EXPECT_EQ(class_of(others.publish(service, "another")), MPI_SUCCESS);
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_SUCCESS);
    EXPECT_EQ(found, "another");
}

TEST(NameService, NamesEndWithTheirService) {
    const std::string service = own_name("short");
    std::string found;
    {
        NameService names;
        EXPECT_EQ(class_of(names.publish(service, "port")), MPI_SUCCESS);
    }
    EXPECT_EQ(class_of(NameService::look_up(service, found)), MPI_ERR_NAME);
}

} // namespace
} // namespace warren::node
