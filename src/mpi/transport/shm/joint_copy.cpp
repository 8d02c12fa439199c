#include "mpi/transport/shm/joint_copy.hpp"

#include <algorithm>
#include <ctime>

#include "base/futex.hpp"

namespace warren::transport {

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t smallest_block = joint_limit / 2;
constexpr std::uint64_t largest_block = 128 * 1024; // of what fits the counters
constexpr std::uint64_t most_blocks = 0xffff;

// Bytes that the receiver copies at once: large enough that the kernel's call costs nothing beside.
constexpr std::uint64_t largest_share = 1024 * 1024;

// The sender is in the middle of a block, or has lost its processor there.
constexpr int spins_until_yield = 2000;
constexpr int yields_until_late = 1000;

// Or it has been stopped there, or has died.
constexpr long nap_ns = 500'000;

} // namespace

std::uint64_t JointCopy::block_size(std::uint64_t size) {
    // Half of what is short, so that each side has one call of the kernel.
    const std::uint64_t block =
        std::max(std::clamp(size / 2, smallest_block, largest_block), size / most_blocks + 1);
    return (block + page_bytes - 1) / page_bytes * page_bytes;
}

std::uint64_t JointCopy::share(std::uint64_t left, std::uint64_t block, bool mutual) {
    const std::uint64_t wanted = mutual ? left - left / 4 : left / 2;
    return std::max<std::uint64_t>(std::min(wanted, largest_share / block), 1);
}

JointCopy::Helper JointCopy::await_helper(std::uint64_t count, bool sleeps) const {
    const int turns = sleeps ? 2 : spins_until_yield + yields_until_late;
    for (int turn = 0; turn < turns; ++turn) {
        const std::uint32_t now = helped.load(std::memory_order_acquire);
        if ((now & ~helper_failed_bit) == count) {
            return (now & helper_failed_bit) == 0 ? Helper::through : Helper::failed;
        }
        if (sleeps && turn == 0) {
            const timespec nap = {.tv_sec = 0, .tv_nsec = nap_ns};
            nanosleep(&nap, nullptr);
        } else if (turn < spins_until_yield) {
            spin_pause();
        } else {
            give_way();
        }
    }
    return Helper::late;
}

} // namespace warren::transport
