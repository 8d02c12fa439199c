#include "image/check.hpp"

#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "image/test_image.hpp"

namespace warren::image {

namespace {

std::int64_t mappings_of_process() {
    const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                     std::fclose);
    std::int64_t count = 0;
    for (int character = 0; (character = std::getc(maps.get())) != EOF;) {
        count += character == '\n' ? 1 : 0;
    }
    return count;
}

TEST(Mappings, are_counted_as_images_take_them) {
    for (const char* name : {"plain", "everything_c_O3", "everything_cpp_O3"}) {
        const std::string program = fixture(name);
        const auto load = [&](auto& images) {
            images.push_back(std::make_unique<TestImage>());
            ASSERT_EQ(warren_image_load_program(images.back()->get(), program.c_str()),
                      WARREN_IMAGE_SUCCESS)
                << warren_image_error();
            EXPECT_EQ(warren_image_leave(), WARREN_IMAGE_SUCCESS);
        };
        std::vector<std::unique_ptr<TestImage>> images;
        load(images); // and what all share
        const std::int64_t before = mappings_of_process();
        constexpr int count = 8;
        for (int i = 0; i < count; ++i) {
            load(images);
        }
        const auto expected =
            count * static_cast<std::int64_t>(mappings_of_program(program, Sharing{}));
        EXPECT_LE(std::abs(mappings_of_process() - before - expected), expected / 4 + 4) << name;
    }
    EXPECT_EQ(mappings_of_program("/nowhere", Sharing{}), 0U);
}

TEST(Mappings, that_a_process_cannot_have_are_told_beforehand) {
    EXPECT_EQ(lack_of_mappings(100), "");
    const std::string lack = lack_of_mappings(std::uint64_t{1} << 40);
    EXPECT_NE(lack.find("sysctl -w vm.max_map_count="), std::string::npos) << lack;
}

} // namespace

} // namespace warren::image
