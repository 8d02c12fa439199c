// Closure: a program or library with all libraries that it needs, each either private (copied for
// each image) or shared (one in the process, loaded by the system).
//
// All libraries are private but the system's own: what a program can write to, its libraries'
// variables included, is its own, as it would be in a process. A host may say otherwise by name.
// Thread rule: immutable once made.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "image/libraries.hpp"

namespace warren::image {

// A host's decisions about libraries, by the names that files need them by. A name in both lists is
// private.
struct Sharing {
    std::vector<std::string> shared;
    std::vector<std::string> private_;
    // Libraries, by name or path, that come right behind the program, before those that it needs,
    // as preloaded ones do in a process. They are private.
    std::vector<std::string> preloaded = {};

    bool is_shared(const std::string& name) const;
};

struct Closure {
    struct Member {
        FilePointer file;
        // In the file's order: below present.size() a present file, else, that much lower, a
        // member.
        std::vector<std::size_t> needs;
    };
    // The root first, then breadth first: the order in which symbols are looked up.
    std::vector<Member> members;
    // Preloaded members, behind the root, which needs them before all others.
    std::size_t preloaded = 0;
    // Names of shared libraries, in the order found.
    std::vector<std::string> shared;
};

// Finds all libraries. `present` are private files that are loaded already: they aren't members,
// and what matches one of them is not looked for again.
Error find_closure(const FilePointer& root, const Sharing& sharing,
                   const std::vector<FilePointer>& present, Closure& closure);

} // namespace warren::image
