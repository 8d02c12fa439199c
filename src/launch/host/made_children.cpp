#include "launch/host/made_children.hpp"

#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <unistd.h>

#include "image/host_interface.hpp"
#include "launch/host/children.hpp"
#include "launch/host/fibre_signals.hpp"
#include "launch/host/signals.hpp"
#include "launch/host/standard_streams.hpp"

namespace warren::launch {

namespace {

bool& fibres() {
    static bool are = false;
    return are;
}

pid_t make_child() {
    begin_child();
    const pid_t child = warren_image_fork();
    if (child == 0 && fibres()) {
        warren_image_take_streams();
    }
    return note_child(child);
}

// fork without handlers, for signal handlers.
pid_t make_plain_child() {
    begin_child();
    const pid_t child = _Fork();
    if (child == 0 && fibres()) {
        warren_image_take_streams();
    }
    return note_child(child);
}

// A clone runs the program's function with its argument.
struct Cloned {
    int (*function)(void*);
    void* argument;
    bool takes_streams;
};

int run_cloned(void* given) {
    const Cloned cloned = *static_cast<const Cloned*>(given);
    if (cloned.takes_streams) {
        warren_image_take_streams();
    }
    return cloned.function(cloned.argument);
}

// clone, which the C library declares with any arguments. In its parent's memory the child may come
// to its function after this has returned: it then gets the program's function itself.
int make_cloned_child(int (*function)(void*), void* stack, int flags, void* argument,
                      pid_t* parents, void* thread_pointer, pid_t* childs) {
    const bool is_thread = (flags & CLONE_THREAD) != 0;
    const bool has_own_memory = (flags & CLONE_VM) == 0;
    Cloned cloned{function, argument, has_own_memory && fibres()};
    if (!is_thread) {
        begin_child();
    }
    const pid_t child =
        has_own_memory ? clone(run_cloned, stack, flags, &cloned, parents, thread_pointer, childs)
                       : clone(function, stack, flags, argument, parents, thread_pointer, childs);
    return is_thread ? child : note_child(child);
}

void note_child_of_terminal(pid_t pid) {
    begin_child();
    note_child(pid);
}

// As fork, but that it calls no handlers. The child blocks what the caller does before a signal can
// come to it.
pid_t make_child_for_exec() {
    begin_child();
    const sigset_t of_caller = signals_blocked_by_caller();
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = fork();
    pthread_sigmask(SIG_SETMASK, child == 0 ? &of_caller : &before, nullptr);
    return note_child(child);
}

// File actions for a child whose parent gives none: the child inherits the rank's own 0, 1 and 2.
class OwnStreams {
  public:
    OwnStreams() {
        posix_spawn_file_actions_init(&actions_);
        if (fibres()) {
            add_own_streams(&actions_);
        }
    }
    ~OwnStreams() { posix_spawn_file_actions_destroy(&actions_); }
    OwnStreams(const OwnStreams&) = delete;
    OwnStreams& operator=(const OwnStreams&) = delete;

