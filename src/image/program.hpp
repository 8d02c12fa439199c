// Running a program as an image: through its ELF entry point, as the kernel would, so that whatever
// its start-up code does it does here too. Instead of the C library's __libc_start_main it reaches
// ours, which constructs, calls main and ends the program without ending the process.
//
// main runs with the entry point's frame at the end of its stack: what unwinds the stack (an
// exception that nobody catches) ends there, in the image's own C++ library, and never sees the
// host's frames.
//
// A program ends by returning from main, exit, _exit, quick_exit or abort in its first thread: then
// the host's frames are entered again, and the program's are given up. From another thread it ends
// as far as that is possible without killing threads: its exit functions run, the host is told, and
// the thread stays where it is. A child that it forked ends as a process. Thread rule: run_program
// in a thread of the image, once per image.
#pragma once

#include <cstdint>

#include "image/image.hpp"

namespace warren::image {

Error run_program(Image& image, int argument_count, char** arguments, char** environment,
                  ProgramEnd& end);

enum class Farewell : std::uint8_t {
    orderly, // exit: exit functions, destructors, streams
    quick,   // quick_exit: its own functions
    none,    // _exit, abort
};
// Ends the calling thread's program, or the process when the thread belongs to none.
[[noreturn]] void end_program(ProgramEnd end, Farewell farewell);

} // namespace warren::image
