// Libraries as private images: what each copy has for itself, in all the ways that compilers and
// linkers make them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "image/image.hpp"
#include "image/test_image.hpp"

namespace warren::image {

namespace {

std::vector<std::string> heard;

void hear(const char* what) {
    heard.emplace_back(what);
}

const warren_image_binding bindings[] = {{"host_hears", reinterpret_cast<void*>(&hear)},
                                         {nullptr, nullptr}};

warren_image_options with_bindings() {
    warren_image_options options{};
    options.bytes = sizeof options;
    options.bindings = bindings;
    options.output = 1;
    options.error = 2;
    return options;
}

// `preloaded` is not read: it is no pointer here.
TEST(Options, of_programs_that_were_compiled_before_preloaded_was_added_are_taken) {
    warren_image_options options = with_bindings();
    options.bytes = offsetof(warren_image_options, preloaded);
    options.preloaded = reinterpret_cast<const char* const*>(1);
    ASSERT_EQ(warren_image_host(), WARREN_IMAGE_SUCCESS);
    warren_image* image = nullptr;
    ASSERT_EQ(warren_image_create(&options, &image), WARREN_IMAGE_SUCCESS) << warren_image_error();
    EXPECT_EQ(warren_image_destroy(image), WARREN_IMAGE_SUCCESS);
    options.bytes -= 8;
    EXPECT_EQ(warren_image_create(&options, &image), WARREN_IMAGE_ERR_USE);
}

class Library : public testing::TestWithParam<const char*> {};

TEST_P(Library, has_variables_of_its_own_in_each_image) {
    const std::string name = std::string("libcounter_") + GetParam() + ".so";
    TestImage one;
    one.load(name);
    EXPECT_EQ(one.call("counter_next"), 1101); // the constructor ran
    EXPECT_EQ(one.call("counter_next"), 1102);
    warren_image* first = one.get();
    ASSERT_EQ(warren_image_leave(), WARREN_IMAGE_SUCCESS);
    {
        TestImage other;
        other.load(name);
        EXPECT_EQ(other.call("counter_next"), 1101);
        EXPECT_EQ(other.call("counter_calls"), 1);
        EXPECT_EQ(other.call("counter_through_pointer"), 1101 + 1102);
        EXPECT_EQ(other.call("counter_has_weak"), 0);
        EXPECT_NE(other.get(), first);
        EXPECT_EQ(warren_image_of(other.address("counter_next")), other.get());
        EXPECT_EQ(warren_image_of(other.address("counter_value")), other.get());
    }
    ASSERT_EQ(warren_image_enter(first), WARREN_IMAGE_SUCCESS);
    EXPECT_EQ(one.call("counter_next"), 1103);
    EXPECT_EQ(one.call("counter_calls"), 3);
    EXPECT_EQ(warren_image_of(one.address("counter_next")), first);
    EXPECT_EQ(warren_image_of(&bindings), nullptr);
}

TEST_P(Library, says_where_its_variables_are) {
    TestImage test;
    test.load(std::string("libcounter_") + GetParam() + ".so");
    Image& image = *reinterpret_cast<Image*>(test.get());
    std::vector<Range> ranges;
    ASSERT_TRUE(image.variables(ranges));
    const auto has = [&](const void* address) {
        return std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
            return reinterpret_cast<std::uintptr_t>(address) - range.address < range.bytes;
        });
    };
    EXPECT_TRUE(has(test.address("counter_value")));
    EXPECT_FALSE(has(test.address("counter_next")));
    EXPECT_FALSE(has(&ranges));
    std::unique_lock loading(image.load_lock());
    bool said = true;
    std::thread([&] { said = image.variables(ranges); }).join();
    EXPECT_FALSE(said);
}

INSTANTIATE_TEST_SUITE_P(Builds, Library, testing::Values("O0", "O3", "relr", "lazy", "old_hash"),
                         [](const auto& build) { return std::string(build.param); });

class Optimised : public testing::TestWithParam<const char*> {
  protected:
    static std::string named(const std::string& name) {
        return "lib" + name + "_" + GetParam() + ".so";
    }
};

TEST_P(Optimised, libraries_share_the_copy_of_what_they_need) {
    TestImage image;
    image.load(named("counter_user"));
    EXPECT_EQ(image.call("user_adds", 10), 1111);
    EXPECT_EQ(image.call("counter_next"), 1112);
    image.load(named("counter")); // is there already
    EXPECT_EQ(image.call("counter_next"), 1113);
}

