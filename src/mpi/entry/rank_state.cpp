#include "mpi/entry/rank_state.hpp"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <unistd.h>

#include "runtime/fibres/api.hpp"
#include "runtime/process_ranks/process_ranks.hpp"

namespace warren::mpi {

namespace {

constinit Home only_home;
// Of threads that belong to no rank, in a process that has several. It stays as it is.
constinit Home no_home{.bound = false};

// The functions of libwarren.so, in processes that have several ranks.
struct Members {
    decltype(&warren_member_current) current;
    decltype(&warren_member_arguments) arguments;
    decltype(&warren_member_flush) flush;
    decltype(&warren_member_exit) exit;
};

template <typename Function>
void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

// Null: the process has one rank.
const Members* members() {
    static const Members* const found = []() -> const Members* {
        if (std::getenv(member::count_variable) == nullptr) {
            return nullptr;
        }
        static Members made;
        find("warren_member_current", made.current);
        find("warren_member_arguments", made.arguments);
        find("warren_member_flush", made.flush);
        find("warren_member_exit", made.exit);
        // Its ranks may be fibres.
        decltype(&warren_fibre_functions) functions = nullptr;
        find("warren_fibre_functions", functions);
        if (functions != nullptr) {
            fibre_functions.store(functions(), std::memory_order_release);
        }
        return &made;
    }();
    return found;
}

Home& home_of(member::Member& member) {
    void* home = member.home.load(std::memory_order_acquire);
    if (home == nullptr) {
        auto made = std::make_unique<Home>();
        made->number = member.number;
        // Two threads of the rank may come first; one's is taken.
        if (member.home.compare_exchange_strong(home, made.get(), std::memory_order_acq_rel)) {
            home = made.release();
        }
    }
    return *static_cast<Home*>(home);
}

} // namespace

Home& find_home() {
    const Members* known = members();
    if (known == nullptr) [[likely]] {
        return only_home;
    }
    member::Member* member = known->current != nullptr ? known->current() : nullptr;
    return member != nullptr ? home_of(*member) : no_home;
}

char** program_arguments() {
    const Members* known = members();
    return known != nullptr && known->arguments != nullptr ? known->arguments() : nullptr;
}

void flush_output() {
    const Members* known = members();
    if (known != nullptr && known->flush != nullptr) {
        known->flush();
    } else {
        std::fflush(nullptr);
    }
}

void exit_rank(int status) {
    const Members* known = members();
    if (known != nullptr && known->exit != nullptr) {
        known->exit(status);
    }
    _exit(status);
}

} // namespace warren::mpi
