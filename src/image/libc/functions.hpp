// The functions that images get in place of the C library's. Each has the C library's meaning, for
// the image of the calling thread instead of the process.
//
// Thread rule: called by images, in their threads, as the C library's.
#pragma once

#include <clocale>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <cwchar>
#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <mqueue.h>
#include <nl_types.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/select.h>
#include <threads.h>
#include <tuple>
#include <unistd.h>
#include <wordexp.h>

struct aiocb;
struct argp;
struct argp_state;
struct gaicb;
struct obstack;
struct option;
struct re_pattern_buffer;
struct rusage;
struct stat;
struct termios;
struct tms;
struct winsize;
// Programs compiled with older headers call this function, because getc_unlocked was a macro.
extern "C" int __underflow(std::FILE* stream); // NOLINT(readability-identifier-naming)

namespace warren::image {
class LibcState;
struct CommandFunctions;
struct SignalFunctions;
struct Thread;
} // namespace warren::image

namespace warren::image::libc {

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
int atexit(void (*function)());
int on_exit(void (*function)(int, void*), void* argument);
void cxa_finalize(void* module);

// Threads (pthread_create.cpp)
int pthread_create(pthread_t* made, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument);
int thrd_create(thrd_t* made, thrd_start_t start, void* argument);
[[noreturn]] void pthread_exit(void* result);
[[noreturn]] void thrd_exit(int result);
int pthread_key_create(pthread_key_t* key, void (*destructor)(void*));
int pthread_key_delete(pthread_key_t key);
void* pthread_getspecific(pthread_key_t key);
int pthread_setspecific(pthread_key_t key, const void* value);
int tss_create(tss_t* key, tss_dtor_t destructor);
void tss_delete(tss_t key);
int tss_set(tss_t key, void* value);
int cxa_thread_atexit_impl(void (*destructor)(void*), void* object, void* module);

// Waits (nanosleep.cpp)
// Whether the caller is a fibre that may park: not on its worker's own stack of signals, which
// nobody else may use meanwhile.
bool is_fibre();
int sched_yield();
void thrd_yield();
unsigned sleep(unsigned seconds);
int usleep(useconds_t microseconds);
int nanosleep(const timespec* time, timespec* left);
int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left);
int thrd_sleep(const timespec* time, timespec* left);
int pthread_join(pthread_t thread, void** result);
[[noreturn]] void end_first_thread();
int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes);
int pthread_getaffinity_np(pthread_t thread, std::size_t bytes, cpu_set_t* set);
int pthread_setaffinity_np(pthread_t thread, std::size_t bytes, const cpu_set_t* set);
int pthread_getschedparam(pthread_t thread, int* policy, sched_param* parameters);
int thrd_join(thrd_t thread, int* result);
int select(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptional, timeval* limit);
int poll(pollfd* descriptors, nfds_t count, int limit_ms);

// Locks (pthread_mutex.cpp)
int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes);
int pthread_mutex_trylock(pthread_mutex_t* mutex);
int pthread_mutex_lock(pthread_mutex_t* mutex);
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time);
int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time);
int pthread_mutex_unlock(pthread_mutex_t* mutex);
int mtx_lock(mtx_t* mutex);
int mtx_timedlock(mtx_t* mutex, const timespec* time);
int mtx_unlock(mtx_t* mutex);
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex);
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* time);
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* time);
int pthread_cond_signal(pthread_cond_t* condition);
int pthread_cond_broadcast(pthread_cond_t* condition);
int cnd_wait(cnd_t* condition, mtx_t* mutex);
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* time);
int cnd_signal(cnd_t* condition);
int cnd_broadcast(cnd_t* condition);
int pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock);
int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time);
int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* time);
int pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time);
int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* time);
int pthread_rwlock_unlock(pthread_rwlock_t* lock);
int sem_wait(sem_t* semaphore);
int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time);
int sem_timedwait(sem_t* semaphore, const timespec* time);
int sem_post(sem_t* semaphore);

// Waits for words (futex.cpp)
int pthread_barrier_wait(pthread_barrier_t* barrier);
int pthread_barrier_destroy(pthread_barrier_t* barrier);
int pthread_once(pthread_once_t* control, void (*function)());
void call_once(once_flag* control, void (*function)());
// syscall: what comes behind the number is as many as the call has.
long syscall(long number, long first, long second, long third, long fourth, long fifth, long sixth);

