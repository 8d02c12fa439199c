#include "image/host.hpp"

#include <unistd.h>

#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/layout.hpp"
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
    if (Error error = check_layout(layout_checks())) {
        return error;
    }
    host().functions = functions;
    libc::prepare_time_zone();
    host().registered.store(true, std::memory_order_release);
    return {};
}

Thread* current_thread() {
    return host().registered.load(std::memory_order_acquire) ? thread_head().thread : nullptr;
}

Image* current_image() {
    const Thread* thread = current_thread();
    return thread == nullptr ? nullptr : thread->image;
}

Image* running_image() {
    Image* image = current_image();
    const bool runs = image != nullptr && image->running().first_thread != nullptr &&
                      image->running().process == getpid();
    return runs ? image : nullptr;
}

} // namespace warren::image
