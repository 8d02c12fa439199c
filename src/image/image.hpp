// Image: one owner's private world within a process: copies of a program or of libraries, and of
// all libraries that they need, with their own variables; the threads that belong to it; and what
// it wants done at its end.
//
// A thread belongs to one image at most, and only its threads run the image's code. Loading, from
// the host or from inside (dlopen), is done by a thread of the image.
//
// Thread rule: load_lock_ is held while modules come and go, constructors included, so these may
// load others; threads_lock_ is taken for moments, so that a constructor may wait for a thread that
// it makes. Invariants
//  1. Modules are in the order in which symbols are looked up: the program or first library first.
//  2. All blocks of thread-local variables are within the reserve, and don't overlap. Every begun
//     thread of the image has those of tls_modules_.
//  3. A module is in the address table from its mapping to its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/error.hpp"
#include "image/architecture.hpp"
#include "image/closure.hpp"
#include "image/libc/exit_functions.hpp"
#include "image/libc/fork_handlers.hpp"
#include "image/libc/state.hpp"
#include "image/libc/substitutes.hpp"
#include "image/libc/thread_keys.hpp"
#include "image/load_plan.hpp"
#include "image/module.hpp"
#include "image/shared_scope.hpp"
#include "image/thread.hpp"

namespace warren::image {

// A name that the host defines for an image, in front of everything that the image has.
struct HostBinding {
    std::string name;
    void* address;
};

// How a program ended.
struct ProgramEnd {
    int status = 0; // of exit
    int signal = 0; // 0: by exit; else what would have killed a process (SIGABRT)
};

struct ImageOptions {
    Sharing sharing;
    std::vector<HostBinding> bindings;
    Descriptors descriptors;
    bool own_directory = false;
    // Called in the thread that ends the program, before run_program returns or, when it is not the
    // program's first thread, instead.
    std::function<void(const ProgramEnd&)> ended;
};

// A program that runs, or has run (program.cpp).
struct Running {
    Thread* first_thread = nullptr; // null: it has not begun
    pid_t process = 0;              // a child of fork has another
    pid_t kernel_thread = 0;        // of the first thread; 0: it moves among several
    pthread_t first_handle{};
    std::atomic<bool> first_has_left{false};       // by pthread_exit, and others run still
    void* first_result = PTHREAD_CANCELED;         // then
    __pthread_unwind_buf_t* first_frame = nullptr; // where its unwinding ends (exit.cpp)
    architecture::ReturnPoint host;
    ProgramEnd end;
};

// Where a symbol is defined. All null: nowhere.
struct Definition {
    Module* module = nullptr;               // and symbol: in a private module
    const SharedLibrary* library = nullptr; // and symbol: in a shared one
    const Elf64_Sym* symbol = nullptr;
    void* address = nullptr;   // of everything but private modules' symbols
    void** variable = nullptr; // a substitute's: where its place is noted

    explicit operator bool() const { return symbol != nullptr || address != nullptr; }
};

class Image {
  public:
    explicit Image(ImageOptions options);
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
    ~Image();

    // Maps, relocates and constructs a library and what it needs, or counts one more use of it.
    // `mode` is that of dlopen.
    Error load_library(const std::string& path, Module*& module, int mode = host_mode);
    // A library by its name, to be found as `user` (may be null) finds what it needs. `module`
    // stays as it is if the library exists, but is not loaded, and RTLD_NOLOAD asks for no more.
    Error find_and_load_library(const std::string& name, const Module* user, Module*& module,
                                int mode = host_mode);
    // The library of a path that the image has; null: it doesn't.
    Module* find_loaded(const std::string& path);
    // Maps and relocates a program. Constructors run when it does (program.hpp).
    Error load_program(const std::string& path);
    Module* program() const { return program_; }
    // Where the variables of its program and libraries are, for any thread. False: something is
    // being loaded or ended just now.
    bool variables(std::vector<Range>& ranges);
    // Ends one use of a library; with the last, it and what only it needs are destructed and
    // unmapped. False: it is not open.
    bool close_library(Module& module);

    // The definition that `asker` would get, a module of the image; that of all, if it is null.
    // `skipped` is not looked into.
    Definition find(const SymbolName& name, SymbolUse use, const Module* asker = nullptr,
                    const Module* skipped = nullptr);
    // Looks from the module after `from` on; with `within` only in it and what it needs.
    Definition find_after(const SymbolName& name, const Module& from);
    Definition find_within(const SymbolName& name, Module& within);
    // Looks into what the process shares.
    Definition find_shared(const SymbolName& name);
    // Where a definition is for the calling thread; calls what chooses functions (IFUNC).
    static void* address_of(const Definition& definition);

