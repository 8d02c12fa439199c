#include "image/libc/fork_handlers.hpp"

#include <memory>

namespace warren::image {

void ForkHandlers::add(const ForkHandler& handler) {
    const std::lock_guard guard(lock_);
    handlers_.push_back(handler);
}

void ForkHandlers::remove_of(const void* start, const void* end) {
    const std::lock_guard guard(lock_);
    std::erase_if(handlers_, [&](const ForkHandler& handler) {
        return handler.module >= start && handler.module < end;
    });
}

std::vector<ForkHandler> ForkHandlers::all() {
    const std::lock_guard guard(lock_);
    return handlers_;
}

void ForkHandlers::renew_lock() {
    std::construct_at(&lock_);
}

} // namespace warren::image
