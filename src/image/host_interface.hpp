// Interface between the host program's part (host/host.cpp, an archive) and the library.
//
// Thread rule: warren_image_register_host once, before any image; the rest at any time.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/types.h>
#include <threads.h>

#include "warren/image.h"

namespace warren::image {

// The system's functions that the host program stands in front of, and the reserve.
struct HostFunctions {
    std::size_t bytes;  // of this struct: tells versions apart
    std::byte* reserve; // of the calling thread
    std::uint64_t reserve_bytes;
    int (*create_thread)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    int (*find_object)(void*, dl_find_object*);
};

// The system's functions by which system, popen and pclose of programs run commands, or a host's.
struct CommandFunctions {
    int (*set_mask)(int how, const sigset_t* set, sigset_t* former);
    // ECANCELED: only a fork can have the signals ignored that the image ignores.
    int (*spawn)(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments,
                 char* const* environment);
    pid_t (*fork)();           // for a child that executes a program
    void (*note)(pid_t child); // that the image has made itself; null: nobody wants to know
    pid_t (*wait)(pid_t child, int* status, int options);
    // While commands of system() run, the calling thread's image ignores some signals. begin
    // returns those for which the command has the default. Null: it goes on as before.
    sigset_t (*begin)();
    void (*end)();
};

// How signals that an image's timers and requests cause come to that image.
struct SignalFunctions {
    // Changes a timer's event with SIGEV_SIGNAL or SIGEV_THREAD_ID. False, and errno: it can't be.
    bool (*aim)(sigevent* event);
    // The calling thread's image, by a number of the host's, which send() understands in any
    // thread. False: signals of the process are the image's.
    bool (*receiver)(std::uint32_t& number);
    void (*send)(std::uint32_t number, const siginfo_t& information);
    // A timer with such an event has been made, or (null) not; a timer is deleted.
    void (*made)(const sigevent& event, const timer_t* timer);
    void (*deleted)(timer_t timer);
};

} // namespace warren::image

extern "C" {
// Returns an error of warren/image.h. `exported`: libraries find the program's two functions.
int warren_image_register_host(const warren::image::HostFunctions* functions, bool exported);
// The two functions, for a host.
int warren_image_create_thread(pthread_t* made, const pthread_attr_t* attributes,
                               void* (*start)(void*), void* argument);
int warren_image_find_object(void* address, dl_find_object* found);
// Whatever of the calling thread's image has the descriptor `from` as output or errors has `to`
// instead: its streams, and commands that it starts.
void warren_image_move_stream(int from, int to);
// The stream that the calling thread's image has as standard input has this descriptor from now on.
void warren_image_set_input(int descriptor);
// The calling thread's image, in a child of fork, has its standard streams as 0, 1 and 2 now.
void warren_image_take_streams();
// fork of programs of images, which calls their handlers; posix_spawnp, by their PATH.
pid_t warren_image_fork();
int warren_image_spawn_found(pid_t* child, const char* name,
                             const posix_spawn_file_actions_t* actions,
                             const posix_spawnattr_t* attributes, char* const* arguments,
                             char* const* environment);
// pthread_create and thrd_create of programs of images.
int warren_image_start_thread(pthread_t* made, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument);
int warren_image_start_c_thread(thrd_t* made, thrd_start_t start, void* argument);
// How many threads the calling thread's image has beside this one.
std::size_t warren_image_other_threads();
// Tells the host of kernel threads that images have made: each calls `begun` before it runs
// the program's function, with the mask of signals that it runs that with (bit n - 1: signal n),
// and `ends` when the last of the program's destructors has run.
void warren_image_watch_threads(void (*begun)(std::uint64_t mask), void (*ends)());
// The calling image is about to close these; close, dup2 or dup3, and fcntl of programs of images.
void warren_image_forget_files(unsigned first, unsigned last);
int warren_image_close_file(int descriptor);
int warren_image_duplicate_file(int from, int to, int flags);
// The image gives a program the number that `place` returns for what it has opened.
void warren_image_place_files_by(int (*place)(int descriptor));
int warren_image_control_file(int descriptor, int command, void* argument);
// syscall of programs of images, in which fibres wait for words.
long warren_image_call_system(long number, long first, long second, long third, long fourth,
                              long fifth, long sixth);
// fdopen and fclose of programs of images that bind nothing else.
std::FILE* warren_image_open_descriptor(int descriptor, const char* mode);
int warren_image_close_stream(std::FILE* stream);
// Tells the host of commands that programs of images start. `needs_fork`: whether the
// calling thread's image can start one by fork and exec only; `prepare`: in the child, before it
// executes the command, maybe in its parent's memory.
void warren_image_watch_exec(void (*prepare)());
void warren_image_aim_signals_by(const warren::image::SignalFunctions* functions);
void warren_image_run_commands_by(const warren::image::CommandFunctions* functions);
// From now on the loader keeps a descriptor of each file that it has read: keep(descriptor, true)
// makes a copy that no program closes, or gives -1; keep(copy, false) closes it.
void warren_image_keep_descriptors(int (*keep)(int descriptor, bool kept));
}
