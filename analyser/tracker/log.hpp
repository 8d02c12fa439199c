// Log: a file of records (format.hpp) that a recorded process writes through mapped memory. A
// record takes no system call, and a killed process loses none. A full disk fails the allocation of
// the file's next part; it causes no fault at a write.
//
// The memory is mapped ahead, so that writing causes no page faults of the program. Thread rule:
// the caller locks. Objects are plain data, zero from the start.
#pragma once

#include <cstdint>

#include "analyser/recorder/checksum.hpp"
#include "analyser/recorder/disk_quota.hpp"
#include "analyser/recorder/format.hpp"
#include "analyser/recorder/log_sum.hpp"

namespace warren::locality::tracker {

// The folder and the disk quota that a process's logs share.
struct LogFolder {
    char path[4000]; // absolute
    DiskQuota quota;
};

class Log {
  public:
    // Appends a record. Its first word is not 0 and is written last. False: quota or disk is full.
    template <typename Record>
    bool append(LogFolder& folder, const Record& record, const char* name = Record::file) {
        static_assert(sizeof(Record) % sizeof(std::uint64_t) == 0);
        if (control_ == nullptr && !open(folder, name, header_of<Record>())) {
            return false;
        }
        char* place = make_place(folder, name, sizeof(Record));
        if (place == nullptr) {
            return false;
        }
        copy(place, reinterpret_cast<const char*>(&record), sizeof(Record));
        if (sum_ != nullptr) {
            checksum_.add(&record, sizeof(Record));
            sum_->wrote(records_, checksum_.value());
        }
        return true;
    }

    // Reports writes and losses to `sum`. Call before the first append. Without a sum the file's
    // header counts losses.
    void tell(LogSum* sum) { sum_ = sum; }

    // Number of records that append() has taken.
    std::uint32_t records() const { return records_; }

  private:
    bool open(LogFolder& folder, const char* name, const FileHeader& header);
    char* make_place(LogFolder& folder, const char* name, std::uint64_t bytes);
    void lose();
    bool map_more(LogFolder& folder, const char* name);
    static void copy(char* to, const char* from, std::uint64_t bytes);

    // Zero by constant initialisation, as the library's initialisation would come too late.
    LogSum* sum_ = nullptr;
    Checksum checksum_;             // of header and records, if there is a sum
    FileHeader* control_ = nullptr; // the file's first page
    char* window_ = nullptr;        // [window_begin_, window_end_) of the file
    std::uint64_t window_begin_ = 0;
    std::uint64_t window_end_ = 0;
    std::uint64_t next_ = 0; // offset of the next record
    std::uint32_t records_ = 0;
    bool full_ = false;
};

} // namespace warren::locality::tracker
