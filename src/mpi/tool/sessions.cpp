#include "mpi/tool/sessions.hpp"

#include <algorithm>

namespace warren::tool {

namespace {

std::uint64_t current(const VariableHandle& handle, const Subject* subject) {
    return subject != nullptr ? handle.variable->read(*subject) : 0;
}

// Keeps what a started handle shows, and counts on from here.
void settle(VariableHandle& handle, const Subject* subject) {
    const std::uint64_t now = current(handle, subject);
    handle.kept =
        handle.variable->is_mark() ? std::max(handle.kept, now) : handle.kept + (now - handle.base);
    handle.base = now;
}

} // namespace

void Sessions::free(Session& session) {
    for_each(session, [this](VariableHandle& handle) { free(handle); });
    sessions_.remove(session);
}

void Sessions::free_all() {
    handles_.for_each([this](VariableHandle& handle) { free(handle); });
    sessions_.for_each([this](Session& session) { sessions_.remove(session); });
}

VariableHandle* Sessions::allocate(Session& session, const PerformanceVariable& variable) {
    VariableHandle* made = handles_.insert();
    if (made != nullptr) {
        made->variable = &variable;
        made->session = &session;
    }
    return made;
}

VariableHandle* Sessions::find(const Session& session, MPI_T_pvar_handle handle) const {
    VariableHandle* found = handles_.find(handle);
    return found != nullptr && found->session == &session ? found : nullptr;
}

void Sessions::free(VariableHandle& handle) {
    if (handle.started) {
        count(handle, -1);
    }
    handles_.remove(handle);
}

void Sessions::count(const VariableHandle& handle, int change) {
    observing_ += handle.variable->observed ? change : 0;
    marks_ += handle.variable->is_mark() ? change : 0;
}

void Sessions::start(VariableHandle& handle, const Subject* subject) {
    if (handle.started) {
        return;
    }
    handle.started = true;
    handle.base = current(handle, subject);
    if (handle.variable->is_mark()) {
        handle.kept = std::max(handle.kept, handle.base);
    }
    count(handle, 1);
}

void Sessions::stop(VariableHandle& handle, const Subject* subject) {
    if (!handle.started) {
        return;
    }
    settle(handle, subject);
    handle.started = false;
    count(handle, -1);
}

std::uint64_t Sessions::read(const VariableHandle& handle, const Subject* subject) {
    if (handle.variable->continuous()) {
        return current(handle, subject);
    }
    if (!handle.started) {
        return handle.kept;
    }
    const std::uint64_t now = current(handle, subject);
    return handle.variable->is_mark() ? std::max(handle.kept, now)
                                      : handle.kept + (now - handle.base);
}

void Sessions::write(VariableHandle& handle, std::uint64_t value, const Subject* subject) {
    handle.kept = value;
    if (handle.started) {
        handle.base = current(handle, subject);
    }
}

void Sessions::attach(const Subject& subject) {
    handles_.for_each([&](VariableHandle& handle) {
        if (handle.started) {
            handle.base = current(handle, &subject);
        }
    });
}

void Sessions::detach(const Subject& subject) {
    handles_.for_each([&](VariableHandle& handle) {
        if (handle.started) {
            settle(handle, &subject);
            handle.base = 0;
        }
    });
}

void Sessions::raise(const Subject& subject) {
    handles_.for_each([&](VariableHandle& handle) {
        if (handle.started && handle.variable->is_mark()) {
            handle.kept = std::max(handle.kept, current(handle, &subject));
        }
    });
}

} // namespace warren::tool
