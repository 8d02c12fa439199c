#include "launch/mpiexec/preloaded_tools.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>

#include "image/libraries.hpp"
#include "launch/mpiexec/scoped_variable.hpp"

namespace warren::launch {

namespace {

enum class Kind { none, tool, tool_of_process, mpi_library };

// Functions of the C library that recorders of a whole process replace, this project's among them:
// their threads and blocks are the process's, and so must such a library be.
bool is_of_process(std::string_view function) {
    return function == "pthread_create" || function == "malloc" || function == "mmap";
}

// A tool calls the PMPI_ procedures that an MPI library defines.
Kind kind_of(const image::ElfFile& file) {
    const image::SymbolTable& symbols = file.symbols();
    bool has_mpi = false;
    bool is_recorder = false;
    for (std::uint32_t index = 0; index < symbols.count(); ++index) {
        const std::string_view name = symbols.name(index);
        if (symbols.symbol(index).st_shndx == SHN_UNDEF) {
            continue;
        }
        if (name.starts_with("PMPI_")) {
            return Kind::mpi_library;
        }
        has_mpi |= name.starts_with("MPI_") || name.starts_with("mpi_");
        is_recorder |= is_of_process(name);
    }
    return !has_mpi ? Kind::none : is_recorder ? Kind::tool_of_process : Kind::tool;
}

// The last value of a variable in an environment; empty: it has none.
const char* value_of(char* const* environment, std::string_view name) {
    const char* value = "";
    for (; *environment != nullptr; ++environment) {
        const std::string_view entry = *environment;
        if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
            value = *environment + name.size() + 1;
        }
    }
    return value;
}

// The file that the system's loader would take; null: none that can be read.
image::FilePointer find_preloaded(const std::string& name, char* const* environment,
                                  const ResolvedProgram& into) {
    image::FilePointer file;
    Error error;
    if (name.find('/') != std::string::npos) {
        error = image::open_file(std::filesystem::path(into.directory()) / name, file);
    } else {
        // The search reads mpiexec's own environment.
        const ScopedVariable folders("LD_LIBRARY_PATH", value_of(environment, "LD_LIBRARY_PATH"));
        image::FilePointer user;
        error = image::open_file(into.full_path(), user);
        if (!error) {
            error = image::find_library(name, {user.get()}, file);
        }
    }
    const bool found = !error;
    error.drop();
    return found ? file : nullptr;
}

} // namespace

PreloadedLibraries preloaded_libraries(char* const* environment, const ResolvedProgram& into) {
    const std::string_view list = value_of(environment, "LD_PRELOAD");
    PreloadedLibraries found;
    for (std::size_t begin = 0; begin < list.size();) {
        const std::size_t end = std::min(list.find_first_of(" :", begin), list.size());
        const std::string name(list.substr(begin, end - begin));
        begin = end + 1;
        if (name.empty()) {
            continue;
        }
        const image::FilePointer file = find_preloaded(name, environment, into);
        const Kind kind = file != nullptr ? kind_of(*file) : Kind::none;
        if (kind == Kind::tool) {
            found.tools.push_back(std::filesystem::absolute(file->path()));
            continue;
        }
        found.of_process.push_back(name);
        if (file != nullptr && kind == Kind::none) { // (Of others the system's loader complains.)
            found.without_mpi.push_back(name);
        }
        if (kind == Kind::tool_of_process) {
            found.recorders.push_back(name);
        }
    }
    return found;
}

} // namespace warren::launch
