// An image for a test, through the C API. Thread rule: for tests, one thread.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "image/test_files.hpp"
#include "warren/image.h"

// A leak detector's function, when there is one.
extern "C" [[gnu::weak]] void __lsan_disable();
extern "C" [[gnu::weak]] void __lsan_enable();

namespace warren::image {

// While it lives, what the thread allocates may be lost: a program that is killed frees nothing.
class LeaksAllowed {
  public:
    LeaksAllowed() {
        if (__lsan_disable != nullptr) {
            __lsan_disable();
        }
    }
    LeaksAllowed(const LeaksAllowed&) = delete;
    LeaksAllowed& operator=(const LeaksAllowed&) = delete;
    ~LeaksAllowed() {
        if (__lsan_enable != nullptr) {
            __lsan_enable();
        }
    }
};

// An image that the calling thread belongs to for the object's life.
class TestImage {
  public:
    explicit TestImage(const warren_image_options* options = nullptr) {
        static const int ready = warren_image_host();
        EXPECT_EQ(ready, WARREN_IMAGE_SUCCESS);
        EXPECT_EQ(warren_image_create(options, &image_), WARREN_IMAGE_SUCCESS)
            << warren_image_error();
        EXPECT_EQ(warren_image_enter(image_), WARREN_IMAGE_SUCCESS) << warren_image_error();
    }
    TestImage(const TestImage&) = delete;
    TestImage& operator=(const TestImage&) = delete;
    ~TestImage() { destroy(); }

    void destroy() {
        if (image_ != nullptr) {
            EXPECT_EQ(warren_image_destroy(image_), WARREN_IMAGE_SUCCESS) << warren_image_error();
            image_ = nullptr;
        }
    }

    warren_image* get() { return image_; }

    // Loads a fixture; null and a failed test when that fails.
    warren_image_module* load(const std::string& name) {
        warren_image_module* module = nullptr;
        EXPECT_EQ(warren_image_load(image_, fixture(name).c_str(), &module), WARREN_IMAGE_SUCCESS)
            << warren_image_error();
        return module;
    }

    void* address(const char* name, const char* version = nullptr) {
        void* found = nullptr;
        EXPECT_EQ(warren_image_symbol(image_, nullptr, name, version, &found), WARREN_IMAGE_SUCCESS)
            << warren_image_error();
        return found;
    }
    template <typename Result = int, typename... Arguments>
    Result call(const char* name, Arguments... arguments) {
        void* found = address(name);
        return found == nullptr ? Result{}
                                : reinterpret_cast<Result (*)(Arguments...)>(found)(arguments...);
    }

  private:
    warren_image* image_ = nullptr;
};

} // namespace warren::image
