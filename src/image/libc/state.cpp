#include "image/libc/state.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <iterator>
#include <memory>
#include <stdio_ext.h>
#include <unistd.h>

#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"

namespace warren::image {

namespace {

struct NamedVariable {
    const char* name;
    Variable variable;
};

constexpr NamedVariable variables[] = {
    {"optarg", Variable::optarg},
    {"optind", Variable::optind},
    {"opterr", Variable::opterr},
    {"optopt", Variable::optopt},
    {"environ", Variable::environment},
    {"_environ", Variable::environment},
    {"__environ", Variable::environment},
    {"stdin", Variable::standard_input},
    {"stdout", Variable::standard_output},
    {"stderr", Variable::standard_error},
    {"program_invocation_name", Variable::program_path},
    {"__progname_full", Variable::program_path},
    {"program_invocation_short_name", Variable::program_name},
    {"__progname", Variable::program_name},
    {"signgam", Variable::signgam},
    {"timezone", Variable::timezone},
    {"daylight", Variable::daylight},
    {"tzname", Variable::tzname},
    {"getdate_err", Variable::getdate_err},
    {"error_message_count", Variable::error_message_count},
    {"error_one_per_line", Variable::error_one_per_line},
    {"error_print_progname", Variable::error_print_progname},
    {"obstack_alloc_failed_handler", Variable::obstack_alloc_failed_handler},
    {"obstack_exit_failure", Variable::obstack_exit_failure},
    {"re_syntax_options", Variable::re_syntax_options},
    {"argp_program_version", Variable::argp_program_version},
    {"argp_program_version_hook", Variable::argp_program_version_hook},
    {"argp_program_bug_address", Variable::argp_program_bug_address},
    {"argp_err_exit_status", Variable::argp_err_exit_status},
    {"__signgam", Variable::signgam},
    {"__timezone", Variable::timezone},
    {"__daylight", Variable::daylight},
    {"__tzname", Variable::tzname},
};

} // namespace

bool find_variable(const char* name, Variable& variable) {
    for (const NamedVariable& named : variables) {
        if (std::strcmp(named.name, name) == 0) {
            variable = named.variable;
            return true;
        }
    }
    return false;
}

const char* variable_name(std::size_t number) {
    return number < std::size(variables) ? variables[number].name : nullptr;
}

LibcState::LibcState() : pattern(nullptr, libc::free_pattern) {
    place(Variable::optarg) = &optarg_;
    place(Variable::optind) = &optind_;
    place(Variable::opterr) = &opterr_;
    place(Variable::optopt) = &optopt_;
    place(Variable::environment) = &environment_;
    place(Variable::standard_input) = &streams_[0];
    place(Variable::standard_output) = &streams_[1];
    place(Variable::standard_error) = &streams_[2];
    place(Variable::program_path) = &program_path_;
    place(Variable::program_name) = &program_name_;
    place(Variable::signgam) = &variables_.signgam;
    place(Variable::timezone) = &variables_.timezone;
    place(Variable::daylight) = &variables_.daylight;
    place(Variable::tzname) = &variables_.tzname;
    place(Variable::getdate_err) = &variables_.getdate_err;
    place(Variable::error_message_count) = &variables_.error_message_count;
    place(Variable::error_one_per_line) = &variables_.error_one_per_line;
    place(Variable::error_print_progname) = &variables_.error_print_progname;
    place(Variable::obstack_alloc_failed_handler) = &variables_.obstack_alloc_failed_handler;
    place(Variable::obstack_exit_failure) = &variables_.obstack_exit_failure;
    place(Variable::re_syntax_options) = &variables_.re_syntax_options;
    place(Variable::argp_program_version) = &variables_.argp_program_version;
    place(Variable::argp_program_version_hook) = &variables_.argp_program_version_hook;
    place(Variable::argp_program_bug_address) = &variables_.argp_program_bug_address;
    place(Variable::argp_err_exit_status) = &variables_.argp_err_exit_status;
    variables_.obstack_alloc_failed_handler = libc::memory_exhausted;
    std::copy_n(::tzname, 2, variables_.tzname);
    begin(nullptr, environ);
    program_path_ = program_invocation_name;
    program_name_ = program_invocation_short_name;
    locale_names.fill("C");
    initstate_r(1, random_state.data(), random_state.size(), &random); // the generator's default
}

LibcState::~LibcState() {
    for (std::FILE* stream : streams) {
        std::fclose(stream);
    }
    for (std::FILE* stream : streams_) {
        if (stream != nullptr) {
            std::fflush(stream);
            stream->_fileno =
                fileno(stream) == null_descriptor_ ? null_descriptor_ : -1; // not ours
            std::fclose(stream);
        }
    }
    for (const locale_t one : locales) {
        freelocale(one);
    }
}

void LibcState::open_streams(const Descriptors& descriptors) {
    const bool own = descriptors.own_table;
    int input = own ? STDIN_FILENO : descriptors.input;
    if (input < 0) {
        input = null_descriptor_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    streams_[0] = ::fdopen(input, "r");
    streams_[1] = ::fdopen(own ? STDOUT_FILENO : descriptors.output, "w");
    streams_[2] = ::fdopen(own ? STDERR_FILENO : descriptors.error, "w");
    if (streams_[1] != nullptr && !own && descriptors.output == STDOUT_FILENO) {
        // Others write there too: line by line, so that lines don't mix.
        std::setvbuf(streams_[1], nullptr, _IOLBF, BUFSIZ);
    }
    if (streams_[2] != nullptr) {
        std::setvbuf(streams_[2], nullptr, _IONBF, 0);
    }
}

std::vector<std::FILE*> LibcState::open_streams() {
    const std::lock_guard guard(streams_lock);
    return list_streams();
}

std::vector<std::FILE*> LibcState::list_streams() {
    std::vector<std::FILE*> open(streams.rbegin(), streams.rend());
    for (std::FILE* stream : {error(), output(), streams_[2], streams_[1]}) {
        if (stream != nullptr && std::find(open.begin(), open.end(), stream) == open.end()) {
            open.push_back(stream);
        }
    }
    return open;
}

// The lock of the list is held meanwhile, as in the C library: nobody closes a stream. Memory
// streams tell their size, too, which POSIX asks for and the C library forgets.
int LibcState::flush_streams(WhichStreams which) {
    const std::lock_guard guard(streams_lock);
    int result = 0;
    for (std::FILE* stream : open_streams()) {
        flockfile(stream);
        const bool pending = __fpending(stream) > 0 || memory_streams.contains(stream);
        if (pending && (which == WhichStreams::all || __flbf(stream) != 0) &&
            fflush_unlocked(stream) != 0) {
            result = EOF;
        }
        funlockfile(stream);
    }
    return result;
}

int LibcState::unbuffer_streams() {
    const std::lock_guard guard(streams_lock);
    const int result = flush_streams(WhichStreams::all);
    std::vector<std::FILE*> all = open_streams();
    all.push_back(input());
    for (std::FILE* stream : all) {
        if (stream != nullptr) {
            std::setvbuf(stream, nullptr, _IONBF, 0);
        }
    }
    return result;
}

// Who has the lock of the list may wait for a stream for ever.
void LibcState::flush_at_end() {
    const std::unique_lock guard(streams_lock, std::try_to_lock);
    for (std::FILE* stream : list_streams()) {
        const bool locked = ftrylockfile(stream) == 0;
        if (__fpending(stream) > 0) {
            fflush_unlocked(stream);
        }
        if (locked) {
            funlockfile(stream);
        }
    }
}

void LibcState::lock_for_fork() {
    streams_lock.lock();
    environment_lock.lock();
    random_lock.lock();
    timers_lock.lock();
    file_locks.lock_for_fork();
}

void LibcState::unlock_after_fork() {
    file_locks.unlock_after_fork();
    timers_lock.unlock();
    random_lock.unlock();
    environment_lock.unlock();
    streams_lock.unlock();
}

// A lock knows who holds it, and that is another thread now.
void LibcState::renew_locks() {
    file_locks.renew_locks();
    std::construct_at(&timers_lock);
    std::construct_at(&random_lock);
    std::construct_at(&environment_lock);
    std::construct_at(&streams_lock);
}

bool LibcState::is_standard(const std::FILE* stream) const {
    return std::find(std::begin(streams_), std::end(streams_), stream) != std::end(streams_);
}

int LibcState::error_descriptor() const {
    return streams_[2] != nullptr && fileno(streams_[2]) >= 0 ? fileno(streams_[2]) : STDERR_FILENO;
}

int LibcState::close_standard(std::FILE* stream) {
    const int flushed = std::fflush(stream);
    __fpurge(stream);
    const int closed = close(fileno(stream)); // again: a wrong descriptor
    stream->_fileno = -1;
    return flushed == 0 && closed == 0 ? 0 : EOF;
}

void LibcState::move_stream(int from, int to) {
    for (std::FILE* stream : open_streams()) {
        if (fileno(stream) == from) {
            stream->_fileno = to;
        }
    }
}

void LibcState::set_input(int descriptor) {
    if (streams_[0] != nullptr) {
        streams_[0]->_fileno = descriptor;
    }
}

void LibcState::take_streams() {
    for (int number = 0; number < 3; ++number) {
        std::FILE* stream = streams_[number];
        if (stream != nullptr && fileno(stream) >= 0) {
            stream->_fileno = number;
        }
    }
}

void LibcState::drop_output() {
    for (std::FILE* stream : open_streams()) {
        __fpurge(stream);
    }
}

void LibcState::begin(char** arguments, char** environment) {
    // A list of its own: unsetenv shortens it.
    std::size_t count = 0;
    while (environment != nullptr && environment[count] != nullptr) {
        ++count;
    }
    first_environment = std::make_unique<char*[]>(count + 1);
    char** end = first_environment.get();
    for (std::size_t i = 0; i < count; ++i) {
        char* entry = libc::given_entry(environment[i]);
        if (entry != nullptr) {
            *end++ = entry;
        }
    }
    value<char**>(Variable::environment) = first_environment.get();
    if (arguments != nullptr && arguments[0] != nullptr) {
        char* slash = std::strrchr(arguments[0], '/');
        value<char*>(Variable::program_path) = arguments[0];
        value<char*>(Variable::program_name) = slash != nullptr ? slash + 1 : arguments[0];
    }
}

Results& LibcState::results() {
    std::call_once(results_made_, [this] { results_ = std::make_unique<Results>(); });
    return *results_;
}

LibcState& LibcState::current() {
    if (Image* image = current_image()) {
        return image->libc_state();
    }
    static LibcState& of_none = *new LibcState;
    return of_none;
}

} // namespace warren::image
