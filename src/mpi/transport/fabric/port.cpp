#include "mpi/transport/fabric/port.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/invariant.hpp"
#include "mpi.h"
#include "runtime/fibres/switch.hpp"

namespace warren::transport::fabric {

// --- Links

Link& Port::link_of(std::uint32_t process) {
    Link& link = links_[process];
    link.process = process;
    return link;
}

Error Port::link_to(std::uint32_t process, Link*& link) {
    Link& found = link_of(process);
    if (found.address == FI_ADDR_UNSPEC) {
        Address address;
        if (Error error = resolve_(process, address)) {
            return error;
        }
        // Both ends need the same provider: its name and a zero byte come first.
        const auto end = std::find(address.begin(), address.end(), std::byte{0});
        const std::string provider(reinterpret_cast<const char*>(address.data()),
                                   static_cast<std::size_t>(end - address.begin()));
        if (end == address.end() || provider != info_->fabric_attr->prov_name) {
            return fail(MPI_ERR_OTHER,
                        "rank %u is reached by %s, and this node by %s: set WARREN_NETWORK to a "
                        "provider that all nodes have",
                        process, provider.c_str(), why_.c_str());
        }
        fi_addr_t inserted = FI_ADDR_UNSPEC;
        const int count = fi_av_insert(addresses_, &*end + 1, 1, &inserted, 0, nullptr);
        if (count != 1) {
            return failed("fi_av_insert of a rank's address", count < 0 ? count : -FI_EINVAL);
        }
        found.address = inserted;
    }
    link = &found;
    return {};
}

void Port::fail_link(Link& link, const std::string& cause) {
    if (!std::exchange(link.failed, true)) {
        fail_(link.process, cause);
    }
}

// --- Sending

SendFrame* Port::take_frame() {
    if (free_frames_ == nullptr) {
        if (frames_.size() == frames_of_a_port) {
            return nullptr;
        }
        std::unique_ptr<SendFrame> made(new (std::nothrow) SendFrame);
        if (made == nullptr) {
            return nullptr;
        }
        Error error;
        fid_mr* registration = nullptr;
        descriptor_of(made->data, sizeof made->data, registration, error);
        if (error) {
            error.drop();
            return nullptr;
        }
        registrations_.push_back(registration);
        frames_.push_back(std::move(made));
        frames_.back()->number = static_cast<std::uint32_t>(frames_.size() - 1);
        return frames_.back().get();
    }
    return std::exchange(free_frames_, free_frames_->next_free);
}

void Port::give_frame(SendFrame& frame) {
    frame.next_free = free_frames_;
    free_frames_ = &frame;
}

bool Port::open_frame(Link& link) {
    SendFrame* const frame = take_frame();
    if (frame == nullptr) {
        return false;
    }
    frame->process = link.process;
    frame->bytes = sizeof(FrameHeader);
    frame->cells = 0;
    link.open = frame;
    return true;
}

bool Port::lingers(const Link& link) const {
    return link.open->bytes < linger_bytes &&
           (link.waits || (link.sent_in == polls_ && link.sent != 0 &&
                           fibre::ticks() - link.sent_at < linger_ticks));
}

bool Port::send(Link& link, const CellHeader& header, const Extra* extra, const Source& source) {
    const std::size_t bytes = cell_bytes_of(extra != nullptr, header.bytes);
    WARREN_INVARIANT(header.bytes <= (extra != nullptr ? block_bytes_limit : inline_bytes),
                     "port: a cell fits a frame");
    if (link.open != nullptr && link.open->bytes + bytes > frame_bytes_limit && !post(link)) {
        return false;
    }
    if (link.open == nullptr && !open_frame(link)) {
        return false;
    }
    SendFrame& frame = *link.open;
    std::byte* to = frame.data + frame.bytes;
    std::memcpy(to, &header, sizeof header);
    to += sizeof header;
    if (extra != nullptr) {
        std::memcpy(to, *extra, extra_bytes);
        to += extra_bytes;
    }
    if (header.bytes != 0) {
        source.copy(header.bytes, to);
        std::memset(to + header.bytes, 0, padded(header.bytes) - header.bytes);
    }
    frame.bytes += static_cast<std::uint32_t>(bytes);
    ++frame.cells;
    if (lingers(link) || !post(link)) {
        wait_to_send(link);
    }
    return true;
}

FrameHeader Port::header_of(const Link& link, std::uint32_t bytes, std::uint32_t cells) const {
    return {.magic = frame_magic,
            .bytes = bytes,
            .secret = identity_.secret,
            .source = identity_.process,
            .number = link.sent,
            .consumed = link.received,
            .cells = cells};
}

void Port::count_sent(Link& link) {
    ++link.sent;
    ++frames_sent_;
    link.told = link.received;
    link.sent_at = fibre::ticks();
    link.sent_in = polls_;
}

bool Port::post(Link& link) {
    SendFrame& frame = *link.open;
    if (!has_credit(link) || link.failed) {
        return false;
    }
    const FrameHeader header = header_of(link, frame.bytes, frame.cells);
    std::memcpy(frame.data, &header, sizeof header);
    ssize_t code;
    // (What is injected never completes. Of the first frame it is to be known.)
    const bool inject = frame.bytes <= inject_bytes_ && link.sent != 0;
    if (inject) {
        code = fi_inject(endpoint_, frame.data, frame.bytes, link.address);
    } else {
        fid_mr* const registration = registrations_[frame.number];
        code = fi_send(endpoint_, frame.data, frame.bytes,
                       registration != nullptr ? fi_mr_desc(registration) : nullptr, link.address,
                       &frame.context);
    }
    if (code == -FI_EAGAIN) {
        return false;
    }
    if (code != 0) {
        fail_link(link, library_.strerror(static_cast<int>(-code)));
        return false;
    }
    count_sent(link);
    link.open = nullptr;
    if (inject) {
        give_frame(frame);
    } else {
        ++under_way_;
    }
    return true;
}

bool Port::post_credit(Link& link) {
    WARREN_INVARIANT(link.sent - link.consumed < credit_frames + credit_reserve,
                     "port: the reserve is enough for what has to be told");
    const FrameHeader header = header_of(link, sizeof header, 0);
    const ssize_t code = fi_inject(endpoint_, &header, sizeof header, link.address);
    if (code == -FI_EAGAIN) {
        return false;
    }
    if (code != 0) {
        fail_link(link, library_.strerror(static_cast<int>(-code)));
        return false;
    }
    count_sent(link);
    return true;
}

void Port::wait_to_send(Link& link) {
    if (!std::exchange(link.waits, true)) {
        link.next_waiting = waiting_;
        waiting_ = &link;
    }
}

bool Port::send_waiting() {
    bool any = false;
    Link** place = &waiting_;
    while (Link* const link = *place) {
        if (link->open != nullptr) {
            any |= post(*link);
        }
        // Unless a frame with cells has told it.
        if (owes_credit(*link) && !link->failed) {
            any |= post_credit(*link);
        }
        if (link->failed || (link->open == nullptr && !owes_credit(*link))) {
            *place = link->next_waiting;
            link->waits = false;
        } else {
            place = &link->next_waiting;
        }
    }
    return any;
}

void Port::end_send(void* context) {
    static_assert(offsetof(SendFrame, context) == 0);
    --under_way_;
    give_frame(*static_cast<SendFrame*>(context));
}

// --- Receiving

std::size_t Port::read_completions(std::array<fi_cq_data_entry, entries_at_once>& entries) {
    const ssize_t count = fi_cq_read(completions_, entries.data(), entries.size());
    if (count >= 0) {
        return static_cast<std::size_t>(count);
    }
    if (count == -FI_EAVAIL) {
        read_error();
    }
    return 0;
}

void Port::read_error() {
    fi_cq_err_entry entry = {};
    if (fi_cq_readerr(completions_, &entry, 0) != 1) {
        return;
    }
    char text[128];
    const char* cause =
        fi_cq_strerror(completions_, entry.prov_errno, entry.err_data, text, sizeof text);
    const std::string told =
        std::string(library_.strerror(entry.err)) +
        (cause != nullptr && *cause != '\0' ? std::string(" (") + cause + ")" : "");
    if ((entry.flags & FI_RECV) != 0) {
        // A connection that was lost while a frame arrived, perhaps a stranger's. Its sender learns
        // of it. The buffer has room for more messages, unless the provider gives it back.
        ++refused_;
        if ((entry.flags & FI_MULTI_RECV) != 0) {
            repost_buffer(entry.op_context);
        }
        return;
    }
    const std::uint32_t process = static_cast<SendFrame*>(entry.op_context)->process;
    end_send(entry.op_context);
    fail_link(link_of(process), told);
}

Link* Port::accept(const FrameReader& frame, std::span<const std::byte> bytes) {
    if (frame.fault() != FrameReader::Fault::none || frame.header().source >= identity_.ranks ||
        frame.header().source == identity_.process) {
        ++refused_;
        return nullptr;
    }
    Link& link = link_of(frame.header().source);
    const std::uint32_t number = frame.header().number;
    const auto ahead = static_cast<std::int32_t>(number - link.received);
    const std::uint32_t consumed = frame.header().consumed - link.consumed;
    const bool newer = static_cast<std::int32_t>(consumed) >= 0; // not of an early frame's
    if (ahead < 0 || link.early.contains(number) ||
        (newer && consumed > link.sent - link.consumed)) {
        ++refused_; // sent twice, or gives credits that nobody has
        return nullptr;
    }
    if (newer) {
        link.consumed = frame.header().consumed;
    }
    if (ahead == 0) {
        return &link;
    }
    if (ahead > static_cast<std::int32_t>(credit_frames + credit_reserve)) {
        ++refused_;
        fail_link(link, "frames were lost on the way");
        return nullptr;
    }
    link.early.emplace(number, std::vector<std::byte>(bytes.begin(), bytes.end()));
    return nullptr;
}

void Port::consume(Link& link) {
    ++link.received;
    if (owes_credit(link)) {
        Link* reachable = nullptr;
        if (Error error = link_to(link.process, reachable)) {
            error.drop();
            fail_link(link, "it has no address to answer to");
            return;
        }
        wait_to_send(link);
    }
}

void Port::post_buffer(void* context) {
    static_assert(offsetof(ReceiveBuffer, context) == 0);
    auto& buffer = *static_cast<ReceiveBuffer*>(context);
    iovec place = {.iov_base = buffer.data, .iov_len = receive_buffer_bytes};
    void* descriptor = buffer.registration != nullptr ? fi_mr_desc(buffer.registration) : nullptr;
    fi_msg message = {};
    message.msg_iov = &place;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &buffer.context;
    const ssize_t code = fi_recvmsg(endpoint_, &message, FI_MULTI_RECV);
    if (code != 0) {
        fail_(identity_.process, std::string("no buffer can be posted for what comes: ") +
                                     library_.strerror(static_cast<int>(-code)));
        return;
    }
    ++buffers_posted_;
}

bool Port::may_wait() {
    for (const Link* link = waiting_; link != nullptr; link = link->next_waiting) {
        if (!waits_for_credit(*link)) {
            return false; // the provider has no room, and doesn't say when it has
        }
    }
    fid* const objects[] = {&completions_->fid};
    return fi_trywait(fabric_, const_cast<fid**>(objects), 1) == FI_SUCCESS;
}

} // namespace warren::transport::fabric
