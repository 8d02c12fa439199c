#include "mpi/job/connecting_contexts.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi.h"
#include "mpi/job/local_socket.hpp"

namespace warren::node {

namespace {

constexpr std::size_t block_size = ContextIds::connecting_block;
// Names of blocks that are tried. Few of the blocks are taken, unless somebody takes them all.
constexpr int attempts = 1000;

} // namespace

ConnectingContexts::~ConnectingContexts() {
    for (const std::unique_ptr<Block>& block : blocks_) {
        close(block->socket);
    }
}

Error ConnectingContexts::open() {
    return blocks_.empty() ? take_block() : Error{};
}

Error ConnectingContexts::take_block() {
    int reason = EADDRINUSE;
    for (int attempt = 0; attempt < attempts && reason == EADDRINUSE; ++attempt) {
        std::uint32_t number = 0;
        if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
            reason = errno;
            break;
        }
        number %= ContextIds::connecting_blocks;
        const int socket = listen_at("warren.contexts." + std::to_string(number), SOCK_DGRAM, 0);
        if (socket >= 0) {
            blocks_.push_back(std::make_unique<Block>(number, socket));
            return {};
        }
        reason = errno;
    }
    return fail(MPI_ERR_OTHER,
                "no socket that keeps numbers of communicators of several worlds: %s",
                text_of_socket_error(reason).c_str());
}

std::uint32_t ConnectingContexts::take() {
    if (blocks_.empty()) {
        return 0;
    }
    const std::size_t all = blocks_.size() * block_size;
    if (in_use_ == all) {
        next_ = all;
        if (Error error = take_block()) {
            error.drop();
            return 0;
        }
    }
    while (true) {
        next_ %= blocks_.size() * block_size;
        Block& block = *blocks_[next_ / block_size];
        const std::size_t turn = next_++ % block_size;
        if (!block.used.test(turn)) {
            block.used.set(turn);
            ++in_use_;
            return ContextIds::connecting(block.number, static_cast<std::uint32_t>(turn));
        }
    }
}

void ConnectingContexts::give_back(std::uint32_t context) {
    if (!ContextIds::is_spanning(context)) {
        return;
    }
    for (const std::unique_ptr<Block>& block : blocks_) {
        if (block->number == ContextIds::connecting_block_of(context)) {
            const std::uint32_t turn = ContextIds::connecting_turn_of(context);
            in_use_ -= block->used.test(turn) ? 1 : 0;
            block->used.reset(turn);
        }
    }
}

} // namespace warren::node
