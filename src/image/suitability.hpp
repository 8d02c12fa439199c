// Properties of a sound file that keep it from being a private copy, or change its meaning as one.
//
// Thread rule: pure functions of an immutable file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "image/elf_file.hpp"

namespace warren::image {

// The thread-local memory that all private modules of a thread share (host/host.cpp).
inline constexpr std::uint64_t reserve_bytes = 65536;
// Its lowest part is the loader's own.
inline constexpr std::uint64_t reserve_head_bytes = 1024;

enum class Weight : std::uint8_t {
    refused, // can't be loaded
    changes, // runs, but something means something else
    remark,
};

struct Finding {
    Weight weight;
    std::string what;   // a sentence without the file's name
    std::string remedy; // what to do about it; may be empty
};

// Everything that there is to say about the file itself, the worst first.
std::vector<Finding> examine(const ElfFile& file);

// The first reason to refuse it, as an error.
Error check_private(const ElfFile& file);

} // namespace warren::image
