// Children: the children of a rank, of which it has not waited for the end.
//
// Thread rule: any thread, which holds them (HeldChildren); signal handlers as well.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <sys/types.h>
#include <vector>

#include "base/blocked_signals.hpp"

namespace warren::launch {

struct Child {
    pid_t pid;
    pid_t maker; // the thread
    // Whether a signal has told of its end. If nobody waits for the child, it passes once the rank
    // has that signal, or will get it before it goes on.
    enum class End : std::uint8_t { untold, told, passes } end = End::untold;
    // CLD_STOPPED or CLD_CONTINUED, of which a signal has told last, and whether the rank has
    // waited for that: the next one may look the same.
    int told_state = 0;
    bool state_taken = false;
};

struct Children {
    std::mutex lock;
    std::vector<Child> all;
    std::atomic<int> polls{0};    // waits under way, which see to the signals of ends
    std::atomic<int> handlers{0}; // of such signals that run in other threads
};

// Holds a rank's children. No signal comes to the calling thread meanwhile, whose handler would
// hold them too.
class HeldChildren {
  public:
    explicit HeldChildren(Children& children) : children_(children) { children_.lock.lock(); }
    ~HeldChildren() { children_.lock.unlock(); }
    HeldChildren(const HeldChildren&) = delete;
    HeldChildren& operator=(const HeldChildren&) = delete;

    std::vector<Child>& list() { return children_.all; }
    // 0: there are no more.
    pid_t number(std::size_t index) const {
        return index < children_.all.size() ? children_.all[index].pid : 0;
    }
    bool has(pid_t pid) const {
        return std::any_of(children_.all.begin(), children_.all.end(),
                           [&](const Child& child) { return child.pid == pid; });
    }
    // Whether a signal has told of the state, which the rank has waited for.
    bool take_state(pid_t pid, int code) {
        const auto found = find(pid);
        if (found == children_.all.end()) {
            return true;
        }
        const bool told = found->told_state == code && !found->state_taken;
        found->told_state = code;
        found->state_taken = true;
        return told;
    }
    // Whether a signal has told of the child's end.
    bool remove(pid_t pid) {
        const auto found = find(pid);
        const bool told = found == children_.all.end() || found->end != Child::End::untold;
        if (found != children_.all.end()) {
            children_.all.erase(found);
        }
        return told;
    }

  private:
    std::vector<Child>::iterator find(pid_t pid) {
        return std::find_if(children_.all.begin(), children_.all.end(),
                            [&](const Child& child) { return child.pid == pid; });
    }

    Children& children_;
    const BlockedSignals blocked_; // restored after the lock is given back
};

} // namespace warren::launch
