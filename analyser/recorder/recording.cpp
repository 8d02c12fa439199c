#include "analyser/recorder/recording.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "analyser/recorder/disk.hpp"

namespace warren::locality {

namespace {

constexpr int other_error = 16; // MPI_ERR_OTHER; this room needs nothing of MPI

// Length of the well-formed UTF-8 sequence at `text`; 0: there is none.
std::size_t utf8_length(const std::string& text, std::size_t at) {
    const auto byte = [&](std::size_t index) {
        return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
    };
    const unsigned first = byte(at);
    std::size_t length = 1;
    if (first >= 0xF5 || (first >= 0x80 && first < 0xC2)) {
        return 0;
    }
    if (first >= 0xC2) {
        length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    }
    for (std::size_t index = 1; index < length; ++index) {
        if ((byte(at + index) & 0xC0U) != 0x80) {
            return 0;
        }
    }
    const unsigned second = byte(at + 1);
    const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    const bool no_letter = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
    return overlong || no_letter ? 0 : length;
}

bool write_all(int descriptor, const char* data, std::size_t bytes, off_t offset) {
    while (bytes > 0) {
        const ssize_t done = pwrite(descriptor, data, bytes, offset);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        data += done;
        bytes -= static_cast<std::size_t>(done);
        offset += done;
    }
    return true;
}

} // namespace

ByteFile::~ByteFile() {
    close();
}

Error ByteFile::open(const std::string& path, Allowance& allowance) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
        return fail(other_error, "%s can't be made: %s", path.c_str(), std::strerror(errno));
    }
    path_ = path;
    allowance_ = &allowance;
    buffer_.reserve(buffer_bytes);
    return {};
}

bool ByteFile::give_up(const char* why) {
    problem_ = path_ + ": " + why;
    buffer_.clear();
    return false;
}

bool ByteFile::append(const void* data, std::size_t bytes) {
    if (descriptor_ < 0 || !problem_.empty()) {
        return false;
    }
    if (allowance_->bytes < bytes) {
        flush();
        return problem_.empty() ? give_up("the recording has reached its limit") : false;
    }
    allowance_->bytes -= bytes;
    const char* begin = static_cast<const char*>(data);
    buffer_.insert(buffer_.end(), begin, begin + bytes);
    return buffer_.size() < buffer_bytes || flush();
}

// Bytes of waiting whole units that can be written without touching the disk's reserve.
std::size_t ByteFile::writable() const {
    if (reserve_bytes_ == 0 || buffer_.empty()) {
        return buffer_.size(); // the disk needn't be looked at
    }
    const std::uint64_t free = disk_free_bytes(descriptor_);
    const std::uint64_t writable = free > reserve_bytes_ ? free - reserve_bytes_ : 0;
    return writable >= buffer_.size() ? buffer_.size()
                                      : static_cast<std::size_t>(writable - writable % unit_);
}

bool ByteFile::flush() {
    if (descriptor_ < 0 || !problem_.empty()) {
        return false;
    }
    const std::size_t bytes = writable();
    if (write_all(descriptor_, buffer_.data(), bytes, static_cast<off_t>(in_file_))) {
        checksum_.add(buffer_.data(), bytes);
        in_file_ += bytes;
        if (bytes < buffer_.size()) {
            return give_up("what is left of the disk is for counts and allocations");
        }
        buffer_.clear();
        return true;
    }
    const char* why = std::strerror(errno);
    // Cuts the part that was written to whole records.
    const off_t end = lseek(descriptor_, 0, SEEK_END);
    const auto arrived = static_cast<std::uint64_t>(end) - in_file_;
    if (end >= static_cast<off_t>(in_file_)) {
        const std::uint64_t whole = arrived - arrived % unit_;
        checksum_.add(buffer_.data(), static_cast<std::size_t>(whole));
        in_file_ += whole;
    }
    if (ftruncate(descriptor_, static_cast<off_t>(in_file_)) != 0) {
        return give_up(why); // readers leave out what is not whole
    }
    return give_up(why);
}

void ByteFile::close() {
    if (descriptor_ >= 0) {
        flush();
        ::close(descriptor_);
        descriptor_ = -1;
    }
}

