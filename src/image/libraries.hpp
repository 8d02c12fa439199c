// Where the libraries are that a file needs, by the rules of the system's loader (ld.so(8)), but
// for what a host puts in front (first_folders_variable): the DT_RPATH of the file and of those
// that asked for it, LD_LIBRARY_PATH, DT_RUNPATH, the system's cache, the system's folders. And the
// files themselves, each opened once in the process.
//
// Thread rule: any thread at any time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "image/elf_file.hpp"

namespace warren::image {

// The variable with the folders that come before all others: MPI libraries of other ABIs are found
// there whatever a program's DT_RPATH says. They have few files.
inline constexpr const char* first_folders_variable = "WARREN_IMAGE_LIBRARIES";

using FilePointer = std::shared_ptr<const ElfFile>;

// The file at `path`: the same object for as long as somebody has it and the file is the same.
Error open_file(const std::string& path, FilePointer& file);

// The library `name` that `chain.front()` needs; the rest of the chain are the files that asked for
// that one, up to the program. Files of another machine on the way are passed over. An error when
// there is none; a damaged file ends the search with its error.
Error find_library(const std::string& name, const std::vector<const ElfFile*>& chain,
                   FilePointer& file);

// Whether a library of this name is the system's own, of which a process has one: the C library,
// its loader, what unwinds stacks, sanitizers.
bool is_system_library(const std::string& name);

} // namespace warren::image
