// Stepping: the operations that are made of others (Operation::combined, collective, partitioned),
// each of which is asked in each round of progress whether it has completed. Thread rule: under the
// rank's lock, which a step may release.
#pragma once

#include "mpi/message/request_table.hpp"

namespace warren::message {

class Stepping {
  public:
    explicit Stepping(RequestTable& requests) : requests_(requests) {}

    bool empty() const { return first_ == nullptr; }

    // Begins one: request.stepping.step is asked until it says true.
    void start(Request& request);
    // Asks all. Returns whether any has completed.
    bool run();

  private:
    RequestTable& requests_;
    Request* first_ = nullptr; // the newest
    bool runs_ = false;
};

} // namespace warren::message
