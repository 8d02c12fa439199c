// RequestTable: the requests of a rank, from make() to the end of the last that waits for each.
//
// A request has an owner (Fate): the program, which completes it; Engine::flush(), which waits for
// what the program has left or abandoned; or nobody. Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/handle_table.hpp"
#include "base/invariant.hpp"
#include "mpi/message/protocol.hpp"
#include "mpi/message/request.hpp"
#include "mpi/rank/rank.hpp"

namespace warren::message {

class RequestTable {
  public:
    explicit RequestTable(Rank& rank) : rank_(rank) {}
    ~RequestTable();
    RequestTable(const RequestTable&) = delete;
    RequestTable& operator=(const RequestTable&) = delete;

    // Null: memory is out.
    Request* make() { return table_.insert(); }
    // Returns a request to the table. One that is not complete is abandoned: it goes on and leaves
    // the table when it completes.
    void discard(Request& request);
    // Returns one to the table that is complete and owns nothing.
    void remove(Request& request) { table_.remove(request); }
    void complete(Request& request) {
        WARREN_INVARIANT(!request.complete || request.operation == Operation::generalised,
                         "request 1: a request completes once for each start");
        request.complete = true;
        if (request.fate != Fate::attended) [[unlikely]] {
            end_unattended(request);
            return;
        }
        rank_.wake_threads();
    }
    // Leaves an incomplete request to flush(): nobody else waits for it.
    void leave(Request& request);
    // A receive that was abandoned before a message matched it has been matched.
    void abandoned_is_matched() {
        --abandoned_receives_;
        ++unattended_;
    }

    std::uint32_t unattended() const { return unattended_; }
    std::uint32_t abandoned_receives() const { return abandoned_receives_; }
    // But for the one that stands for all sends that need none.
    std::size_t live() const { return table_.live() - 1; }

    Request* find(const void* handle) const { return table_.find(handle); }
    // The request of a handle of the program; null when it is none. A request that was freed before
    // it completed exists, but not for the program, unless it is generalised and to be completed.
    Request* held(const void* handle) const {
        Request* request = table_.find_whole(handle);
        if (request == nullptr) [[unlikely]] {
            request = table_.find_short(handle);
        }
        return request != nullptr && request->fate == Fate::abandoned &&
                       request->operation != Operation::generalised
                   ? nullptr
                   : request;
    }
    void* from_integer(std::uint32_t integer) const { return table_.from_integer(integer); }
    // The visitor may discard the one that it is given.
    template <typename Visitor>
    void for_each(Visitor visit) {
        table_.for_each(visit);
    }

    // Finds a request by the handle that has travelled with messages; null: the request has ended.
    Request* of_token(Token token) const {
        return table_.find_whole(reinterpret_cast<const void*>(token));
    }
    static void* handle_of(const Request& request) {
        return HandleTable<Request>::handle_of(request);
    }
    static Token token_of(const Request& request) {
        return reinterpret_cast<Token>(handle_of(request));
    }

  private:
    void end_unattended(Request& request);

    Rank& rank_;
    std::uint32_t unattended_ = 0;         // requests that flush() waits for
    std::uint32_t abandoned_receives_ = 0; // nothing has matched them yet
    HandleTable<Request> table_;
};

} // namespace warren::message
