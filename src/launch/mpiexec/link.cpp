#include "launch/mpiexec/link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace warren::launch {

namespace {

constexpr std::uint32_t frame_magic = 0x4d524657; // "WFRM", little-endian

struct FrameHeader {
    std::uint32_t magic;
    FrameKind kind;
    std::uint32_t number;
    std::uint32_t bytes;
};

void do_not_block(int descriptor) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

} // namespace

Link::Link(int input, int output) : input_(input), output_(output) {
    do_not_block(input);
    do_not_block(output);
}

Link::~Link() {
    close(input_);
    close(output_);
}

void Link::send(FrameKind kind, std::uint32_t number, std::string_view payload) {
    if (broken_) {
        return;
    }
    const FrameHeader header = {.magic = frame_magic,
                                .kind = kind,
                                .number = number,
                                .bytes = static_cast<std::uint32_t>(payload.size())};
    pending_.append(reinterpret_cast<const char*>(&header), sizeof header);
    pending_ += payload;
    flush();
}

bool Link::flush() {
    while (!broken_ && backlog() > 0) {
        const ssize_t done = write(output_, pending_.data() + written_, backlog());
        if (done >= 0) {
            written_ += static_cast<std::size_t>(done);
        } else if (errno == EAGAIN) {
            return true;
        } else if (errno != EINTR) {
            broken_ = true;
        }
    }
    pending_.clear();
    written_ = 0;
    return !broken_;
}

void Link::drain(int timeout_ms) {
    while (flush() && backlog() > 0) {
        pollfd writable = {.fd = output_, .events = POLLOUT, .revents = 0};
        if (poll(&writable, 1, timeout_ms) == 0) {
            return;
        }
    }
}

bool Link::receive() {
    std::array<char, 65536> buffer;
    while (true) {
        const ssize_t got = read(input_, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 && errno == EAGAIN;
        }
        received_.erase(0, std::exchange(taken_, 0));
        received_.append(buffer.data(), static_cast<std::size_t>(got));
        break;
    }
    if (!greeted_) {
        const std::size_t at = received_.find(greeting);
        const std::size_t skipped =
            at != std::string::npos
                ? at
                : received_.size() - std::min(received_.size(), greeting.size() - 1);
        before_ += received_.substr(0, skipped);
        greeted_ = at != std::string::npos;
        received_.erase(0, skipped + (greeted_ ? greeting.size() : 0));
        foreign_ = foreign_ || (!greeted_ && before_.size() > before_limit_bytes);
    }
    return !foreign_;
}

bool Link::next(Frame& frame) {
    FrameHeader header;
    if (!greeted_ || foreign_ || received_.size() - taken_ < sizeof header) {
        return false;
    }
    std::memcpy(&header, received_.data() + taken_, sizeof header);
    if (header.magic != frame_magic || header.bytes > frame_limit_bytes) {
        foreign_ = true;
        return false;
    }
    if (received_.size() - taken_ - sizeof header < header.bytes) {
        return false;
    }
    frame = {.kind = header.kind,
             .number = header.number,
             .payload = received_.substr(taken_ + sizeof header, header.bytes)};
    taken_ += sizeof header + header.bytes;
    return true;
}

bool Link::await(Frame& frame, int timeout_ms) {
    while (!next(frame)) {
        pollfd readable = {.fd = input_, .events = POLLIN, .revents = 0};
        const int found = poll(&readable, 1, timeout_ms);
        if ((found < 0 && errno != EINTR) || found == 0 || (found > 0 && !receive())) {
            return false;
        }
    }
    return true;
}

std::string Link::take_before() {
    return std::exchange(before_, {});
}

void Packer::add(std::uint64_t number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void Packer::add(std::string_view text) {
    add(std::uint64_t{text.size()});
    bytes_ += text;
}

void Packer::add(const std::vector<std::string>& texts) {
    add(std::uint64_t{texts.size()});
    for (const std::string& text : texts) {
        add(std::string_view(text));
    }
}

std::string_view Unpacker::take(std::uint64_t bytes) {
    if (!sound_ || bytes > rest_.size()) {
        sound_ = false;
        return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
}

std::uint64_t Unpacker::number() {
    std::uint64_t number = 0;
    const std::string_view taken = take(sizeof number);
    if (sound_) {
        std::memcpy(&number, taken.data(), sizeof number);
    }
    return number;
}

std::string Unpacker::text() {
    return std::string(take(number()));
}

std::vector<std::string> Unpacker::texts() {
    const std::uint64_t count = number();
    std::vector<std::string> made;
    for (std::uint64_t index = 0; sound_ && index < count; ++index) {
        made.push_back(text());
    }
    return made;
}

} // namespace warren::launch
