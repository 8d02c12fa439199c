// AccessGuard: the locks that a whole access holds, where its parts don't lock enough: in atomic
// mode, and of a file whose nodes keep pages of their own.
//
// On a node these are range locks (range_locks.hpp). Among nodes it is also a lock of the system,
// which the file system shows to all nodes. That belongs to a descriptor, not to a thread, and is
// gone when any thread gives it back: so a range lock keeps other threads of the rank away from
// these bytes meanwhile, also from reading. Thread rule: a value of one access.
#pragma once

#include <utility>

#include "base/error.hpp"
#include "mpi/io/transfer.hpp"

namespace warren::io {

class AccessGuard {
  public:
    AccessGuard(const Medium& medium, bool atomic, Direction direction, const ByteRange& range);
    AccessGuard(const AccessGuard&) = delete;
    AccessGuard& operator=(const AccessGuard&) = delete;
    ~AccessGuard();

    // Whether an access holds any lock.
    static bool is_needed(const Medium& medium, bool atomic) {
        return atomic || medium.system_locks == SystemLocks::always;
    }
    // The system refuses the lock, and the access can't do without.
    Error take_error() { return std::exchange(error_, Error()); }

  private:
    const SystemFile& file_;
    const bool locks_system_;
    const RangeGuard guard_;
    const ByteRange range_;
    bool locked_ = false;
    Error error_;
};

} // namespace warren::io
