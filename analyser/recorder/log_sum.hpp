// Lengths and checksums of the logs of a process's tracker (tracker/log.hpp), for a recorder in the
// same process, whose memory this is. The end of the recording may come in the middle of anything;
// with these it needs neither the tracker's lock nor the files. Bytes beyond these lengths were
// written later or are unused space, and are no part of the recording. Plain data. Thread rule: the
// tracker's lock to change it, none to read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analyser/recorder/format.hpp"

namespace warren::locality {

struct TrackedLog {
    const char* file;
    const char* what; // its records are, for people
    std::uint64_t record_bytes;
};
// A log comes before the logs that its records refer to. Sums read in this order contain no
// reference to a later record.
constexpr TrackedLog tracked_logs[] = {
    {AllocationRecord::file, "allocations", sizeof(AllocationRecord)},
    {StackRecord::file, "calls of allocations", sizeof(StackRecord)},
    {PhaseRecord::file, "phases", sizeof(PhaseRecord)},
    {NameRecord::file, "names", sizeof(NameRecord)},
};
constexpr std::size_t tracked_log_count = sizeof tracked_logs / sizeof tracked_logs[0];
enum TrackedLogNumber : std::size_t { log_allocations, log_stacks, log_phases, log_names };
constexpr const char* no_space_for_log =
    "the disk was full, files were limited, the recording had reached its limit, or its folder was "
    "moved";

class LogSum {
  public:
    void made() { __atomic_store_n(&made_, 1, __ATOMIC_RELAXED); }
    // The release pairs with the acquire in bytes(): a reader that sees a record sees what it
    // refers to.
    void wrote(std::uint32_t records, std::uint32_t crc32) {
        __atomic_store_n(&written_, (std::uint64_t{records} + 1) << 32 | crc32, __ATOMIC_RELEASE);
    }
    void lose() { __atomic_fetch_add(&lost_, 1, __ATOMIC_RELAXED); }

    bool is_made() const { return __atomic_load_n(&made_, __ATOMIC_RELAXED) != 0; }
    std::uint64_t lost() const { return __atomic_load_n(&lost_, __ATOMIC_RELAXED); }
    // Bytes of header and records, and their CRC-32.
    std::uint64_t bytes(std::uint64_t record_bytes, std::uint32_t& crc32) const {
        const std::uint64_t written = __atomic_load_n(&written_, __ATOMIC_ACQUIRE);
        crc32 = static_cast<std::uint32_t>(written);
        return written == 0 ? 0 : sizeof(FileHeader) + ((written >> 32) - 1) * record_bytes;
    }

  private:
    // The number of records, plus one for the header, in the upper half; their checksum in the
    // lower. One word, so that readers never see half of a change.
    std::uint64_t written_ = 0;
    std::uint64_t lost_ = 0;
    std::uint32_t made_ = 0;
};

struct LogSums {
    LogSum of[tracked_log_count];
};

} // namespace warren::locality
