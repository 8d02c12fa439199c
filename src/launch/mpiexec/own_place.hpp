// Where mpiexec is, and from there what belongs to it; in the build tree and installed.
// Thread rule: any thread.
#pragma once

#include <string>

namespace warren::launch {

// The folder of this program's file.
std::string own_folder();

// From there.
inline constexpr const char* libexec_folder = "/../" WARREN_LIBEXEC_FOLDER "/";
inline constexpr const char* library_folder = "/../" WARREN_LIBRARY_FOLDER "/";

} // namespace warren::launch
