// The library for programs whose compiler calls a function before each access (-fsanitize=thread of
// gcc, gfortran and clang, without its own library). It counts the accesses and writes the
// recording of counts mode where DynamoRIO can't run.
//
// In a program that isn't recorded the functions load one thread-local pointer and return. In a
// recorded one they count in the tables of counts mode (counts/counters.hpp): one subtraction in
// the thread's own table, without a lock or shared data. A borrow is an event. The recorder is that
// of counts mode (counts/recorder.hpp), and allocations come from the tracker.
//
// A process has one such library, also where ranks are private images, so that data which they
// share is seen as shared. Its thread-local variables, which are found without a call, take less
// than 128 B of the space that the loader keeps for libraries that are loaded later.
//
// Invariants:
//  1. Whoever is inside the recorder has `Mine::inside` set, on this thread. What happens meanwhile
//     on it, in a signal handler or because the recorder itself calls something that is followed,
//     isn't recorded but counted as missed; a signal that the program handles, or that ends the
//     process, waits in the kernel until it is out (signals.cpp).
//  2. The recorder is never entered with the dynamic loader's lock wanted (dl_iterate_phdr), nor
//     calls what the tracker follows: the tracker calls it with its own lock held.
// Thread rule: any thread; the process starts once, by whoever comes first.
#pragma once

#include <cstdint>

#include "analyser/counts/recorder.hpp"

namespace warren::locality::counts::platform {
void leave_standard_error(); // to the parent: in a forked child
void keep_standard_error();  // at the start: programs close it, and use its number for other files
} // namespace warren::locality::counts::platform

namespace warren::locality::hooks {

constexpr const char* settings_variable = "WARREN_LOCALITY_HOOKS";

// Whether this process is being recorded. meeting: it is, but others wait while the tracker is
// told.
enum Stage : std::uint32_t { unknown = 0, starting = 1, recording = 2, off = 3, meeting = 4 };
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): they are constant
extern std::uint32_t stage;
inline bool is_recording() {
    return __atomic_load_n(&stage, __ATOMIC_ACQUIRE) == recording;
}

// Whether the tracker's reports are taken.
inline bool has_begun() {
    const std::uint32_t now = __atomic_load_n(&stage, __ATOMIC_ACQUIRE);
    return now == recording || now == meeting;
}

// The counters of an address are (address >> shift) & mask bytes from a table's beginning. Set
// before any thread has a table.
struct Place {
    std::uint64_t mask;
    unsigned shift;
};
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers)
extern Place place;

struct Mine {
    char* words;            // of this thread's table; null: see count_elsewhere()
    counts::Thread* thread; // null: nothing of it is known yet
    std::uint32_t number;   // that it has got from whoever made it, or no_thread
    std::uint32_t parent;
    std::uint16_t inside;
    std::uint16_t calls;   // of count_elsewhere()
    std::uint16_t endings; // turns of the functions that run when a thread ends
    std::uint16_t locks;   // of the recorder's that it has
    bool held;             // signals, all, because one has come while it was inside
    std::uint64_t mask;    // of signals before, as the kernel has it
    void* stack;           // for the handlers of signals, if the program has none
    // The last structures that were copied as a whole, by direction. Where the compiler makes that
    // a call of memcpy, the call is not another copy.
    struct Range {
        std::uint64_t begin;
        std::uint64_t bytes;
        std::uint64_t instruction;
    } ranges[2];
};
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers)
extern thread_local constinit Mine mine;

// Marks this thread as inside the recorder for a scope. False: it was inside already.
class Inside {
  public:
    Inside() : entered_(mine.inside == 0) { mine.inside = 1; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() {
        if (entered_) {
            leave();
        }
    }
    explicit operator bool() const { return entered_; }

    static void leave(); // also without a scope: what has waited comes now

  private:
    bool entered_;
};

counts::Recorder& recorder();
// The first instrumented access in this process starts the recording, or the process's beginning,
// if it has loaded code that needs this library. Processes without such code have the library
// preloaded but are not recorded. The tracker calls with its own lock held and waits for less.
enum class Waits { for_all, for_beginning };
void start_process(Waits waits = Waits::for_all);
bool is_linked();
// Called inside, with no lock held. Notices a fork that was not seen.
bool is_own_process();
bool is_borrowed_memory(); // of the parent, in a child of vfork. After is_own_process().
void note_missed(std::uint64_t accesses);
// Writes all counts, and `how` the process ends or what it becomes.
void end_process(const char* how);
void execute_begins();
void execute_failed();

// The calling thread in the recording; null: it has ended. Called inside.
counts::Thread* this_thread();
bool start_threads();
void start_saving(); // in each process, when it is recorded

// Tells the recorder what has been loaded and unloaded since the last time. Called inside.
void note_modules();
void forget_modules(); // in a forked child

void take_signals();
void forget_signals();        // in a forked child: nobody is at them
void take_stack_overflows();  // of this thread, which has begun
void leave_stack_overflows(); // it ends
void take_quick_exits();

// Makes the tracker ask again, if it is there and began before this process was to be recorded.
void meet_tracker();

// Count what takes more than a few instructions.
void count_elsewhere(std::uint64_t address, std::uint64_t bytes, counts::Direction direction,
                     std::uint64_t instruction);
void count_block(std::uint64_t address, std::uint64_t bytes, counts::Direction direction,
                 std::uint64_t instruction);

// Finds the next function of that name behind this library. Without it the process ends.
void* behind(const char* name);

} // namespace warren::locality::hooks
