// Which of libfabric's providers, and which network interface, a port takes.
//
// Every process of a job decides by itself from what its node offers, so the rules are simple:
//  1. WARREN_NETWORK=provider[,interface] is obeyed, or refused with what there is. An interface is
//     named as the system names it, or by its address.
//  2. Interfaces that other nodes can't reach (loopback, bridges of containers and virtual
//     machines, addresses of one link) are taken when nothing else is there.
//  3. Then the provider counts (verbs before TCP before UDP), then IPv4 before IPv6, then order.
// Providers for one node's shared memory are never taken. Thread rule: functions of values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace warren::transport::fabric {

// One way to the network, as libfabric lists it.
struct Offer {
    std::string provider;  // "tcp;ofi_rxm"
    std::string interface; // "eth0"; a device of verbs
    std::string address;   // as text; empty: not one of IP
};

// The user's choice of a provider and an interface; empty: any.
struct Wish {
    std::string provider;
    std::string interface;

    // Reads WARREN_NETWORK's value; null: not set.
    static Error parse(const char* text, Wish& wish);
};

struct Choice {
    std::size_t number = 0; // among the offers
    std::string why;        // of one line: what was taken, and what wasn't
};

// Whether other nodes can reach an offer's interface, as far as its name and address tell.
bool is_reachable(const Offer& offer);
// An error lists what there is.
Error choose(const std::vector<Offer>& offers, const Wish& wish, Choice& choice);

} // namespace warren::transport::fabric