    const posix_spawn_file_actions_t* get() const { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_;
};

// The child blocks what the rank blocks, unless it is told otherwise.
posix_spawnattr_t attributes_of_child(const posix_spawnattr_t* given) {
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    if (given != nullptr) {
        attributes = *given;
    }
    short flags = 0;
    posix_spawnattr_getflags(&attributes, &flags);
    if ((flags & POSIX_SPAWN_SETSIGMASK) == 0) {
        const sigset_t blocked = signals_blocked_by_caller();
        posix_spawnattr_setsigmask(&attributes, &blocked);
        posix_spawnattr_setflags(&attributes, static_cast<short>(flags | POSIX_SPAWN_SETSIGMASK));
    }
    return attributes;
}

int spawn_by(decltype(&posix_spawn) function, pid_t* pid, const char* path,
             const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
             char* const* arguments, char* const* environment) {
    const OwnStreams own;
    posix_spawnattr_t with_signals = attributes_of_child(attributes);
    pid_t child = -1;
    begin_child();
    const int error = function(&child, path, actions != nullptr ? actions : own.get(),
                               &with_signals, arguments, environment);
    note_child(error == 0 ? child : -1);
    if (error == 0 && pid != nullptr) {
        *pid = child;
    }
    return error;
}

int spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
    return spawn_by(&posix_spawn, pid, path, actions, attributes, arguments, environment);
}

// ECANCELED: the child has to be a fork that says itself what it ignores.
int spawn_with_actions(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const* arguments,
                       char* const* environment) {
    auto start = [&] {
        return posix_spawn(pid, path, actions, attributes, arguments, environment);
    };
    int error = 0;
    const bool started = command_signals().start(
        [](void* given) { return (*static_cast<decltype(start)*>(given))(); }, &start, error);
    return started ? error : ECANCELED;
}

// For a command of system() or popen().
int spawn_command(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                  const posix_spawnattr_t* attributes, char* const* arguments,
                  char* const* environment) {
    return spawn_by(&spawn_with_actions, pid, path, actions, attributes, arguments, environment);
}

int spawn_found(pid_t* pid, const char* name, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) {
    return spawn_by(&warren_image_spawn_found, pid, name, actions, attributes, arguments,
                    environment);
}

} // namespace

// vfork of ranks that are threads: the child runs on the parent's stack until it executes a
// program or ends, so nothing of this call may be there; the parent then notes the child.
extern "C" {
void warren_launch_begin_vfork() {
    begin_child();
}

pid_t warren_launch_end_vfork(long result) {
    if (result < 0) {
        errno = static_cast<int>(-result);
    }
    return note_child(result < 0 ? -1 : static_cast<pid_t>(result));
}

pid_t warren_launch_vfork();
}
asm(R"(
    .text
    .globl warren_launch_vfork
    .type warren_launch_vfork, @function
warren_launch_vfork:
    subq $8, %rsp
    call warren_launch_begin_vfork
    addq $8, %rsp
    popq %rdi
    movl $58, %eax
    syscall
    pushq %rdi
    testq %rax, %rax
    jz 1f
    movq %rax, %rdi
    jmp warren_launch_end_vfork
1:  ret
    .size warren_launch_vfork, .-warren_launch_vfork
)");

void prepare_making_children(bool are_fibres) {
    static const image::CommandFunctions commands{.set_mask = set_signal_mask,
                                                  .spawn = spawn_command,
                                                  .fork = make_child_for_exec,
                                                  .note = note_child_of_terminal,
                                                  .wait = wait_for_command,
                                                  .begin = command_signals().begin,
                                                  .end = command_signals().end};
    warren_image_run_commands_by(&commands);
    fibres() = are_fibres;
}

std::span<const warren_image_binding> made_child_bindings() {
    static const warren_image_binding bindings[] = {
        {"fork", reinterpret_cast<void*>(&make_child)},
        {"__fork", reinterpret_cast<void*>(&make_child)},
        {"_Fork", reinterpret_cast<void*>(&make_plain_child)},
        {"clone", reinterpret_cast<void*>(&make_cloned_child)},
        {"__clone", reinterpret_cast<void*>(&make_cloned_child)},
        {"posix_spawn", reinterpret_cast<void*>(&spawn)},
        {"posix_spawnp", reinterpret_cast<void*>(&spawn_found)},
    };
    return bindings;
}

std::span<const warren_image_binding> vfork_bindings(bool fibres) {
    static const warren_image_binding of_fibres[] = {
        {"vfork", reinterpret_cast<void*>(&make_child_for_exec)},
        {"__vfork", reinterpret_cast<void*>(&make_child_for_exec)},
    };
    static const warren_image_binding of_threads[] = {
        {"vfork", reinterpret_cast<void*>(&warren_launch_vfork)},
        {"__vfork", reinterpret_cast<void*>(&warren_launch_vfork)},
    };
    return fibres ? std::span<const warren_image_binding>(of_fibres) : of_threads;
}

} // namespace warren::launch
