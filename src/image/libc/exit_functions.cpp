#include "image/libc/exit_functions.hpp"

namespace warren::image {

namespace {

void call(const ExitFunction& function, int status) {
    if (function.with_status != nullptr) {
        function.with_status(status, function.argument);
    } else {
        function.plain(function.argument);
    }
}

} // namespace

void ExitFunctions::add(const ExitFunction& function) {
    const std::lock_guard guard(lock_);
    functions_.push_back(function);
}

void ExitFunctions::run(int status) {
    while (true) {
        ExitFunction last;
        {
            const std::lock_guard guard(lock_);
            if (functions_.empty()) {
                return;
            }
            last = functions_.back();
            functions_.pop_back();
        }
        call(last, status);
    }
}

void ExitFunctions::run_of(const void* start, const void* end) {
    while (true) {
        ExitFunction last;
        {
            const std::lock_guard guard(lock_);
            std::size_t at = functions_.size();
            while (at > 0 &&
                   (functions_[at - 1].module < start || functions_[at - 1].module >= end)) {
                --at;
            }
            if (at == 0) {
                return;
            }
            last = functions_[at - 1];
            functions_.erase(functions_.begin() + static_cast<std::ptrdiff_t>(at) - 1);
        }
        call(last, 0);
    }
}

} // namespace warren::image
