#include "launch/host/interrupted_calls.hpp"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>

namespace warren::launch {

namespace {

// Those that the kernel restarts when a handler asks for it, and that programs know to be
// interrupted. A futex call that wakes must not be taken for one that waits.
bool may_wait(long call, long second_argument) {
    switch (call) {
    case SYS_open: // a FIFO
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat:
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2:
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_getrandom: // before the system has enough to draw from
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_flock:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
        return true;
    case SYS_fcntl:
        return second_argument == F_SETLKW || second_argument == F_OFD_SETLKW;
    case SYS_futex: {
        const long command = second_argument & FUTEX_CMD_MASK;
        return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
    }
    default:
        return false;
    }
}

thread_local std::uint32_t own_interruptions = 0;

} // namespace

std::uint32_t interruptions_of_thread() {
    return own_interruptions;
}

// The kernel restarts a call by putting its number back and returning to the call's instruction.
void end_interrupted_call(void* context) {
    ++own_interruptions;
    constexpr std::uint8_t call_instruction[] = {0x0f, 0x05};
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto* next = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
    if (next[0] == call_instruction[0] && next[1] == call_instruction[1] &&
        may_wait(registers[REG_RAX], registers[REG_RSI])) {
        registers[REG_RIP] += sizeof call_instruction;
        registers[REG_RAX] = -EINTR;
    }
}

} // namespace warren::launch
