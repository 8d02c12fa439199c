#include "mpi/message/direct_copies.hpp"

namespace warren::message {

void DirectCopies::remove(const Request& send) {
    Request** link = &first_;
    while (*link != &send) {
        link = &(*link)->sending.next_direct;
    }
    *link = send.sending.next_direct;
}

} // namespace warren::message
