#include "launch/mpiexec/foreign_abi.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "image/libraries.hpp"
#include "launch/mpiexec/command_line.hpp"
#include "launch/mpiexec/own_place.hpp"

namespace warren::launch {

namespace {

struct Library {
    std::string_view start; // of its name
    Abi abi;
    bool has_own = true; // Warren has a library of this name
};

// The MPI libraries, and those for Fortran and C++, which need them.
constexpr Library libraries[] = {
    {"libmpi_abi.so", Abi::standard},
    {"libmpi.so.12", Abi::mpich},
    {"libmpich.so.12", Abi::mpich},
    {"libmpifort.so.12", Abi::mpich},
    {"libmpichfort.so.12", Abi::mpich},
    {"libmpicxx.so.12", Abi::mpich, false},
    {"libmpichcxx.so.12", Abi::mpich, false},
    {"libmpi.so.40", Abi::openmpi},
    {"libmpi_mpifh.so.40", Abi::openmpi},
    {"libmpi_usempif08.so.40", Abi::openmpi, false},
    {"libmpi_cxx.so.40", Abi::openmpi, false},
    {"libmpi_usempi_ignore_tkr.so.40", Abi::openmpi},
};

const Library* library_named(std::string_view name) {
    const auto* const found =
        std::find_if(std::begin(libraries), std::end(libraries),
                     [&](const Library& library) { return name.starts_with(library.start); });
    return found == std::end(libraries) ? nullptr : found;
}

Abi abi_of_library(std::string_view name) {
    const Library* const library = library_named(name);
    return library == nullptr ? Abi::unknown : library->abi;
}

// A file, and those that asked for it, up to the program.
struct Visit {
    image::FilePointer file;
    std::vector<image::FilePointer> askers;

    // The file, then those that asked for it: the order that find_library wants.
    std::vector<const image::ElfFile*> chain() const {
        std::vector<const image::ElfFile*> files = {file.get()};
        for (auto asker = askers.rbegin(); asker != askers.rend(); ++asker) {
            files.push_back(asker->get());
        }
        return files;
    }
    // DT_RUNPATH of a file makes the loader ignore all DT_RPATH.
    bool has_rpath() const {
        if (file->dynamic().runpath != nullptr) {
            return false;
        }
        for (const image::ElfFile* one : chain()) {
            if (one->dynamic().rpath != nullptr && one->dynamic().runpath == nullptr) {
                return true;
            }
        }
        return false;
    }
};

std::string folder_of(Abi abi, const std::string& own_folder) {
    const std::string folder = own_folder + library_folder;
    if (abi != Abi::standard) {
        return folder + (abi == Abi::mpich ? "mpich-abi" : "openmpi-abi");
    }
    // This folder holds links. A wheel can't have links, and has nothing but Warren's files beside
    // the library.
    const std::string links = folder + "standard-abi";
    return access(links.c_str(), X_OK) == 0 ? links : folder;
}

bool are_the_same(const std::string& one, const std::string& other) {
    struct stat first {};
    struct stat second {};
    return stat(one.c_str(), &first) == 0 && stat(other.c_str(), &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Completes what is known of a library that `visit` needs.
ForeignNeed need_of(Abi abi, const std::string& name, const Visit& visit,
                    const std::string& own_folder) {
    ForeignNeed need = {abi, name, visit.file->path(), visit.has_rpath()};
    image::FilePointer file;
    if (Error error = image::find_library(name, visit.chain(), file)) {
        error.drop(); // it comes from Warren's folder
        return need;
    }
    need.found = file->path();
    need.finds_own =
        are_the_same(need.found, own_folder + library_folder + std::string(library_name));
    return need;
}

} // namespace

ForeignNeed foreign_need(const std::string& path, const std::string& own_folder) {
    Visit program;
    if (Error error = image::open_file(path, program.file)) {
        error.drop(); // a script, or another machine's: whoever starts it says what is wrong
        return {};
    }
    std::deque<Visit> visits = {program};
    std::set<std::string> seen;
    while (!visits.empty()) {
        const Visit visit = std::move(visits.front());
        visits.pop_front();
        for (const char* name : visit.file->dynamic().needed) {
            const Abi abi = abi_of_library(name);
            if (abi != Abi::unknown) {
                return need_of(abi, name, visit, own_folder);
            }
            if (image::is_system_library(name) || !seen.insert(name).second) {
                continue;
            }
            Visit next;
            if (Error error = image::find_library(name, visit.chain(), next.file)) {
                error.drop(); // the loader will say so
                continue;
            }
            next.askers = visit.askers;
            next.askers.push_back(visit.file);
            visits.push_back(std::move(next));
        }
    }
    return {};
}

std::string foreign_folders(const ForeignNeed& need, const std::string& own_folder) {
    if (need.is_met()) {
        return "";
    }
    std::string folders;
    for (const Abi abi : {Abi::mpich, Abi::openmpi}) {
        if (need.abi == abi || need.abi == Abi::unknown) {
            folders += folder_of(abi, own_folder) + ":";
        }
    }
    return folders + folder_of(Abi::standard, own_folder);
}

std::string foreign_preload(const ForeignNeed& need, const std::string& own_folder) {
    if (need.abi == Abi::unknown || need.is_met() || !need.has_rpath) {
        return "";
    }
    const std::string folder = folder_of(need.abi, own_folder);
    if (need.abi == Abi::standard) {
        return folder + "/" + library_name;
    }
    // Fortran's too: the other one knows the insides of the other library.
    const bool mpich = need.abi == Abi::mpich;
    return folder + (mpich ? "/libmpi.so.12" : "/libmpi.so.40") + ":" + folder +
           (mpich ? "/libmpifort.so.12" : "/libmpi_mpifh.so.40");
}

bool is_replaced_library(const std::string& name) {
    const Library* const library = library_named(name);
    return library != nullptr && library->has_own;
}

std::string own_library_for(const std::string& path, const std::string& own_folder) {
    const Abi abi = abi_of_library(path.substr(path.rfind('/') + 1));
    return abi == Abi::unknown
               ? ""
               : foreign_preload({.abi = abi, .library = {}, .needed_by = {}, .has_rpath = true},
                                 own_folder);
}

std::string foreign_account(const ForeignNeed& need, const std::string& own_folder,
                            const std::string& program) {
    if (need.abi == Abi::unknown || need.is_met()) {
        return "";
    }
    const std::string preloaded = need.has_rpath ? ", preloaded because of DT_RPATH" : "";
    const std::string folder = folder_of(need.abi, own_folder);
    if (need.abi == Abi::standard) {
        return "'" + program + "' gets Warren's " + library_name + " in " + folder + preloaded +
               "; by itself it finds " + (need.found.empty() ? "none" : need.found);
    }
    return "'" + program + "' is built for " +
           (need.abi == Abi::mpich ? "MPICH's ABI" : "Open MPI's ABI") + ": " + need.needed_by +
           " needs " + need.library + ", which is Warren's in " + folder + preloaded;
}

void offer_to_images(const std::string& own_folder) {
    setenv(image::first_folders_variable, foreign_folders({}, own_folder).c_str(), 1);
}

} // namespace warren::launch
