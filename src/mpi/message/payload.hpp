// Reading what a cell of the protocol brings (protocol.hpp).
#pragma once

#include <cstring>

#include "mpi/message/protocol.hpp"

namespace warren::message {

template <typename Data>
Data payload_of(const transport::Arrival& arrival) {
    static_assert(sizeof(Data) <= transport::inline_bytes);
    Data data;
    std::memcpy(&data, arrival.data, sizeof data);
    return data;
}

inline StreamHead head_of(const transport::Arrival& arrival) {
    StreamHead head;
    std::memcpy(&head, arrival.extra, sizeof head);
    return head;
}

} // namespace warren::message
