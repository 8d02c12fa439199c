#include "mpi/message/matching.hpp"

#include <cstdlib>
#include <new>

namespace warren::message {

Request* PostedReceives::match_wild(const Envelope& message, const Request* exact) {
    Request* wild = wild_.first;
    while (wild != nullptr && !takes(wild->envelope, message)) {
        wild = wild->receiving.next_posted;
    }
    if (wild == nullptr ||
        (exact != nullptr && exact->receiving.posted_at < wild->receiving.posted_at)) {
        return nullptr;
    }
    unlink(wild_, *wild);
    return wild;
}

std::uint32_t PostedReceives::attempts(const Envelope& message) const {
    std::uint32_t made = 0;
    for (const List* list : {&exact_[bucket_of(message)], &wild_}) {
        const Request* receive = list->first;
        while (receive != nullptr) {
            ++made;
            if (takes(receive->envelope, message)) {
                break;
            }
            receive = receive->receiving.next_posted;
        }
    }
    return made;
}

UnexpectedMessages::~UnexpectedMessages() {
    for (Unexpected* message = arrived_.first; message != nullptr;) {
        Unexpected* next = message->next_arrived;
        destroy(*message);
        message = next;
    }
    while (pool_ != nullptr) {
        Unexpected* message = pool_;
        pool_ = message->next_arrived;
        std::free(message);
    }
}

Unexpected* UnexpectedMessages::make(std::uint64_t bytes) {
    Unexpected* message = nullptr;
    if (bytes > Unexpected::small_bytes) {
        message = make_large(bytes);
    } else if ((message = make_pooled()) != nullptr) {
        message->data = message->small_data;
    }
    if (message != nullptr) {
        message->bytes = bytes;
    }
    return message;
}

Unexpected* UnexpectedMessages::make_announced(std::uint64_t kept_bytes) {
    Unexpected* message = kept_bytes > 0 ? make_large(kept_bytes) : make_pooled();
    if (message != nullptr) {
        message->announced = {};
    }
    return message;
}

Unexpected* UnexpectedMessages::make_pooled() {
    void* memory = pool_;
    if (memory != nullptr) {
        pool_ = pool_->next_arrived;
    } else if ((memory = std::malloc(sizeof(Unexpected))) == nullptr) {
        return nullptr;
    }
    auto* message = new (memory) Unexpected;
    message->pooled = true;
    return message;
}

Unexpected* UnexpectedMessages::make_large(std::uint64_t bytes) {
    if (bytes > SIZE_MAX - sizeof(Unexpected)) {
        return nullptr;
    }
    void* memory = std::malloc(sizeof(Unexpected) + bytes);
    if (memory == nullptr) {
        return nullptr;
    }
    auto* message = new (memory) Unexpected;
    message->data = reinterpret_cast<std::byte*>(message + 1);
    return message;
}

void UnexpectedMessages::destroy(Unexpected& message) {
    if (message.pooled) {
        message.next_arrived = pool_;
        pool_ = &message;
    } else {
        std::free(&message);
    }
}

void UnexpectedMessages::add(Unexpected& message) {
    List& bucket = buckets_[bucket_of(message.envelope)];
    message.previous_in_bucket = bucket.last;
    message.next_in_bucket = nullptr;
    (bucket.last != nullptr ? bucket.last->next_in_bucket : bucket.first) = &message;
    bucket.last = &message;

    message.previous_arrived = arrived_.last;
    message.next_arrived = nullptr;
    (arrived_.last != nullptr ? arrived_.last->next_arrived : arrived_.first) = &message;
    arrived_.last = &message;
    ++count_;
    bytes_ += message.bytes;
}

void UnexpectedMessages::remove(Unexpected& message) {
    List& bucket = buckets_[bucket_of(message.envelope)];
    WARREN_INVARIANT(count_ != 0 &&
                         (message.previous_in_bucket != nullptr
                              ? message.previous_in_bucket->next_in_bucket == &message
                              : bucket.first == &message) &&
                         (message.previous_arrived != nullptr
                              ? message.previous_arrived->next_arrived == &message
                              : arrived_.first == &message),
                     "matching 3: a message that is taken out is in both of its lists");
    (message.previous_in_bucket != nullptr ? message.previous_in_bucket->next_in_bucket
                                           : bucket.first) = message.next_in_bucket;
    (message.next_in_bucket != nullptr ? message.next_in_bucket->previous_in_bucket : bucket.last) =
        message.previous_in_bucket;
    (message.previous_arrived != nullptr ? message.previous_arrived->next_arrived
                                         : arrived_.first) = message.next_arrived;
    (message.next_arrived != nullptr ? message.next_arrived->previous_arrived : arrived_.last) =
        message.previous_arrived;
    --count_;
    bytes_ -= message.bytes;
}

Unexpected* UnexpectedMessages::find_announced(const Envelope& envelope, std::uint32_t sender,
                                               std::uint64_t send) const {
    using Form = Unexpected::Form;
    Unexpected* message = buckets_[bucket_of(envelope)].first;
    const auto is_it = [&] {
        if (message->sender != sender) {
            return false;
        }
        if (message->form == Form::own) {
            return reinterpret_cast<std::uint64_t>(message->announced.own) == send;
        }
        return message->form == Form::direct
                   ? message->announced.direct == send
                   : (message->form == Form::rendezvous || message->form == Form::listed ||
                      message->form == Form::head) &&
                         message->announced.token == send;
    };
    while (message != nullptr && !is_it()) {
        message = message->next_in_bucket;
    }
    return message;
}

Unexpected* UnexpectedMessages::search(const Envelope& receive) const {
    if (receive.source == MPI_ANY_SOURCE || receive.tag == MPI_ANY_TAG) {
        for (Unexpected* message = arrived_.first; message != nullptr;
             message = message->next_arrived) {
            ++attempts_;
            if (takes(receive, message->envelope)) {
                return message;
            }
        }
        return nullptr;
    }
    for (Unexpected* message = buckets_[bucket_of(receive)].first; message != nullptr;
         message = message->next_in_bucket) {
        ++attempts_;
        if (takes(receive, message->envelope)) {
            return message;
        }
    }
    return nullptr;
}

} // namespace warren::message
