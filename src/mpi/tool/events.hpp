// Events: what happens in a rank without the program's doing, told to functions of the program.
//
// An event is noted where it happens, in a queue of fixed length; the rank tells it in its next
// progress, where it holds no lock and is in the middle of nothing. So a function may call whatever
// it likes, whatever its level of safety is, and every event has a function that may be called.
// Events that find the queue full are dropped, and counted for each registration.
// Invariants
//  1. An event is told to a registration only if it happened after the registration got its first
//     function.
//  2. A registration exists while one of its functions runs; its end waits for that.
// Thread rule: under the tool's mutex, but for deliver(), which takes it where it calls no function
// of the program.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/late_handle_table.hpp"
#include "mpi.h"
#include "mpi/tool/enumeration.hpp"

namespace warren::tool {

enum class EventKind : std::uint8_t { unexpected_message, long_wait, thread_lock_wait, count };

// The elements of an event, at their displacements in its data.
struct EventData {
    struct Message {
        unsigned long long bytes;
        unsigned long long queued_bytes;
        int source; // in the world
        int tag;
        unsigned context;
        unsigned queue_length;
    };
    struct Wait {
        unsigned long long duration_ns;
        int call;
        int peer;
        int tag;
    };
    struct Lock {
        unsigned long long duration_ns;
    };
    union {
        Message message;
        Wait wait;
        Lock lock;
    };
};

struct EventElement {
    MPI_Datatype datatype;
    MPI_Aint displacement;
    std::size_t bytes;
};

struct EventType {
    const char* name;
    const char* description;
    int verbosity;
    std::span<const EventElement> elements;
    std::size_t bytes; // of all elements, from displacement 0
    const Enumeration* enumeration;
};

std::span<const EventType> event_types();

// The source of all events: the rank, whose clock gives their times.
inline constexpr const char* source_name = "rank";
inline constexpr const char* source_description =
    "The rank: its matching, waits and locks, in the order in which they happen";
inline constexpr MPI_Count source_ticks_per_second = 1'000'000'000;
MPI_Count source_time();

// The levels of safety, from the one that allows a function most.
inline constexpr int safety_levels = 4;
// -1: it is none.
int safety_index(const MPI_T_cb_safety& safety);

struct Registration {
    EventKind kind;
    struct {
        MPI_T_event_cb_function* function = nullptr;
        void* user_data = nullptr;
    } callbacks[safety_levels];
    MPI_T_event_dropped_cb_function* dropped_function = nullptr;
    MPI_Count dropped = 0;
    std::uint64_t since = 0; // the first event that it is told
    int running = 0;         // its functions
    bool freed = false;
    // Gives the number of a level of safety for its functions; null: the standard's.
    int (*safety_number)(int) = nullptr;
    MPI_T_event_free_cb_function* free_function = nullptr;
    void* free_data = nullptr;

    // The least restricted level that has a function; -1: none has.
    int level() const;
    MPI_T_cb_safety told_safety(int level) const;
};

// An event that is being told: what an MPI_T_event_instance leads to.
struct Instance {
    EventKind kind;
    EventData data;
    MPI_Count time;
    std::uint64_t number = 0;
    Instance* next = nullptr; // among those that are being told
};

class Events {
  public:
    explicit Events(std::mutex& mutex) : mutex_(mutex) {}

    // Null: memory is out.
    Registration* add(EventKind kind);
    Registration* find(MPI_T_event_registration handle);
    static MPI_T_event_registration handle_of(const Registration& registration);
    void set_callback(Registration& registration, int level, MPI_T_event_cb_function* function,
                      void* user_data);
    // Frees it, now or when its functions have ended, and calls `function` then. `lock`: of the
    // mutex.
    void remove(Registration& registration, MPI_T_event_free_cb_function* function, void* user_data,
                std::unique_lock<std::mutex>& lock);
    void remove_all();

    // Whether anybody wants to be told of a kind, or of any.
    bool wanted(EventKind kind) const { return wanted_[static_cast<std::size_t>(kind)] > 0; }
    bool any_wanted() const;

    // Notes an event of a kind that is wanted.
    void note(EventKind kind, const EventData& data);
    bool has_news() const { return first_ != next_ || dropped_; }
    void deliver();

    // The event that is being told behind a handle; null: there is none.
    const Instance* find(MPI_T_event_instance handle) const;

  private:
    // Null: none waits.
    bool take(Instance& instance);
    void tell(Registration& registration, Instance& instance, std::unique_lock<std::mutex>& lock);
    void tell_dropped(Registration& registration, std::unique_lock<std::mutex>& lock);
    void end_run(Registration& registration, std::unique_lock<std::mutex>& lock);
    std::vector<Registration*> held(EventKind kind, bool all);

    std::mutex& mutex_;
    LateHandleTable<Registration> registrations_;
    int wanted_[static_cast<std::size_t>(EventKind::count)] = {};
    std::unique_ptr<Instance[]> queue_; // made for the first function
    std::uint64_t first_ = 0; // numbers of events; the queue's places are their remainders
    std::uint64_t next_ = 0;
    bool dropped_ = false;
    Instance* told_ = nullptr;
};

} // namespace warren::tool
