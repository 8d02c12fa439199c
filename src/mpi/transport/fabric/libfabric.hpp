// Libfabric: the functions of libfabric that the port calls by name.
//
// The library is loaded when a job has several nodes, so that Warren needs it nowhere else. All
// other functions of its interface are members of the objects that these make. It is never
// unloaded: its providers have threads. Thread rule: constant once loaded.
// Source: fi_getinfo(3), fi_fabric(3); version 1.17 of the interface.
#pragma once

#include <cstdint>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "base/error.hpp"

namespace warren::transport::fabric {

inline constexpr std::uint32_t api_version = FI_VERSION(1, 17);

struct Libfabric {
    decltype(&::fi_getinfo) getinfo = nullptr;
    decltype(&::fi_freeinfo) freeinfo = nullptr;
    decltype(&::fi_dupinfo) dupinfo = nullptr;
    decltype(&::fi_fabric) fabric = nullptr;
    decltype(&::fi_strerror) strerror = nullptr;
    decltype(&::fi_version) version = nullptr;

    // Loads libfabric.so.1. An error says why it can't be used.
    static Error load(Libfabric& loaded);
};

} // namespace warren::transport::fabric
