// The files of a recording (analyser/recorder/format.hpp), written from within the recorded
// process. The platform writes them and keeps their descriptors safe when the program closes its
// own.
//
// Records reach a file whole and in order. A file that can't be written any more (full disk, limit
// reached) is cut to whole records, says why, and counts later losses. A held file stays as it is,
// and appended records wait in memory. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "analyser/recorder/checksum.hpp"
#include "analyser/recorder/disk_quota.hpp"
#include "analyser/recorder/recording.hpp"

namespace warren::locality::counts {

class OutputBytes {
  public:
    OutputBytes() = default;
    OutputBytes(const OutputBytes&) = delete;
    OutputBytes& operator=(const OutputBytes&) = delete;
    ~OutputBytes() { close(); }

    // The file has records of `unit` bytes after a head of `head` bytes.
    bool open(const std::string& path, std::size_t unit, std::size_t head, DiskQuota& quota);
    void append(const void* data, std::size_t bytes);
    void flush();
    void hold(bool held); // false: what waits is written
    void close();         // what is held is written, too
    // Closes without writing what waits. For a forked child, to which the file does not belong.
    void abandon();

    std::uint64_t waiting() const { return waiting_ + held_back_.size(); }
    std::uint64_t bytes() const { return in_file_ + waiting(); }
    const std::string& problem() const { return problem_; }
    // Length and checksum of the file.
    FileSum sum(const char* name) const { return {name, in_file_, checksum_.value()}; }

  private:
    void give_up(const std::string& why);
    void put(const char* data, std::size_t bytes); // its quota is taken

    static constexpr std::size_t buffer_bytes = std::size_t{1} << 16;

    int file_ = -1;
    DiskQuota* quota_ = nullptr;
    std::size_t unit_ = 1;
    std::size_t head_ = 0;
    std::size_t waiting_ = 0;
    std::uint64_t in_file_ = 0;
    Checksum checksum_; // of that
    char* buffer_ = nullptr;
    bool held_ = false;
    bool refused_ = false;  // while the file was held: the quota was used up
    std::string held_back_; // what does not fit into the buffer meanwhile
    std::string path_;
    std::string problem_;
};

template <typename Record>
class Output {
  public:
    bool open(const std::string& folder, DiskQuota& quota, const char* name = Record::file) {
        if (!bytes_.open(folder + "/" + name, sizeof(Record), sizeof(FileHeader), quota)) {
            return false;
        }
        const FileHeader header = header_of<Record>();
        bytes_.append(&header, sizeof header);
        appended_ = 0;
        return true;
    }
    // The number of the record, from 1.
    std::uint64_t append(const Record& record) {
        bytes_.append(&record, sizeof record);
        return ++appended_;
    }
    void flush() { bytes_.flush(); }
    void hold(bool held) { bytes_.hold(held); }
    void close() { bytes_.close(); }
    void abandon() { bytes_.abandon(); }
    std::uint64_t lost() const {
        const std::uint64_t bytes = bytes_.bytes();
        const std::uint64_t there =
            bytes < sizeof(FileHeader) ? 0 : (bytes - sizeof(FileHeader)) / sizeof(Record);
        return appended_ - there;
    }
    std::uint64_t waiting() const { return bytes_.waiting(); } // bytes, not in the file yet
    const std::string& problem() const { return bytes_.problem(); }
    FileSum sum(const char* name = Record::file) const { return bytes_.sum(name); }

  private:
    OutputBytes bytes_;
    std::uint64_t appended_ = 0;
};

// Replaces the text of a small file; false: it could not be written.
bool write_text(int file, const std::string& text);

} // namespace warren::locality::counts
