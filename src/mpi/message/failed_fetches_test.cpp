// Pairs whose fetching fails, or is refused: the messages come all the same, and it isn't tried
// again and again. The system's call is this file's.
#include <cerrno>
#include <sys/uio.h>

#include "mpi/message/test_node.hpp"

namespace {
std::atomic<int> tried{0};
std::atomic<int> error_of_fetches{0};
} // namespace

extern "C" ssize_t process_vm_readv(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                    unsigned long) {
    ++tried;
    errno = error_of_fetches;
    return -1;
}

namespace warren::message {
namespace {

constexpr std::size_t bytes = 512 << 10;

// Then the pair has a pair ring, without which nothing has a choice.
void get_acquainted(Engine& engine, std::uint32_t rank) {
    std::byte data[8] = {};
    constexpr Envelope envelope = {.context = 4, .source = 0, .tag = 0};
    for (int i = 0; i < 20; ++i) {
        if (rank == 0) {
            ASSERT_FALSE(engine.send(Operation::send, {data, 8, &byte_type()}, 1, envelope));
        } else {
            Outcome outcome;
            ASSERT_FALSE(engine.receive({data, 8, &byte_type()}, envelope, outcome));
        }
    }
}

// How many of the second half of the messages were tried to be fetched. `waits`: each send waits
// for itself (MPI_Send), else for those of its window at the end (MPI_Waitall), when the receiver
// chooses.
int tries_later(int error, bool waits) {
    constexpr int messages = 400;
    constexpr int window = 4;
    tried = 0;
    error_of_fetches = error;
    std::atomic<int> before{0};
    Node node(2, 2);
    node.run([&](Engine& engine, std::uint32_t rank) {
        get_acquainted(engine, rank);
        if (rank == 1) {
            for (int tag = 0; tag < messages; ++tag) {
                if (tag == messages / 2) {
                    before = tried.load();
                }
                receive_all(engine, bytes, tag, tag + 1);
            }
            return;
        }
        for (int first = 0; first < messages; first += window) {
            std::vector<std::vector<std::byte>> data;
            std::vector<Request*> sends;
            for (int tag = first; tag < first + window; ++tag) {
                data.push_back(patterned(static_cast<std::uint64_t>(tag), bytes));
                data.back().back() = pattern(static_cast<std::uint64_t>(tag), bytes);
                if (waits) {
                    engine
                        .send(Operation::send,
                              {data.back().data(), static_cast<MPI_Count>(bytes), &byte_type()}, 1,
                              {.context = 3, .source = 0, .tag = tag})
                        .drop();
                } else {
                    sends.push_back(start_send(engine, data.back(), 1, tag));
                }
            }
            for (Request* send : sends) {
                engine.await(*send);
            }
            for (Request* send : sends) {
                engine.wait(*send);
                engine.discard(*send);
            }
        }
    });
    return tried - before;
}

TEST(failed_fetches, are_not_tried_for_ever) {
    EXPECT_LT(tries_later(EFAULT, true), 60);
}

TEST(failed_fetches, are_tried_once_where_they_are_refused) {
    EXPECT_EQ(tries_later(EPERM, true), 0);
    EXPECT_EQ(tries_later(EPERM, false), 0);
}

} // namespace
} // namespace warren::message
