#include "mpi/context.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "mpi/calls.hpp"
#include "mpi/failure.hpp"
#include "mpi/requests.hpp"

namespace warren::mpi {

constinit thread_local Context* own_context = nullptr;

namespace {

// The process's one context and where its life stands; all else is reached from here.
std::atomic<Context*> only_context{nullptr};
std::atomic<Life> process_life{Life::before_init};
std::atomic<Process*> only_process{nullptr};
// What the last session has left; another one takes it up. Under the process's mutex.
Context* sleeping_context = nullptr;

// The number behind an environment variable, or -1.
long environment_number(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') {
        return -1;
    }
    char* end = nullptr;
    const long number = std::strtol(text, &end, 10);
    return *end == '\0' ? number : -1;
}

// A program started by a launcher that Warren can't talk to would be so many programs of one rank
// each, which nobody wants. Refuses with what was seen.
Error refuse_foreign_launcher() {
    struct Sign {
        const char* variable;
        long from; // value that shows that there is more than one process
        const char* launcher;
    };
    static constexpr Sign signs[] = {
        {"PMI_SIZE", 2, "a PMI launcher (MPICH's or Intel MPI's mpiexec, srun --mpi=pmi2)"},
        {"PMI_RANK", 1, "a PMI launcher (MPICH's or Intel MPI's mpiexec, srun --mpi=pmi2)"},
        {"OMPI_COMM_WORLD_SIZE", 2, "Open MPI's mpirun"},
        {"PMIX_RANK", 0, "a PMIx launcher (Open MPI's mpirun, prterun, srun --mpi=pmix)"},
        {"SLURM_STEP_NUM_TASKS", 2, "srun"},
    };
    for (const Sign& sign : signs) {
        const long value = environment_number(sign.variable);
        // A batch script's environment has the variables of its own step, of one task.
        const bool slurm = std::strncmp(sign.variable, "SLURM", 5) == 0;
        if (value >= sign.from && !(slurm && std::getenv("SLURM_PROCID") == nullptr)) {
            return fail(MPI_ERR_OTHER,
                        "this program was started by %s (%s=%ld), which Warren can't talk to yet; "
                        "start it with Warren's mpiexec, or unset %s to run one rank",
                        sign.launcher, sign.variable, value, sign.variable);
        }
    }
    return {};
}

void close_on_exec(int descriptor) {
    fcntl(descriptor, F_SETFD, fcntl(descriptor, F_GETFD) | FD_CLOEXEC);
}

// Asks the kernel to end this process when mpiexec, which holds the other end, is gone.
void watch_lifeline(int descriptor) {
    close_on_exec(descriptor);
    fcntl(descriptor, F_SETOWN, getpid());
    fcntl(descriptor, F_SETSIG, SIGKILL);
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_ASYNC);
}

// The segment that mpiexec made, or one for a program started alone.
Error find_segment(node::Segment& segment, std::uint32_t& rank, int& lifeline) {
    const long descriptor = environment_number("WARREN_SEGMENT");
    if (descriptor < 0) {
        if (Error error = refuse_foreign_launcher()) {
            return error;
        }
        rank = 0;
        return node::Segment::create({.ranks = 1, .cores = 1}, segment);
    }
    const long own_rank = environment_number("WARREN_RANK");
    const long own_lifeline = environment_number("WARREN_LIFELINE");
    if (own_rank < 0 || own_lifeline < 0) {
        return fail(MPI_ERR_OTHER, "WARREN_SEGMENT is set, but WARREN_RANK or WARREN_LIFELINE is "
                                   "not: start the program with Warren's mpiexec");
    }
    if (Error error = node::Segment::attach(static_cast<int>(descriptor), segment)) {
        return error;
    }
    close_on_exec(static_cast<int>(descriptor));
    if (own_rank >= static_cast<long>(segment.ranks())) {
        return fail(MPI_ERR_OTHER, "WARREN_RANK is %ld, but the job has %u ranks", own_rank,
                    segment.ranks());
    }
    rank = static_cast<std::uint32_t>(own_rank);
    // A script that runs two MPI programs: the second would find the queues in the middle of the
    // first one's traffic. Initialised already now, so that of two at once one is refused.
    node::RankSlot& slot = segment.slot(rank);
    node::RankState before = node::RankState::not_started;
    if (!slot.state.compare_exchange_strong(before, node::RankState::initialised)) {
        return fail(MPI_ERR_OTHER,
                    "rank %u of this job has been process %d already: a rank is one MPI program, "
                    "start the next one with an mpiexec of its own",
                    rank, slot.pid.load(std::memory_order_relaxed));
    }
    slot.pid.store(getpid(), std::memory_order_relaxed);
    lifeline = static_cast<int>(own_lifeline);
    watch_lifeline(lifeline);
    return {};
}

} // namespace

