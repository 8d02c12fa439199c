#include "mpi/entry/context.hpp"
#include "mpi/entry/file_release.hpp"
#include "mpi/entry/window_release.hpp"

#include <memory>
#include <pthread.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <utility>

#include "mpi/calls.hpp"
#include "mpi/coll/levels.hpp"
#include "mpi/entry/enrolment.hpp"
#include "mpi/entry/failure.hpp"
#include "mpi/entry/other_worlds.hpp"
#include "mpi/entry/requests.hpp"
#include "mpi/entry/tool_information.hpp"
#include "mpi/transport/shm/segment_regions.hpp"

namespace warren::mpi {

constinit thread_local Context* own_context = nullptr;

namespace {

// Sources: what the communicators know of those who send what a receive with this envelope takes.
struct Sources {
    const message::Envelope& envelope;
    const message::LostPeers& lost;
    bool known = false;
    bool somebody = false;

    // `sender_of(rank)`: the endpoint of a source of messages with this context.
    template <typename SenderOf>
    void ask(std::uint32_t context, SenderOf sender_of) {
        if (envelope.context == context && envelope.source >= 0) {
            known = true;
            somebody = !lost.is_lost(sender_of(envelope.source));
        }
    }
    // A wait for any source, which the library's messages don't have.
    void ask_all(const comm::Communicator& communicator, bool by_own) {
        if (envelope.context != communicator.context() || envelope.source >= 0) {
            return;
        }
        known = true;
        for (int peer = 0; peer < communicator.peers() && !somebody; ++peer) {
            const bool is_own = !communicator.inter() && peer == communicator.rank();
            somebody = is_own ? by_own || communicator.size() == 1
                              : !lost.is_lost(communicator.endpoint(peer));
        }
    }
};

bool senders_are_lost(void* owner, const message::Envelope& envelope, bool by_own,
                      const message::LostPeers& lost) {
    auto& context = *static_cast<Context*>(owner);
    Sources sources = {.envelope = envelope, .lost = lost};
    context.communicators.for_each([&](const comm::Communicator& communicator) {
        const auto peer = [&](int rank) { return communicator.endpoint(rank); };
        sources.ask(communicator.context(), peer);
        sources.ask(communicator.collective_context(), peer);
        sources.ask_all(communicator, by_own || context.shared_by_threads);
        if (communicator.inter()) {
            const comm::Communicator& local = communicator.local();
            sources.ask(local.collective_context(), [&](int rank) { return local.endpoint(rank); });
            sources.ask(local.context(),
                        [&](int rank) { return comm::united_of(communicator).endpoint(rank); });
        }
    });
    return sources.known && !sources.somebody;
}

} // namespace

Context::Context(RankState& own_home, Enrolment&& enrolment)
    : rank_state(own_home),
      process(find_process()),
      rank(std::move(enrolment.segment), std::move(enrolment.bootstrap)),
      messages(rank, enrolment.network, {.owner = this, .are_lost = senders_are_lost}),
      communicators(comm::World::on(node::Endpoints(rank.segment), rank.world_rank),
                    comm::TableShelf(rank.segment)),
      window_server(messages),
      ports(messages),
      launcher(node::world_number(rank.segment), rank.bootstrap().has_launcher()),
      main_thread(pthread_self()) {
    attributes.tag_ub = tag_limit;
    attributes.wtime_is_global = rank.size == rank.world_size ? 1 : 0;
    // There are no slots: beside these ranks, as many as there are processors run well.
    attributes.universe_size = static_cast<int>(rank.world_size) + get_nprocs();
    attributes.application = static_cast<int>(rank.slot.application);
    const std::uint32_t handler = rank.segment.at(node::world_identity)->initial_handler;
    if (handler != 0) {
        comm::ErrorHandler& initial =
            handler == 1 ? error_handlers.aborts() : error_handlers.returns();
        communicators.world().error_handler = communicators.self().error_handler = &initial;
    }
}

Context::~Context() {
    // Frees what the program has not freed, without calling the program's functions.
    end_idle_requests(*this);
    files.for_each([this](io::File& file) { release_attached(*this, file); });
    windows.for_each([this](rma::Window& window) { release_attached(*this, window); });
    communicators.for_each([this](comm::Communicator& communicator) {
        delete std::exchange(communicator.attributes, nullptr);
        delete std::exchange(communicator.info, nullptr);
        coll::end_levels(rank, communicator);
        if (communicator.error_handler != nullptr) {
            error_handlers.release(*std::exchange(communicator.error_handler, nullptr));
        }
    });
    if (file_error_handler != nullptr) {
        error_handlers.release(*file_error_handler);
    }
    leave_job(rank_state);
}

Process& find_process() {
    std::atomic<Process*>& place = find_rank_state().process;
    Process* process = place.load(std::memory_order_acquire);
    if (process == nullptr) {
        auto made = std::make_unique<Process>();
        // Two threads may come first; one's is taken.
        if (place.compare_exchange_strong(process, made.get())) {
            process = made.release();
        }
    }
    return *process;
}

void end_process_state() {
    RankState& rank_state = find_rank_state();
    Process* process = rank_state.process.load(std::memory_order_acquire);
    if (process != nullptr && process->infos.live() == 0 && process->error_handlers.live() == 0 &&
        !process->error_codes.any_added() && process->fortran_info == nullptr &&
        process->fortran_booleans.empty()) {
        rank_state.process.store(nullptr, std::memory_order_release);
        delete process;
    }
}

Context& adopt_context(std::uint32_t call) {
    const RankState& rank_state = find_rank_state();
    Context* context = rank_state.context.load(std::memory_order_acquire);
    if (context == nullptr) {
        end_process("%s was called %s", call_name(call),
                    !rank_state.bound                         ? "by a thread that is none of the "
                                                                "process's ranks (warren/ranks.h)"
                    : rank_state.life == Life::after_finalize ? "after MPI_Finalize"
                                                              : "before MPI_Init");
    }
    own_context = context;
    return *context;
}

Context* process_context() {
    return find_rank_state().context.load(std::memory_order_acquire);
}

Life life() {
    return find_rank_state().life.load(std::memory_order_acquire);
}

namespace {

// The context of a rank that has none, or had one.
Error create_context(RankState& rank_state, Context*& made) {
    if (rank_state.life.load(std::memory_order_acquire) == Life::after_finalize) {
        return fail(MPI_ERR_OTHER,
                    "MPI has ended in this process with MPI_Finalize: open a session before it");
    }
    Enrolment enrolment;
    if (Error error = enrol(rank_state, enrolment)) {
        return error;
    }
    made = new Context(rank_state, std::move(enrolment));
    return {};
}

} // namespace

Error open_context(int thread_level, Context*& context) {
    const std::lock_guard lock(find_process().mutex);
    RankState& rank_state = find_rank_state();
    context = rank_state.context.load(std::memory_order_acquire);
    if (context == nullptr) {
        context = std::exchange(rank_state.sleeping_context, nullptr);
        if (context != nullptr) {
            context->rank.bootstrap().add(node::JobCount::finishing, -1);
            message::OtherWorlds::come_back(context->messages);
        } else if (Error error = create_context(rank_state, context)) {
            return error;
        }
    }
    if (thread_level == MPI_THREAD_MULTIPLE && !context->shared_by_threads) {
        context->shared_by_threads = true;
        context->rank.share_by_threads();
    }
    own_context = context;
    rank_state.context.store(context, std::memory_order_release);
    attach_tool(*context);
    context->rank.slot.pid.store(getpid(), std::memory_order_relaxed);
    // (Of a program started alone, too.) Pairs with the launcher's look after the process has
    // ended.
    context->rank.slot.state.store(node::RankStage::initialised, std::memory_order_release);
    return {};
}

void close_context() {
    RankState& rank_state = find_rank_state();
    detach_tool(rank_state);
    Context* context = rank_state.context.exchange(nullptr, std::memory_order_acq_rel);
    Rank& rank = context->rank;
    rank.slot.state.store(node::RankStage::finalised, std::memory_order_release);
    // Who has cancelled a send to this rank learns so that nobody answers (the fence pairs with
    // Withdrawals::find_left's), and who waits for space for an answer that nobody takes it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (rank.bootstrap().read(node::JobCount::withdrawing) != 0 ||
        transport::queue_ends_of(rank.slot).space_wanted.load(std::memory_order_relaxed) != 0)
        [[unlikely]] {
        for (std::uint32_t other = 0; other < rank.size; ++other) {
            rank.ring(other);
        }
    }
    own_context = nullptr;
    if (context->sessions.opened() > 0) {
        // The worlds that it has spawned go on alone: the process may end, or start with new ones.
        std::destroy_at(&context->launcher);
        std::construct_at(&context->launcher, node::world_number(rank.segment),
                          rank.bootstrap().has_launcher());
        rank_state.sleeping_context = context;
        return;
    }
    delete context;
    end_process_state();
}

Error make_context(int thread_level) {
    Context* context = nullptr;
    if (Error error = open_context(thread_level, context)) {
        return error;
    }
    context->thread_level = thread_level;
    context->main_thread = pthread_self();
    context->rank_state.life.store(Life::running, std::memory_order_release);
    const std::lock_guard lock(context->rank.lock);
    context->messages.current_call = calls::MPI_Init;
    return meet_parent(*context);
}

void begin_end_of_context() {
    find_rank_state().life.store(Life::finalising, std::memory_order_release);
}

void end_context() {
    find_rank_state().life.store(Life::after_finalize, std::memory_order_release);
    if (process_context()->sessions.live() == 0) {
        close_context();
    }
}

} // namespace warren::mpi
