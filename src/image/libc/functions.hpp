// The functions that images get in place of the C library's. Each has the C library's meaning, for
// the image of the calling thread instead of the process.
//
// Thread rule: called by images, in their threads, as the C library's.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <cwchar>
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/select.h>
#include <threads.h>
#include <unistd.h>

struct option;

namespace warren::image::inside {

// The beginning and the end of a program (exit.cpp)
int libc_start_main(int (*main)(int, char**, char**), int argument_count, char** arguments,
                    void (*init)(int, char**, char**), void (*fini)(), void (*loader_fini)(),
                    void* stack_end);
[[noreturn]] void exit(int status);
[[noreturn]] void immediate_exit(int status);
[[noreturn]] void quick_exit(int status);
[[noreturn]] void abort();
int cxa_atexit(void (*function)(void*), void* argument, void* module);
int cxa_at_quick_exit(void (*function)(void*), void* module);
int plain_atexit(void (*function)());
int plain_on_exit(void (*function)(int, void*), void* argument);
void cxa_finalize(void* module);

// Threads (pthread_create.cpp)
int create(pthread_t* made, const pthread_attr_t* attributes, void* (*start)(void*),
           void* argument);
int create_c11(thrd_t* made, thrd_start_t start, void* argument);
[[noreturn]] void exit_thread(void* result);
int create_key(pthread_key_t* key, void (*destructor)(void*));
int delete_key(pthread_key_t key);
void delete_key_c11(tss_t key);
int cxa_thread_atexit(void (*destructor)(void*), void* object, void* module);

// Waits (nanosleep.cpp)
// Whether the caller is a fibre that may park: not on its worker's own stack of signals, which
// nobody else may use meanwhile.
bool is_fibre();
int yield_processor();
void yield_c11();
unsigned sleep_seconds(unsigned seconds);
int sleep_microseconds(useconds_t microseconds);
int sleep_time(const timespec* time, timespec* left);
int sleep_by_clock(clockid_t clock, int flags, const timespec* time, timespec* left);
int sleep_c11(const timespec* time, timespec* left);
int join_thread(pthread_t thread, void** result);
int join_c11(thrd_t thread, int* result);
int select_descriptors(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional,
                       timeval* limit);
int poll_descriptors(pollfd* descriptors, nfds_t count, int limit_ms);

// Locks (pthread_mutex.cpp)
int init_mutex(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes);
int try_to_lock_mutex(pthread_mutex_t* mutex);
int lock_mutex(pthread_mutex_t* mutex);
int lock_mutex_by_clock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time);
int lock_mutex_till(pthread_mutex_t* mutex, const timespec* time);
int unlock_mutex(pthread_mutex_t* mutex);
int lock_c11(mtx_t* mutex);
int lock_c11_till(mtx_t* mutex, const timespec* time);
int unlock_c11(mtx_t* mutex);
int wait_condition(pthread_cond_t* condition, pthread_mutex_t* mutex);
int wait_condition_by_clock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                            const timespec* time);
int wait_condition_till(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* time);
int signal_condition(pthread_cond_t* condition);
int broadcast_condition(pthread_cond_t* condition);
int wait_condition_c11(cnd_t* condition, mtx_t* mutex);
int wait_condition_c11_till(cnd_t* condition, mtx_t* mutex, const timespec* time);
int signal_condition_c11(cnd_t* condition);
int broadcast_condition_c11(cnd_t* condition);
int read_lock(pthread_rwlock_t* lock);
int try_to_read_lock(pthread_rwlock_t* lock);
int read_lock_by_clock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time);
int read_lock_till(pthread_rwlock_t* lock, const timespec* time);
int write_lock(pthread_rwlock_t* lock);
int write_lock_by_clock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time);
int write_lock_till(pthread_rwlock_t* lock, const timespec* time);
int unlock_read_write(pthread_rwlock_t* lock);
int wait_semaphore(sem_t* semaphore);
int wait_semaphore_by_clock(sem_t* semaphore, clockid_t clock, const timespec* time);
int wait_semaphore_till(sem_t* semaphore, const timespec* time);
int post_semaphore(sem_t* semaphore);