    // Runs the constructors of a module, after those of what it needs. Old programs bring a
    // function that runs their own.
    using Constructor = void (*)(int, char**, char**);
    void construct(Module& module, Constructor own = nullptr);
    // Runs what the image wants done at its end: thread-local destructors of the calling thread,
    // exit functions, destructors of modules. Once.
    void destruct(int status);
    // Nothing of that will be done, and what streams hold is not written: the end by _exit or a
    // signal.
    void give_up();
    bool is_destructed() const { return destructed_; }
    const std::vector<Module*>& destructed_modules() const { return destructed_modules_; }
    // Frees what these libraries, which are destructed, keep for their whole life.
    static void free_reserves(std::span<Module* const> modules);

    // Threads (thread.cpp).
    void add_thread(Thread& thread);
    void begin_thread(Thread& thread);
    void remove_thread(Thread& thread);
    // Processor time of all that there are and have been.
    std::uint64_t processor_ns();
    // How many there are beside the calling one.
    std::size_t other_threads();
    template <typename Function>
    void for_threads(Function function) {
        const std::lock_guard guard(threads_lock_);
        for (Thread* thread : threads_) {
            function(*thread);
        }
    }
    // A fork holds the lock of the threads; the child, which has the calling thread only, renews it
    // instead of unlocking.
    void lock_for_fork() { threads_lock_.lock(); }
    void unlock_after_fork() { threads_lock_.unlock(); }
    void renew_locks();
    // A futex that counts the threads that have all but ended.
    std::atomic<std::uint32_t> threads_ended{0};

    ThreadKeys& thread_keys() { return thread_keys_; }
    // Calls the destructors of the calling thread's values of these, as at its end.
    void run_key_destructors();

    const ImageOptions& options() const { return options_; }
    void move_stream(int from, int to);
    void set_input(int descriptor);
    void take_streams();
    Running& running() { return running_; }
    const std::vector<std::unique_ptr<Module>>& modules() const { return modules_; }
    std::recursive_mutex& load_lock() { return load_lock_; }
    ExitFunctions& exit_functions() { return exit_functions_; }
    ExitFunctions& quick_exit_functions() { return quick_exit_functions_; }
    ForkHandlers& fork_handlers() { return fork_handlers_; }
    LibcState& libc_state() { return libc_state_; }

    // The image's owner, for the room above (runtime/process_ranks/process_ranks.hpp).
    std::atomic<void*> owner{nullptr};

    // Arguments of constructors.
    int argument_count = 0;
    char** arguments = nullptr;
    char** environment = nullptr;

  private:
    static constexpr int host_mode = RTLD_NOW | RTLD_GLOBAL;

    Error load(const FilePointer& root, Module*& module, int mode = host_mode);
    static void apply_mode(Module& root, int mode);
    static std::vector<Module*> with_needs(Module& root);
    Definition find_in(std::span<Module* const> modules, const SymbolName& name, SymbolUse use,
                       const Module* skipped);
    std::vector<Module*> seen_by(const Module* asker);
    void bind_undefined();
    std::string plan_key(const ElfFile& root) const;
    Error map_new(const Closure& closure, std::size_t first);
    Error place_tls(Module& module);
    void publish_tls(std::size_t first);
    void take_variables(std::size_t first);
    void discard(std::size_t first);
    void destruct_module(Module& module);
    void remove_unused();

    ImageOptions options_;
    std::recursive_mutex load_lock_;
    std::vector<std::unique_ptr<Module>> modules_;
    std::vector<Module*> constructed_; // in this order
    std::vector<Module*> destructed_modules_;
    Module* program_ = nullptr;
    std::uint64_t tls_bytes_ = 0; // of the reserve, below the thread pointer
    std::atomic<bool> destructed_{false};

    std::mutex threads_lock_;
    std::vector<Thread*> threads_;
    std::uint64_t ended_processor_ns_ = 0; // of threads that are no more
    std::vector<const Module*> tls_modules_;

    Running running_;
    ExitFunctions exit_functions_;
    ExitFunctions quick_exit_functions_;
    ForkHandlers fork_handlers_;
    ThreadKeys thread_keys_;
    LibcState libc_state_;
};

// Ends an image, whose only thread the caller may be; see warren_image_destroy.
Error destroy_image(Image& image);

// Applies all relocations of a module whose needs have been relocated (relocator.cpp). With
// `known`, its symbols are where these say; what is looked up is noted in `found`, if that isn't
// null. With `lazy`, a function that nobody defines is an error only when it is called.
Error relocate(Image& image, Module& module, const std::vector<BoundSymbol>* known,
               std::vector<BoundSymbol>* found, bool lazy = false);

} // namespace warren::image