TEST_P(Optimised, cxx_libraries_work) {
    heard.clear();
    const warren_image_options options = with_bindings();
    TestImage image(&options);
    image.load(named("objects"));
    EXPECT_EQ(heard, (std::vector<std::string>{"first made", "second made"}));
    EXPECT_EQ(image.call("objects_exceptions"), 11);
    EXPECT_EQ(image.call("objects_types"), 8);
    EXPECT_EQ(image.call("objects_streams"), 1);
    EXPECT_EQ(image.call("objects_table", "two"), 3);
    EXPECT_EQ(image.call("objects_table", "two"), 4);
    heard.clear();
    image.destroy();
    EXPECT_EQ(heard, (std::vector<std::string>{"second gone", "first gone"}));
}

TEST_P(Optimised, exceptions_pass_from_library_to_library) {
    const warren_image_options options = with_bindings();
    TestImage image(&options);
    image.load(named("thrower_user"));
    EXPECT_EQ(image.call("user_catches", 5), 6);
}

TEST_P(Optimised, thread_local_objects_end_with_their_thread) {
    const warren_image_options options = with_bindings();
    TestImage image(&options);
    image.load(named("objects"));
    heard.clear();
    const int first = image.call("objects_thread_local");
    EXPECT_EQ(image.call("objects_thread_local"), first + 1);
    warren_image* entered = image.get();
    void* function = image.address("objects_thread_local");
    int other = 0;
    std::thread([&] {
        EXPECT_EQ(warren_image_current(), entered); // as its maker
        other = reinterpret_cast<int (*)()>(function)();
        EXPECT_EQ(heard.back(), "thread-local made");
    }).join(); // ends without leaving
    EXPECT_EQ(other, first);
    EXPECT_EQ(heard, (std::vector<std::string>{"thread-local made", "thread-local made",
                                               "thread-local gone"}));
    image.destroy();
    EXPECT_EQ(heard[3], "thread-local gone");
}

INSTANTIATE_TEST_SUITE_P(Levels, Optimised, testing::Values("O0", "O3"),
                         [](const auto& level) { return std::string(level.param); });

class ThreadLocal : public testing::TestWithParam<const char*> {};

TEST_P(ThreadLocal, variables_are_each_threads_of_each_image) {
    const std::string name = std::string("libtls_") + GetParam() + ".so";
    TestImage image;
    image.load(name);
    EXPECT_EQ(image.call("tls_next"), 42);
    EXPECT_EQ(image.call("tls_next"), 43);
    EXPECT_EQ(image.call("tls_zero"), 2);
    EXPECT_EQ(image.call("tls_relocated"), 3);
    EXPECT_EQ(*image.call<long*>("tls_exported"), 5);
    EXPECT_EQ(image.call<long*>("tls_exported"), image.address("exported"));
    warren_image* entered = image.get();
    auto* next = reinterpret_cast<int (*)()>(image.address("tls_next"));
    std::thread([&] {
        EXPECT_EQ(warren_image_current(), entered); // as its maker
        EXPECT_EQ(next(), 42);
    }).join();
    EXPECT_EQ(image.call("tls_next"), 44);
}

// The fixture `descriptor` is made by gcc only; elsewhere it is the general model again.
INSTANTIATE_TEST_SUITE_P(Models, ThreadLocal,
                         testing::Values("general", "local", "initial", "descriptor"),
                         [](const auto& model) { return std::string(model.param); });

TEST(ThreadLocalVariables, are_reached_from_other_libraries) {
    TestImage image;
    image.load("libtls_user.so");
    EXPECT_EQ(image.call<long>("user_of_exported"), 6);
    EXPECT_EQ(*image.call<long*>("tls_exported"), 6);
}

TEST(ThreadLocalVariables, of_later_libraries_reach_all_threads) {
    TestImage image;
    image.load("libtls_initial.so");
    image.load("libtls_user.so");
    EXPECT_EQ(image.call<long>("user_of_exported"), 6);
}

TEST(Symbols, of_two_versions_are_told_apart) {
    TestImage image;
    image.load("libversions_user.so");
    EXPECT_EQ(image.call("old_answer"), 1);
    EXPECT_EQ(image.call("answer"), 2);
    EXPECT_EQ(reinterpret_cast<int (*)()>(image.address("answer", "VERSION_1"))(), 1);
    void* found = nullptr;
    EXPECT_EQ(warren_image_symbol(image.get(), nullptr, "answer", "VERSION_3", &found),
              WARREN_IMAGE_ERR_SYMBOL);
    EXPECT_STREQ(warren_image_error(), "the image has no symbol answer@VERSION_3");
}

TEST(Symbols, are_chosen_when_loaded) {
    TestImage image;
    image.load("libchosen.so");
    EXPECT_EQ(image.call("chosen"), 12);
    EXPECT_EQ(image.call("call_chosen"), 12);
    EXPECT_EQ(image.call("call_pointer"), 12);
}