// Modules (dlopen.cpp, unwinding.cpp)
int dl_iterate_phdr(int (*visit)(dl_phdr_info*, std::size_t, void*), void* data);
int find_object(void* address, dl_find_object* found);
void undefined_function();
void* dlopen(const char* name, int flags);
void* dlsym(void* handle, const char* name);
void* dlvsym(void* handle, const char* name, const char* version);
int dlclose(void* handle);
char* dlerror();
int dladdr(const void* address, Dl_info* info);
int dladdr1(const void* address, Dl_info* info, void** extra, int flags);
int dlinfo(void* handle, int request, void* answer);

// Messages that end a program (failures.cpp)
[[noreturn]] void assert_fail(const char* expression, const char* file, unsigned line,
                              const char* function);
[[noreturn]] void stack_chk_fail();
[[noreturn]] void chk_fail();
[[noreturn]] void err(int status, const char* format, ...);
[[noreturn]] void errx(int status, const char* format, ...);
void warn(const char* format, ...);
void warnx(const char* format, ...);
void error(int status, int error, const char* format, ...);

[[noreturn]] void assert_perror_fail(int error, const char* file, unsigned line,
                                     const char* function);
[[noreturn]] void old_assert(const char* expression, const char* file, int line);
void vwarn(const char* format, va_list arguments);
void vwarnx(const char* format, va_list arguments);
[[noreturn]] void verr(int status, const char* format, va_list arguments);
[[noreturn]] void verrx(int status, const char* format, va_list arguments);
void error_at_line(int status, int error, const char* file, unsigned line, const char* format, ...);
void herror(const char* text);
void psignal(int signal, const char* text);

// Arguments (argp.cpp)
int argp_parse(const argp* given, int count, char** arguments, unsigned flags, int* next,
               void* input);
void argp_help(const argp* given, std::FILE* stream, unsigned flags, char* name);
void argp_state_help(const argp_state* state, std::FILE* stream, unsigned flags);
void argp_usage(const argp_state* state);
void argp_error(const argp_state* state, const char* format, ...);
void argp_failure(const argp_state* state, int status, int error, const char* format, ...);

// The log (syslog.cpp)
void openlog(const char* name, int options, int facility);
void closelog();
int setlogmask(int mask);
void syslog(int priority, const char* format, ...);
void syslog_chk(int priority, int level, const char* format, ...);
void vsyslog(int priority, const char* format, va_list arguments);
void vsyslog_chk(int priority, int level, const char* format, va_list arguments);

// Obstacks (obstack.cpp)
int begin_obstack(obstack* stack, int bytes, int alignment, void* (*allocate)(long),
                  void (*release)(void*));
int begin_obstack_1(obstack* stack, int bytes, int alignment, void* (*allocate)(void*, long),
                    void (*release)(void*, void*), void* argument);
void obstack_newchunk(obstack* stack, int bytes);
// The first obstack_alloc_failed_handler.
[[noreturn]] void memory_exhausted();

// Mathematics (lgamma.cpp)
double lgamma(double value);
float lgammaf(float value);
long double lgammal(long double value);
// C's _Float128 has this name in C++, for gcc and clang.
#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 Float128;
#else
using Float128 = long double;
#endif
Float128 lgammaf128(Float128 value);

// Options (getopt.cpp)
int getopt(int count, char* const* arguments, const char* letters);
// Options end where operands begin.
int posix_getopt(int count, char* const* arguments, const char* letters);
int getopt_long(int count, char* const* arguments, const char* letters, const option* longs,
                int* which);
int getopt_long_only(int count, char* const* arguments, const char* letters, const option* longs,
                     int* which);

// Random numbers, strtok, times (rand.cpp)
long random();
int rand();
// Conversions added to printf would be all images', and stay when this one has ended.
int register_printf_function();

void srand(unsigned seed);
char* initstate(unsigned seed, char* memory, std::size_t bytes);
char* setstate(char* memory);
double drand48();
double erand48(unsigned short* words);
long lrand48();
long nrand48(unsigned short* words);
long mrand48();
long jrand48(unsigned short* words);
void srand48(long seed);
unsigned short* seed48(unsigned short* words);
void lcong48(unsigned short* words);
char* strtok(char* text, const char* separators);
std::tm* gmtime(const std::time_t* time);
char* asctime(const std::tm* time);

// Times by the time zone (tzset.cpp)
// Before there are threads.
void prepare_time_zone();
// An entry of the process's environment as it was before that, which may be none (null).
char* given_entry(char* entry);
// Around a fork, so that nobody else has it in the child.
void lock_time_zone();
void unlock_time_zone();
void tzset();
std::tm* localtime(const std::time_t* time);
std::tm* localtime_r(const std::time_t* time, std::tm* result);
std::time_t mktime(std::tm* time);
char* ctime(const std::time_t* time);
char* ctime_r(const std::time_t* time, char* text);
std::size_t strftime(char* text, std::size_t bytes, const char* format, const std::tm* time);
std::size_t strftime_l(char* text, std::size_t bytes, const char* format, const std::tm* time,
                       locale_t locale);
