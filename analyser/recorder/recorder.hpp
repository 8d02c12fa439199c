// The recorder of the first-touch mode: starts a program with the tracker, follows it and all that
// comes from it, and writes a folder per process image (format.hpp).
//
// The program is its child, and gets the signals that are meant for it; the recorder ends as the
// program does. Neither needs the other to go on: a killed recorder leaves a recording up to then,
// and the program runs on; of a killed program all is kept that it did. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace warren::locality {

struct RecordOptions {
    std::string folder = "warren-locality";
    std::uint64_t threshold = 4096;                     // bytes of a heap block
    std::uint64_t limit_bytes = std::uint64_t{4} << 30; // on the disk, per process image
    std::uint32_t calls = 32;                           // deepest stack
    std::string tracker;                                // the library to load first
    std::vector<std::string> command;
    std::string program; // beside_another: the file to execute
    bool quiet = false;
    // The program has another recorder within it, whose environment is set: this one writes what
    // the kernel tells, into a folder that is there. That other's own touches are not told apart.
    bool beside_another = false;
    // Beside another: most that it may write. First touches leave that much of the disk, but no
    // more than half of what was free at the start; then they are lost.
    std::uint64_t reserve_bytes = 0;
};

// Records. If the program can't be started, that is an error; nothing of it has run. `status` is
// what the caller is to exit with; if the program was ended by a signal, that is `signal`, and the
// caller is to end by it, too.
Error record(const RecordOptions& options, int& status, int& signal);

} // namespace warren::locality
