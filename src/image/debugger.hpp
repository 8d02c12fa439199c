// Debuggers' view of an image's modules: their files and where they are mapped, so that
// symbols, breakpoints and variables of every copy are there without further ado.
//
// Debuggers follow the list of the system's loader (_r_debug, <link.h>), which has a list of
// modules per namespace; all images together are one more namespace. Needs a C library that has
// namespaces there (glibc 2.35) and a debugger that looks at them (gdb 13). Thread rule: any
// thread; one lock. A debugger reads while all threads stand still.
#pragma once

#include <span>

namespace warren::image {

struct Module;

void tell_debugger_of(std::span<Module* const> added);
void tell_debugger_without(std::span<Module* const> removed);

} // namespace warren::image
