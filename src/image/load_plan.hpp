// LoadPlan: what loading one program or library into an empty image has found out, for the next
// copies of it: which files there are, that they can be private, and where each symbol that they
// use is defined. A further copy looks nothing up.
//
// Thread rule: immutable once kept; find and keep from any thread.
// Invariant: what a plan points to lives as long as the plan, which has its files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "image/closure.hpp"
#include "image/shared_scope.hpp"

namespace warren::image {

// A Definition (image.hpp) that is the same in all copies.
struct BoundSymbol {
    bool known = false;
    std::int16_t variable = -1; // a substitute variable
    std::int32_t module = -1;   // a private module, by its number
    const SharedLibrary* library = nullptr;
    const Elf64_Sym* symbol = nullptr;
    void* address = nullptr;
};

struct LoadPlan {
    Closure closure;
    // For each symbol of each member: as used by address and by call.
    std::vector<std::vector<BoundSymbol>> symbols;

    // The plan of this key whose files are still what they were, or null.
    static std::shared_ptr<const LoadPlan> find(const std::string& key);
    static void keep(const std::string& key, std::shared_ptr<const LoadPlan> plan);
};

} // namespace warren::image