TEST(Symbols, that_nobody_defines_are_named) {
    TestImage image;
    warren_image_module* module = nullptr;
    EXPECT_EQ(warren_image_load(image.get(), fixture("libundefined.so").c_str(), &module),
              WARREN_IMAGE_ERR_SYMBOL);
    EXPECT_NE(std::string(warren_image_error()).find("nobody_has_this_function"),
              std::string::npos);
    EXPECT_EQ(module, nullptr);
    image.load("libcounter_O0.so"); // nothing is left of the failure
    EXPECT_EQ(image.call("counter_next"), 1101);
}

TEST(Libraries, can_be_unloaded_one_by_one) {
    const warren_image_options options = with_bindings();
    TestImage image(&options);
    warren_image_module* user = image.load("libthrower_user_O3.so");
    warren_image_module* objects = image.load("libobjects_O3.so");
    const void* code = image.address("user_catches");
    heard.clear();
    ASSERT_EQ(warren_image_unload(image.get(), user), WARREN_IMAGE_SUCCESS);
    EXPECT_EQ(warren_image_of(code), nullptr);
    EXPECT_TRUE(heard.empty()); // objects is in use
    EXPECT_EQ(image.call("objects_table", "one"), 2);
    ASSERT_EQ(warren_image_unload(image.get(), objects), WARREN_IMAGE_SUCCESS);
    EXPECT_EQ(heard, (std::vector<std::string>{"second gone", "first gone"}));
    void* found = nullptr;
    EXPECT_EQ(warren_image_symbol(image.get(), nullptr, "objects_table", nullptr, &found),
              WARREN_IMAGE_ERR_SYMBOL);
}

// Lines of the process's memory map.
std::size_t mappings() {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    std::size_t count = 0;
    while (std::getline(maps, line)) {
        count += line.find("/tests/image/") != std::string::npos ||
                         line.find("libstdc++") != std::string::npos
                     ? 1
                     : 0;
    }
    return count;
}

TEST(Libraries, in_many_copies_share_code_and_return_all_memory) {
    const warren_image_options options = with_bindings();
    { TestImage(&options).load("libobjects_O3.so"); } // whatever is loaded once for all
    const std::size_t before = mappings();
    warren_image* images[64];
    for (warren_image*& image : images) {
        ASSERT_EQ(warren_image_create(&options, &image), WARREN_IMAGE_SUCCESS);
        ASSERT_EQ(warren_image_enter(image), WARREN_IMAGE_SUCCESS);
        warren_image_module* module = nullptr;
        ASSERT_EQ(warren_image_load(image, fixture("libobjects_O3.so").c_str(), &module),
                  WARREN_IMAGE_SUCCESS)
            << warren_image_error();
        ASSERT_EQ(warren_image_leave(), WARREN_IMAGE_SUCCESS);
    }
    EXPECT_GT(mappings(), before + 64 * 8);
    for (std::size_t i = 0; i < 64; ++i) {
        ASSERT_EQ(warren_image_enter(images[i]), WARREN_IMAGE_SUCCESS);
        void* found = nullptr;
        ASSERT_EQ(warren_image_symbol(images[i], nullptr, "objects_table", nullptr, &found),
                  WARREN_IMAGE_SUCCESS);
        auto* next = reinterpret_cast<int (*)(const char*)>(found);
        for (std::size_t k = 0; k < i; ++k) {
            next("one");
        }
        EXPECT_EQ(next("one"), static_cast<int>(i) + 2);
        ASSERT_EQ(warren_image_destroy(images[i]), WARREN_IMAGE_SUCCESS) << warren_image_error();
    }
    EXPECT_EQ(mappings(), before);
}

TEST(Images, refuse_wrong_use_with_a_sentence) {
    TestImage image;
    EXPECT_EQ(warren_image_current(), image.get());
    EXPECT_EQ(warren_image_enter(image.get()), WARREN_IMAGE_ERR_USE);
    EXPECT_STREQ(warren_image_error(), "this thread belongs to this image already");
    ASSERT_EQ(warren_image_leave(), WARREN_IMAGE_SUCCESS);
    EXPECT_EQ(warren_image_current(), nullptr);
    EXPECT_EQ(warren_image_leave(), WARREN_IMAGE_ERR_USE);
    warren_image_module* module = nullptr;
    EXPECT_EQ(warren_image_load(image.get(), fixture("libcounter_O0.so").c_str(), &module),
              WARREN_IMAGE_ERR_USE);
    EXPECT_STREQ(warren_image_error(), "the calling thread doesn't belong to the image");
    warren_image_options options{};
    warren_image* other = nullptr;
    EXPECT_EQ(warren_image_create(&options, &other), WARREN_IMAGE_ERR_USE);
    EXPECT_EQ(warren_image_load_program(image.get(), "x"), WARREN_IMAGE_ERR_USE);
}

} // namespace

} // namespace warren::image
