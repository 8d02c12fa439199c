// Schedule: the recorded steps of a collective operation, which run while the rank does other
// things. A nonblocking collective runs its schedule once, a persistent one each time that it is
// started.
//
// The algorithm's function records the steps (steps.hpp), and a request runs them
// (Engine::start_stepping). Each round of progress tests whether the messages under way are
// complete and, if they are, does the steps up to the next finish().
//
// A schedule owns what it needs and the program may free meanwhile: scratch memory, the datatypes
// of its buffers, and a copy of a reduction's operation. Its request keeps the communicator.
// Invariants
//  1. The messages of one operation have a tag of their own in the communicator: operations that
//     are under way together never see each other's.
//  2. Between two ranks, both write their messages down in the same order; so they match also when
//     one of them is a round, or a whole start of a persistent operation, ahead.
// Errors: the first failure is the request's outcome; steps after it are for the others' sake only.
// Thread rule: under the rank's lock, which functions of the program run without: one thread at a
// time is inside advance(), others are told that it isn't done.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "mpi/coll/steps.hpp"

namespace warren::coll {

class Schedule final : public Steps {
  public:
    // The tag: of invariant 1.
    Schedule(message::Engine& engine, const comm::Communicator& communicator, std::int32_t tag)
        : Steps(engine, communicator), tag_(tag) {}
    ~Schedule();

    void refuse(Error error) override;
    void start_send(const Buffer& buffer, int to) override;
    void start_receive(const Buffer& buffer, int from) override;
    void finish() override;
    void send(const Buffer& buffer, int to) override;
    void receive(const Buffer& buffer, int from) override;
    void exchange(const Buffer& out, int to, const Buffer& in, int from) override;
    void copy(const Buffer& from, const Buffer& to) override;
    void combine(const Reduction& reduction, const void* in, void* inout, MPI_Count count) override;

    // The steps use `copy` in place of `section`. The schedule owns it from now on (malloc).
    struct CopyUse {
        bool fill;      // at each start
        bool goes_back; // after the last step
    };
    void hold_copy(const Buffer& section, const Buffer& copy, CopyUse use);

    // Makes a request stand for this schedule, which its `release` has to delete.
    void attach(message::Request& request);
    // Starts the request of a schedule; it may be complete at once. Again: when it is complete.
    static void start(message::Engine& engine, message::Request& request);

  private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    enum class Kind : std::uint8_t { send, receive, finish, copy, combine };
    struct Step {
        Kind kind;
        int peer = MPI_PROC_NULL;                         // rank in `communicator`
        const comm::Communicator* communicator = nullptr; // of messages
        Buffer buffer = {};                               // copy: the source; combine: `in`
        Buffer target = {}; // copy: the destination; combine: `inout` as base
    };

    void add(const Step& step);
    static void retain_types(const Step& step);
    // Does what can be done now. True: all is done.
    bool advance();
    bool do_rounds();
    void perform(const Step& step);
    void perform_message(const Step& step);
    bool failed() const { return outcome_.error_class != MPI_SUCCESS; }
    // Takes the failure of a message for the outcome, if it has failed.
    void note_failure(const message::Request& request);
    // Takes the error's class for the outcome.
    void keep(Error error);
    message::Envelope envelope(const comm::Communicator& communicator, int source) const {
        return {communicator.collective_context(), source, tag_};
    }

    const std::int32_t tag_;
    bool unfinished_ = false; // being written: messages were started since the last finish
    bool running_ = false;    // a thread is inside advance()
    std::size_t next_ = 0;    // step
    message::Request* under_way_ = nullptr; // a list by next_part
    message::Outcome outcome_;
    int refused_ = MPI_SUCCESS; // the class of the error that it was refused with
    Op op_;                     // of combine steps
    std::vector<Step> steps_;
    std::vector<std::unique_ptr<void, Free>> copies_;
};

} // namespace warren::coll
