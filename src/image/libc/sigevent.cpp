// Calls that have the C library make threads (SIGEV_THREAD): those belong to the image that asked.
// A thread of the C library's calls run_notice, which makes it the image's, instead of the
// program's function.
#include <aio.h>
#include <ctime>
#include <memory>
#include <mqueue.h>
#include <mutex>
#include <netdb.h>

#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/notice.hpp"
#include "image/thread.hpp"

namespace warren::image::libc {

namespace {

// Of what requests hold of notices: a program may begin another operation with a request whose
// thread has not come yet.
std::mutex& notices_lock() {
    static std::mutex& only = *new std::mutex;
    return only;
}

void run_notice(sigval value);

// Under the lock. A request that another operation has begun with stays as it is.
void restore(const Notice& notice) {
    sigevent* request = notice.request;
    if (request != nullptr && request->sigev_notify_function == run_notice &&
        request->sigev_value.sival_ptr == &notice) {
        request->sigev_notify_function = notice.function;
        request->sigev_value = notice.value;
    }
}

// What a thread is to call, after which the notice is no more, unless it is a timer's.
Notice take(Notice& given) {
    const std::lock_guard guard(notices_lock());
    const Notice notice = given;
    restore(given);
    if (!notice.repeats) {
        delete &given;
    }
    return notice;
}

// In a thread that ends afterwards. The notice of a timer may go when the program has been called.
void run_notice(sigval value) {
    const Notice notice = take(*static_cast<Notice*>(value.sival_ptr));
    if (notice.image->is_destructed()) {
        return;
    }
    if (current_image() == nullptr) {
        enter_image(*notice.image).drop(); // fails only for threads that belong to one
    }
    notice.function(notice.value);
}

// Puts run_notice into an event that asks for a thread; else null.
std::unique_ptr<Notice> redirect(sigevent* event, sigevent* request, bool repeats) {
    Image* image = current_image();
    if (image == nullptr || event == nullptr || event->sigev_notify != SIGEV_THREAD) {
        return nullptr;
    }
    const std::lock_guard guard(notices_lock());
    auto notice = std::make_unique<Notice>(
        Notice{image, event->sigev_notify_function, event->sigev_value, request, repeats});
    if (notice->function == run_notice) { // the request's last thread has yet to restore it
        const auto* last = static_cast<const Notice*>(notice->value.sival_ptr);
        notice->function = last->function;
        notice->value = last->value;
    }
    event->sigev_notify_function = run_notice;
    event->sigev_value.sival_ptr = notice.get();
    return notice;
}

// Begins an asynchronous operation whose request has the event.
template <typename Begin>
int begin(aiocb* request, Begin begin_operation) {
    sigevent* event = &request->aio_sigevent;
    std::unique_ptr<Notice> notice = redirect(event, event, false);
    const int result = begin_operation();
    if (notice != nullptr && result != 0) {
        const std::lock_guard guard(notices_lock());
        restore(*notice);
    } else {
        static_cast<void>(notice.release()); // run_notice has it
    }
    return result;
}

// The same with an event of the call's.
template <typename Begin>
int begin_with_copy(const sigevent* event, Begin begin_operation) {
    sigevent copy{};
    if (event != nullptr) {
        copy = *event;
    }
    std::unique_ptr<Notice> notice = redirect(&copy, nullptr, false);
    const int result = begin_operation(event != nullptr ? &copy : nullptr);
    if (result == 0) {
        static_cast<void>(notice.release());
    }
    return result;
}

} // namespace

int timer_create(clockid_t clock, sigevent* event, timer_t* timer) {
    sigevent copy{};
    if (event != nullptr) {
        copy = *event;
    }
    std::unique_ptr<Notice> notice = redirect(&copy, nullptr, true);
    const int result = ::timer_create(clock, event != nullptr ? &copy : nullptr, timer);
    if (result == 0 && notice != nullptr) {
        LibcState& state = LibcState::current();
        const std::lock_guard guard(state.timers_lock);
        state.timers[*timer] = std::move(notice);
    }
    return result;
}

// A thread may be on its way to the function still.
int timer_delete(timer_t timer) {
    constexpr std::size_t kept = 1000;
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.timers_lock);
    const int result = ::timer_delete(timer);
    const auto found = state.timers.find(timer);
    if (result == 0 && found != state.timers.end()) {
        state.deleted_timers.push_back(std::move(found->second));
        state.timers.erase(found);
        if (state.deleted_timers.size() > kept) {
            state.deleted_timers.pop_front();
        }
    }
    return result;
}

void delete_timers(LibcState& state) {
    const std::lock_guard guard(state.timers_lock);
    for (auto& [timer, notice] : state.timers) {
        ::timer_delete(timer);
        state.deleted_timers.push_back(std::move(notice));
    }
    state.timers.clear();
}

void lock_notices() {
    notices_lock().lock();
}

void unlock_notices() {
    notices_lock().unlock();
}

int aio_read(aiocb* request) {
    return begin(request, [&] { return ::aio_read(request); });
}

int aio_write(aiocb* request) {
    return begin(request, [&] { return ::aio_write(request); });
}

int aio_fsync(int operation, aiocb* request) {
    return begin(request, [&] { return ::aio_fsync(operation, request); });
}

int lio_listio(int mode, aiocb* const* requests, int count, sigevent* event) {
    for (int i = 0; i < count; ++i) {
        if (requests[i] != nullptr && requests[i]->aio_lio_opcode != LIO_NOP) {
            sigevent* own = &requests[i]->aio_sigevent;
            static_cast<void>(redirect(own, own, false).release());
        }
    }
    return begin_with_copy(
        event, [&](sigevent* copy) { return ::lio_listio(mode, requests, count, copy); });
}

int mq_notify(mqd_t queue, const sigevent* event) {
    return begin_with_copy(event, [&](sigevent* copy) { return ::mq_notify(queue, copy); });
}

int getaddrinfo_a(int mode, gaicb** requests, int count, sigevent* event) {
    return begin_with_copy(
        event, [&](sigevent* copy) { return ::getaddrinfo_a(mode, requests, count, copy); });
}

} // namespace warren::image::libc
