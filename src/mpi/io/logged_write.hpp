// LoggedWrite: an atomic write that becomes whole also if its rank is killed in the middle.
//
// It enters its data in the rank's write log (mpi/job/write_log.hpp), where mpiexec finds it. A
// write from one page of memory to one of the file, which the kernel does as a whole, needs no
// entry. Thread rule: any thread of the rank, without the rank's lock, while it holds an exclusive
// lock of all bytes that it writes. Whoever has an entry waits for nobody.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/page.hpp"
#include "mpi/datatype/buffer.hpp"
#include "mpi/io/system_file.hpp"
#include "mpi/io/view.hpp"
#include "mpi/job/segment.hpp"
#include "mpi/job/write_log.hpp"

namespace warren::io {

// A rank's write log.
class WriteLog {
  public:
    WriteLog() = default;
    // The log of a rank on the node. There is none if memory is out, or nobody would finish the
    // rank's writes: its program was started without mpiexec.
    WriteLog(const node::Segment& segment, std::uint32_t rank);

    explicit operator bool() const { return entries_ != nullptr; }

  private:
    friend class LoggedWrite;
    bool commit(std::uint32_t number, std::uint64_t bytes) const;
    std::uint32_t take_turn() const;
    void end_turn(std::uint32_t number) const;

    const node::Segment* segment_ = nullptr;
    std::uint32_t rank_ = 0;
    node::WriteEntry* entries_ = nullptr; // the first; the others follow by unit
};

class LoggedWrite {
  public:
    // Whether the kernel may stop in the middle of these bytes of a file, or of memory.
    static bool crosses_page(std::uint64_t begin, std::uint64_t end) {
        return begin / page_bytes != (end - 1) / page_bytes;
    }

    // Whether the log has room for so many bytes in blocks of the view, which differ little.
    static bool may_fit(const View& view, MPI_Count bytes) {
        const auto data = static_cast<std::uint64_t>(bytes);
        const auto block = static_cast<std::uint64_t>(view.block_bytes());
        return data <= node::logged_data_bytes &&
               (view.contiguous() || (data + block - 1) / block * node::logged_bytes(block) <=
                                         node::logged_pieces_bytes);
    }

    LoggedWrite(const WriteLog& log, const SystemFile& file, bool locks_system)
        : log_(log), file_(file), locks_system_(locks_system) {}
    LoggedWrite(const LoggedWrite&) = delete;
    LoggedWrite& operator=(const LoggedWrite&) = delete;
    ~LoggedWrite();

    // Enters all bytes of the buffer, which go to byte `first` of the view's data and what follows.
    // Impossible: memory is out, or nobody would find the file.
    enum class Result : std::uint8_t { entered, too_large, impossible };
    Result enter(const View& view, const datatype::Buffer& data, MPI_Count first) {
        return enter_chosen(view, data, first, 0);
    }
    // The buffer is records of so many bytes, one after the other, which one call of the system
    // writes. Enters those that lie in several pages.
    Result enter_records(const View& view, const datatype::Buffer& data, MPI_Count first,
                         MPI_Count record) {
        return enter_chosen(view, data, first, record);
    }

    // Says which of the rank's entries this has.
    std::uint32_t number() const { return number_; }

  private:
    Result enter_chosen(const View& view, const datatype::Buffer& data, MPI_Count first,
                        MPI_Count record);
    bool enter_file() const;
    Result enter_pieces(const View& view, const datatype::Buffer& data, MPI_Count first,
                        MPI_Count record) const;
    const WriteLog& log_;
    const SystemFile& file_;
    const bool locks_system_;
    std::uint32_t number_ = node::entries_per_rank; // of the entry; so many: it has none
    node::WriteEntry* entry_ = nullptr;
};

} // namespace warren::io
