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
