// AArch64: programs are read, as mpiexec does to know their libraries, but no private copies are
// made.
#if defined(__aarch64__)

#include "image/architecture.hpp"

#include <cstdio>

namespace warren::image::architecture {

RelocationKind relocation_kind(std::uint32_t type) {
    return type == R_AARCH64_COPY ? RelocationKind::copy : RelocationKind::unsupported;
}

const char* relocation_name(std::uint32_t type, char (&text)[32]) {
    std::snprintf(text, sizeof text, "relocation type %u", type);
    return text;
}

std::byte* thread_pointer() {
    return static_cast<std::byte*>(__builtin_thread_pointer());
}

// Nothing of the rest is reached: check_private refuses every file (suitability.cpp).
void* get_thread_variable() {
    return nullptr;
}

void* tls_descriptor_function() {
    return nullptr;
}

void enter_program(ReturnPoint* /*here*/, void* /*stack*/, void* /*entry*/) {
    __builtin_trap();
}

void leave_program(const ReturnPoint* /*there*/) {
    __builtin_trap();
}

} // namespace warren::image::architecture

#endif
