#include "launch/mpiexec/events.hpp"

#include <algorithm>
#include <array>
#include <sys/epoll.h>
#include <unistd.h>

namespace warren::launch {

Events::~Events() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

bool Events::open() {
    descriptor_ = epoll_create1(EPOLL_CLOEXEC);
    return descriptor_ >= 0;
}

void Events::watch(int descriptor, Source source, std::uint32_t number) {
    epoll_event event = {};
    const bool writes =
        source == Source::sink || source == Source::input_taken || source == Source::link_takes;
    event.events = writes ? EPOLLOUT : EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(source) << 32 | number;
    epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &event);
}

void Events::forget(int descriptor) {
    epoll_ctl(descriptor_, EPOLL_CTL_DEL, descriptor, nullptr);
}

std::span<const Event> Events::wait(int timeout_ms) {
    std::array<epoll_event, most_at_once> events;
    const int count = epoll_wait(descriptor_, events.data(), most_at_once, timeout_ms);
    for (int index = 0; index < count; ++index) {
        const std::uint64_t data = events[static_cast<std::size_t>(index)].data.u64;
        found_[index] = {static_cast<Source>(data >> 32), static_cast<std::uint32_t>(data)};
    }
    return {found_, static_cast<std::size_t>(std::max(count, 0))};
}

} // namespace warren::launch
