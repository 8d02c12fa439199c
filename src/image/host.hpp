// The process's part of the loader: the reserve of thread-local memory, and the functions of the
// system that the host program puts its own in front of (host/host.cpp).
//
// The reserve is a thread-local array of the host program that ends exactly at the thread pointer,
// where a program's own thread-local variables are at fixed distances. So a thread that belongs to
// an image has the image's variables there, wherever code was compiled to look for them, and
// nothing need be patched. The lowest part is the loader's own (ThreadHead). Thread rule:
// register_host once, before any image; afterwards constant.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "image/architecture.hpp"
#include "image/host_interface.hpp"
#include "image/suitability.hpp"

namespace warren::image {

class Image;
struct Thread;

struct ThreadHead {
    Thread* thread;   // of an image; null: the thread belongs to none
    char has_message; // for dlerror from inside
    char error[512];
};
static_assert(sizeof(ThreadHead) <= reserve_head_bytes);

struct Host {
    std::atomic<bool> registered{false};
    HostFunctions functions{};
};
Host& host();

Error register_host(const HostFunctions& functions);

// The calling thread's head; only in a registered host.
inline ThreadHead& thread_head() {
    return *reinterpret_cast<ThreadHead*>(architecture::thread_pointer() - reserve_bytes);
}

// The calling thread's record; null when it belongs to no image.
Thread* current_thread();
// The image that the calling thread belongs to, or null.
Image* current_image();
// The image whose program the calling thread runs; null also in a child of fork, which is a
// process.
Image* running_image();

} // namespace warren::image
