// Predefined: the addresses of Open MPI's predefined objects and the standard's handles, both ways.
//
// A handle of a program may be anything, so it is not followed: it is looked up among the
// addresses, in a hash table with open addressing that is filled when the library is loaded. Thread
// rule: any thread. Invariant: complete before any function of the program runs.
#pragma once

#include <cstdint>

#include "foreign/invalid.hpp"

namespace warren::foreign {

class Predefined {
  public:
    Predefined();

    // The standard's handle of an object's address; invalid_handle for what is none.
    std::uintptr_t core(const void* object) const {
        std::uint32_t place = place_of(object);
        while (places_[place].object != object) {
            if (places_[place].object == nullptr) [[unlikely]] {
                return invalid_handle;
            }
            place = (place + 1) % slots;
        }
        return places_[place].handle;
    }

    // The address for a handle of the standard's; null for types that Open MPI lacks.
    void* foreign(std::uintptr_t handle) const {
        return handle < handles ? objects_[handle] : nullptr;
    }

  private:
    static constexpr std::uint32_t slots = 512; // four times the objects
    static constexpr std::uint32_t handles = 768;

    struct Place {
        const void* object;
        std::uintptr_t handle;
    };

    static std::uint32_t place_of(const void* object) {
        constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
        return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(object) * golden >> 55);
    }

    Place places_[slots] = {};
    void* objects_[handles] = {};
};

extern Predefined predefined;

} // namespace warren::foreign
