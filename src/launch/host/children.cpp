#include "launch/host/children.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

namespace warren::launch {

namespace {

pid_t wait_for(pid_t pid, int* status, int options, rusage* usage) {
    return wait4(pid, status, pid == -1 ? options | __WNOTHREAD : options, usage);
}

pid_t wait_for_any(int* status) {
    return wait_for(-1, status, 0, nullptr);
}

pid_t wait_for_one(pid_t pid, int* status, int options) {
    return wait_for(pid, status, options, nullptr);
}

pid_t wait_with_usage(int* status, int options, rusage* usage) {
    return wait_for(-1, status, options, usage);
}

int wait_by_kind(idtype_t kind, id_t id, siginfo_t* information, int options) {
    return waitid(kind, id, information, kind == P_ALL ? options | __WNOTHREAD : options);
}

} // namespace

std::span<const warren_image_binding> child_bindings() {
    static const warren_image_binding bindings[] = {
        {"wait", reinterpret_cast<void*>(&wait_for_any)},
        {"waitpid", reinterpret_cast<void*>(&wait_for_one)},
        {"wait3", reinterpret_cast<void*>(&wait_with_usage)},
        {"wait4", reinterpret_cast<void*>(&wait_for)},
        {"waitid", reinterpret_cast<void*>(&wait_by_kind)},
    };
    return bindings;
}

} // namespace warren::launch
