// Asynchronous operations on files of programs that share their process. The C library's threads
// have none of the descriptors that a program may have of its own, and its signals are for the
// process.
//
// Operations on files are done at once. Others, which may wait, are done in the order in which they
// have come, by a thread for each descriptor that lives as long as there are some.
#include <aio.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/futex.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/notice.hpp"
#include "image/thread.hpp"

namespace warren::image::libc {

namespace {

// The operations of one list. The program may use a request again when that has been done, so the
// list counts its operations.
struct Batch {
    Image* image;
    EventReceiver receiver;
    sigevent event{};     // what is sent when all are done
    std::size_t left = 1; // under the lock: those not done, and the call until all have begun
    bool failed = false;  // under the lock: one has
};

struct Operation {
    Image* image;
    aiocb* request;
    EventReceiver receiver;
    int what;                     // LIO_READ, LIO_WRITE, O_SYNC or O_DSYNC
    std::shared_ptr<Batch> batch; // null: of no list
};

// Those of a descriptor of an image.
using LaneKey = std::pair<const Image*, int>;
struct Lane {
    std::deque<Operation> all; // that have yet to begin
    const aiocb* under_way = nullptr;
};

struct Operations {
    std::mutex lock; // of the two
    std::map<LaneKey, Lane> lanes;
    std::set<const aiocb*> waiting; // or under way
    std::atomic<std::uint32_t> completed{0};
};

Operations& operations() {
    static Operations& only = *new Operations;
    return only;
}

// Null: the C library sees to the calling thread's operations.
Image* program_of_caller() {
    Image* image = current_image();
    return image != nullptr && image->running().first_thread != nullptr &&
                   image->running().process == getpid()
               ? image
               : nullptr;
}

LaneKey key_of(const Operation& operation) {
    return {operation.image, operation.request->aio_fildes};
}

void set_result(aiocb* request, ssize_t result, int error) {
    request->__return_value = result;
    __atomic_store_n(&request->__error_code, error, __ATOMIC_RELEASE);
}

// One less is left of the batch. True: none is, and the caller tells the program when it has given
// the lock back. Under the lock.
bool leave(Batch* batch, bool failed) {
    if (batch == nullptr) {
        return false;
    }
    batch->failed |= failed;
    return --batch->left == 0;
}

void tell(const Batch& batch) {
    notify(*batch.image, batch.receiver, batch.event, SI_ASYNCIO);
}

// The C library finds out when it sends the signal: the operation has failed then.
bool asks_for_no_signal_there_is(const sigevent& event) {
    return event.sigev_notify == SIGEV_SIGNAL &&
           (event.sigev_signo < 0 || event.sigev_signo >= _NSIG);
}

// `error`: that of the operation if `result` says that it has failed.
void complete(const Operation& operation, ssize_t result, int error) {
    const sigevent event = operation.request->aio_sigevent; // the program may change it then
    if (asks_for_no_signal_there_is(event)) {
        result = -1;
        error = EINVAL;
    }
    bool is_last = false;
    {
        const std::lock_guard guard(operations().lock);
        operations().waiting.erase(operation.request);
        const auto lane = operations().lanes.find(key_of(operation));
        if (lane != operations().lanes.end() && lane->second.under_way == operation.request) {
            lane->second.under_way = nullptr;
        }
        set_result(operation.request, result, result < 0 ? error : 0);
        operations().completed.fetch_add(1, std::memory_order_seq_cst);
        is_last = leave(operation.batch.get(), result < 0);
        // Under the lock: a wait that begins afterwards would take it for a handler.
        futex_wake(operations().completed, INT_MAX);
    }
    notify(*operation.image, operation.receiver, event, SI_ASYNCIO);
    if (is_last) {
        tell(*operation.batch);
    }
}

ssize_t transfer(const aiocb& request, bool reads) {
    void* data = const_cast<void*>(request.aio_buf);
    const int file = request.aio_fildes;
    const ssize_t moved = reads ? ::pread(file, data, request.aio_nbytes, request.aio_offset)
                                : ::pwrite(file, data, request.aio_nbytes, request.aio_offset);
    if (moved >= 0 || errno != ESPIPE) {
        return moved;
    }
    return reads ? ::read(file, data, request.aio_nbytes) : ::write(file, data, request.aio_nbytes);
}

void perform(const Operation& operation) {
    const int file = operation.request->aio_fildes;
    const ssize_t result = operation.what == O_SYNC ? ::fsync(file)
                           : operation.what == O_DSYNC
                               ? ::fdatasync(file)
                               : transfer(*operation.request, operation.what == LIO_READ);
    complete(operation, result, errno);
}

// The thread of a descriptor.
void* perform_all(void* given) {
    const std::unique_ptr<LaneKey> key(static_cast<LaneKey*>(given));
    Operations& all = operations();
    while (true) {
        std::unique_lock guard(all.lock);
        Lane& lane = all.lanes.find(*key)->second;
        if (lane.all.empty()) {
            all.lanes.erase(*key);
            return nullptr;
        }
        const Operation next = lane.all.front();
        lane.all.pop_front();
        lane.under_way = next.request;
        guard.unlock();
        perform(next);
    }
}

bool is_file(int descriptor) {
    struct stat status {};
    return ::fstat(descriptor, &status) != 0 || S_ISREG(status.st_mode) || S_ISBLK(status.st_mode);
}

// Puts the operation into its descriptor's lane. False: it has none, and needs none.
bool join_lane(const Operation& operation, bool needs_one, bool& is_first) {
    Operations& all = operations();
    const LaneKey key = key_of(operation);
    const std::lock_guard guard(all.lock);
    const auto found = all.lanes.find(key);
    is_first = found == all.lanes.end();
    if (is_first && !needs_one) {
        return false;
    }
    set_result(operation.request, 0, EINPROGRESS);
    all.waiting.insert(operation.request);
    all.lanes[key].all.push_back(operation);
    return true;
}

bool is_priority(int reduction) {
    return reduction >= 0 && reduction <= sysconf(_SC_AIO_PRIO_DELTA_MAX);
}

int begin(Image& image, aiocb* request, int what, std::shared_ptr<Batch> batch = nullptr) {
    if ((what == LIO_READ || what == LIO_WRITE) && !is_priority(request->aio_reqprio)) {
        set_result(request, -1, EINVAL);
        errno = EINVAL;
        return -1;
    }
    const Operation operation{&image, request, EventReceiver(), what, std::move(batch)};
    if (operation.batch != nullptr) {
        const std::lock_guard guard(operations().lock);
        ++operation.batch->left;
    }
    bool is_first = false;
    if (!join_lane(operation, !is_file(request->aio_fildes), is_first)) {
        perform(operation);
        return 0;
    }
    auto key = std::make_unique<LaneKey>(&image, request->aio_fildes);
    if (is_first && begin_detached(perform_all, key.get()) != 0) {
        const std::lock_guard guard(operations().lock);
        operations().lanes.erase(*key);
        operations().waiting.erase(request);
        leave(operation.batch.get(), true); // the call is left
        set_result(request, -1, EAGAIN);
        errno = EAGAIN;
        return -1;
    }
    if (is_first) {
        static_cast<void>(key.release()); // perform_all has it
    }
    return 0;
}

// Under the lock.
bool is_under_way(const aiocb* request) {
    return request != nullptr && operations().waiting.contains(request);
}

constexpr std::uint64_t second_ns = 1'000'000'000;

// Waits until `is_done`, which is called under the lock. Returns an errno: EAGAIN at the end of the
// time (null: there is none), EINTR if a handler has run.
template <typename IsDone>
int wait_until(const timespec* timeout, IsDone is_done) {
    Operations& all = operations();
    const std::uint64_t end_ns = timeout == nullptr
                                     ? UINT64_MAX
                                     : monotonic_ns() +
                                           static_cast<std::uint64_t>(timeout->tv_sec) * second_ns +
                                           static_cast<std::uint64_t>(timeout->tv_nsec);
    while (true) {
        const std::uint32_t seen = all.completed.load(std::memory_order_seq_cst);
        {
            const std::lock_guard guard(all.lock);
            if (is_done()) {
                return 0;
            }
        }
        const std::uint64_t now = monotonic_ns();
        if (now >= end_ns) {
            return EAGAIN;
        }
        const timespec left{.tv_sec = static_cast<time_t>((end_ns - now) / second_ns),
                            .tv_nsec = static_cast<long>((end_ns - now) % second_ns)};
        futex_wait(all.completed, seen, timeout != nullptr ? &left : nullptr);
        if (all.completed.load(std::memory_order_seq_cst) == seen && monotonic_ns() < end_ns) {
            return EINTR;
        }
    }
}

// Begins them. Returns how many of them could not begin, and sets errno then.
std::size_t begin_each(const std::shared_ptr<Batch>& batch, std::span<aiocb* const> requests) {
    std::size_t refused = 0;
    for (aiocb* request : requests) {
        const int what = request != nullptr ? request->aio_lio_opcode : LIO_NOP;
        if (what != LIO_NOP && begin(*batch->image, request, what, batch) != 0) {
            ++refused;
        }
    }
    return refused;
}

int begin_all(Image& image, int mode, std::span<aiocb* const> requests, const sigevent* event) {
    if (mode != LIO_WAIT && mode != LIO_NOWAIT) {
        errno = EINVAL;
        return -1;
    }
    const auto batch = std::make_shared<Batch>(Batch{&image, EventReceiver()});
    batch->event.sigev_notify = SIGEV_NONE;
    if (mode == LIO_NOWAIT && event != nullptr) {
        batch->event = *event;
    }
    const std::size_t refused = begin_each(batch, requests);
    int error = errno; // of what could not begin
    if (mode == LIO_WAIT) {
        while (wait_until(nullptr, [&] { return batch->left == 1; }) != 0) { // a handler has run
        }
        errno = batch->failed ? EIO : error;
        return batch->failed || refused != 0 ? -1 : 0;
    }
    bool is_last = false;
    {
        const std::lock_guard guard(operations().lock);
        is_last = leave(batch.get(), false);
    }
    if (is_last) {
        tell(*batch);
    }
    errno = error;
    return refused == 0 ? 0 : -1;
}

} // namespace

int aio_read(aiocb* request) {
    Image* image = program_of_caller();
    return image != nullptr ? begin(*image, request, LIO_READ)
                            : begin_by_library(request, ::aio_read);
}

int aio_write(aiocb* request) {
    Image* image = program_of_caller();
    return image != nullptr ? begin(*image, request, LIO_WRITE)
                            : begin_by_library(request, ::aio_write);
}

int aio_fsync(int operation, aiocb* request) {
    if (operation != O_SYNC && operation != O_DSYNC) {
        errno = EINVAL;
        return -1;
    }
    if (Image* image = program_of_caller()) {
        return begin(*image, request, operation);
    }
    return begin_by_library(
        request, operation == O_SYNC ? [](aiocb* its) { return ::aio_fsync(O_SYNC, its); }
                                     : [](aiocb* its) { return ::aio_fsync(O_DSYNC, its); });
}

int lio_listio(int mode, aiocb* const* requests, int count, sigevent* event) {
    Image* image = program_of_caller();
    return image != nullptr
               ? begin_all(*image, mode, {requests, static_cast<std::size_t>(count)}, event)
               : begin_all_by_library(mode, requests, count, event);
}

int aio_suspend(const aiocb* const* requests, int count, const timespec* timeout) {
    if (program_of_caller() == nullptr) {
        return ::aio_suspend(requests, count, timeout);
    }
    const std::span all(requests, static_cast<std::size_t>(std::max(count, 0)));
    const int error = wait_until(timeout, [&] {
        return std::any_of(all.begin(), all.end(), [](const aiocb* request) {
            return request != nullptr && !is_under_way(request);
        });
    });
    errno = error != 0 ? error : errno;
    return error == 0 ? 0 : -1;
}

// The caller can cancel operations that have yet to begin.
int aio_cancel(int file, aiocb* request) {
    const Image* image = program_of_caller();
    if (image == nullptr) {
        return ::aio_cancel(file, request);
    }
    if (::fcntl(file, F_GETFD) < 0) {
        return -1; // EBADF
    }
    if (request != nullptr && request->aio_fildes != file) {
        errno = EINVAL;
        return -1;
    }
    std::vector<Operation> cancelled;
    bool is_one_under_way = false;
    {
        Operations& all = operations();
        const std::lock_guard guard(all.lock);
        const auto lane = all.lanes.find({image, file});
        const auto is_meant = [&](const Operation& one) {
            return request == nullptr || one.request == request;
        };
        if (lane != all.lanes.end()) {
            Lane& its = lane->second;
            std::copy_if(its.all.begin(), its.all.end(), std::back_inserter(cancelled), is_meant);
            std::erase_if(its.all, is_meant);
            is_one_under_way =
                its.under_way != nullptr && (request == nullptr || its.under_way == request);
        }
    }
    for (const Operation& one : cancelled) {
        complete(one, -1, ECANCELED);
    }
    return is_one_under_way ? AIO_NOTCANCELED : cancelled.empty() ? AIO_ALLDONE : AIO_CANCELED;
}

} // namespace warren::image::libc
