#include "mpi/rma/window_server.hpp"

#include <cstdio>
#include <cstring>
#include <iterator>

#include "mpi/rma/wait_reason.hpp"
#include "mpi/rma/window.hpp"

namespace warren::rma {

namespace {

using message::Operation;

constexpr std::int32_t tags = 1 << 30;

message::Buffer bytes_at(void* memory, std::size_t bytes) {
    return {
        .base = memory, .count = static_cast<MPI_Count>(bytes), .type = &datatype::basic(MPI_BYTE)};
}

// Whether the source that a cell names is its sender.
bool is_of_sender(const comm::Communicator& communicator, const transport::Arrival& arrival) {
    const std::int32_t rank = arrival.header.source;
    return rank >= 0 && rank < communicator.size() && communicator.endpoint(rank) == arrival.sender;
}

} // namespace

WindowServer::WindowServer(message::Engine& engine) : engine_(engine) {
    engine.register_kind(message::kind::window_request, this,
                         [](void* self, const transport::Arrival& arrival) {
                             static_cast<WindowServer*>(self)->take(arrival);
                         });
    engine.register_kind(message::kind::window_notice, this,
                         [](void* self, const transport::Arrival& arrival) {
                             static_cast<WindowServer*>(self)->take_notice(arrival);
                         });
}

// (What an origin that was killed has left is the request table's.)
WindowServer::~WindowServer() = default;

void WindowServer::note_refusal(int reason) {
    if (kernel_refuses_) {
        return;
    }
    kernel_refuses_ = true;
    const Rank& rank = engine_.rank();
    if (rank.verbose()) {
        std::fprintf(stderr,
                     "warren: rank %u may not copy other ranks' memory (%s): operations on memory "
                     "that programs give to windows (MPI_Win_create, MPI_Win_attach) go by "
                     "messages, which wait until their targets call MPI\n",
                     rank.world_rank, std::strerror(reason));
    }
}

// --- Origins

Error WindowServer::begin(const Window& window, int target, const std::vector<std::byte>& request,
                          void* answer, std::size_t answer_bytes, Asked& asked) {
    const comm::Communicator& communicator = window.communicator();
    const std::uint32_t peer = communicator.endpoint(target);
    const std::int32_t tag = next_tag_;
    next_tag_ = (next_tag_ + 2) % tags;
    message::Request* receive = engine_.make();
    message::Request* send = engine_.make();
    if (receive == nullptr || send == nullptr) {
        if (receive != nullptr) {
            engine_.discard(*receive);
        }
        return fail(MPI_ERR_NO_MEM, "no memory for one more request");
    }
    const message::Envelope own = {
        .context = communicator.context(), .source = communicator.rank(), .tag = tag};
    message::Engine::prepare_receive(
        *receive, bytes_at(answer, answer_bytes),
        {.context = communicator.context(), .source = target, .tag = tag + 1});
    message::Engine::prepare_send(*send, Operation::send,
                                  bytes_at(const_cast<std::byte*>(request.data()), request.size()),
                                  peer, own);
    Error error = engine_.start(*receive, true);
    const RequestCell cell = {.bytes = request.size(), .target = target};
    engine_.tell(peer, message::header_of(message::kind::window_request, own), &cell, sizeof cell);
    if (Error failed = engine_.start(*send, true)) {
        error.drop();
        error = failed;
    }
    if (error) {
        engine_.discard(*send);
        engine_.discard(*receive);
        return error;
    }
    asked = {.target = target, .send = send, .receive = receive};
    return {};
}

Error WindowServer::finish(const Window& window, const Asked& asked) {
    const comm::Communicator& communicator = window.communicator();
    engine_.wait_until(
        [&] { return asked.is_over() || has_ended(engine_, communicator, asked.target); },
        wait_reason(engine_, communicator, asked.target, "a window"));
    if (!asked.is_over()) {
        engine_.orphan(*asked.send);
        engine_.orphan(*asked.receive);
        return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended", asked.target);
    }
    const std::int32_t error_class = end(asked);
    return error_class == MPI_SUCCESS
               ? Error()
               : fail(error_class, "the answer of rank %d was lost", asked.target);
}

std::int32_t WindowServer::end(const Asked& asked) {
    const std::int32_t error_class = asked.receive->outcome.error_class;
    engine_.discard(*asked.send);
    engine_.discard(*asked.receive);
    return error_class;
}

void WindowServer::tell(const Window& window, int rank, Notice notice) {
    const comm::Communicator& communicator = window.communicator();
    const std::byte nothing{};
    engine_.tell(communicator.endpoint(rank),
                 {.kind = message::kind::window_notice,
                  .context = communicator.context(),
                  .source = communicator.rank(),
                  .tag = static_cast<std::int32_t>(notice)},
                 &nothing, 0);
}

// --- Targets

void WindowServer::take_notice(const transport::Arrival& arrival) {
    const auto window = windows_.find(arrival.header.context);
    if (window == windows_.end()) {
        return; // nobody awaits it
    }
    if (!is_of_sender(window->second->communicator(), arrival)) {
        return;
    }
    const auto notice = static_cast<Notice>(arrival.header.tag);
    OfferCell cell;
    if (notice != Notice::offered) {
        window->second->note(arrival.header.source, notice);
    } else if (arrival.bytes == sizeof cell) {
        std::memcpy(&cell, arrival.data, sizeof cell);
        window->second->take_offer(arrival.header.source, cell);
    }
}

void WindowServer::take(const transport::Arrival& arrival) {
    RequestCell cell;
    if (arrival.bytes != sizeof cell) {
        return;
    }
    std::memcpy(&cell, arrival.data, sizeof cell);
    // A window is there as long as any rank can access it (invariant 1): what is refused here is of
    // nobody that follows these rules, and gets no answer.
    const auto window = windows_.find(arrival.header.context);
    if (cell.bytes < sizeof(ServedHead) || cell.bytes > largest_request ||
        window == windows_.end()) {
        return;
    }
    const comm::Communicator& communicator = window->second->communicator();
    if (cell.target != communicator.rank() || !is_of_sender(communicator, arrival)) {
        return;
    }
    services_.push_back({.context = arrival.header.context,
                         .origin_in_world = arrival.sender,
                         .envelope = message::envelope_of(arrival.header),
                         .own_rank = cell.target,
                         .bytes = cell.bytes});
    if (stepping_ != nullptr) {
        return;
    }
    // Requests are received by steps: a handler of cells starts nothing.
    stepping_ = engine_.make();
    if (stepping_ == nullptr) {
        services_.pop_back();
        return; // the origin waits: there is no memory to tell it
    }
    stepping_->operation = Operation::combined;
    stepping_->attachment = this;
    stepping_->stepping.step = [](message::Request& request) {
        return static_cast<WindowServer*>(request.attachment)->run();
    };
    engine_.start_stepping(*stepping_);
}

bool WindowServer::run() {
    for (auto service = services_.begin(); service != services_.end();) {
        service = advance(*service) ? services_.erase(service) : std::next(service);
    }
    if (!services_.empty()) {
        return false;
    }
    // It leaves the table when it completes, which is when this says true.
    std::exchange(stepping_, nullptr)->fate = message::Fate::orphaned;
    return true;
}

bool WindowServer::carry_out(Service& service) {
    const auto window = windows_.find(service.context);
    std::vector<std::byte> answer;
    if (window == windows_.end()) {
        const ServedAnswer none = {.error_class = MPI_ERR_WIN, .taken = 0};
        answer.resize(sizeof none);
        std::memcpy(answer.data(), &none, sizeof none);
    } else if (!window->second->serve(service.envelope.source, service.memory, service.queued,
                                      answer)) {
        return false;
    }
    service.memory = std::move(answer);
    service.answers = true;
    return true;
}

bool WindowServer::advance(Service& service) {
    if (!service.queued) {
        if (service.transfer == nullptr && !begin_receive(service)) {
            return true;
        }
        if (!service.transfer->complete) {
            return false;
        }
        const bool failed = service.transfer->outcome.error_class != MPI_SUCCESS;
        engine_.discard(*std::exchange(service.transfer, nullptr));
        if (service.answers || failed) {
            return true;
        }
    }
    if (!carry_out(service)) {
        return false;
    }
    service.queued = false;
    if (!begin_answer(service)) {
        return true;
    }
    if (!service.transfer->complete) {
        return false;
    }
    engine_.discard(*std::exchange(service.transfer, nullptr));
    return true;
}

bool WindowServer::begin_receive(Service& service) {
    service.transfer = engine_.make();
    if (service.transfer == nullptr) {
        return false;
    }
    service.memory.resize(static_cast<std::size_t>(service.bytes));
    message::Engine::prepare_receive(*service.transfer,
                                     bytes_at(service.memory.data(), service.memory.size()),
                                     service.envelope);
    engine_.start(*service.transfer).drop();
    return true;
}

bool WindowServer::begin_answer(Service& service) {
    service.transfer = engine_.make();
    if (service.transfer == nullptr) {
        return false;
    }
    message::Engine::prepare_send(*service.transfer, Operation::send,
                                  bytes_at(service.memory.data(), service.memory.size()),
                                  service.origin_in_world,
                                  {.context = service.envelope.context,
                                   .source = service.own_rank,
                                   .tag = service.envelope.tag + 1});
    engine_.start(*service.transfer).drop();
    return true;
}

} // namespace warren::rma
