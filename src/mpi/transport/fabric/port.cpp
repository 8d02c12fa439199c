#include "mpi/transport/fabric/port.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <netdb.h>
#include <sys/mman.h>
#include <utility>

#include "base/invariant.hpp"
#include "mpi.h"

namespace warren::transport::fabric {

namespace {

std::uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

// The address of an offer's interface, as text; "" if it is of no family of the internet.
std::string address_text(const fi_info& info) {
    char text[NI_MAXHOST] = "";
    if (info.src_addr != nullptr) {
        getnameinfo(static_cast<const sockaddr*>(info.src_addr),
                    static_cast<socklen_t>(info.src_addrlen), text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST);
    }
    return text;
}

template <typename Object>
void close_object(Object*& object) {
    if (object != nullptr) {
        fi_close(&object->fid);
        object = nullptr;
    }
}

} // namespace

// --- Opening

Error Port::open(const Identity& identity, const Wish& wish, Resolve resolve, Fail fail,
                 std::unique_ptr<Port>& opened) {
    std::unique_ptr<Port> port(new Port(identity, std::move(resolve), std::move(fail)));
    if (Error error = Libfabric::load(port->library_)) {
        return error;
    }
    if (Error error = port->choose_offer(wish)) {
        return error;
    }
    if (Error error = port->open_endpoint()) {
        return error;
    }
    if (Error error = port->read_address()) {
        return error;
    }
    if (Error error = port->post_buffers()) {
        return error;
    }
    opened = std::move(port);
    return {};
}

Error Port::failed(const char* what, ssize_t code) const {
    return fail(MPI_ERR_OTHER, "the network (%s): %s: %s", why_.c_str(), what,
                library_.strerror(static_cast<int>(-code)));
}

Error Port::choose_offer(const Wish& wish) {
    fi_info* const hints = library_.dupinfo(nullptr); // an empty one
    if (hints == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for the network's description");
    }
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->av_type = FI_AV_TABLE;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    fi_info* list = nullptr;
    const int code = library_.getinfo(api_version, nullptr, nullptr, 0, hints, &list);
    library_.freeinfo(hints);
    if (code != 0 && code != -FI_ENODATA) {
        return fail(MPI_ERR_OTHER, "libfabric can't list the networks: %s",
                    library_.strerror(-code));
    }
    std::vector<Offer> offers;
    std::vector<fi_info*> infos;
    for (fi_info* info = list; info != nullptr; info = info->next) {
        offers.push_back({.provider = info->fabric_attr->prov_name,
                          .interface = info->domain_attr->name,
                          .address = address_text(*info)});
        infos.push_back(info);
    }
    Choice choice;
    Error error = choose(offers, wish, choice);
    if (!error) {
        info_ = library_.dupinfo(infos[choice.number]);
        why_ = std::move(choice.why);
        if (info_ == nullptr) {
            error = fail(MPI_ERR_NO_MEM, "no memory for the network's description");
        }
    }
    library_.freeinfo(list);
    return error;
}

Error Port::open_endpoint() {
    if (const int code = library_.fabric(info_->fabric_attr, &fabric_, nullptr)) {
        return failed("fi_fabric", code);
    }
    if (const int code = fi_domain(fabric_, info_, &domain_, nullptr)) {
        return failed("fi_domain", code);
    }
    fi_av_attr av = {};
    av.type = FI_AV_TABLE;
    if (const int code = fi_av_open(domain_, &av, &addresses_, nullptr)) {
        return failed("fi_av_open", code);
    }
    fi_cq_attr cq = {};
    cq.format = FI_CQ_FORMAT_DATA;
    cq.wait_obj = FI_WAIT_FD;
    if (fi_cq_open(domain_, &cq, &completions_, nullptr) != 0) {
        cq.wait_obj = FI_WAIT_NONE; // sleepers look again and again
        if (const int code = fi_cq_open(domain_, &cq, &completions_, nullptr)) {
            return failed("fi_cq_open", code);
        }
    }
    if (cq.wait_obj == FI_WAIT_FD &&
        fi_control(&completions_->fid, FI_GETWAIT, &wait_descriptor_) != 0) {
        wait_descriptor_ = -1; // the provider `sockets`
    }
    if (const int code = fi_endpoint(domain_, info_, &endpoint_, nullptr)) {
        return failed("fi_endpoint", code);
    }
    if (const int code = fi_ep_bind(endpoint_, &completions_->fid, FI_TRANSMIT | FI_RECV)) {
        return failed("fi_ep_bind of the completions", code);
    }
    if (const int code = fi_ep_bind(endpoint_, &addresses_->fid, 0)) {
        return failed("fi_ep_bind of the addresses", code);
    }
    std::size_t least = frame_bytes_limit;
    if (const int code = fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                                   sizeof least)) {
        return failed("fi_setopt of FI_OPT_MIN_MULTI_RECV", code);
    }
    if (const int code = fi_enable(endpoint_)) {
        return failed("fi_enable", code);
    }
    inject_bytes_ = info_->tx_attr->inject_size;
    if (inject_bytes_ < sizeof(FrameHeader)) {
        return fail(MPI_ERR_OTHER, "the network (%s) can't inject %zu bytes", why_.c_str(),
                    sizeof(FrameHeader));
    }
    if (info_->ep_attr->max_msg_size < frame_bytes_limit) {
        return fail(MPI_ERR_OTHER, "the network (%s) carries messages of %zu bytes only",
                    why_.c_str(), info_->ep_attr->max_msg_size);
    }
    return {};
}

