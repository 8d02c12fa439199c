// Stepping: the operations that are made of others (Operation::combined, collective, partitioned),
// each of which is asked in each round of progress whether it has completed. Thread rule: under the
// rank's lock, which a step may release.
#pragma once

#include <memory>

#include "mpi/message/request_table.hpp"

namespace warren::message {

class Stepping {
  public:
    explicit Stepping(RequestTable& requests) : requests_(requests) {}

    bool empty() const { return first_ == nullptr; }

    // Begins one: request.stepping.step is asked until it says true.
    void start(Request& request);
    // From now on empty() says false: there is something else to ask in each round of progress (the
    // port, which the path of a job on one node must not pay for).
    void never_empty();
    // Asks all. Returns whether any has completed.
    bool run();

  private:
    RequestTable& requests_;
    Request* first_ = nullptr;          // the newest
    std::unique_ptr<Request> resident_; // never completes
    bool runs_ = false;
};

} // namespace warren::message
