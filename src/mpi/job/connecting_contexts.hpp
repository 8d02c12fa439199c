// ConnectingContexts: the numbers of communicators of several worlds that this process takes.
//
// Worlds share no memory, so processes of a node divide the numbers into blocks. A block belongs to
// the process that holds a socket of the block's name, which the kernel gives once. A number that
// all members have left (MPI_Comm_disconnect) is free again, and is given again as late as
// possible. Of other communicators nobody knows when the last member has left them: their numbers
// stay in use. When a block is used up, another one is taken.
//
// Thread rule: under the rank's lock. Invariant: a number that is in use is not given.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "mpi/job/context_ids.hpp"

namespace warren::node {

class ConnectingContexts {
  public:
    ConnectingContexts() = default;
    ~ConnectingContexts();
    ConnectingContexts(const ConnectingContexts&) = delete;
    ConnectingContexts& operator=(const ConnectingContexts&) = delete;

    // Takes the first block. Error: MPI_ERR_OTHER, there is no socket for it.
    Error open();
    // The even context of a number. 0: there is none, or open() has not been called.
    std::uint32_t take();
    // No member of its communicator uses it any more. Contexts that this process has not taken are
    // ignored.
    void give_back(std::uint32_t context);

    std::size_t blocks() const { return blocks_.size(); }

  private:
    struct Block {
        Block(std::uint32_t its_number, int its_socket) : number(its_number), socket(its_socket) {}

        std::uint32_t number;
        int socket; // keeps it from others
        std::bitset<ContextIds::connecting_block> used;
    };

    Error take_block();

    std::vector<std::unique_ptr<Block>> blocks_;
    std::size_t next_ = 0;   // behind the number that was taken last, among those of all blocks
    std::size_t in_use_ = 0; // numbers
};

} // namespace warren::node
