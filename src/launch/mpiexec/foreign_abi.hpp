// ForeignAbi: programs that were built for another MPI library's ABI, and how they find Warren's
// library of that ABI (src/foreign) in place of the other one.
//
// The name of a library that a program, or a library of it, needs tells the ABI. The folder of
// Warren's goes first in LD_LIBRARY_PATH; where DT_RPATH, which wins, is on the way, the library is
// preloaded. Scripts and programs that open their libraries when they run (Python's) get the
// folders of both ABIs: the libraries' names differ. Private images look into the folders before
// anything else. Thread rule: functions of their arguments and of the files.
#pragma once

#include <cstdint>
#include <string>

namespace warren::launch {

enum class Abi : std::uint8_t {
    standard, // Warren's own: nothing to be done
    mpich,
    openmpi,
    unknown // nothing that it needs says so
};

struct ForeignNeed {
    Abi abi = Abi::unknown;
    std::string library = {};   // the name that says so
    std::string needed_by = {}; // the file that needs it
    bool has_rpath = false;     // DT_RPATH decides where that name is found
};

// What the program at `path` needs, by its file and those of its libraries.
ForeignNeed foreign_need(const std::string& path);

// Of Warren's libraries for it, beside `own_folder`, mpiexec's: folders for LD_LIBRARY_PATH, files
// to be preloaded, each with colons between them; empty: none.
std::string foreign_folders(const ForeignNeed& need, const std::string& own_folder);
std::string foreign_preload(const ForeignNeed& need, const std::string& own_folder);

// A sentence for mpiexec -v; empty: nothing to be said.
std::string foreign_account(const ForeignNeed& need, const std::string& own_folder,
                            const std::string& program);

// Folders that private images look into first (image/libraries.hpp), for this process and its
// children.
void offer_to_images(const std::string& own_folder);

} // namespace warren::launch
