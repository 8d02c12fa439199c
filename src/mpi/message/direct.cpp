#include "mpi/message/direct.hpp"

#include <algorithm>

#include "base/futex.hpp"
#include "base/page.hpp"
#include "mpi/message/tuning.hpp"

namespace warren::message {

// `move` copies from one piece to another.
template <typename Move>
void DirectSend::copy(std::uint64_t first, std::uint64_t size, Move move) const {
    if (from.piece != nullptr && to.piece != nullptr) {
        move(to.piece + first, from.piece + first, size);
    } else {
        datatype::copy_data(*from.buffer, *to.buffer, static_cast<MPI_Count>(first),
                            static_cast<MPI_Count>(size));
    }
}

void DirectSend::receive(const Place& target, std::uint64_t size,
                         const transport::LargeCopy& large) {
    to = target;
    const auto get = [&](std::byte* there, const std::byte* here, std::uint64_t length) {
        large.get(there, here, length, size);
    };
    if (size <= smallest_direct_block) {
        copy(0, size, get);
        finish();
        return;
    }
    bytes = size;
    block_bytes =
        std::clamp(size / direct_blocks_wanted, smallest_direct_block, largest_direct_block) /
        page_bytes * page_bytes;
    const auto copy_block = [&](std::uint64_t block) {
        copy(block * block_bytes, std::min(block_bytes, size - block * block_bytes), get);
    };
    const std::uint64_t count = (size + block_bytes - 1) / block_bytes;
    const std::atomic_ref<std::uint64_t> all(blocks);
    std::uint64_t now = count << 32 | 1; // the first is taken already
    all.store(now, std::memory_order_release);
    std::uint64_t copied = 1;
    copy_block(0);
    now = all.load(std::memory_order_relaxed);
    while ((now & 0xffffffff) < now >> 32) {
        if (all.compare_exchange_weak(now, now + 1, std::memory_order_relaxed)) {
            copy_block(now & 0xffffffff);
            ++copied;
            now = all.load(std::memory_order_relaxed);
        }
    }
    // Pairs with the sender's release: its blocks are there.
    const std::atomic_ref<std::uint32_t> by_sender(helped);
    for (int spins = 0; by_sender.load(std::memory_order_acquire) != count - copied; ++spins) {
        if (spins < direct_spins_until_yield) {
            spin_pause();
        } else {
            give_way();
        }
    }
    finish();
}

bool DirectSend::help(const transport::LargeCopy& large) {
    const std::atomic_ref<std::uint64_t> all(blocks);
    std::uint64_t now = all.load(std::memory_order_acquire);
    while ((now & 0xffffffff) < now >> 32) {
        const std::uint64_t last = (now >> 32) - 1;
        if (all.compare_exchange_weak(now, last << 32 | (now & 0xffffffff),
                                      std::memory_order_acquire)) {
            copy(last * block_bytes, std::min(block_bytes, bytes - last * block_bytes),
                 [&](std::byte* there, const std::byte* here, std::uint64_t length) {
                     large.put(there, here, length);
                 });
            std::atomic_ref(helped).fetch_add(1, std::memory_order_release);
            return true;
        }
    }
    return false;
}

} // namespace warren::message
