// Immediate: steps of a collective operation that are done at once, as blocking calls do them.
//
// A step returns when it has taken place. end() gives the first error of any. Thread rule: under
// the rank's lock; waits release it while they give the processor away.
#pragma once

#include "base/error.hpp"
#include "coll/steps.hpp"

namespace warren::coll {

class Immediate final : public Steps {
  public:
    Immediate(message::Engine& engine, const comm::Communicator& communicator,
              Tag tag = Tag::barrier)
        : Steps(engine, communicator), tag_(tag) {}
    ~Immediate();

    void name(Tag tag) override { tag_ = tag; }

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
        return {speaking().collective_context(), source, static_cast<std::int32_t>(tag_)};
    }
    void start(message::Request* request);
    void keep(Error error);

    Tag tag_;
    message::Request* under_way_ = nullptr; // a list by next_stepping
    Error first_error_;
};

} // namespace warren::coll
