// AddressVector: where the processes of a world are, for all ranks of a node.
//
// Ranks are reached through their node's endpoint: an entry is a node's address, 12 bytes, and a
// rank is a slot there. So a machine of 48 K nodes and 768 K ranks takes 576 kB per node, in memory
// that its ranks share, and nothing per rank but this object. World rank → location (node and slot
// in one number) is a rank map: direct when ranks fill node after node, an array of blocks when
// they are dealt out, a packed table on the node's shelf when they are anywhere.
//
// Today every rank is on this node, and what is elsewhere is simulated (bench/scale).
//
// Thread rule: filled by one rank before others read; never changed then. Invariant: every world
// rank has a location below nodes · 2^slot_bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/comm/rank_map.hpp"
#include "mpi/transport/transport.hpp"

namespace warren::comm {

using transport::NodeAddress;

class AddressVector {
  public:
    struct Location {
        std::uint32_t node;
        std::uint32_t slot; // of the rank on its node
    };

    // The bits that slots of nodes with up to this many ranks need.
    static std::uint32_t slot_bits_for(std::uint32_t ranks_per_node);
    // The memory that the entries need.
    static std::size_t bytes_for(std::uint32_t nodes) { return nodes * sizeof(NodeAddress); }

    // The map of world ranks to locations when each node has `per_node` ranks: one node after the
    // other, or dealt out to the nodes in turn.
    static RankMap filled(std::uint32_t nodes, std::uint32_t per_node);
    static RankMap dealt(std::uint32_t nodes, std::uint32_t per_node);

    AddressVector() = default;
    // On entries in the node's shared memory. `locations`: world rank → node · 2^slot_bits + slot.
    AddressVector(NodeAddress* entries, std::uint32_t slot_bits, RankMap locations)
        : entries_(entries), slot_bits_(slot_bits), locations_(static_cast<RankMap&&>(locations)) {}

    std::uint32_t ranks() const { return static_cast<std::uint32_t>(locations_.size()); }
    Location location(std::uint32_t world_rank) const {
        // Filled nodes as a rule, so the affine way is in line and the others are not.
        const std::uint32_t location =
            locations_.affine()
                ? world_rank * static_cast<std::uint32_t>(locations_.stride()) + locations_.offset()
                : locations_[static_cast<int>(world_rank)];
        return {location >> slot_bits_, location & ((1U << slot_bits_) - 1)};
    }
    const NodeAddress& address(std::uint32_t node) const { return entries_[node]; }
    NodeAddress& address(std::uint32_t node) { return entries_[node]; }
    // The world rank at a location, or MPI_UNDEFINED: who has sent what came from there.
    int rank_at(Location location) const {
        return locations_.rank_of(Process{location.node} << slot_bits_ | location.slot);
    }
    const RankMap& locations() const { return locations_; }

  private:
    NodeAddress* entries_ = nullptr;
    std::uint32_t slot_bits_ = 0;
    RankMap locations_;
};

} // namespace warren::comm