std::uint64_t kernel_thread() {
    return static_cast<std::uint64_t>(syscall(SYS_gettid));
}

Context::Context(node::Segment&& segment, std::uint32_t own_index)
    : process(find_process()),
      rank(std::move(segment), own_index),
      messages(rank),
      communicators(own_index, rank.size,
                    comm::TableShelf(rank.segment, rank.segment.header().tables_offset,
                                     rank.segment.header().tables_bytes)) {}

Context::~Context() {
    // What the program has not freed; its functions are not called any more.
    end_idle_requests(*this);
    communicators.for_each([this](comm::Communicator& communicator) {
        delete std::exchange(communicator.attributes, nullptr);
        delete std::exchange(communicator.info, nullptr);
        if (communicator.error_handler != nullptr) {
            error_handlers.release(*std::exchange(communicator.error_handler, nullptr));
        }
    });
    if (file_error_handler != nullptr) {
        error_handlers.release(*file_error_handler);
    }
    if (lifeline >= 0) {
        close(lifeline);
    }
}

Process& find_process() {
    Process* process = only_process.load(std::memory_order_acquire);
    if (process == nullptr) {
        auto made = std::make_unique<Process>();
        // Two threads may come first; one's is taken.
        if (only_process.compare_exchange_strong(process, made.get())) {
            process = made.release();
        }
    }
    return *process;
}

void end_process_state() {
    Process* process = only_process.load(std::memory_order_acquire);
    if (process != nullptr && process->infos.live() == 0 && process->error_handlers.live() == 0 &&
        !process->error_codes.any_added() && process->fortran_info == nullptr &&
        process->fortran_booleans.empty()) {
        only_process.store(nullptr, std::memory_order_release);
        delete process;
    }
}

Context& adopt_context(std::uint32_t call) {
    Context* context = only_context.load(std::memory_order_acquire);
    if (context == nullptr) {
        const bool after = life() == Life::after_finalize;
        end_process("%s was called %s", call_name(call),
                    after ? "after MPI_Finalize" : "before MPI_Init");
    }
    own_context = context;
    return *context;
}

Context* process_context() {
    return only_context.load(std::memory_order_acquire);
}

Life life() {
    return process_life.load(std::memory_order_acquire);
}

namespace {

// The context of a process that has none, or had one.
Error create_context(Context*& made) {
    if (life() == Life::after_finalize) {
        return fail(MPI_ERR_OTHER,
                    "MPI has ended in this process with MPI_Finalize: open a session before it");
    }
    node::Segment segment;
    std::uint32_t index = 0;
    int lifeline = -1;
    if (Error error = find_segment(segment, index, lifeline)) {
        return error;
    }
    // Where Yama restricts ptrace, large messages are copied only by processes that the sender has
    // named: the ranks of a job are children of one mpiexec, whose descendants this one admits.
    prctl(PR_SET_PTRACER, static_cast<unsigned long>(segment.header().launcher_pid), 0, 0, 0);
    made = new Context(std::move(segment), index);
    made->lifeline = lifeline;
    made->main_thread = kernel_thread();
    made->attributes.tag_ub = tag_limit;
    made->attributes.universe_size = static_cast<int>(made->rank.size);
    made->attributes.application = static_cast<int>(made->rank.slot.application);
    return {};
}

} // namespace

Error open_context(int thread_level, Context*& context) {
    const std::lock_guard lock(find_process().mutex);
    context = only_context.load(std::memory_order_acquire);
    if (context == nullptr) {
        context = std::exchange(sleeping_context, nullptr);
        if (context != nullptr) {
            context->rank.header().finishing.fetch_sub(1, std::memory_order_acq_rel);
        } else if (Error error = create_context(context)) {
            return error;
        }
    }
    if (thread_level == MPI_THREAD_MULTIPLE && !context->shared_by_threads) {
        context->shared_by_threads = true;
        context->rank.lock.share();
    }
    own_context = context;
    only_context.store(context, std::memory_order_release);
    context->rank.slot.pid.store(getpid(), std::memory_order_relaxed);
    // (Of a program started alone, too.) Pairs with the launcher's look after the process has
    // ended.
    context->rank.slot.state.store(node::RankState::initialised, std::memory_order_release);
    return {};
}

void close_context() {
    Context* context = only_context.exchange(nullptr, std::memory_order_acq_rel);
    context->rank.slot.state.store(node::RankState::finalised, std::memory_order_release);
    own_context = nullptr;
    if (context->sessions.opened() > 0) {
        sleeping_context = context;
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
    context->main_thread = kernel_thread();
    process_life.store(Life::running, std::memory_order_release);
    return {};
}

void begin_end_of_context() {
    process_life.store(Life::finalising, std::memory_order_release);
}

void end_context() {
    process_life.store(Life::after_finalize, std::memory_order_release);
    if (process_context()->sessions.live() == 0) {
        close_context();
    }
}

} // namespace warren::mpi
