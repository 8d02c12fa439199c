#include "analyser/counts/output.hpp"

#include <algorithm>
#include <cstring>

#include "analyser/counts/platform.hpp"

namespace warren::locality::counts {
namespace {

constexpr const char* limit_reached = "the recording has reached its limit";

} // namespace

bool OutputBytes::open(const std::string& path, std::size_t unit, std::size_t head,
                       DiskQuota& quota) {
    close();
    path_ = path;
    problem_.clear();
    unit_ = unit;
    head_ = head;
    quota_ = &quota;
    waiting_ = 0;
    held_ = refused_ = false;
    held_back_.clear();
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
    held_back_.clear();
}

void OutputBytes::append(const void* data, std::size_t bytes) {
    if (file_ < 0 || !problem_.empty() || refused_) {
        return;
    }
    if (!quota_->take(bytes)) {
        if (held_) {
            refused_ = true; // what waits is still to be written
            return;
        }
        flush();
        if (problem_.empty()) {
            give_up(limit_reached);
        }
        return;
    }
    put(static_cast<const char*>(data), bytes);
}

void OutputBytes::put(const char* data, std::size_t bytes) {
    if (held_ && (!held_back_.empty() || waiting_ + bytes > buffer_bytes)) {
        held_back_.append(data, bytes);
        return;
    }
    if (waiting_ + bytes > buffer_bytes) {
        flush();
        if (!problem_.empty()) {
            return;
        }
    }
    std::memcpy(buffer_ + waiting_, data, bytes);
    waiting_ += bytes;
}

void OutputBytes::hold(bool held) {
    held_ = held;
    if (held) {
        return;
    }
    std::string held_back;
    held_back.swap(held_back_);
    for (std::size_t at = 0; at < held_back.size() && problem_.empty();) {
        const std::size_t piece = std::min(held_back.size() - at, buffer_bytes);
        put(held_back.data() + at, piece);
        at += piece;
    }
    if (refused_) {
        refused_ = false;
        flush();
        if (problem_.empty()) {
            give_up(limit_reached);
        }
    }
}

void OutputBytes::flush() {
    if (file_ < 0 || held_ || !problem_.empty()) {
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
    hold(false);
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
    held_back_.clear();
}

bool write_text(int file, const std::string& text) {
    if (file < 0) {
        return false; // it could not be made
    }
    // The text never gets shorter: blanks, which JSON allows, fill the rest of a longer one. So a
    // full disk loses nothing.
    const std::ptrdiff_t before = platform::size_of(file);
    std::string padded = text;
    if (before == 0) {
        constexpr std::size_t end_padding_bytes = 4096; // and for what is lost, when a disk is full
        padded.append(end_padding_bytes, ' ');
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