std::size_t wcsftime(wchar_t* text, std::size_t count, const wchar_t* format, const std::tm* time);
std::size_t wcsftime_l(wchar_t* text, std::size_t count, const wchar_t* format, const std::tm* time,
                       locale_t locale);
char* strptime(const char* text, const char* format, std::tm* time);
char* strptime_l(const char* text, const char* format, std::tm* time, locale_t locale);
int getdate_r(const char* text, std::tm* time);
std::tm* getdate(const char* text);

// Locks of files (fcntl.cpp)
// The calling image is about to close it.
void before_closing(int descriptor);
void before_closing_range(unsigned first, unsigned last);
int close(int descriptor);
int close_range(unsigned first, unsigned last, int flags);
void closefrom(int first);
int dup2(int from, int to);
int dup3(int from, int to, int flags);
int fcntl(int descriptor, int command, ...);
int fcntl_with(int descriptor, int command, void* argument);
int lockf(int descriptor, int command, off_t bytes);

// Processor time (clock.cpp)
int clock_gettime(clockid_t clock, timespec* time);
std::clock_t clock();
int clock_getcpuclockid(pid_t process, clockid_t* clock);
int getrusage(int who, rusage* usage);
std::clock_t times(tms* result);

// The program as a process (proc_self.cpp)
int open(const char* path, int flags, ...);
int open_2(const char* path, int flags);
int openat(int folder, const char* path, int flags, ...);
int openat_2(int folder, const char* path, int flags);
int creat(const char* path, mode_t mode);
void place_files_by(int (*place)(int descriptor)); // null: each keeps the number that it has got
std::FILE* fopen(const char* path, const char* mode);
ssize_t readlink(const char* path, char* text, std::size_t bytes);
ssize_t readlink_chk(const char* path, char* text, std::size_t bytes, std::size_t room);
ssize_t readlinkat(int folder, const char* path, char* text, std::size_t bytes);
ssize_t readlinkat_chk(int folder, const char* path, char* text, std::size_t bytes,
                       std::size_t room);
char* realpath(const char* path, char* resolved);
char* realpath_chk(const char* path, char* resolved, std::size_t room);
char* canonicalize_file_name(const char* path);
int access(const char* path, int mode);
int stat(const char* path, struct stat* status);
int stat_link(const char* path, struct stat* status); // lstat
int stat_of_version(int version, const char* path, struct stat* status);
int stat_link_of_version(int version, const char* path, struct stat* status);
int truncate(const char* path, off_t bytes);
DIR* opendir(const char* path);
int scandir(const char* path, dirent*** found, int (*selects)(const dirent*),
            int (*compare)(const dirent**, const dirent**));
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags);
int fchmodat(int folder, const char* path, mode_t mode, int flags);
int lchmod(const char* path, mode_t mode);
int chmod(const char* path, mode_t mode);
unsigned long getauxval(unsigned long type);
// prctl: what comes behind the option is as much as that has.
int prctl(int option, unsigned long first, unsigned long second, unsigned long third,
          unsigned long fourth);
int pthread_setname_np(pthread_t thread, const char* name);
int pthread_getname_np(pthread_t thread, char* name, std::size_t bytes);

// Threads of the C library's (sigevent.cpp)
int timer_create(clockid_t clock, sigevent* event, timer_t* timer);
int timer_delete(timer_t timer);
// All of the image's, which ends.
void delete_timers(LibcState& state);
// Around a fork, so that nobody else has the lock of the notices in the child.
void aim_signals_by(const SignalFunctions& functions); // image/host_interface.hpp
void lock_notices();
void unlock_notices();
int aio_read(aiocb* request);
int aio_write(aiocb* request);
int aio_fsync(int operation, aiocb* request);
int aio_suspend(const aiocb* const* requests, int count, const timespec* timeout);
int aio_cancel(int file, aiocb* request);
int lio_listio(int mode, aiocb* const* requests, int count, sigevent* event);
int mq_notify(mqd_t queue, const sigevent* event);
int mq_close(mqd_t queue);
int getaddrinfo_a(int mode, gaicb** requests, int count, sigevent* event);

// Patterns (regex.cpp)
unsigned long re_set_syntax(unsigned long syntax);
const char* re_compile_pattern(const char* text, std::size_t bytes, re_pattern_buffer* pattern);
char* re_comp(const char* text);
int re_exec(const char* text);
void free_pattern(re_pattern_buffer* pattern);

// The environment (getenv.cpp)
char* getenv(const char* name);
int setenv(const char* name, const char* value, int overwrite);
int unsetenv(const char* name);
int putenv(char* entry);
int clearenv();

