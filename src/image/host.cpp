#include "image/host.hpp"

#include "image/thread.hpp"
#include "warren/image.h"

namespace warren::image {

Host& host() {
    static constinit Host only;
    return only;
}

Error register_host(const HostFunctions& functions) {
    if (functions.bytes != sizeof(HostFunctions) || functions.reserve_bytes != reserve_bytes) {
        return fail(WARREN_IMAGE_ERR_HOST,
                    "this program's libwarren_image_host.a is of another version than the library: "
                    "link it again");
    }
    if (functions.reserve + functions.reserve_bytes != architecture::thread_pointer()) {
        return fail(WARREN_IMAGE_ERR_HOST,
                    "this program's thread-local variables come after the loader's: link "
                    "libwarren_image_host.a last");
    }
    host().functions = functions;
    host().registered.store(true, std::memory_order_release);
    return {};
}

Image* current_image() {
    if (!host().registered.load(std::memory_order_acquire)) {
        return nullptr;
    }
    const Thread* thread = thread_head().thread;
    return thread == nullptr ? nullptr : thread->image;
}

} // namespace warren::image
