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

constinit RankState only_rank_state;
// The state of threads that belong to no rank, in a process that has several. It never changes.
constinit RankState no_rank_state{.bound = false};

// The functions of libwarren.so, in processes that have several ranks.
struct ProcessRanks {
    decltype(&warren_member_current) current;
    decltype(&warren_member_arguments) arguments;
    decltype(&warren_member_environment) environment;
    decltype(&warren_member_flush) flush;
    decltype(&warren_member_exit) exit;
};

template <typename Function>
void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

// Null: the process has one rank.
const ProcessRanks* members() {
    static const ProcessRanks* const found = []() -> const ProcessRanks* {
        if (std::getenv(process_ranks::count_variable) == nullptr) {
            return nullptr;
        }
        static ProcessRanks made;
        find("warren_member_current", made.current);
        find("warren_member_arguments", made.arguments);
        find("warren_member_environment", made.environment);
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

RankState& rank_state_of(process_ranks::ProcessRank& member) {
    void* rank_state = member.rank_state.load(std::memory_order_acquire);
    if (rank_state == nullptr) {
        auto made = std::make_unique<RankState>();
        made->number = member.number;
        // Two threads of the rank may come first; one's is taken.
        if (member.rank_state.compare_exchange_strong(rank_state, made.get(),
                                                      std::memory_order_acq_rel)) {
            rank_state = made.release();
        }
    }
    return *static_cast<RankState*>(rank_state);
}

} // namespace

RankState& find_rank_state() {
    const ProcessRanks* known = members();
    if (known == nullptr) [[likely]] {
        return only_rank_state;
    }
    process_ranks::ProcessRank* member = known->current != nullptr ? known->current() : nullptr;
    return member != nullptr ? rank_state_of(*member) : no_rank_state;
}

char** program_arguments() {
    const ProcessRanks* known = members();
    return known != nullptr && known->arguments != nullptr ? known->arguments() : nullptr;
}

const char* rank_environment(const char* name) {
    const ProcessRanks* known = members();
    return known != nullptr && known->environment != nullptr ? known->environment(name)
                                                             : std::getenv(name);
}

void flush_output() {
    const ProcessRanks* known = members();
    if (known != nullptr && known->flush != nullptr) {
        known->flush();
    } else {
        std::fflush(nullptr);
    }
}

void exit_rank(int status) {
    const ProcessRanks* known = members();
    if (known != nullptr && known->exit != nullptr) {
        known->exit(status);
    }
    _exit(status);
}

} // namespace warren::mpi
