// The library that programs are linked with whose compiler calls a function before each access
// (-fsanitize=thread of gcc, gfortran and clang, without its own library): it counts them, and
// writes the recording of counts mode where DynamoRIO can't run.
//
// In a program that isn't being recorded the functions look at one thread-local pointer and return.
// In one that is they count in the same tables as counts mode (counts/counters.hpp): one
// subtraction in the thread's own, no lock and nothing shared; its borrow is an event, as there.
// The recorder is that of counts mode, too (counts/recorder.hpp), and allocations come from the
// tracker.
//
// It is one library of the process, also where ranks are private images: what they share is seen as
// shared. Its thread-local variables, which are found without a call, take less than 128 B of what
// the loader keeps for libraries that are loaded later.
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

// Whether this process is being recorded.
// Meeting: it is, but whoever comes meanwhile waits: the tracker is being told.
enum Stage : std::uint32_t { unknown = 0, starting = 1, recording = 2, off = 3, meeting = 4 };
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): they are constant
extern std::uint32_t stage;
inline bool is_recording() {
    return __atomic_load_n(&stage, __ATOMIC_ACQUIRE) == recording;
}

// For what the tracker tells.
inline bool has_begun() {
    const std::uint32_t now = __atomic_load_n(&stage, __ATOMIC_ACQUIRE);
    return now == recording || now == meeting;
}

// Where the counters of an address are in a table: (address >> shift) & mask bytes from its
// beginning. Set before any thread has a table.
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
    // The last structures that were copied as a whole, by direction: where the compiler makes that
    // a call of memcpy, it is no copy of its own.
    struct Range {
        std::uint64_t begin;
        std::uint64_t bytes;
        std::uint64_t instruction;
    } ranges[2];
};
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers)
extern thread_local constinit Mine mine;

// For a scope in which this thread is inside the recorder; false: it was already.
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
// The first call of the compiler's in this process starts it; or it starts with it, if what it has
// loaded needs this library. It is preloaded into processes that don't, which are not recorded.
// The tracker, which has a lock of its own, waits for less.
enum class Waits { for_all, for_beginning };
void start_process(Waits waits = Waits::for_all);
bool is_linked();
// To be called inside, with nothing held: a fork that nobody has told of is noticed here.
bool is_own_process();
bool is_borrowed_memory(); // of the parent, in a child of vfork. After is_own_process().
void note_missed(std::uint64_t accesses);
// Writes what there is, as what the process is about to become or how it ends.
void end_process(const char* how);
void execute_begins();
void execute_failed();

// The calling thread in the recording; null: it has ended. Inside.
counts::Thread* this_thread();
bool start_threads();
void start_saving(); // in each process, when it is recorded

// Tells the recorder what has been loaded and unloaded since the last time. Inside.
void note_modules();
void forget_modules(); // in a forked child

void take_signals();
void forget_signals();        // in a forked child: nobody is at them
void take_stack_overflows();  // of this thread, which has begun
void leave_stack_overflows(); // it ends
void take_quick_exits();

// Has the tracker ask again, if it is there and has begun before this process was to be recorded.
void meet_tracker();

// What the compiler's functions can't do in a few instructions.
void count_elsewhere(std::uint64_t address, std::uint64_t bytes, counts::Direction direction,
                     std::uint64_t instruction);
void count_block(std::uint64_t address, std::uint64_t bytes, counts::Direction direction,
                 std::uint64_t instruction);

// Looks a function up behind this library; the process can't go on without.
void* behind(const char* name);

} // namespace warren::locality::hooks