Error Port::read_address() {
    const std::string provider = info_->fabric_attr->prov_name;
    std::byte name[address_limit];
    std::size_t bytes = sizeof name;
    if (const int code = fi_getname(&endpoint_->fid, name, &bytes)) {
        return failed("fi_getname", code);
    }
    if (provider.size() + 1 + bytes > address_limit) {
        return fail(MPI_ERR_OTHER, "the network (%s): its addresses have %zu bytes, too many",
                    why_.c_str(), bytes);
    }
    for (const char letter : provider) {
        address_.push_back(static_cast<std::byte>(letter));
    }
    address_.push_back(std::byte{0});
    address_.insert(address_.end(), name, name + bytes);
    return {};
}

void* Port::descriptor_of(const void* memory, std::size_t bytes, fid_mr*& registration,
                          Error& error) {
    if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0) {
        return nullptr;
    }
    if (const int code =
            fi_mr_reg(domain_, memory, bytes, FI_SEND | FI_RECV, 0, 0, 0, &registration, nullptr)) {
        error = failed("fi_mr_reg", code);
        return nullptr;
    }
    return fi_mr_desc(registration);
}

Error Port::post_buffers() {
    for (std::size_t number = 0; number < receive_buffers; ++number) {
        auto buffer = std::make_unique<ReceiveBuffer>();
        buffer->registration = nullptr;
        void* const memory = mmap(nullptr, receive_buffer_bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return fail(MPI_ERR_NO_MEM, "no memory for a network buffer of %zu bytes",
                        receive_buffer_bytes);
        }
        buffer->data = static_cast<std::byte*>(memory);
        Error error;
        descriptor_of(memory, receive_buffer_bytes, buffer->registration, error);
        buffers_.push_back(std::move(buffer));
        if (error) {
            return error;
        }
        post_buffer(&buffers_.back()->context);
    }
    return {};
}

// libfabric's rxm (2.1 to 2.4; ofiwg/libfabric, issue 11828) crashes in fi_close if it has messages
// that nobody has read: it posts their buffers again to connections that are closed already.
void Port::discard_arrivals() {
    int vain = 0;
    for (int looks = 0; vain < vain_looks_before_close && looks < looks_before_close; ++looks) {
        std::array<fi_cq_data_entry, entries_at_once> entries;
        fi_cq_err_entry error = {};
        const ssize_t count = fi_cq_read(completions_, entries.data(), entries.size());
        vain = count == -FI_EAGAIN ? vain + 1 : 0;
        if (count == -FI_EAVAIL) {
            fi_cq_readerr(completions_, &error, 0);
        }
    }
}

Port::~Port() {
    if (endpoint_ != nullptr && completions_ != nullptr) {
        discard_arrivals();
    }
    close_object(endpoint_);
    for (const std::unique_ptr<ReceiveBuffer>& buffer : buffers_) {
        close_object(buffer->registration);
        munmap(buffer->data, receive_buffer_bytes);
    }
    for (fid_mr*& registration : registrations_) {
        close_object(registration);
    }
    close_object(completions_);
    close_object(addresses_);
    close_object(domain_);
    close_object(fabric_);
    if (info_ != nullptr) {
        library_.freeinfo(info_);
    }
}

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

bool Port::send(Link& link, const CellHeader& header, const Extra* extra, const Source& source,
                bool may_linger) {
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
    if (may_linger && now_ns() - link.sent_at_ns < linger_ns) {
        wait_to_send(link);
        return true;
    }
    if (!post(link)) {
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
    link.sent_at_ns = now_ns();
}

bool Port::post(Link& link) {
    SendFrame& frame = *link.open;
    if (!has_credit(link) || link.failed) {
        return false;
    }
    const FrameHeader header = header_of(link, frame.bytes, frame.cells);
    std::memcpy(frame.data, &header, sizeof header);
    ssize_t code;
    const bool inject = frame.bytes <= inject_bytes_;
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

void Port::flush() {
    send_waiting();
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
