#include "launch/mpiexec/this_node.hpp"

#include <climits>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

namespace warren::launch {

namespace {

bool same_address(const sockaddr* one, const sockaddr* other) {
    if (one == nullptr || other == nullptr || one->sa_family != other->sa_family) {
        return false;
    }
    if (one->sa_family == AF_INET) {
        return reinterpret_cast<const sockaddr_in*>(one)->sin_addr.s_addr ==
               reinterpret_cast<const sockaddr_in*>(other)->sin_addr.s_addr;
    }
    return one->sa_family == AF_INET6 &&
           std::memcmp(&reinterpret_cast<const sockaddr_in6*>(one)->sin6_addr,
                       &reinterpret_cast<const sockaddr_in6*>(other)->sin6_addr,
                       sizeof(in6_addr)) == 0;
}

// Whether the name's address is one of this node's interfaces.
bool has_address_of(const std::string& name) {
    addrinfo* found = nullptr;
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM; // each address once
    if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) {
        return false;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
    ifaddrs* listed = nullptr;
    if (getifaddrs(&listed) != 0) {
        return false;
    }
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(listed, freeifaddrs);
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
        for (const ifaddrs* own = listed; own != nullptr; own = own->ifa_next) {
            if (same_address(address->ai_addr, own->ifa_addr)) {
                return true;
            }
        }
    }
    return false;
}

bool same_name(const std::string& one, const std::string& other) {
    // A name without a domain means the one in this domain.
    const bool whole = one.find('.') != std::string::npos && other.find('.') != std::string::npos;
    return strcasecmp((whole ? one : one.substr(0, one.find('.'))).c_str(),
                      (whole ? other : other.substr(0, other.find('.'))).c_str()) == 0;
}

} // namespace

bool is_this_node(const std::string& name) {
    char own[HOST_NAME_MAX + 1] = {};
    gethostname(own, sizeof own - 1);
    return !name.empty() && (name == "localhost" || same_name(name, own) || has_address_of(name));
}

} // namespace warren::launch