std::string json_string(const std::string& text) {
    std::string made = "\"";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        const auto code = static_cast<unsigned char>(text[at]);
        if (length == 0) {
            made += "\\ufffd";
            ++at;
            continue;
        }
        if (code == '"' || code == '\\') {
            made += '\\';
        }
        if (code < 0x20 || code == 0x7F) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(code));
            made += escape;
        } else {
            made.append(text, at, length);
        }
        at += length;
    }
    return made + "\"";
}

std::string to_json(const ProcessDescription& description) {
    std::string text = "{\n";
    const auto key = [&](const char* name, const std::string& value) {
        text += (text.size() > 2 ? ",\n \"" : " \"") + std::string(name) + "\": " + value;
    };
    const auto known = [](std::int64_t value) {
        return value < 0 ? std::string("null") : std::to_string(value);
    };
    const auto positive = [](std::uint64_t value) {
        return value == 0 ? std::string("null") : std::to_string(value);
    };
    const auto list = [](const auto& values, auto form) {
        std::string made = "[";
        for (const auto& value : values) {
            made += (made.size() > 1 ? ", " : "") + form(value);
        }
        return made + "]";
    };
    const ProcessDescription& of = description;
    key("format", "\"warren locality recording\"");
    key("version", std::to_string(format_version));
    key("mode", json_string(of.mode));
    key("granularity", std::to_string(of.granularity));
    key("page_size", std::to_string(of.page_size));
    key("pid", std::to_string(of.pid));
    key("parent", std::to_string(of.parent));
    key("rank", known(of.rank));
    key("size", known(of.size));
    key("rank_source", json_string(of.rank_source));
    key("host", json_string(of.host));
    key("command", list(of.command, json_string));
    key("executable", json_string(of.executable));
    key("start_ns", std::to_string(of.start_ns));
    key("start_unix_ns", std::to_string(of.start_unix_ns));
    key("end_ns", positive(of.end_ns));
    key("end", of.end.empty() ? "null" : json_string(of.end));
    if (of.mode == "sample") {
        key("bursts", std::to_string(of.bursts));
        key("faults", of.faults ? "true" : "false");
    }
    key("threshold", std::to_string(of.threshold));
    key("limit_bytes", positive(of.limit_bytes));
    key("nodes", list(of.nodes, [](int node) { return std::to_string(node); }));
    key("missing", list(of.missing, json_string));
    key("lost", list(of.lost, [](const Loss& loss) {
            return "{\"what\": " + json_string(loss.what) +
                   ", \"count\": " + std::to_string(loss.count) +
                   ", \"why\": " + json_string(loss.why) + "}";
        }));
    if (of.files.empty()) {
        return text + "\n}\n";
    }
    std::string files = "{";
    for (const FileSum& file : of.files) {
        files += (files.size() > 1 ? ", " : "") + json_string(file.name) +
                 ": {\"bytes\": " + std::to_string(file.bytes) +
                 ", \"crc32\": " + std::to_string(file.crc32) + "}";
    }
    key("files", files + "}");
    Checksum sum;
    sum.add(text.data(), text.size());
    key("sum", std::to_string(sum.value()));
    return text + "\n}\n";
}

DescriptionFile::~DescriptionFile() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

Error DescriptionFile::open(const std::string& folder) {
    path_ = folder + "/" + process_file;
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
        return fail(other_error, "%s can't be made: %s", path_.c_str(), std::strerror(errno));
    }
    return {};
}

Error DescriptionFile::write(const ProcessDescription& description) {
    constexpr std::size_t end_padding_bytes = 4096;
    std::string text = to_json(description);
    if (reserved_ == 0) {
        reserved_ = text.size() + end_padding_bytes;
    }
    if (text.size() > reserved_) {
        reserved_ = text.size();
    }
    text.insert(text.size() - 1, reserved_ - text.size(), ' ');
    if (!write_all(descriptor_, text.data(), text.size(), 0)) {
        return fail(other_error, "%s: %s", path_.c_str(), std::strerror(errno));
    }
    return {};
}

} // namespace warren::locality
