#include "mpi/transport/fabric/provider.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "mpi.h"

namespace warren::transport::fabric {

namespace {

// In the order of preference. "tcp" has reliable datagrams of its own since 1.18; in 1.17 that
// provider is called "net".
constexpr std::array<std::string_view, 6> known_providers = {
    "verbs;ofi_rxm", "tcp", "net", "tcp;ofi_rxm", "sockets", "udp;ofi_rxd"};
// Bridges of Docker, libvirt and Podman, and a container's end on its host.
constexpr std::array<std::string_view, 7> local_interfaces = {"lo",   "docker", "virbr", "br-",
                                                              "veth", "cni",    "podman"};

bool begins_with(std::string_view text, std::string_view head) {
    return text.substr(0, head.size()) == head;
}

std::size_t preference_of(const Offer& offer) {
    return static_cast<std::size_t>(
        std::find(known_providers.begin(), known_providers.end(), offer.provider) -
        known_providers.begin());
}

bool is_asked_for(const Offer& offer, const Wish& wish) {
    const bool tcp_of_1_17 = wish.provider == "tcp" && offer.provider == "net";
    if (!wish.provider.empty() && offer.provider != wish.provider && !tcp_of_1_17) {
        return false;
    }
    return wish.interface.empty() || offer.interface == wish.interface ||
           offer.address == wish.interface;
}

std::string described(const Offer& offer) {
    std::string text = offer.provider + " on " + offer.interface;
    if (!offer.address.empty()) {
        text += " (" + offer.address + ")";
    }
    return text;
}

std::string listed(const std::vector<Offer>& offers) {
    std::vector<std::string> texts;
    texts.reserve(offers.size());
    for (const Offer& offer : offers) {
        texts.push_back(described(offer));
    }
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    std::string list;
    for (const std::string& text : texts) {
        list += (list.empty() ? "" : ", ") + text;
    }
    return list.empty() ? "nothing" : list;
}

} // namespace

Error Wish::parse(const char* text, Wish& wish) {
    wish = {};
    if (text == nullptr || *text == '\0') {
        return {};
    }
    const std::string_view value = text;
    const std::size_t comma = value.find(',');
    wish.provider = value.substr(0, comma);
    if (comma != std::string_view::npos) {
        wish.interface = value.substr(comma + 1);
        if (wish.interface.empty() || wish.interface.find(',') != std::string::npos) {
            return fail(MPI_ERR_OTHER,
                        "WARREN_NETWORK is \"%s\", not provider[,interface], as in tcp,eth0", text);
        }
    }
    if (!wish.provider.empty() && std::find(known_providers.begin(), known_providers.end(),
                                            wish.provider) == known_providers.end()) {
        std::string names;
        for (const std::string_view name : known_providers) {
            names += (names.empty() ? "" : " ") + std::string(name);
        }
        return fail(MPI_ERR_OTHER,
                    "WARREN_NETWORK is \"%s\": Warren doesn't know the provider; it knows %s", text,
                    names.c_str());
    }
    return {};
}

bool is_reachable(const Offer& offer) {
    for (const std::string_view name : local_interfaces) {
        if (begins_with(offer.interface, name)) {
            return false;
        }
    }
    return !begins_with(offer.address, "127.") && offer.address != "::1" &&
           !begins_with(offer.address, "fe80:") && !begins_with(offer.address, "169.254.");
}

Error choose(const std::vector<Offer>& offers, const Wish& wish, Choice& choice) {
    const auto order = [&offers](std::size_t number) {
        const Offer& offer = offers[number];
        const bool version_6 = offer.address.find(':') != std::string::npos;
        return std::make_tuple(!is_reachable(offer), preference_of(offer), version_6, number);
    };
    bool any = false;
    for (std::size_t number = 0; number < offers.size(); ++number) {
        if (preference_of(offers[number]) == known_providers.size() ||
            !is_asked_for(offers[number], wish)) {
            continue;
        }
        if (!any || order(number) < order(choice.number)) {
            choice.number = number;
        }
        any = true;
    }
    if (!any) {
        return fail(MPI_ERR_OTHER, "no network for the other nodes: %s%s%s%s; libfabric offers %s",
                    wish.provider.empty() ? "any provider" : wish.provider.c_str(),
                    wish.interface.empty() ? "" : " on ", wish.interface.c_str(),
                    wish.provider.empty() && wish.interface.empty() ? "" : " (WARREN_NETWORK)",
                    listed(offers).c_str());
    }
    const Offer& taken = offers[choice.number];
    choice.why = described(taken);
    if (!wish.provider.empty() || !wish.interface.empty()) {
        choice.why += ", as WARREN_NETWORK says";
    } else if (!is_reachable(taken)) {
        choice.why += ", which other nodes can't reach: there is no other interface";
    }
    std::string passed_over;
    for (const Offer& offer : offers) {
        if (!is_reachable(offer) && offer.interface != taken.interface &&
            passed_over.find(offer.interface) == std::string::npos) {
            passed_over += (passed_over.empty() ? "" : ", ") + offer.interface;
        }
    }
    if (!passed_over.empty()) {
        choice.why += "; passed over: " + passed_over;
    }
    return {};
}

} // namespace warren::transport::fabric
