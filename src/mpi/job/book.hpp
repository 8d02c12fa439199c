// Book: what a node knows of the others: their names, and the cards that their ranks filled before
// a fence (MpiexecBootstrap). A file in memory, written by the node's agent and inherited by its
// ranks; a job of one node has none. It has an entry per node, and keeps what is asked for
// rarely, once per peer, out of the node segment.
//
// The file: a header; names and cards of all nodes, each with an index of nodes + 1 offsets. A
// node's cards are records of a CardRecord and the card; ranks of successive slots with the same
// card share a record.
//
// Invariant: the offset of an index is stored after what it covers; a newer edition follows the
// older one in the file.
// Thread rule: one writer; any number of readers after the fence that ends behind write_cards().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "mpi/job/segment.hpp"

namespace warren::node {

struct CardRecord {
    std::uint32_t first_slot;
    std::uint32_t slots;
    std::uint32_t bytes; // of the card that follows
};

class Book {
  public:
    Book() = default;
    explicit Book(int descriptor) : descriptor_(descriptor) {} // stays the caller's

    // Makes the file, with the nodes' names. Errors: class MPI_ERR_OTHER.
    static Error create(const std::vector<std::string>& names, int& descriptor);

    // Each node's records.
    Error write_cards(const std::vector<std::string>& of_nodes) const;

    // "" when it is not known.
    std::string name(std::uint32_t node) const;
    // The card of a rank; empty when it has put nothing.
    std::vector<std::byte> card(std::uint32_t node, std::uint32_t slot) const;

  private:
    std::string read_part(std::size_t index_place, std::uint32_t node) const;

    int descriptor_ = -1;
};

// The records of this node's cards, as write_cards() wants them.
std::string collect_cards(const Segment& segment);

// The card of a slot in such records; empty: it has none.
std::vector<std::byte> card_in(const std::string& records, std::uint32_t slot);

// Whether these bytes are sound records of a node's cards: they came over a network.
bool are_records(const std::string& records);

} // namespace warren::node
