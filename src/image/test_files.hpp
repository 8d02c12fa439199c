// Files for the tests of this room: the fixtures of tests/image, and files made on the spot.
// Thread rule: for tests.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include "image/libraries.hpp"

namespace warren::image {

// WARREN_IMAGE_FIXTURES comes from cmake/WarrenTests.cmake.
inline std::string fixture(const std::string& name) {
    return std::string(WARREN_IMAGE_FIXTURES "/") + name;
}

inline std::vector<char> contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A file with these contents, for the life of the process.
inline std::string temporary_file(const std::string& text) {
    struct Files {
        std::vector<std::string> paths;
        ~Files() {
            for (const std::string& path : paths) {
                unlink(path.c_str());
            }
        }
    };
    static Files files;
    std::string path = "/tmp/image_test_XXXXXX";
    const int descriptor = mkstemp(path.data());
    if (descriptor >= 0) {
        close(descriptor);
        files.paths.push_back(path);
        std::ofstream(path, std::ios::binary) << text;
    }
    return path;
}

} // namespace warren::image
