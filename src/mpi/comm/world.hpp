// World: the processes that were started together, and how this rank reaches them.
//
// A process is a 64-bit number, its world and its number there (rank_form.hpp). A message goes to
// an endpoint, a number of the transport (transport::Channel::peer). The world owns the address
// vector, which has the location of each of its ranks.
//
// Invariant: all processes are of world 0, where the number of a process is its endpoint, so
// endpoint_of() costs no instruction. Each node has endpoints of its own (mpi/job/endpoints.hpp):
// on one node they are the ranks of the world, and members() maps ranks to them on several. Rank
// maps of all communicators and groups are made of members(), so they lead to endpoints. Processes
// of worlds that were spawned or connected have endpoints behind the world's, which each rank
// numbers for itself (mpi/transport/bridge).
// Thread rule: constant.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "mpi/comm/address_vector.hpp"
#include "mpi/comm/rank_form.hpp"
#include "mpi/comm/rank_map.hpp"
#include "mpi/job/endpoints.hpp"

namespace warren::comm {

class World {
  public:
    // `rank`: of this process. `addresses`: as many as there are ranks.
    World(std::uint32_t number, std::uint32_t rank, AddressVector addresses)
        : number_(number),
          rank_(rank),
          addresses_(std::move(addresses)),
          endpoint_(rank),
          members_(RankMap::affine(0, 1, static_cast<int>(addresses_.ranks()))) {}
    static World on_one_node(std::uint32_t rank, std::uint32_t size) {
        return {0, rank,
                AddressVector(nullptr, AddressVector::slot_bits_for(size),
                              AddressVector::filled(1, size))};
    }

    // As a node of a job sees it.
    static World on(const node::Endpoints& endpoints, std::uint32_t rank) {
        World world = on_one_node(rank, endpoints.world_size());
        if (!endpoints.is_one_node()) {
            std::vector<std::uint32_t> members;
            members.reserve(world.size());
            for (std::uint32_t member = 0; member < world.size(); ++member) {
                members.push_back(endpoints.of(member));
            }
            world.members_ = RankMap::of(members);
            world.endpoint_ = endpoints.of(rank);
            world.one_node_ = false;
        }
        return world;
    }

    std::uint32_t rank() const { return rank_; }
    // This process's endpoint; and the processes, by their ranks.
    std::uint32_t endpoint() const { return endpoint_; }
    const RankMap& members() const { return members_; }
    bool is_one_node() const { return one_node_; }
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
    std::uint32_t endpoint_;
    RankMap members_;
    bool one_node_ = true;
};

} // namespace warren::comm
