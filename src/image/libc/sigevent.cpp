// Calls that have the C library make threads (SIGEV_THREAD): those belong to the image that asked.
// A thread of the C library's calls run_notice, which makes it the image's, instead of the
// program's function.
#include <aio.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <deque>
#include <map>
#include <memory>
#include <mqueue.h>
#include <mutex>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/blocked_signals.hpp"
#include "image/host.hpp"
#include "image/host_interface.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/notice.hpp"
#include "image/thread.hpp"
#include "image/tuning.hpp"

namespace warren::image::libc {

namespace {

// Protects the requests' references to notices: a program may begin another operation with a
// request before the thread of the former one has run.
std::mutex& notices_lock() {
    static std::mutex& only = *new std::mutex;
    return only;
}

void run_notice(sigval value);
void call_in_new_thread(const Notice& notice);

// Under the lock. A request that another operation has begun with stays as it is.
void restore(const Notice& notice) {
    sigevent* request = notice.request;
    if (request != nullptr && request->sigev_notify_function == run_notice &&
        request->sigev_value.sival_ptr == &notice) {
        request->sigev_notify_function = notice.function;
        request->sigev_value = notice.value;
    }
}

// Returns the function that a thread is to call. The notice is deleted unless it is a timer's.
Notice take(Notice& given) {
    const std::lock_guard guard(notices_lock());
    const Notice notice = given;
    restore(given);
    if (!notice.repeats) {
        delete &given;
    }
    return notice;
}

// Whether its threads have others than the C library's, which another image may have had made.
bool has_own_descriptors(Image& image) {
    return image.options().descriptors.own_table && image.running().first_thread != nullptr &&
           image.running().process == getpid();
}

void call(const Notice& notice) {
    if (notice.image->is_destructed()) {
        return;
    }
    if (current_image() == nullptr) {
        enter_image(*notice.image).drop(); // fails only for threads that belong to one
    }
    notice.function(notice.value);
}

// In a thread that ends afterwards. The notice of a timer may go when the program has been called.
void run_notice(sigval value) {
    const Notice notice = take(*static_cast<Notice*>(value.sival_ptr));
    if (!has_own_descriptors(*notice.image)) {
        call(notice);
        return;
    }
    LibcState& state = notice.image->libc_state();
    const std::unique_lock guard(state.timers_lock);
    const std::shared_ptr<NoticeQueue> queue = state.notices;
    if (queue != nullptr) {
        const std::lock_guard queue_guard(queue->lock);
        queue->waiting.push_back(notice);
        queue->changed.notify_one();
    }
}

// No object with a destructor may live here meanwhile: pthread_exit unwinds this, and the unwinder
// of the library knows no images.
void* call_in_thread(void* given) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    const Notice copy = *static_cast<Notice*>(given);
    delete static_cast<Notice*>(given);
    call(copy);
    return nullptr;
}

// A thread that no image has yet, with the calling thread's descriptors, without signals at first.
int start_detached(void* (*function)(void*), void* argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const BlockedSignals blocked;
    const int error = host().functions.create_thread(&thread, &attributes, function, argument);
    pthread_attr_destroy(&attributes);
    return error;
}

void call_in_new_thread(const Notice& notice) {
    auto given = std::make_unique<Notice>(notice);
    if (start_detached(call_in_thread, given.get()) == 0) {
        static_cast<void>(given.release()); // call_in_thread has it
    }
}

// The threads that it makes have its descriptors, which are the image's.
void* serve(void* given) {
    const std::unique_ptr<std::shared_ptr<NoticeQueue>> holder(
        static_cast<std::shared_ptr<NoticeQueue>*>(given));
    NoticeQueue& queue = **holder;
    std::unique_lock guard(queue.lock);
    while (true) {
        queue.changed.wait(guard, [&] { return queue.ended || !queue.waiting.empty(); });
        if (queue.ended) {
            return nullptr;
        }
        const Notice notice = queue.waiting.front();
        queue.waiting.pop_front();
        guard.unlock();
        call_in_new_thread(notice);
        guard.lock();
    }
}

// Before the C library may call. False: there is no thread for it.
bool prepare_queue(LibcState& state) {
    const std::lock_guard guard(state.timers_lock);
    if (state.notices != nullptr) {
        return true;
    }
    auto queue = std::make_shared<NoticeQueue>();
    auto holder = std::make_unique<std::shared_ptr<NoticeQueue>>(queue);
    if (start_detached(serve, holder.get()) != 0) {
        return false;
    }
    static_cast<void>(holder.release()); // serve has it
    state.notices = std::move(queue);
    return true;
}

// Puts run_notice into an event that asks for a thread; else null.
std::unique_ptr<Notice> redirect(sigevent* event, sigevent* request, bool repeats) {
    Image* image = current_image();
    if (image == nullptr || event == nullptr || event->sigev_notify != SIGEV_THREAD) {
        return nullptr;
    }
    if (has_own_descriptors(*image) && !prepare_queue(image->libc_state())) {
        return nullptr; // the C library's thread calls, as if the image had no descriptors
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

SignalFunctions signal_functions{};

// Has the signal of a timer come to the calling thread's image, without a host to its first thread.
bool aim(sigevent& event) {
    Image* image = current_image();
    const bool is_for_thread = event.sigev_notify == SIGEV_THREAD_ID;
    if ((event.sigev_notify != SIGEV_SIGNAL && !is_for_thread) || image == nullptr) {
        return true;
    }
    if (signal_functions.aim != nullptr) {
        return signal_functions.aim(&event);
    }
    if (!is_for_thread && image->running().kernel_thread != 0 &&
        image->running().process == getpid()) {
        event.sigev_notify = SIGEV_THREAD_ID; // else another image's thread may get the signal
        event._sigev_un._tid = image->running().kernel_thread;
    }
    return true;
}

siginfo_t signal_of_event(const sigevent& event, int code) {
    siginfo_t information{};
    information.si_signo = event.sigev_signo;
    information.si_code = code;
    information.si_pid = getpid();
    information.si_uid = getuid();
    information.si_value = event.sigev_value;
    return information;
}

// False: the process is the image's, or nobody knows better.
bool find_receiver(std::uint32_t& receiver) {
    return signal_functions.send != nullptr && signal_functions.receiver(receiver);
}

// Begins an asynchronous operation that takes its event as an argument.
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

bool own_descriptors() {
    Image* image = current_image();
    return image != nullptr && has_own_descriptors(*image);
}

// ---- Signals that the C library or the kernel would send to the process, whose ranks' signals of
// one number it would merge: a thread sends them to the rank that asked.

struct SentByThread {
    std::uint32_t receiver;
    siginfo_t information;
};

void send_signal(sigval given) {
    auto* sent = static_cast<SentByThread*>(given.sival_ptr);
    signal_functions.send(sent->receiver, sent->information);
    delete sent;
}

// The event as one that asks for such a thread; the same event if it asks for no signal, or if the
// process is the image's.
class ByThread {
  public:
    ByThread(const sigevent& event, int code) : event_(event) {
        std::uint32_t receiver = 0;
        if (event.sigev_notify == SIGEV_SIGNAL && find_receiver(receiver)) {
            sent_ = std::make_unique<SentByThread>(
                SentByThread{receiver, signal_of_event(event, code)});
            event_.sigev_notify = SIGEV_THREAD;
            event_.sigev_notify_function = send_signal;
            event_.sigev_notify_attributes = nullptr;
            event_.sigev_value.sival_ptr = sent_.get();
        }
    }
    sigevent& event() { return event_; }
    // The operation has begun: the thread deletes the rest.
    void begun() { static_cast<void>(sent_.release()); }

  private:
    sigevent event_;
    std::unique_ptr<SentByThread> sent_;
};

// No thread is going to call for it.
void drop(const Notice& notice) {
    if (notice.function == send_signal) {
        delete static_cast<SentByThread*>(notice.value.sival_ptr);
    }
}

// ---- Messages for which a thread is asked. The kernel tells of one by a socket, and the C
// library's thread that reads it has no descriptors of the image's.

// <linux/mqueue.h>, which <mqueue.h> doesn't go with.
constexpr std::size_t cookie_bytes = 32;
constexpr char woken_up = 1; // the last byte of the cookie

struct Announcement {
    Notice notice;
    int socket;
};

void* await_message(void* given) {
    const std::unique_ptr<Announcement> announcement(static_cast<Announcement*>(given));
    char cookie[cookie_bytes];
    const ssize_t got = recv(announcement->socket, cookie, sizeof cookie, MSG_NOSIGNAL);
    close(announcement->socket);
    if (got == static_cast<ssize_t>(cookie_bytes) && cookie[cookie_bytes - 1] == woken_up) {
        const Notice copy = announcement->notice;
        call_in_new_thread(copy);
    } else { // withdrawn
        drop(announcement->notice);
    }
    return nullptr;
}

int notify_by_thread(mqd_t queue, const sigevent& event) {
    auto announcement = std::make_unique<Announcement>(Announcement{
        {current_image(), event.sigev_notify_function, event.sigev_value, nullptr, false},
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)});
    char cookie[cookie_bytes] = {};
    sigevent asked{};
    asked.sigev_notify = SIGEV_THREAD;
    asked.sigev_signo = announcement->socket;
    asked.sigev_value.sival_ptr = cookie;
    if (announcement->socket < 0 || syscall(SYS_mq_notify, queue, &asked) != 0) {
        const int error = errno;
        close(announcement->socket);
        errno = error;
        return -1;
    }
    if (start_detached(await_message, announcement.get()) != 0) {
        ::mq_notify(queue, nullptr);
        close(announcement->socket);
        errno = EAGAIN;
        return -1;
    }
    static_cast<void>(announcement.release()); // await_message has it
    return 0;
}

// ---- Messages of which the C library's thread tells. It says nothing of a notice that is
// withdrawn, and may be on its way then. So it gets the number of a notice, which may have gone.

using QueueKey = std::pair<dev_t, ino_t>;
struct QueueNotices { // under the lock of notices
    std::uint64_t last = 0;
    std::map<std::uint64_t, Notice> all;
    std::map<QueueKey, std::uint64_t> of_queue; // the last one of each
    std::deque<std::uint64_t> over;             // withdrawn, or on their way; the oldest first
};

QueueNotices& queue_notices() {
    static QueueNotices& only = *new QueueNotices;
    return only;
}

void run_queue_notice(sigval value) {
    Notice notice{};
    {
        const std::lock_guard guard(notices_lock());
        QueueNotices& own = queue_notices();
        const auto found = own.all.find(reinterpret_cast<std::uintptr_t>(value.sival_ptr));
        if (found == own.all.end()) {
            return;
        }
        notice = found->second;
        own.all.erase(found);
    }
    call(notice);
}

// The queue has no notice any more. Under the lock.
void end_notice_of(const QueueKey& queue) {
    QueueNotices& own = queue_notices();
    const auto found = own.of_queue.find(queue);
    if (found == own.of_queue.end()) {
        return;
    }
    own.over.push_back(found->second);
    own.of_queue.erase(found);
    if (own.over.size() > withdrawn_notices_kept) {
        const auto oldest = own.all.find(own.over.front());
        own.over.pop_front();
        if (oldest != own.all.end()) {
            drop(oldest->second);
            own.all.erase(oldest);
        }
    }
}

QueueKey key_of(mqd_t queue) {
    struct stat status {};
    return ::fstat(queue, &status) == 0 ? QueueKey{status.st_dev, status.st_ino} : QueueKey{};
}

// Makes a call that leaves the queue without a notice if it returns 0.
template <typename Call>
int end_notice_by(mqd_t queue, Call call_library) {
    const QueueKey key = key_of(queue);
    const int result = call_library();
    if (result == 0) {
        const BlockedSignals blocked; // handlers may ask for notices
        const std::lock_guard guard(notices_lock());
        end_notice_of(key);
    }
    return result;
}

int notify_by_library(mqd_t queue, const sigevent& event) {
    Image* image = current_image();
    if (event.sigev_notify != SIGEV_THREAD || image == nullptr) {
        return ::mq_notify(queue, &event);
    }
    const QueueKey key = key_of(queue);
    const BlockedSignals blocked; // handlers may ask for notices
    const std::lock_guard guard(notices_lock());
    QueueNotices& own = queue_notices();
    const std::uint64_t number = ++own.last;
    own.all[number] = {image, event.sigev_notify_function, event.sigev_value, nullptr, false};
    sigevent asked = event;
    asked.sigev_notify_function = run_queue_notice;
    asked.sigev_value.sival_ptr = reinterpret_cast<void*>(number);
    const int result = ::mq_notify(queue, &asked);
    if (result != 0) {
        own.all.erase(number);
        return result;
    }
    end_notice_of(key); // whatever it had before
    own.of_queue[key] = number;
    return result;
}

} // namespace

// Without an event, the signal is SIGALRM.
int timer_create(clockid_t clock, sigevent* event, timer_t* timer) {
    sigevent copy{};
    copy.sigev_notify = SIGEV_SIGNAL;
    copy.sigev_signo = SIGALRM;
    if (event != nullptr) {
        copy = *event;
    }
    std::unique_ptr<Notice> notice = redirect(&copy, nullptr, true);
    if (!aim(copy)) {
        return -1;
    }
    const int result = ::timer_create(clock, &copy, timer);
    if (signal_functions.made != nullptr) {
        signal_functions.made(copy, result == 0 ? timer : nullptr);
    }
    if (result == 0 && notice != nullptr) {
        LibcState& state = LibcState::current();
        const std::lock_guard guard(state.timers_lock);
        state.timers[*timer] = std::move(notice);
    }
    return result;
}

// A thread may be on its way to the function still.
int timer_delete(timer_t timer) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.timers_lock);
    const int result = ::timer_delete(timer);
    if (result == 0 && signal_functions.deleted != nullptr) {
        signal_functions.deleted(timer);
    }
    const auto found = state.timers.find(timer);
    if (result == 0 && found != state.timers.end()) {
        state.deleted_timers.push_back(std::move(found->second));
        state.timers.erase(found);
        if (state.deleted_timers.size() > deleted_timers_kept) {
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
    if (state.notices != nullptr) {
        const std::lock_guard queue_guard(state.notices->lock);
        state.notices->ended = true;
        state.notices->changed.notify_one();
    }
}

EventReceiver::EventReceiver() {
    has_number = find_receiver(number);
}

void notify(Image& image, const EventReceiver& receiver, const sigevent& event, int code) {
    if (event.sigev_notify == SIGEV_THREAD) {
        call_in_new_thread(
            {&image, event.sigev_notify_function, event.sigev_value, nullptr, false});
    } else if (event.sigev_notify == SIGEV_SIGNAL) {
        const siginfo_t information = signal_of_event(event, code);
        if (receiver.has_number) {
            signal_functions.send(receiver.number, information);
        } else {
            syscall(SYS_rt_tgsigqueueinfo, getpid(), image.running().kernel_thread,
                    event.sigev_signo, &information);
        }
    }
}

int begin_detached(void* (*function)(void*), void* argument) {
    return start_detached(function, argument);
}

void aim_signals_by(const SignalFunctions& functions) {
    signal_functions = functions;
}

void lock_notices() {
    notices_lock().lock();
}

void unlock_notices() {
    notices_lock().unlock();
}

int begin_by_library(aiocb* request, int (*begin_operation)(aiocb*)) {
    return begin(request, [&] { return begin_operation(request); });
}

int begin_all_by_library(int mode, aiocb* const* requests, int count, const sigevent* event) {
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
    if (event == nullptr) {
        return end_notice_by(queue, [&] { return ::mq_notify(queue, nullptr); });
    }
    ByThread by_thread(*event, SI_MESGQ);
    const sigevent& its = by_thread.event();
    const int result = its.sigev_notify == SIGEV_THREAD && own_descriptors()
                           ? notify_by_thread(queue, its)
                           : notify_by_library(queue, its);
    if (result == 0) {
        by_thread.begun();
    }
    return result;
}

// The kernel withdraws the notice.
int mq_close(mqd_t queue) {
    return end_notice_by(queue, [&] { return ::mq_close(queue); });
}

int getaddrinfo_a(int mode, gaicb** requests, int count, sigevent* event) {
    if (event == nullptr || mode != GAI_NOWAIT) {
        return ::getaddrinfo_a(mode, requests, count, event);
    }
    ByThread by_thread(*event, SI_ASYNCNL);
    const int result = begin_with_copy(&by_thread.event(), [&](sigevent* copy) {
        return ::getaddrinfo_a(mode, requests, count, copy);
    });
    if (result == 0) {
        by_thread.begun();
    }
    return result;
}

} // namespace warren::image::libc