// The locale (setlocale.cpp)
char* setlocale(int category, const char* names);
locale_t uselocale(locale_t wanted);
locale_t duplocale(locale_t given);
// The calling thread, which begins or leaves its image, has the image's locale until the end.
void begin_locale(Thread& thread);
void end_locale(Thread& thread);

// Other processes (fork.cpp)
pid_t fork();
int forkpty(int* master, char* name, const termios* attributes, const winsize* size);
int daemon(int keeps_directory, int keeps_streams);
int signalfd(int descriptor, const sigset_t* set, int flags);
int register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* module);
int pthread_atfork(void (*prepare)(), void (*parent)(), void (*child)());
int system(const char* command);
std::FILE* popen(const char* command, const char* mode);
int pclose(std::FILE* stream);
// Tells the host of commands (image/host_interface.hpp); once, before there are images.
void watch_exec(void (*prepare)());
void run_commands_by(const CommandFunctions& functions); // image/host_interface.hpp
// execve of a path of the program's, after what the host has to do. Allocates nothing.
int execute(const char* path, char* const* arguments, char* const* environment);
int execv(const char* path, char* const* arguments);
int execve(const char* path, char* const* arguments, char* const* its_environment);
int execveat(int folder, const char* path, char* const* arguments, char* const* its_environment,
             int flags);
int fexecve(int file, char* const* arguments, char* const* its_environment);
int execvp(const char* name, char* const* arguments);
int execvpe(const char* name, char* const* arguments, char* const* its_environment);
void exec_by_path(const char* name, char* const* arguments, char* const* environment);
int posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments,
                 char* const* environment);
char* tempnam(const char* folder, const char* prefix);
int wordexp(const char* words, wordexp_t* result, int flags);
nl_catd catopen(const char* name, int flag);
int glob(const char* pattern, int flags, int (*failed)(const char*, int), glob_t* found);
char** backtrace_symbols(void* const* addresses, int count);
void backtrace_symbols_fd(void* const* addresses, int count, int file);
int execl(const char* path, const char* first, ...);
int execlp(const char* name, const char* first, ...);
int execle(const char* path, const char* first, ...);

// Streams (stdio.cpp)
int printf(const char* format, ...);
int printf_chk(int level, const char* format, ...);
int vprintf(const char* format, va_list arguments);
int vprintf_chk(int level, const char* format, va_list arguments);
int wprintf(const wchar_t* format, ...);
int wprintf_chk(int level, const wchar_t* format, ...);
int vwprintf(const wchar_t* format, va_list arguments);
int vwprintf_chk(int level, const wchar_t* format, va_list arguments);
int puts(const char* text);
int putchar(int character);
std::wint_t putwchar(wchar_t character);
void perror(const char* text);
int getchar();
std::wint_t getwchar();
char* gets(char* text);
char* gets_chk(char* text, std::size_t bytes);
int scanf(const char* format, ...);
int vscanf(const char* format, va_list arguments);
int wscanf(const wchar_t* format, ...);
int vwscanf(const wchar_t* format, va_list arguments);
// The stream is the image's from now on.
std::FILE* keep_stream(std::FILE* stream);
std::FILE* fdopen(int descriptor, const char* mode);
std::FILE* tmpfile();
std::FILE* freopen(const char* path, const char* mode, std::FILE* stream);
std::FILE* fmemopen(void* memory, std::size_t bytes, const char* mode);
std::FILE* open_memstream(char** text, std::size_t* bytes);
std::FILE* open_wmemstream(wchar_t** text, std::size_t* count);
std::FILE* fopencookie(void* cookie, const char* mode, cookie_io_functions_t functions);
int fclose(std::FILE* stream);
int fflush(std::FILE* stream);
int fflush_unlocked(std::FILE* stream);
int flush_all();
void flushlbf();
int fcloseall();
int fscanf(std::FILE* stream, const char* format, ...);
int fwscanf(std::FILE* stream, const wchar_t* format, ...);
char* fgets_chk(char* text, std::size_t room, int bytes, std::FILE* stream);
wchar_t* fgetws_chk(wchar_t* text, std::size_t room, int count, std::FILE* stream);
std::size_t fread_chk(void* data, std::size_t room, std::size_t bytes, std::size_t count,
                      std::FILE* stream);
// The stream is about to be read.
void before_reading(std::FILE* stream);

// The C library's function that reads a stream, after before_reading.
template <auto function>
struct Reader;
template <typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct Reader<function> {
    static Result call(Arguments... arguments) {
        before_reading(std::get<std::FILE*>(std::tuple(arguments...)));
        return function(arguments...);
    }
};

} // namespace warren::image::libc
