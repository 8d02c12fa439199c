#include "launch/mpiexec/this_node.hpp"

#include <climits>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

std::string own_name() {
    char name[HOST_NAME_MAX + 1] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

TEST(ThisNode, HasSeveralNames) {
    const std::string own = own_name();
    EXPECT_TRUE(is_this_node("localhost"));
    EXPECT_TRUE(is_this_node("127.0.0.1"));
    EXPECT_TRUE(is_this_node(own));
    EXPECT_TRUE(is_this_node(own.substr(0, own.find('.'))));
    EXPECT_FALSE(is_this_node(""));
    EXPECT_FALSE(is_this_node("192.0.2.1")); // reserved for documentation: nobody's
    EXPECT_FALSE(is_this_node(own + "x"));
}

} // namespace
} // namespace warren::launch
