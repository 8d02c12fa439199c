#include "image/libc/layout.hpp"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "warren/image.h"

namespace warren::image {

namespace {

TEST(Layout, of_the_installed_library_is_known) {
    for (const LayoutCheck& check : layout_checks()) {
        EXPECT_TRUE(check.is_known()) << check.what;
    }
    EXPECT_FALSE(check_layout(layout_checks()));
}

// Built with one C library and run with another: glibc 2.36 has the flags in word 9, 2.41 in
// word 7.
TEST(Layout, of_condition_variables_may_have_its_flags_anywhere) {
    for (const std::size_t word : {9U, 7U}) {
        ConditionWords monotonic{};
        ConditionWords shared{};
        monotonic[word] = 2;
        shared[word] = 3;
        EXPECT_EQ(word_of_flags({}, monotonic, shared), word);
        shared[1] = 1; // what nobody knows
        EXPECT_EQ(word_of_flags({}, monotonic, shared), shared.size());
    }
    EXPECT_EQ(word_of_flags({}, {}, {}), ConditionWords{}.size());
}

TEST(Layout, of_condition_variables_is_found_before_they_are_asked) {
    ASSERT_FALSE(check_layout(layout_checks()));
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_t condition;
    pthread_cond_init(&condition, &attributes);
    pthread_condattr_destroy(&attributes);
    EXPECT_EQ(condition_flags(condition), 2U);
    pthread_cond_destroy(&condition);
}

TEST(Layout, that_is_unknown_is_refused_by_name) {
    const LayoutCheck checks[] = {{"doors", [] { return true; }},
                                  {"windows", [] { return false; }},
                                  {"walls", [] { return false; }}};
    Error error = check_layout(checks);
    ASSERT_TRUE(error);
    EXPECT_EQ(error.error_class(), WARREN_IMAGE_ERR_HOST);
    const std::unique_ptr<ErrorRecord> record(error.take());
    EXPECT_NE(record->text.find(std::string("glibc ") + gnu_get_libc_version() + " keeps windows "),
              std::string::npos)
        << record->text;
}

} // namespace

} // namespace warren::image
