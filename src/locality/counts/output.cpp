#include "locality/counts/output.hpp"

#include <cstring>

#include "locality/counts/platform.hpp"

namespace warren::locality::counts {

bool OutputBytes::open(const std::string& path, std::size_t unit, std::size_t head, Room& room) {
    close();
    path_ = path;
    problem_.clear();
    unit_ = unit;
    head_ = head;
    room_ = &room;
    waiting_ = 0;
    in_file_ = 0;
    checksum_ = {};
    file_ = platform::open_new(path.c_str());
    if (file_ < 0) {
        give_up("it can't be made");
        return false;
    }
    if (buffer_ == nullptr) {
        buffer_ = static_cast<char*>(platform::allocate(buffer_bytes));
    }
    return true;
}

void OutputBytes::give_up(const std::string& why) {
    problem_ = path_ + ": " + why;
    waiting_ = 0;
}

void OutputBytes::append(const void* data, std::size_t bytes) {
    if (file_ < 0 || !problem_.empty()) {
        return;
    }
    if (!room_->take(bytes)) {
        flush();
        if (problem_.empty()) {
            give_up("the recording has reached its limit");
        }
        return;
    }
    if (waiting_ + bytes > buffer_bytes) {
        flush();
    }
    std::memcpy(buffer_ + waiting_, data, bytes);
    waiting_ += bytes;
}

void OutputBytes::flush() {
    if (file_ < 0 || !problem_.empty()) {
        return;
    }
    std::size_t done = 0;
    while (done < waiting_) {
        const std::ptrdiff_t written = platform::write(file_, buffer_ + done, waiting_ - done);
        if (written <= 0) {
            const std::uint64_t before = in_file_; // whole records, or nothing
            in_file_ += done;
            in_file_ = in_file_ < head_ ? 0 : in_file_ - (in_file_ - head_) % unit_;
            checksum_.add(buffer_, in_file_ - before);
            const bool cut = platform::truncate(file_, in_file_);
            give_up(cut ? "it can't be written (is the disk full, or are files limited?)"
                        : "it can't be written, and ends with a part of a record");
            return;
        }
        done += static_cast<std::size_t>(written);
    }
    checksum_.add(buffer_, waiting_);
    in_file_ += waiting_;
    waiting_ = 0;
}

void OutputBytes::close() {
    flush();
    abandon();
}

void OutputBytes::abandon() {
    if (file_ >= 0) {
        platform::close(file_);
        file_ = -1;
    }
    if (buffer_ != nullptr) {
        platform::release(buffer_, buffer_bytes);
        buffer_ = nullptr;
    }
    waiting_ = 0;
}

bool write_text(int file, const std::string& text) {
    if (file < 0) {
        return false; // it could not be made
    }
    // Not shorter than it was: the rest of a longer one is blank, which JSON allows, and nothing is
    // lost when the disk is full.
    const std::ptrdiff_t before = platform::size_of(file);
    std::string padded = text;
    if (before == 0) {
        constexpr std::size_t room_for_the_end = 4096; // and for what is lost, when a disk is full
        padded.append(room_for_the_end, ' ');
        if (platform::overwrite(file, padded.data(), padded.size())) {
            return true;
        }
        padded = text;
    } else if (static_cast<std::ptrdiff_t>(padded.size()) < before) {
        padded.append(static_cast<std::size_t>(before) - padded.size(), ' ');
    }
    return before >= 0 && platform::overwrite(file, padded.data(), padded.size());
}

} // namespace warren::locality::counts
