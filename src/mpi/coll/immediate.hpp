// Immediate: steps of a collective operation that are done at once, as blocking calls do them.
//
// A step returns when it has taken place. end() returns the first error of all steps. On a
// communicator with a collective slot, the rank announces in the slot that its call uses messages.
// If another rank's announcement shows a different call, or one that doesn't use messages, this
// rank stops waiting for messages to and from that rank, as it does if that rank has ended. Thread
// rule: under the rank's lock; waits release it while they give the processor away.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.hpp"
#include "mpi/coll/phase_ring.hpp"
#include "mpi/coll/slot_pool.hpp"
#include "mpi/coll/steps.hpp"

namespace warren::coll {

class Immediate final : public Steps {
  public:
    // `common`: of a call in which that is the same at all ranks.
    Immediate(message::Engine& engine, comm::Communicator& communicator,
              const InCommon& common = {})
        : Steps(engine, communicator), common_(common) {
        if (slot_pool::has_slot(communicator)) {
            ring_.emplace(engine, communicator);
        }
    }
    ~Immediate();

    void name(Tag tag) override;
    void refuse(Error error) override { keep(error); }

    void start_send(const Buffer& buffer, int to) override;
    void start_receive(const Buffer& buffer, int from) override;
    void finish() override;
    void send(const Buffer& buffer, int to) override;
    void receive(const Buffer& buffer, int from) override;
    void exchange(const Buffer& out, int to, const Buffer& in, int from) override;
    void copy(const Buffer& from, const Buffer& to) override;
    void combine(const Reduction& reduction, const void* in, void* inout, MPI_Count count) override;

    // Once, after the last step.
    Error end();

  private:
    message::Envelope envelope(int source) const {
        return {speaking().collective_context(), source, tag_};
    }
    void start(message::Request* request, int peer);
    void keep_under_way(message::Request& request, int peer);
    void finish_keeping(const datatype::Datatype& type);
    // Whether a rank is known to take no part in the messages of this call.
    bool is_elsewhere(int peer) {
        return ring_ && ring_->call().unequal() && ring_->call().differs_at(peer);
    }
    bool has_ended(int peer) const;
    bool await(message::Request& request);
    void heard(int from) {
        if (ring_) {
            knows_next_ = knows_next_ || from == ring_->slot().next();
            knows_previous_ = knows_previous_ || from == ring_->slot().previous();
        }
    }
    // Before this rank sleeps, too: for who is late, it may be the one that finds them.
    void tell_sleepers();
    void keep(Error error);

    const InCommon common_;
    std::optional<PhaseRing> ring_;
    std::int32_t tag_ = static_cast<std::int32_t>(Tag::barrier);
    message::Request* under_way_ = nullptr; // a list by next_part
    // The neighbour makes the same call: it has sent a message. Or one doesn't, and all have been
    // told. Or there is no call.
    bool knows_next_ = true;
    bool knows_previous_ = true;
    Error first_error_;
};

} // namespace warren::coll
