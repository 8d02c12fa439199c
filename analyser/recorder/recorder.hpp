// The recorder of the first-touch mode starts a program with the tracker, follows it and its
// descendants, and writes a folder per process image (format.hpp).
//
// The program is its child and gets the signals that are meant for it; the recorder ends as the
// program does. Either may be killed: a killed recorder leaves a recording up to then, and the
// program runs on; everything that a killed program did is kept. Thread rule: one thread.
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
    // The program has another recorder within it, whose environment is set. This recorder writes
    // the kernel's page faults into an existing folder. Touches by the other recorder itself are
    // not distinguished.
    bool beside_another = false;
    // Beside another recorder: the most that the other may write. First touches leave so much of
    // the disk free, but at most half of what was free at the start; beyond that they are lost.
    std::uint64_t reserve_bytes = 0;
};

// Records a program. It is an error if the program can't be started; nothing of it has run then.
// The caller is to exit with `status`; if a signal ended the program, `signal` is that signal, and
// the caller is to end by it, too.
Error record(const RecordOptions& options, int& status, int& signal);

} // namespace warren::locality
