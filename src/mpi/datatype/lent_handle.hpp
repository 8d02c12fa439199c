// LentHandle: a datatype's handle for a function that the program has given to MPI (an operation, a
// conversion). The program may free the type while a nonblocking call that uses it goes on; the
// function can use the handle nevertheless. Thread rule: made and ended under the rank's lock,
// which the function runs without.
#pragma once

#include "mpi/datatype/type_table.hpp"

namespace warren::datatype {

class LentHandle {
  public:
    explicit LentHandle(const Datatype& type) : type_(type), handle_(TypeTable::share(type)) {}
    LentHandle(const LentHandle&) = delete;
    LentHandle& operator=(const LentHandle&) = delete;
    ~LentHandle() {
        if (!type_.predefined) {
            --const_cast<Datatype&>(type_).handles;
            release(type_);
        }
    }

    MPI_Datatype value() const { return handle_; }

  private:
    const Datatype& type_;
    const MPI_Datatype handle_;
};

} // namespace warren::datatype
