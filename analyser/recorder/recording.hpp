// Writing a recording (format.hpp): append-only files of records, and the description of the
// process.
//
// Only records that are not flushed can be lost: records reach the file whole and in order. A
// description exists from the start and is overwritten in place, so that it needs no further space
// on a full disk. An error is kept and reported once, and later records count as lost. Thread rule:
// one thread per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyser/recorder/checksum.hpp"
#include "analyser/recorder/format.hpp"
#include "base/error.hpp"

namespace warren::locality {

// Bytes that all files of a folder may still take together, so that a recording never fills a disk.
// The files share this object.
struct Allowance {
    std::uint64_t bytes = UINT64_MAX;
};

class ByteFile {
  public:
    ByteFile() = default;
    ByteFile(const ByteFile&) = delete;
    ByteFile& operator=(const ByteFile&) = delete;
    ~ByteFile();

    // Makes the file, which must not be there yet. `allowance` outlives this object.
    Error open(const std::string& path, Allowance& allowance);
    bool is_open() const { return descriptor_ >= 0; }

    // False: the bytes are lost, and so are all later ones.
    bool append(const void* data, std::size_t bytes);
    // False: bytes were lost. The whole units that fitted are in the file.
    bool flush();
    void close();

    // Bytes that are in the file, or wait for flush().
    std::uint64_t bytes() const { return in_file_ + buffer_.size(); }
    // Checksum of the bytes that are in the file.
    std::uint32_t checksum() const { return checksum_.value(); }
    const std::string& problem() const { return problem_; } // empty: all is well
    void set_unit(std::size_t bytes) { unit_ = bytes; }     // what is after the bytes until now
    // Leaves so much of the disk to others. Bytes that would need it are lost.
    void set_reserve(std::uint64_t bytes) { reserve_bytes_ = bytes; }

  private:
    bool give_up(const char* why);
    std::size_t writable() const;

    static constexpr std::size_t buffer_bytes = std::size_t{1} << 16;

    int descriptor_ = -1;
    Allowance* allowance_ = nullptr;
    std::string path_;
    std::string problem_;
    std::vector<char> buffer_;
    std::uint64_t in_file_ = 0;
    Checksum checksum_;
    std::size_t unit_ = 1;
    std::uint64_t reserve_bytes_ = 0;
};

template <typename Record>
class RecordFile {
  public:
    Error open(const std::string& folder, Allowance& allowance, const char* name = Record::file) {
        if (Error error = file_.open(folder + "/" + name, allowance)) {
            return error;
        }
        const FileHeader header = header_of<Record>();
        file_.append(&header, sizeof header);
        file_.flush(); // a file without records has a header
        file_.set_unit(sizeof(Record));
        return {};
    }
    bool is_open() const { return file_.is_open(); }

    bool append(const Record& record) {
        ++appended_;
        return file_.append(&record, sizeof record);
    }
    bool flush() { return file_.flush(); }
    void close() { file_.close(); }
    void set_reserve(std::uint64_t bytes) { file_.set_reserve(bytes); }

    std::uint64_t records() const {
        const std::uint64_t bytes = file_.bytes();
        return bytes < sizeof(FileHeader) ? 0 : (bytes - sizeof(FileHeader)) / sizeof(Record);
    }
    std::uint64_t lost() const { return appended_ - records(); }
    const std::string& problem() const { return file_.problem(); }
    const ByteFile& bytes() const { return file_; }

  private:
    ByteFile file_;
    std::uint64_t appended_ = 0;
};

// A loss: "touches", 12, "the kernel's buffer was full". Without a number nothing of the kind was
// kept, and the loss was not counted.
struct Loss {
    static constexpr std::uint64_t all = 0;
    std::string what;
    std::uint64_t count = all;
    std::string why;
};

// A file as it was written, without bytes that its writer cut off again.
struct FileSum {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;
};

struct ProcessDescription {
    std::string mode;              // "first-touch", "counts", "sample"
    std::uint64_t granularity = 0; // bytes of a unit: the page in first-touch mode
    std::uint64_t page_size = 0;
    std::int64_t pid = 0;
    std::int64_t parent = 0;
    std::int64_t rank = -1; // -1: no rank is known
    std::int64_t size = -1;
    std::string rank_source; // whose environment says so: "Warren", "PMI", "PMIx", …
    std::string host;
    std::vector<std::string> command;
    std::string executable;
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;         // 0: not known, the recorder did not see it
    std::int64_t start_unix_ns = 0;   // start_ns in the time of day
    std::string end;                  // "exit 0", "signal 9 (Killed)", "exec"; empty: not known
    std::uint64_t bursts = 0;         // of mode sample, all threads' together
    bool faults = false;              // of mode sample: first touches are in faults_folder
    std::uint64_t threshold = 0;      // bytes: smaller heap blocks are not recorded
    std::vector<std::string> missing; // what the recorder could not see, a sentence each
    std::vector<Loss> lost;
    std::uint64_t limit_bytes = 0; // of this folder; 0: none
    std::vector<int> nodes;        // NUMA nodes with memory
    // The recording's files, known at its end. By them readers find what is missing or changed.
    // Empty: not known.
    std::vector<FileSum> files;
};

// The description as a JSON object, one key a line. One with `files` ends with a `sum`, the CRC-32
// of all bytes before the comma in front of that key.
std::string to_json(const ProcessDescription& description);

// A string as JSON writes it, with its quotes; bytes that are no UTF-8 become the replacement
// character.
std::string json_string(const std::string& text);

// process.json of a folder, with space for what is only known at the end.
class DescriptionFile {
  public:
    DescriptionFile() = default;
    DescriptionFile(const DescriptionFile&) = delete;
    DescriptionFile& operator=(const DescriptionFile&) = delete;
    ~DescriptionFile();

    Error open(const std::string& folder);
    Error write(const ProcessDescription& description);

  private:
    int descriptor_ = -1;
    std::size_t reserved_ = 0;
    std::string path_;
};

} // namespace warren::locality
