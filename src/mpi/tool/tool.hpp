// Tool: the state of a rank's tool information interface (MPI 5.0, chapter 15).
//
// It exists from the first MPI_T_init_thread, also before MPI_Init and after MPI_Finalize; the
// context tells it when the rank's counts begin and end. It is the rank's observer while somebody
// wants to know events or marks, and has the rank observed while a started handle needs that.
// Thread rule: any thread, by way of a Guard, which has the rank's lock and then the mutex; the
// observer's functions under the rank's lock; deliver() without either.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/late_handle_table.hpp"
#include "mpi/rank/observer.hpp"
#include "mpi/tool/control_variables.hpp"
#include "mpi/tool/events.hpp"
#include "mpi/tool/sessions.hpp"
#include "mpi/tool/subject.hpp"

namespace warren::tool {

struct ControlHandle {
    int variable = 0;
    std::uint64_t number = 0;
};

class Tool final : public Observer {
  public:
    Tool() : events_(mutex_) {}
    Tool(const Tool&) = delete;
    Tool& operator=(const Tool&) = delete;
    ~Tool() = default;

    class Guard {
      public:
        explicit Guard(Tool& tool) : lock_(tool.enter()), tool_(tool) {
            if (lock_ != nullptr) {
                lock_->lock();
            }
            held_ = std::unique_lock(tool.mutex_);
        }
        ~Guard() {
            held_.unlock();
            if (lock_ != nullptr) {
                lock_->unlock();
                tool_.leave();
            }
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

        Sessions& sessions() { return tool_.sessions_; }
        Settings& settings() { return tool_.settings_; }
        LateHandleTable<ControlHandle>& controls() { return tool_.controls_; }
        Events& events() { return tool_.events_; }
        // Null: there is no rank.
        const Subject* subject() const { return tool_.subject_ ? &*tool_.subject_ : nullptr; }
        // After a change of what is started or registered.
        void look_anew() { tool_.look_anew(); }
        // Calls what may call the program, without the rank's lock.
        template <typename Call>
        void without_rank_lock(Call call) {
            if (lock_ != nullptr) {
                lock_->unlock();
            }
            call(held_);
            if (lock_ == nullptr) {
                return;
            }
            held_.unlock(); // the rank's lock comes first
            lock_->lock();
            held_.lock();
        }

      private:
        RankLock* const lock_;
        Tool& tool_;
        std::unique_lock<std::mutex> held_;
    };

    // By the rank's context, without the rank's lock: when it is there, and before it ends.
    void attach(const Subject& subject);
    void detach();
    // Ends everything but what has been written.
    void end();

    void message_kept(const Arrival& arrival) override;
    void waited(std::uint32_t call, std::int32_t peer, std::int32_t tag,
                std::uint64_t duration_ns) override;
    void lock_waited(std::uint64_t duration_ns) override;
    void deliver() override;

  private:
    // The rank's lock, which stays until leave(); null: there is no rank, and nothing to leave.
    // (In one order with detach(), which takes the lock away and then looks for guards.)
    RankLock* enter() {
        guards_.fetch_add(1, std::memory_order_seq_cst);
        RankLock* const lock = rank_lock_.load(std::memory_order_seq_cst);
        if (lock == nullptr) {
            leave();
        }
        return lock;
    }
    void leave() { guards_.fetch_sub(1, std::memory_order_release); }
    void look_anew();
    void note(EventKind kind, const EventData& data);

    std::mutex mutex_;
    std::atomic<RankLock*> rank_lock_{nullptr}; // null: there is no rank
    std::atomic<std::uint32_t> guards_{0};      // that use the rank's lock
    std::optional<Subject> subject_;
    Settings settings_;
    LateHandleTable<ControlHandle> controls_;
    Sessions sessions_;
    Events events_;
};

} // namespace warren::tool
