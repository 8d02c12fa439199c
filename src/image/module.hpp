// Module: one private copy of a file in an image.
//
// Thread rule: made, changed and ended under its image's lock; file, places and TLS offset don't
// change between that, and anybody reads them.
// Invariant: from map() to the end, [start, start + span) belongs to the module alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <link.h>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "image/libraries.hpp"

namespace warren::image {

class Image;

struct Module {
    enum class State : std::uint8_t { mapped, relocated, constructing, constructed, destructed };

    Module() = default;
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    ~Module(); // unmaps

    // Maps the segments of `file` in one stretch of the address space: code and constants are the
    // page cache's, shared by all copies, until somebody writes.
    Error map();
    // Makes what the file wants so (RELRO) read-only. After relocation.
    Error protect();

    // Where an address of the file is in this copy.
    std::byte* at(std::uint64_t address) const { return base + address; }
    bool contains(const void* address) const {
        const auto* byte = static_cast<const std::byte*>(address);
        return byte >= start && byte < start + file->span();
    }
    bool has_tls() const { return file->tls().memory_bytes != 0; }

    FilePointer file;
    Image* image = nullptr;
    std::byte* start = nullptr;  // of the mapping
    std::byte* base = nullptr;   // where the file's address 0 is: start, for all usual linkers
    std::vector<Module*> needs;  // private ones
    std::size_t preloaded = 0;   // how many of them, from the first, are preloaded tools
    std::int64_t tls_offset = 0; // from the thread pointer
    State state = State::mapped;
    unsigned opened = 0; // times by dlopen from inside, or by the host
    bool kept = false;   // stays when nobody has it open (RTLD_NODELETE)
    // Its symbols are visible to all modules, or only to those that came with its root
    // (RTLD_LOCAL).
    bool global = true;
    bool root_first = false;      // it looks there before the global ones (RTLD_DEEPBIND)
    const Module* root = nullptr; // what was opened, for it to come; null: the image's first
    // Slots of functions that no library defines yet, by the numbers of their symbols.
    std::vector<std::pair<std::uint64_t, std::uint32_t>> undefined;
    // Thread-local objects whose destructors are this module's code and have yet to run.
    std::atomic<unsigned> thread_objects{0};
    link_map link{}; // for debuggers and dladdr
};

} // namespace warren::image