// Waits for words (futex.cpp)
int wait_barrier(pthread_barrier_t* barrier);
int destroy_barrier(pthread_barrier_t* barrier);
int call_once(pthread_once_t* control, void (*function)());
void call_once_c11(once_flag* control, void (*function)());
// syscall: what comes behind the number is as many as the call has.
long system_call(long number, long first, long second, long third, long fourth, long fifth,
                 long sixth);

// Modules (dlopen.cpp, unwinding.cpp)
int iterate_modules(int (*visit)(dl_phdr_info*, std::size_t, void*), void* data);
int find_object(void* address, dl_find_object* found);
void* open_module(const char* name, int flags);
void* symbol_of_module(void* handle, const char* name);
void* versioned_symbol_of_module(void* handle, const char* name, const char* version);
int close_module(void* handle);
char* module_error();
int describe_address(const void* address, Dl_info* info);
int describe_address_further(const void* address, Dl_info* info, void** extra, int flags);
int inspect_module(void* handle, int request, void* answer);

// Messages that end a program (failures.cpp)
[[noreturn]] void assertion_failed(const char* expression, const char* file, unsigned line,
                                   const char* function);
[[noreturn]] void stack_smashed();
[[noreturn]] void overflow_detected();
[[noreturn]] void fail_with_error(int status, const char* format, ...);
[[noreturn]] void fail_without_error(int status, const char* format, ...);
void warn_with_error(const char* format, ...);
void warn_without_error(const char* format, ...);
void report_error(int status, int error, const char* format, ...);

// Options (getopt.cpp)
int get_option(int count, char* const* arguments, const char* letters);
int get_long_option(int count, char* const* arguments, const char* letters, const option* longs,
                    int* which);
int get_long_option_only(int count, char* const* arguments, const char* letters,
                         const option* longs, int* which);

// Random numbers, strtok, times (rand.cpp)
long random_number();
int short_random_number();
// Conversions added to printf would be all images', and stay when this one has ended.
int refuse_conversion();

void seed_random(unsigned seed);
char* begin_random_state(unsigned seed, char* memory, std::size_t bytes);
char* set_random_state(char* memory);
double drand48_number();
double erand48_number(unsigned short* words);
long lrand48_number();
long nrand48_number(unsigned short* words);
long mrand48_number();
long jrand48_number(unsigned short* words);
void seed_random48(long seed);
unsigned short* set_random48(unsigned short* words);
void set_random48_parameters(unsigned short* words);
char* next_token(char* text, const char* separators);
std::tm* local_time(const std::time_t* time);
std::tm* universal_time(const std::time_t* time);
char* time_text(const std::tm* time);
char* local_time_text(const std::time_t* time);

// The environment (getenv.cpp)
char* getenv_of(const char* name);
int set_environment(const char* name, const char* value, int overwrite);
int unset_environment(const char* name);
int put_environment(char* entry);
int clear_environment();

// The locale (setlocale.cpp)
char* set_locale(int category, const char* names);

// Other processes (fork.cpp)
int run_command(const char* command);
std::FILE* open_command(const char* command, const char* mode);
int close_command(std::FILE* stream);
int execute(const char* path, char* const* arguments);
int execute_with(const char* path, char* const* arguments, char* const* its_environment);
int execute_found(const char* name, char* const* arguments);
int execute_found_with(const char* name, char* const* arguments, char* const* its_environment);
int execute_list(const char* path, const char* first, ...);
int execute_found_list(const char* name, const char* first, ...);
int execute_list_with(const char* path, const char* first, ...);

// Streams (stdio.cpp)
int print(const char* format, ...);
int print_checked(int level, const char* format, ...);
int print_list(const char* format, va_list arguments);
int print_list_checked(int level, const char* format, va_list arguments);
int print_wide(const wchar_t* format, ...);
int put_line(const char* text);
int put_character(int character);
int put_wide_character(wchar_t character);
void print_error(const char* text);
int get_character();
int scan(const char* format, ...);
int scan_list(const char* format, va_list arguments);
std::FILE* open_stream(const char* path, const char* mode);
std::FILE* open_descriptor(int descriptor, const char* mode);
std::FILE* open_temporary();
int close_stream(std::FILE* stream);
int close_all_streams();

} // namespace warren::image::inside
