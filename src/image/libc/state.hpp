// LibcState: what the C library keeps one of for a process, and an image has of its own: where
// option parsing stands, the generators of random numbers, the buffers that functions return, the
// environment, the standard streams, the locale.
//
// Variables that programs see (optind, stdout, environ, …) have a place: in here, or in the program
// when that has a copy of the variable (COPY relocation). Whoever reads them here goes by the
// place. Thread rule: its image's threads; what the C library makes safe for threads (the
// environment, random numbers, streams) is so here too, the rest isn't there either.
#pragma once

#include <array>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <syslog.h>
#include <vector>

#include "image/libc/file_locks.hpp"
#include "image/libc/notice.hpp"
#include "image/libc/results.hpp"

struct argp_state;
struct re_pattern_buffer;

namespace warren::image {

// The variables that images have in place of the C library's.
enum class Variable : std::uint8_t {
    optarg,
    optind,
    opterr,
    optopt,
    environment,
    standard_input,
    standard_output,
    standard_error,
    program_path,
    program_name,
    signgam,
    timezone,
    daylight,
    tzname,
    getdate_err,
    error_message_count,
    error_one_per_line,
    error_print_progname,
    obstack_alloc_failed_handler,
    obstack_exit_failure,
    re_syntax_options,
    argp_program_version,
    argp_program_version_hook,
    argp_program_bug_address,
    argp_err_exit_status,
    count,
};
inline constexpr auto variable_count = static_cast<std::size_t>(Variable::count);

// Which variable a name means, if any.
bool find_variable(const char* name, Variable& variable);
// Their names, by number; null behind the last.
const char* variable_name(std::size_t number);

// Where getopt is within the arguments, beside the variables that programs see (getopt.cpp).
struct OptionPlace {
    int first_operand = 0; // operands that were passed over lie in [first_operand, last_operand)
    int last_operand = 0;
    char* next = nullptr; // the next letter of a group of options
    bool begun = false;
};

// Settings of openlog and setlogmask.
struct LogSettings {
    const char* name = nullptr; // null: the program's
    int options = 0;
    int facility = LOG_USER;
    int mask = 0xff;
};

// The line that error_at_line named last.
struct ErrorPlace {
    std::string file;
    unsigned line = 0;
    bool known = false;
};

// The variables that programs see and that have no other place, with the C library's first values.
struct OwnVariables {
    int signgam = 0;
    long timezone = 0;
    int daylight = 0;
    char* tzname[2] = {};
    int getdate_err = 0;
    unsigned error_message_count = 0;
    int error_one_per_line = 0;
    void (*error_print_progname)() = nullptr;
    void (*obstack_alloc_failed_handler)() = nullptr; // set with the others (state.cpp)
    int obstack_exit_failure = 1;
    unsigned long re_syntax_options = 0;
    const char* argp_program_version = nullptr;
    void (*argp_program_version_hook)(std::FILE*, argp_state*) = nullptr;
    const char* argp_program_bug_address = nullptr;
    int argp_err_exit_status = 64;
};

// The streams of an image (stdio.cpp).
struct Descriptors {
    int input = 0; // -1: nothing to be read
    int output = 1;
    int error = 2;
    bool own_table = false; // a program's first thread will have these as 0, 1 and 2
};

enum class WhichStreams : std::uint8_t { all, line_buffered };

class LibcState {
  public:
    LibcState();
    LibcState(const LibcState&) = delete;
    LibcState& operator=(const LibcState&) = delete;
    ~LibcState();

    // Opens the standard streams.
    void open_streams(const Descriptors& descriptors);
    // Writes what streams hold, as fflush(nullptr) does. 0, or EOF and errno.
    int flush_streams(WhichStreams which);
    // Like flush_streams() for all streams, which are unbuffered from now on.
    int unbuffer_streams();
    // Flushes as the end of a process does: without waiting for a thread that uses a stream.
    void flush_at_end();
    // Whether it is one that open_streams has opened; its end, after which it can still be named.
    bool is_standard(const std::FILE* stream) const;
    static int close_standard(std::FILE* stream);
    // Around a fork, so that the child finds nothing half done.
    void lock_for_fork();
    void unlock_after_fork();
    void renew_locks(); // instead, in the child
    // The streams that use the descriptor use another one.
    void move_stream(int from, int to);
    void set_input(int descriptor);
    // The standard streams that are open use 0, 1 and 2.
    void take_streams();
    // Forgets it, as a process does that is killed.
    void drop_output();
    // Gives the image its arguments' and environment's names.
    void begin(char** arguments, char** environment);

