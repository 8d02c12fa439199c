#include "predefined.hpp"

#include "objects.hpp"

namespace warren::foreign {

namespace {

struct Object {
    void* address;
    std::uintptr_t handle;
};

const Object objects[] = {
#define WARREN_LIST_OBJECT(name, handle, bytes) {&name, handle},
    WARREN_OPENMPI_OBJECTS(WARREN_LIST_OBJECT)
#undef WARREN_LIST_OBJECT
};

} // namespace

Predefined::Predefined() {
    for (const Object& object : objects) {
        std::uint32_t place = place_of(object.address);
        while (places_[place].object != nullptr) {
            place = (place + 1) % slots;
        }
        places_[place] = {object.address, object.handle};
        if (object.handle < handles && objects_[object.handle] == nullptr) {
            objects_[object.handle] = object.address;
        }
    }
}

// Before what else is initialised in the program.
__attribute__((init_priority(101))) Predefined predefined;

} // namespace warren::foreign
