// SharedScope: the libraries of the process that images share (the C library and its kin), and the
// host program: where symbols are looked up that no private module and no substitute defines.
//
// Symbols are found in the files' own tables by the rules of the system's loader, in its order: the
// host program and what it started with, then what images made it load. So a sanitizer, or whatever
// else was put in front of the C library, is in front of it for images too.
// Thread rule: any thread; one lock. Libraries are never unloaded.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "image/libraries.hpp"

struct link_map;

namespace warren::image {

struct SharedLibrary {
    FilePointer file;
    link_map* link = nullptr;
    std::byte* base = nullptr;
    bool from_start = false; // its thread-local variables are at fixed distances
};

struct SharedSymbol {
    const SharedLibrary* library = nullptr; // null: not found
    const Elf64_Sym* symbol = nullptr;
    void* address = nullptr; // not of thread-local variables
};

class SharedScope {
  public:
    static SharedScope& only();

    // Loads a library, and what it needs, as the system does it for everybody; or, if that does not
    // find it, from where `user` says that its libraries are.
    Error load(const std::string& name, const ElfFile& user);
    SharedSymbol find(const SymbolName& name, SymbolUse use);

  private:
    SharedScope();
    void add(link_map* link, bool from_start);
    void add_with_needs(link_map* link);
    bool has(const link_map* link) const;

    std::recursive_mutex lock_; // functions that choose functions (IFUNC) may look others up
    std::vector<std::unique_ptr<SharedLibrary>> libraries_;
    std::map<std::string, bool> loaded_;
    std::map<std::string, SharedSymbol> found_;
};

} // namespace warren::image
