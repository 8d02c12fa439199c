// Matching: the posted receives and the unexpected messages of a rank.
//
// Both are hashed by the whole envelope, so that a match costs the same with one or ten thousand
// outstanding; receives with wildcards stand in a list of their own, and unexpected messages also
// in one by order of arrival, which receives with wildcards walk.
//
// Invariants
//  1. A message never passes another of the same sender, communicator and tag; among the receives
//     that would take it, the one posted first does (MPI 5.0, 3.5 "Order"). Each list of posted
//     receives is therefore in the order of posting.
//  2. A posted receive is neither matched nor complete, and in one list.
//  3. A message in the lists is in its bucket and in the list by order of arrival.
// Thread rule: under the rank's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/invariant.hpp"
#include "mpi/message/request.hpp"

namespace warren::message {

inline constexpr std::uint32_t match_buckets = 256;

inline std::uint32_t bucket_of(const Envelope& envelope) {
    std::uint32_t hash = envelope.context * 0x9E3779B1U;
    hash = (hash ^ static_cast<std::uint32_t>(envelope.source)) * 0x85EBCA6BU;
    hash = (hash ^ static_cast<std::uint32_t>(envelope.tag)) * 0xC2B2AE35U;
    return hash >> 24;
}

// Whether a receive (or probe) takes a message.
inline bool takes(const Envelope& receive, const Envelope& message) {
    return receive.context == message.context &&
           (receive.source == message.source || receive.source == MPI_ANY_SOURCE) &&
           (receive.tag == message.tag || receive.tag == MPI_ANY_TAG);
}

class PostedReceives {
  public:
    void post(Request& receive) {
        WARREN_INVARIANT(!receive.receiving.matched && !receive.complete,
                         "matching 2: a posted receive is neither matched nor complete");
        receive.receiving.posted_at = ++posted_;
        List& list = list_of(receive.envelope);
        WARREN_INVARIANT(list.last == nullptr ||
                             list.last->receiving.posted_at < receive.receiving.posted_at,
                         "matching 1: a list of receives is in the order of posting");
        receive.receiving.previous_posted = list.last;
        receive.receiving.next_posted = nullptr;
        (list.last != nullptr ? list.last->receiving.next_posted : list.first) = &receive;
        list.last = &receive;
        ++count_;
    }

    void remove(Request& receive) { unlink(list_of(receive.envelope), receive); }

    // Takes out the receive that a message belongs to; null when none is posted.
    Request* match(const Envelope& message) {
        List& list = exact_[bucket_of(message)];
        Request* exact = list.first;
        while (exact != nullptr && !takes(exact->envelope, message)) {
            exact = exact->receiving.next_posted;
        }
        if (wild_.first != nullptr) [[unlikely]] {
            if (Request* wild = match_wild(message, exact)) {
                return wild;
            }
        }
        if (exact != nullptr) {
            unlink(list, *exact);
        }
        return exact;
    }

    std::uint32_t count() const { return count_; }
    // How many comparisons match() needs.
    std::uint32_t attempts(const Envelope& message) const;

  private:
    struct List {
        Request* first;
        Request* last;
    };

    // The receive with wildcards that takes the message, if it was posted before `exact`.
    Request* match_wild(const Envelope& message, const Request* exact);

    void unlink(List& list, Request& receive) {
        WARREN_INVARIANT(
            count_ != 0 &&
                (receive.receiving.previous_posted != nullptr
                     ? receive.receiving.previous_posted->receiving.next_posted == &receive
                     : list.first == &receive),
            "matching 2: a receive that is taken out is in its list");
        (receive.receiving.previous_posted != nullptr
             ? receive.receiving.previous_posted->receiving.next_posted
             : list.first) = receive.receiving.next_posted;
        (receive.receiving.next_posted != nullptr
             ? receive.receiving.next_posted->receiving.previous_posted
             : list.last) = receive.receiving.previous_posted;
        --count_;
    }

    static bool is_wild(const Envelope& envelope) {
        return envelope.source == MPI_ANY_SOURCE || envelope.tag == MPI_ANY_TAG;
    }
    List& list_of(const Envelope& envelope) {
        return is_wild(envelope) ? wild_ : exact_[bucket_of(envelope)];
    }

    List exact_[match_buckets] = {};
    List wild_ = {};
    std::uint64_t posted_ = 0;
    std::uint32_t count_ = 0;
};

// A message that came before its receive.
struct Unexpected {
    enum class Form : std::uint8_t {
        whole,      // all data in `data`
        arriving,   // a stream that fills `data`, which has space for `head_bytes`
        head,       // the first head_bytes in `data`; the sender keeps the rest
        rendezvous, // the sender has the data, at `memory`
        listed,     // the same, at `memory` is a list of its pieces
        direct,     // the same, at `direct` is its DirectSend
        own         // a send of this rank to itself, of which `own` has the data
    };

    // State of a message of which there is more to come.
    struct Announced {
        std::uint64_t head_bytes;       // of a stream
        std::uint64_t arrived;          // of a stream
        transport::RemoteMemory memory; // of a rendezvous
        std::uint64_t direct;           // the DirectSend
        std::uint64_t token;            // of a rendezvous or head: the sender's request
        std::uint64_t began;            // the stamp
        Request* own;
        Request* taker; // of a stream: the receive that waits for the rest
    };
    // A whole message of up to this many bytes has its data in the same place.
    static constexpr std::size_t small_bytes = sizeof(Announced);

    Form form = Form::whole;
    bool pooled = false; // nothing stands behind it, and its memory is used again and again
    Envelope envelope = {};
    std::uint32_t sender = 0;
    std::uint64_t bytes = 0;
    std::byte* data = nullptr;

    Unexpected* previous_in_bucket = nullptr;
    Unexpected* next_in_bucket = nullptr;
    Unexpected* previous_arrived = nullptr;
    Unexpected* next_arrived = nullptr;

    union {
        Announced announced; // if it was made so
        std::byte small_data[small_bytes];
    };
};

class UnexpectedMessages {
  public:
    ~UnexpectedMessages();

    // Makes a message with space for all of its data; null when memory is out. Not yet in the
    // lists.
    Unexpected* make(std::uint64_t bytes);
    // As above, for one of which there is more to come: with space for what will be kept of its
    // data, if anything.
    Unexpected* make_announced(std::uint64_t kept_bytes);
    void destroy(Unexpected& message);

    void add(Unexpected& message);
    void remove(Unexpected& message);

    // The first message that a receive takes, left where it is; null when there is none.
    Unexpected* find(const Envelope& receive) const {
        return count_ == 0 ? nullptr : search(receive);
    }

    // Finds an announced message by its sender's token, by the DirectSend's address if direct, or
    // by the request's address if this rank has sent it to itself.
    Unexpected* find_announced(const Envelope& envelope, std::uint32_t sender,
                               std::uint64_t send) const;

    std::uint32_t count() const { return count_; }
    std::uint64_t bytes() const { return bytes_; }
    // Comparisons of receives and probes with messages.
    std::uint64_t attempts() const { return attempts_; }

  private:
    Unexpected* search(const Envelope& receive) const;

    Unexpected* make_pooled();
    // With memory for data behind it.
    static Unexpected* make_large(std::uint64_t bytes);

    struct List {
        Unexpected* first;
        Unexpected* last;
    };

    List buckets_[match_buckets] = {};
    List arrived_ = {};
    Unexpected* pool_ = nullptr; // linked by next_arrived
    std::uint32_t count_ = 0;
    std::uint64_t bytes_ = 0;
    mutable std::uint64_t attempts_ = 0;
};

} // namespace warren::message
