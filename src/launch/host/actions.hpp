// Actions: what each rank of the process does about each signal. Ranks have their own, as processes
// do; the process's are dispatchers (crash.cpp, signals.cpp), which look here.
//
// Thread rule: any thread; writers hold the lock, with the signals of their thread blocked, because
// a handler may write as well. A fork holds it too. A handler that reads while its rank writes is
// the program's mistake, as in a process.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace warren::launch {

class Actions {
  public:
    // Once, before there are other threads.
    void prepare(std::uint32_t ranks);

    std::uint32_t ranks() const { return ranks_; }
    static bool has(int number) { return number > 0 && number < NSIG; }
    struct sigaction& of(std::uint32_t rank, int number) const {
        return all_[rank * std::size_t{NSIG} + static_cast<std::size_t>(number)];
    }

    std::mutex lock;

  private:
    std::uint32_t ranks_ = 0;
    struct Free {
        void operator()(struct sigaction* all) const { std::free(all); }
    };
    std::unique_ptr<struct sigaction[], Free> all_;
};

// The process's; it outlives everything.
Actions& actions();

bool is_handler(const struct sigaction& action);
bool is_ignored(const struct sigaction& action);
// Runs a program's handler, with the signals blocked that it has asked for; before that, forgets it
// if that is wanted once only.
// `interrupted`: the mask of what the signal has interrupted, if the thread has more blocked.
void run_handler(struct sigaction& action, int number, siginfo_t* information, void* context,
                 const sigset_t* interrupted = nullptr);
// Whether the calling thread runs a handler, so that it can't give way to other fibres: it may have
// interrupted the scheduler, and the kernel blocks signals meanwhile.
bool is_in_handler();
// How many the calling thread has run: whether one has ended a call.
std::uint32_t handlers_of_thread();
// A handler of the calling thread has unblocked signals itself, and goes on.
void note_unblocking();
// The default action, for the process.
void take_default(int number);

} // namespace warren::launch
