// Events: what mpiexec waits for, one epoll with the origin of each event. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <span>

namespace warren::launch {

// The origin of an event. Its number is that of streams (output, errors), a process (lifeline,
// reports) or a rank (manager).
enum class Source : std::uint32_t {
    output,
    errors,
    lifeline,
    reports,
    manager,
    topology, // requests, and reports of it
    signals,
    all_output,
    sink,
    input,
    input_taken,    // there is room for more of rank 0's standard input
    link,           // of an agent to mpiexec: frames
    link_takes,     // and room for more of them
    spawn_listener, // a rank wants processes started
    spawn_request,  // and says which
    spawner         // what the rank says that has spawned this job
};

struct Event {
    Source source;
    std::uint32_t number;
};

class Events {
  public:
    static constexpr std::size_t most_at_once = 64;

    Events() = default;
    ~Events();
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;

    bool open();
    int descriptor() const { return descriptor_; } // -1: not open

    void watch(int descriptor, Source source, std::uint32_t number = 0);
    void forget(int descriptor);

    // The events that are there, most_at_once of them at most; -1 ms: waits for one.
    std::span<const Event> wait(int timeout_ms);

  private:
    int descriptor_ = -1;
    Event found_[most_at_once] = {};
};

} // namespace warren::launch
