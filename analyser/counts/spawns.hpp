// One thread at a time begins a thread or a process, or executes another program, and a new thread
// has no signals until DynamoRIO knows it. DynamoRIO 11.90 needs both:
//
// - It marks a thread that is about to execute a program, and whoever is about to make a thread or
//   a process takes back what DynamoRIO has of all marked ones, as if they were children of vfork
//   that have gone. A thread whose execve goes on, or fails, would work with memory of others from
//   there on. So neither begins while another is at it: from before DynamoRIO's part of the system
//   call until after it, but for vfork, whose caller sleeps in it until its child ends or executes
//   a program: it is free again when the child begins, and what the child holds, the parent gives
//   back, as it is the one that is left when a program was executed.
// - Once a process has had a child of vfork, a signal that comes in a thread which DynamoRIO does
//   not know yet ends the process: also SIGCHLD, of that child. So signals wait meanwhile, but for
//   those that a thread's own instruction raises, and SIGUSR2, by which DynamoRIO stops threads.
// - Before it forks, and before the process ends, it stops all other threads. A caller of vfork
//   sleeps where no signal reaches it, and DynamoRIO waits for it with locks held that its child
//   needs to leave. So both wait until no child of vfork is out, and no new one goes out meanwhile.
//   (A signal that ends the process is DynamoRIO's matter: see analyser/dynamorio/dynamorio.patch.)
//
// Invariants: a holder is between those two points; only it, its child or its parent of vfork ends
// the hold, but for a child whose parent's process is gone, with the hold: it takes it in the end.
// A child is out from before its parent's DynamoRIO makes it until the parent is back.
// A forked child has a copy of what it was in the parent, and forgets it.
// Thread rule: all functions, by any thread, and by children that share the memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace warren::locality::counts {

struct Spawner {
    std::uint32_t id = 0;  // the thread's; of a child of vfork, its parent's
    bool is_child = false; // of a vfork
    bool in_vfork = false; // it has a child out
};

enum class New { thread, process, child_of_vfork }; // that a system call makes

class Spawns {
  public:
    // Called when a thread begins. If not `is_own_process`, it may be the child of a vfork.
    Spawner thread_began(std::uint32_t tid, bool is_own_process);
    void forked(); // in the child
    // Waits until no other thread has the hold, and takes it. `context`: DynamoRIO's of the thread.
    void hold(void* context, const Spawner& spawner);
    // Takes the hold for the caller of clone, clone3, fork or vfork.
    void hold_for_new(void* context, Spawner& spawner, New what);
    // Takes the hold for the caller of exit_group. False: a child of vfork was out all the time
    // that one may take, and nothing is held.
    bool hold_for_end(void* context, const Spawner& spawner);
    // Called by the caller of a system call that makes a thread or process, after it, also if it
    // failed.
    void made(Spawner& spawner);
    // Gives the hold back. Does nothing if the caller doesn't have it.
    void give_back(Spawner& spawner);

  private:
    static constexpr std::uint32_t for_new = std::uint32_t{1} << 30; // ids are below 2^22
    static constexpr std::uint32_t for_vfork = std::uint32_t{1} << 31;

    static constexpr std::uint64_t for_ever = UINT64_MAX;

    void hold_as(void* context, std::uint32_t holder, bool is_child);
    void hold_for_vfork(void* context, Spawner& spawner);
    // Keeps further children of vfork from going out, and waits. False: one is still out.
    bool wait_for_children(void* context, std::uint64_t longest_ms);
    void let_signals_in() const;

    std::atomic<std::uint32_t> holder_{0};
    // Children of this process's threads. A child's own children only keep it out longer.
    std::atomic<std::uint32_t> children_{0};
    std::atomic<std::uint32_t> waiting_{0};  // for all children, which keeps others from going out
    std::atomic<std::uint64_t> kept_out_{0}; // signals, as the kernel's masks have them
};

} // namespace warren::locality::counts
