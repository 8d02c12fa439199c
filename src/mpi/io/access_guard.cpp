#include "mpi/io/access_guard.hpp"

namespace warren::io {

using Mode = RangeGuard::Mode;

AccessGuard::AccessGuard(const Medium& medium, bool atomic, Direction direction,
                         const ByteRange& range)
    : file_(*medium.file),
      locks_system_(medium.system_locks == SystemLocks::always ||
                    (atomic && medium.system_locks == SystemLocks::atomic)),
      guard_(is_needed(medium, atomic) ? &medium.locks : nullptr,
             direction == Direction::write || locks_system_ ? Mode::exclusive : Mode::shared,
             range.begin, range.end),
      range_(range) {
    if (!locks_system_) {
        return;
    }
    Error error = file_.lock(direction == Direction::write ? SystemFile::Lock::exclusive
                                                           : SystemFile::Lock::shared,
                             range.begin, range.end);
    locked_ = !error;
    if (atomic) {
        error_ = error;
    } else {
        error.drop(); // a file system without locks
    }
}

AccessGuard::~AccessGuard() {
    if (locked_) {
        file_.lock(SystemFile::Lock::none, range_.begin, range_.end).drop();
    }
    error_.drop();
}

} // namespace warren::io
