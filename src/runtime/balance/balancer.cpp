#include "runtime/balance/balancer.hpp"

namespace warren::balance {

const std::vector<Balancer>& balancers() {
    static const std::vector<Balancer> all = {
        {"none", "leaves all ranks where they are, and measures", place_none, false},
        {"greedy", "the largest load first, to the worker that has least", place_greedy, false},
        {"refine", "moves as few ranks as it takes", place_refined, false},
        {"topology", "and has those near each other that talk much", place_by_topology, true},
    };
    return all;
}

const Balancer* find_balancer(std::string_view name) {
    for (const Balancer& one : balancers()) {
        if (one.name == name) {
            return &one;
        }
    }
    return nullptr;
}

} // namespace warren::balance
