#include "mpi/transport/shm/joint_copy.hpp"

#include <algorithm>
#include <ctime>

#include "base/futex.hpp"
#include "base/page.hpp"

namespace warren::transport {

namespace {

constexpr std::uint64_t most_blocks = 0xffff; // that fit the counters

} // namespace

std::uint64_t JointCopy::block_size(std::uint64_t size) {
    // Half of what is short, so that each side has one call of the kernel.
    const std::uint64_t block = std::max(
        std::clamp(size / 2, smallest_joint_block, largest_joint_block), size / most_blocks + 1);
    return (block + page_bytes - 1) / page_bytes * page_bytes;
}

std::uint64_t JointCopy::share(std::uint64_t left, std::uint64_t block, bool mutual) {
    const std::uint64_t wanted = mutual ? left - left / 4 : left / 2;
    return std::max<std::uint64_t>(std::min(wanted, largest_joint_share / block), 1);
}

JointCopy::Helper JointCopy::await_helper(std::uint64_t count, bool sleeps) const {
    const int turns = sleeps ? 2 : joint_spins_until_yield + joint_yields_until_late;
    for (int turn = 0; turn < turns; ++turn) {
        const std::uint32_t now = helped.load(std::memory_order_acquire);
        if ((now & ~helper_failed_bit) == count) {
            return (now & helper_failed_bit) == 0 ? Helper::through : Helper::failed;
        }
        if (sleeps && turn == 0) {
            const timespec nap = {.tv_sec = 0, .tv_nsec = joint_nap_ns};
            nanosleep(&nap, nullptr);
        } else if (turn < joint_spins_until_yield) {
            spin_pause();
        } else {
            give_way();
        }
    }
    return Helper::late;
}

} // namespace warren::transport