    // The place of a variable; the owner of a COPY relocation changes it.
    void*& place(Variable variable) { return places_[static_cast<std::size_t>(variable)]; }
    template <typename T>
    T& value(Variable variable) {
        return *static_cast<T*>(place(variable));
    }
    std::FILE* output() { return value<std::FILE*>(Variable::standard_output); }
    std::FILE* input() { return value<std::FILE*>(Variable::standard_input); }
    std::FILE* error() { return value<std::FILE*>(Variable::standard_error); }
    // The descriptor of the standard error that the image began with; 2 if that is closed.
    int error_descriptor() const;
    const char* program_path() { return value<char*>(Variable::program_path); }
    const char* program_name() { return value<char*>(Variable::program_name); }

    // The state of the calling thread's image; of a stand-in for threads of none.
    static LibcState& current();

    OptionPlace options;
    ErrorPlace last_error;
    LogSettings log;
    // random and its kin; the C library's own algorithm and first state.
    std::mutex random_lock;
    random_data random{};
    std::array<char, 128> random_state{};
    drand48_data random48{};
    // Results of functions that return pointers.
    char* string_place = nullptr; // strtok
    std::tm time{};
    std::optional<std::string> zone; // TZ when it was last looked for (tzset.cpp)
    std::tm date{};                  // getdate
    // Made when one is asked for: they take some pages.
    Results& results();
    std::unique_ptr<re_pattern_buffer, void (*)(re_pattern_buffer*)> pattern; // re_comp
    std::array<char, 128> time_text{};
    // The environment: strings that setenv made.
    std::recursive_mutex environment_lock;
    std::set<std::unique_ptr<char[]>> environment_strings;
    std::unique_ptr<char*[]> first_environment; // which main's argument is, too
    std::unique_ptr<char*[]> environment_list;  // after the first change
    // The locale (setlocale.cpp): of threads that the image makes, null until it has one; and
    // what setlocale returned.
    locale_t locale = nullptr;
    std::vector<locale_t> locales; // all that there were: threads may use them
    std::array<std::string, 13> locale_names;
    std::string all_locale_names = "C";
    // Timers whose threads the C library makes, and the last of those that are no more.
    std::mutex timers_lock;
    std::shared_ptr<NoticeQueue> notices; // when the image has one
    std::map<timer_t, std::unique_ptr<Notice>> timers;
    std::deque<std::unique_ptr<Notice>> deleted_timers;
    FileLocks file_locks;
    // The name that the program has given its first thread, if any.
    std::mutex thread_name_lock;
    std::string thread_name;
    // Streams that the program has opened.
    std::recursive_mutex streams_lock; // a stream's own functions may open others
    std::vector<std::FILE*> streams;
    std::set<std::FILE*> memory_streams;  // of open_memstream and open_wmemstream
    std::map<std::FILE*, pid_t> commands; // of popen

  private:
    // With the standard ones; the newest first, as the C library flushes them.
    std::vector<std::FILE*> open_streams();
    std::vector<std::FILE*> list_streams(); // under the lock

    std::once_flag results_made_;
    std::unique_ptr<Results> results_;

    std::array<void*, variable_count> places_{};
    // The values, until a program has copies.
    char* optarg_ = nullptr;
    int optind_ = 1;
    int opterr_ = 1;
    int optopt_ = '?';
    char** environment_ = nullptr;
    std::FILE* streams_[3] = {};
    int null_descriptor_ = -1; // the input's, when there is nothing to be read
    OwnVariables variables_;
    char* program_path_ = nullptr;
    char* program_name_ = nullptr;
};

} // namespace warren::image
