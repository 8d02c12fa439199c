#include "analyser/tracker/call_stacks.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

namespace warren::locality::tracker {

namespace {

struct Walk {
    const Caller* caller;
    Unwound* found;
    std::uint32_t depth;
    bool inside; // still in the tracker's own frames
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
    auto& walk = *static_cast<Walk*>(argument);
    const std::uint64_t address = _Unwind_GetIP(context);
    if (walk.inside) {
        if (address != reinterpret_cast<std::uint64_t>(walk.caller->address)) {
            return _URC_NO_REASON;
        }
        walk.inside = false;
    }
    Unwound& found = *walk.found;
    if (address == 0 || found.depth == walk.depth) {
        return _URC_NORMAL_STOP;
    }
    // The word below the stack pointer after a return is the address that it returned to.
    const auto* slot = reinterpret_cast<const std::uint64_t*>(_Unwind_GetCFA(context)) - 1;
    found.slots_known = found.slots_known && *slot == address;
    found.addresses[found.depth] = address;
    found.slots[found.depth] = slot;
    ++found.depth;
    return _URC_NO_REASON;
}

template <typename Entry>
Entry* make_table(std::uint64_t entries) {
    const long at = syscall(SYS_mmap, nullptr, entries * sizeof(Entry), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == -1 ? nullptr : reinterpret_cast<Entry*>(at);
}

std::uint64_t mixed(std::uint64_t value) {
    value *= 0x9E3779B97F4A7C15U;
    return value ^ value >> 32;
}

} // namespace

void unwind(const Caller& caller, std::uint32_t depth, Unwound& found) {
    found.depth = 0;
    found.slots_known = true;
    Walk walk{&caller, &found, depth < deepest_stack ? depth : deepest_stack, true};
    _Unwind_Backtrace(visit, &walk);
    if (found.depth == 0) { // there are no tables: the caller is known all the same
        found.addresses[0] = reinterpret_cast<std::uint64_t>(caller.address);
        found.depth = 1;
        found.slots_known = false;
    }
}

CallStacks::Known* CallStacks::entry_of(const Caller& caller, std::uint32_t tid) const {
    const std::uint64_t key = mixed(reinterpret_cast<std::uint64_t>(caller.address)) ^
                              mixed(reinterpret_cast<std::uint64_t>(caller.frame) + tid);
    return known_ + key % known_entries;
}

std::uint32_t CallStacks::find(const Caller& caller, std::uint32_t tid) const {
    if (known_ == nullptr) {
        return no_stack;
    }
    const Known& known = *entry_of(caller, tid);
    if (known.address != caller.address || known.frame != caller.frame || known.tid != tid) {
        return no_stack;
    }
    for (std::uint32_t index = 0; index < known.depth; ++index) {
        if (*known.slots[index] != known.addresses[index]) {
            return no_stack;
        }
    }
    return known.number;
}

CallStacks::Place* CallStacks::place_of(std::uint64_t address, std::uint32_t caller) const {
    std::uint64_t at = mixed(address + mixed(caller));
    while (true) {
        Place& place = places_[at & (capacity_ - 1)];
        if (place.number == 0 || (place.address == address && place.caller == caller)) {
            return &place;
        }
        ++at;
    }
}

bool CallStacks::grow() {
    const std::uint64_t capacity = capacity_ == 0 ? 4096 : capacity_ * 2;
    auto* larger = make_table<Place>(capacity);
    if (larger == nullptr) {
        return false;
    }
    Place* smaller = places_;
    const std::uint64_t before = capacity_;
    places_ = larger;
    capacity_ = capacity;
    for (std::uint64_t index = 0; index < before; ++index) {
        if (smaller[index].number != 0) {
            *place_of(smaller[index].address, smaller[index].caller) = smaller[index];
        }
    }
    if (before != 0) {
        syscall(SYS_munmap, smaller, before * sizeof(Place));
    }
    return true;
}

std::uint32_t CallStacks::remember(const Caller& caller, std::uint32_t tid, const Unwound& found,
                                   Log& log, LogFolder& folder) {
    std::uint32_t number = no_stack;
    for (std::uint32_t index = found.depth; index > 0; --index) {
        if (used_ * 2 >= capacity_ && !grow()) {
            return no_stack;
        }
        Place* place = place_of(found.addresses[index - 1], number);
        if (place->number == 0) {
            const StackRecord record{StackRecord::return_address, number,
                                     found.addresses[index - 1]};
            if (!log.append(folder, record)) {
                return no_stack;
            }
            *place = {found.addresses[index - 1], number, log.records()};
            ++used_;
        }
        number = place->number;
    }
    if (known_ == nullptr) {
        known_ = make_table<Known>(known_entries);
    }
    if (known_ != nullptr && found.slots_known) {
        Known& known = *entry_of(caller, tid);
        known.address = caller.address;
        known.frame = caller.frame;
        known.tid = tid;
        known.number = number;
        known.depth = found.depth;
        for (std::uint32_t index = 0; index < found.depth; ++index) {
            known.addresses[index] = found.addresses[index];
            known.slots[index] = found.slots[index];
        }
    }
    return number;
}

} // namespace warren::locality::tracker
