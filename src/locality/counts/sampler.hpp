// Mode sample: the program runs as DynamoRIO runs it without us, except in bursts, in which its
// accesses are counted. What a recording then has are the accesses of the bursts, how much
// processor time these had together (`sampled_ns` in process.json), and all page faults, as the
// kernel tells them (perf_events.hpp): who places memory is not a matter of samples.
//
// A thread of DynamoRIO's, which the program doesn't see, begins and ends bursts: it throws away
// the code that DynamoRIO has made, which is then made anew with or without counting. That costs
// some 30 µs per block of the program's code that runs, so it waits for so long that this stays a
// small part of the time. Bursts begin at random times, lest they keep step with the program.
//
// Thread rule: start() and stop() once per process, and again in a forked one; the rest is the
// sampler's own thread's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "locality/counts/recorder.hpp"
#include "locality/perf_events.hpp"
#include "locality/x86_access.hpp"

namespace warren::locality::counts {

class Sampler {
  public:
    // The kernel's page faults from here on. What is missing, the recorder is told.
    explicit Sampler(Recorder& recorder);
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    bool start(std::string& problem);
    // Called by the program's threads before they end, fork or execute: for so long code is not
    // thrown away, which DynamoRIO doesn't stand meanwhile. Returns when none is.
    void hold(std::uint64_t ns);
    static constexpr std::uint64_t forever = UINT64_MAX;
    // Ends the sampler's thread, which an execve would leave behind; start() makes another.
    void end();
    // All other threads are gone: what the kernel still has to tell.
    void stop();

  private:
    static void run(void* sampler);
    void bursts();
    void change(bool count);
    bool wait(std::uint64_t ns); // false: it is to end
    void end_with_program() const;
    void take_faults(bool all);
    void take(const PerfEvent& event);
    std::uint64_t random_below(std::uint64_t limit);

    Recorder& recorder_;
    std::unique_ptr<PerfEvents> events_; // null: the kernel tells nothing
    std::unordered_map<std::uint64_t, locality::Access> accesses_;
    std::uint32_t pid_ = 0;
    int program_ = -1; // a descriptor that tells its end
    std::uint64_t random_ = 0;
    std::atomic<bool> taking_{false};
    std::atomic<bool> changing_{false};
    std::atomic<bool> ending_{false};
    std::atomic<bool> running_{false};
    std::atomic<std::uint64_t> held_until_ns_{0};
};

} // namespace warren::locality::counts
