#include "mpi/io/helpers.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <pthread.h>
#include <sched.h>

#include "base/blocked_signals.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {

// The helpers of a rank, or of all fibres; the mutex is held for some loads and stores. Never
// destroyed: helpers may sleep in it while the process exits.
class Helpers {
  public:
    static Helpers& of_pool(std::uint32_t pool) {
        struct Pools {
            std::mutex mutex;
            std::map<std::uint32_t, Helpers> helpers;
        };
        static auto* pools = new Pools;
        const std::lock_guard lock(pools->mutex);
        return pools->helpers[pool];
    }

    // False: there is no helper.
    bool add(Job& job) {
        const std::lock_guard lock(mutex_);
        if (idle_ <= waiting_ && threads_ < helper_threads && make_thread()) {
            ++threads_;
        }
        if (threads_ == 0) {
            return false;
        }
        (last_ != nullptr ? last_->next_ : first_) = &job;
        last_ = &job;
        ++waiting_;
        work_.notify_one();
        return true;
    }

  private:
    bool make_thread() {
        const BlockedSignals blocked; // signals are the program's
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        constexpr std::size_t stack_bytes = 256 << 10;
        pthread_attr_setstacksize(&attributes, stack_bytes);
        pthread_t thread;
        const bool made = pthread_create(
                              &thread, &attributes,
                              [](void* helpers) -> void* {
                                  static_cast<Helpers*>(helpers)->serve();
                                  return nullptr;
                              },
                              this) == 0;
        pthread_attr_destroy(&attributes);
        return made;
    }

    [[noreturn]] void serve() {
        Scratch scratch;
        std::unique_lock lock(mutex_);
        while (true) {
            ++idle_;
            work_.wait(lock, [this] { return first_ != nullptr; });
            --idle_;
            Job* job = first_;
            first_ = job->next_;
            last_ = first_ == nullptr ? nullptr : last_;
            --waiting_;
            lock.unlock();
            job->run(scratch);
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable work_;
    Job* first_ = nullptr;
    Job* last_ = nullptr;
    int threads_ = 0;
    int idle_ = 0;
    int waiting_ = 0; // jobs
};

void Job::run(Scratch& scratch) {
    perform(scratch);
    state_.store(is_finished, std::memory_order_release);
    Doorbell::ring(header_, doorbell_);
    state_.store(is_left, std::memory_order_release);
}

void Job::start(Job& job) {
    if (!Helpers::of_pool(job.pool_).add(job)) {
        Scratch scratch;
        job.run(scratch);
    }
}

void Job::await_left() const {
    while (state_.load(std::memory_order_acquire) != is_left) {
        sched_yield();
    }
}

} // namespace warren::io
