// PeerMemory: copies between this rank and the memory of other processes of the node, by the kernel
// (CMA: process_vm_readv and its opposite), which may refuse them.
//
// A peer that has a pair ring here, and waits in MPI, does a part of a large copy itself
// (joint_copy.hpp). Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>

#include "mpi/rank/rank.hpp"
#include "mpi/transport/shm/pair_ring.hpp"
#include "mpi/transport/transport.hpp"

namespace warren::transport {

class PeerMemory {
  public:
    explicit PeerMemory(const Rank& rank) : rank_(rank) {}

    static constexpr std::size_t pieces_per_read = 256;

    PeerCopy read(std::uint32_t peer, std::uint64_t address, void* to, std::uint64_t bytes);
    // As above, from and to lists of pieces, up to the end of the shorter one or less; `copied`
    // says how far it has come.
    PeerCopy read(std::uint32_t peer, std::span<const iovec> remote, std::span<const iovec> local,
                  std::uint64_t& copied);
    // As above, for much data. `from_peer`: its pair ring towards this rank; null: it has none.
    // `mutual`: it has something to fetch from this rank.
    PeerCopy fetch(std::uint32_t peer, const PairRingReceiver* from_peer, std::uint64_t address,
                   void* to, std::uint64_t bytes, bool mutual);
    // Copies a block of what a peer fetches just now, through this rank's pair ring to it. False:
    // there was none.
    bool help(std::uint32_t peer, const PairRingSender& to_peer);

    // Whether the kernel is known to refuse read().
    bool refused() const { return refused_; }

    // Messages of fewer bytes are not fetched; a tool may change it (mpi/tool).
    std::uint64_t fetched_from = 0;

  private:
    static bool says_refused(int error);
    // Result of a read of another process's memory, by errno.
    PeerCopy judge_refusal();

    const Rank& rank_;
    bool refused_ = false;      // reading
    bool help_refused_ = false; // writing
};

} // namespace warren::transport
