#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>

#include "image/libc/functions.hpp"
#include "image/test_image.hpp"

namespace warren::image {

namespace {

// The process's environment has an entry of ours for the C library: images have none of it.
TEST(TimeZone, of_the_process_is_not_in_an_images_environment) {
    unsetenv("TZ");
    TestImage first;
    EXPECT_NE(std::getenv("TZ"), nullptr);
    EXPECT_EQ(libc::getenv("TZ"), nullptr);
    EXPECT_EQ(libc::setenv("TZ", "XYZ-5", 1), 0);
    const std::time_t time = 0;
    std::tm parts{};
    libc::localtime_r(&time, &parts);
    EXPECT_EQ(parts.tm_hour, 5);
    EXPECT_STREQ(std::getenv("TZ"), "XYZ-5");
    EXPECT_EQ(warren_image_leave(), WARREN_IMAGE_SUCCESS);
    {
        TestImage second;
        EXPECT_EQ(libc::getenv("TZ"), nullptr);
    }
    EXPECT_EQ(warren_image_enter(first.get()), WARREN_IMAGE_SUCCESS);
}

} // namespace

} // namespace warren::image
