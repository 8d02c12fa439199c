#include "image/debugger.hpp"

#include <link.h>
#include <mutex>

#include "image/module.hpp"

namespace warren::image {

namespace {

struct DebuggerList {
    std::mutex lock;
    r_debug_extended own{};
    link_map* last = nullptr;
};

DebuggerList& list() {
    static DebuggerList& only = *new DebuggerList;
    return only;
}

r_debug_extended& system_list() {
    return reinterpret_cast<r_debug_extended&>(_r_debug);
}

// Where debuggers that don't know of the loader's probes have a breakpoint.
void announce(DebuggerList& own, decltype(r_debug::r_state) state) {
    own.own.base.r_state = state;
    if (_r_debug.r_brk != 0) {
        reinterpret_cast<void (*)()>(_r_debug.r_brk)();
    }
}

// Hangs the list behind the system's own, once there is something in it.
void publish(DebuggerList& own) {
    if (own.own.base.r_version != 0) {
        return;
    }
    own.own.base = _r_debug;
    own.own.base.r_version = 2;
    own.own.base.r_map = nullptr;
    r_debug_extended* end = &system_list();
    end->base.r_version = 2; // from now on there may be others
    while (end->r_next != nullptr) {
        end = end->r_next;
    }
    end->r_next = &own.own;
}

} // namespace

void tell_debugger_of(std::span<Module* const> added) {
    DebuggerList& own = list();
    const std::lock_guard guard(own.lock);
    publish(own);
    announce(own, r_debug::RT_ADD);
    for (Module* module : added) {
        module->link.l_prev = own.last;
        module->link.l_next = nullptr;
        (own.last != nullptr ? own.last->l_next : own.own.base.r_map) = &module->link;
        own.last = &module->link;
    }
    announce(own, r_debug::RT_CONSISTENT);
}

void tell_debugger_without(std::span<Module* const> removed) {
    DebuggerList& own = list();
    const std::lock_guard guard(own.lock);
    announce(own, r_debug::RT_DELETE);
    for (Module* module : removed) {
        link_map& link = module->link;
        if (link.l_prev == nullptr && own.own.base.r_map != &link) {
            continue; // failed before it was added
        }
        (link.l_prev != nullptr ? link.l_prev->l_next : own.own.base.r_map) = link.l_next;
        (link.l_next != nullptr ? link.l_next->l_prev : own.last) = link.l_prev;
    }
    announce(own, r_debug::RT_CONSISTENT);
}

} // namespace warren::image
