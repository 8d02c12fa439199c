#include "image/libc/substitutes.hpp"

#include <cstring>
#include <gtest/gtest.h>

#include "image/libc/stateful_calls.hpp"

namespace warren::image {

namespace {

TEST(Substitutes, are_all_found) {
    std::size_t count = 0;
    for (; const char* name = substitute_name(count); ++count) {
        EXPECT_NE(find_substitute_function(name), nullptr) << name;
        if (count > 0) {
            EXPECT_LT(std::strcmp(substitute_name(count - 1), name), 0) << name;
        }
    }
    EXPECT_GT(count, 80U);
    for (const char* name : {"", "a", "printf_", "malloc", "zzz", "__libc_start"}) {
        EXPECT_EQ(find_substitute_function(name), nullptr) << name;
    }
}

TEST(StatefulCalls, are_all_found) {
    // The table has variables as well, those that do no harm among them, which have no state to
    // tell.
    std::size_t calls = 0;
    std::size_t variables = 0;
    for (std::size_t count = 0; const char* name = stateful_call_name(count); ++count) {
        calls += shared_state_of(name) != nullptr;
        variables += shared_variable_state_of(name) != nullptr;
        EXPECT_TRUE(shared_state_of(name) == nullptr || shared_variable_state_of(name) == nullptr)
            << name;
        if (count > 0) {
            EXPECT_LT(std::strcmp(stateful_call_name(count - 1), name), 0) << name;
        }
    }
    EXPECT_GT(calls, 40U);
    EXPECT_GT(variables, 0U);
    EXPECT_NE(shared_state_of("textdomain"), nullptr);
    EXPECT_EQ(shared_state_of("strlen"), nullptr);
}

TEST(Variables, have_their_place_in_the_state_until_a_program_has_copies) {
    LibcState state;
    Variable variable{};
    ASSERT_TRUE(find_variable("optind", variable));
    EXPECT_EQ(state.value<int>(variable), 1);
    int copy = 5;
    ASSERT_NE(find_substitute_variable(state, "optind"), nullptr);
    *find_substitute_variable(state, "optind") = &copy;
    EXPECT_EQ(state.value<int>(Variable::optind), 5);
    ASSERT_TRUE(find_variable("_environ", variable));
    EXPECT_EQ(variable, Variable::environment);
    EXPECT_EQ(find_substitute_variable(state, "errno"), nullptr);
}

} // namespace

} // namespace warren::image
