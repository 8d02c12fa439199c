// World: the processes that were started together, and how this rank reaches them.
//
// A process is a 64-bit number, its world and its rank there (rank_form.hpp). A message goes to an
// endpoint, a number of the transport (transport::Channel::peer). The world owns the address
// vector, which has the location of each of its ranks.
//
// Invariant: all processes are of world 0 and on this node, where the endpoint of a process is its
// world rank and its slot. So endpoint_of() costs no instruction. Several nodes, or worlds that
// were spawned or connected, change endpoint_of() and nothing else above the transport. Thread
// rule: constant.
#pragma once

#include <cstdint>
#include <utility>

#include "mpi/comm/address_vector.hpp"
#include "mpi/comm/rank_form.hpp"
#include "mpi/comm/rank_map.hpp"

namespace warren::comm {

class World {
  public:
    // `rank`: of this process. `addresses`: as many as there are ranks.
    World(std::uint32_t number, std::uint32_t rank, AddressVector addresses)
        : number_(number), rank_(rank), addresses_(std::move(addresses)) {}
    static World on_one_node(std::uint32_t rank, std::uint32_t size) {
        return {0, rank,
                AddressVector(nullptr, AddressVector::slot_bits_for(size),
                              AddressVector::filled(1, size))};
    }

    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return addresses_.ranks(); }
    Process process() const { return process_of(number_, rank_); }
    bool contains(Process process) const {
        return world_of(process) == number_ && world_rank_of(process) < size();
    }

    // Where a process of this world is.
    AddressVector::Location location(Process process) const {
        return addresses_.location(world_rank_of(process));
    }
    // Where messages to a process go.
    static std::uint32_t endpoint_of(Process process) { return world_rank_of(process); }

  private:
    std::uint32_t number_;
    std::uint32_t rank_;
    AddressVector addresses_;
};

} // namespace warren::comm
