#include "mpi/transport/fabric/port.hpp"

// The begin and the end of a port.

#include <netdb.h>
#include <sys/mman.h>
#include <utility>

#include "mpi.h"

namespace warren::transport::fabric {

namespace {

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

} // namespace warren::transport::fabric
