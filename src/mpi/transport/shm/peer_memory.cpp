#include "mpi/transport/shm/peer_memory.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "mpi/transport/shm/process_life.hpp"

namespace warren::transport {

PeerCopy PeerMemory::read(std::uint32_t peer, std::span<const iovec> remote,
                          std::span<const iovec> local, std::uint64_t& copied) {
    copied = 0;
    if (refused_) {
        return PeerCopy::refused;
    }
    const int pid = rank_.segment.slot(peer).pid.load(std::memory_order_relaxed);
    const ssize_t result =
        process_vm_readv(pid, local.data(), local.size(), remote.data(), remote.size(), 0);
    if (result > 0) {
        copied = static_cast<std::uint64_t>(result);
        rank_.counts.fetched.add(copied);
        return PeerCopy::done;
    }
    return result < 0 ? judge_refusal() : PeerCopy::failed;
}

bool PeerMemory::says_refused(int error) {
    return error == EPERM || error == ENOSYS || error == EACCES;
}

PeerCopy PeerMemory::judge_refusal() {
    if (!says_refused(errno)) {
        return PeerCopy::failed;
    }
    refused_ = true;
    rank_.counts.fetches_refused.add(1);
    if (rank_.verbose()) {
        std::fprintf(stderr,
                     "warren: rank %u may not read other ranks' memory (%s): large messages go "
                     "through the node segment\n",
                     rank_.world_rank, std::strerror(errno));
    }
    return PeerCopy::refused;
}

PeerCopy PeerMemory::read(std::uint32_t peer, std::uint64_t address, void* to,
                          std::uint64_t bytes) {
    auto* target = static_cast<char*>(to);
    while (bytes > 0) {
        const iovec local = {.iov_base = target, .iov_len = bytes};
        const iovec remote = {.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
        std::uint64_t copied;
        const PeerCopy result = read(peer, {&remote, 1}, {&local, 1}, copied);
        if (result != PeerCopy::done) {
            return result;
        }
        target += copied;
        address += copied;
        bytes -= copied;
    }
    return PeerCopy::done;
}

PeerCopy PeerMemory::fetch(std::uint32_t peer, const PairRingReceiver* from_peer,
                           std::uint64_t address, void* to, std::uint64_t bytes, bool mutual) {
    if (from_peer == nullptr || bytes < joint_limit || refused_) {
        return read(peer, address, to, bytes);
    }
    const std::uint64_t begin_ns = process_clock_ns(); // who helps from now on is alive
    return from_peer->joint_copy().receive(
        address, reinterpret_cast<std::uint64_t>(to), bytes, mutual,
        [&](const JointCopy::Block& block) {
            return read(peer, block.from, reinterpret_cast<void*>(block.to), block.bytes);
        },
        [&] {
            return has_ended(rank_.segment.slot(peer).pid.load(std::memory_order_relaxed),
                             begin_ns);
        });
}

bool PeerMemory::help(std::uint32_t peer, const PairRingSender& to_peer) {
    if (refused_ || help_refused_) {
        return false;
    }
    return to_peer.joint_copy().help([&](const JointCopy::Block& block) {
        const int pid = rank_.segment.slot(peer).pid.load(std::memory_order_relaxed);
        for (std::uint64_t done = 0; done < block.bytes;) {
            const iovec own = {.iov_base = reinterpret_cast<void*>(block.from + done),
                               .iov_len = block.bytes - done};
            const iovec theirs = {.iov_base = reinterpret_cast<void*>(block.to + done),
                                  .iov_len = block.bytes - done};
            const ssize_t result = process_vm_writev(pid, &own, 1, &theirs, 1, 0);
            if (result <= 0) {
                // Whether this rank may read is another question.
                help_refused_ = result < 0 && says_refused(errno);
                return PeerCopy::failed;
            }
            done += static_cast<std::uint64_t>(result);
        }
        return PeerCopy::done;
    });
}

} // namespace warren::transport
