// ForeignAbi: how programs that were built for another MPI library find Warren's library of their
// ABI.
//
// The name of a library that a program, or a library of it, needs tells the ABI. For each ABI there
// is a folder that holds Warren's MPI libraries of it and nothing else. The folder goes first in
// LD_LIBRARY_PATH; where DT_RPATH, which wins, is on the way, the library is preloaded. A program
// of the standard ABI that finds Warren's library by itself needs neither. The standard ABI's
// folder goes along with the others, because their libraries need libmpi_abi.so.1. Scripts and
// programs that open their libraries when they run (Python's) get all folders: the libraries' names
// differ. Private images look into the folders before anything else.
// Thread rule: functions of their arguments and of the files.
#pragma once

#include <cstdint>
#include <string>

namespace warren::launch {

enum class Abi : std::uint8_t {
    standard,
    mpich,
    openmpi,
    unknown // nothing that it needs says so
};

struct ForeignNeed {
    Abi abi = Abi::unknown;
    std::string library = {};   // the name that says so
    std::string needed_by = {}; // the file that needs it
    bool has_rpath = false;     // DT_RPATH decides where that name is found
    std::string found = {};     // the file that the loader takes for that name; empty: none
    bool finds_own = false;     // that is Warren's library of the standard ABI

    bool is_met() const { return abi == Abi::standard && finds_own; }
};

// Finds the ABI that the program at `path` needs in its file and those of its libraries.
// `own_folder` is mpiexec's, here and below.
ForeignNeed foreign_need(const std::string& path, const std::string& own_folder);

// Warren's libraries for the program: folders for LD_LIBRARY_PATH, files to be preloaded, each with
// colons between them; empty: none.
std::string foreign_folders(const ForeignNeed& need, const std::string& own_folder);
std::string foreign_preload(const ForeignNeed& need, const std::string& own_folder);

// A sentence for mpiexec -v; empty: nothing to be said.
std::string foreign_account(const ForeignNeed& need, const std::string& own_folder,
                            const std::string& program);

// Whether Warren has an MPI library of this name, of any ABI. The libraries for C++ classes and for
// Open MPI's module mpi_f08 are none: those of others call Warren's.
bool is_replaced_library(const std::string& name);
// Warren's library that takes the place of such a file, to be preloaded; empty: it is none.
std::string own_library_for(const std::string& path, const std::string& own_folder);

// Folders that private images look into first (image/libraries.hpp), for this process and its
// children.
void offer_to_images(const std::string& own_folder);

} // namespace warren::launch
