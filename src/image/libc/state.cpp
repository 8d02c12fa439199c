#include "image/libc/state.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <stdio_ext.h>
#include <unistd.h>

#include "image/host.hpp"
#include "image/image.hpp"

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

LibcState::LibcState() {
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
    streams_[0] = fdopen(input, "r");
    streams_[1] = fdopen(own ? STDOUT_FILENO : descriptors.output, "w");
    streams_[2] = fdopen(own ? STDERR_FILENO : descriptors.error, "w");
    if (streams_[1] != nullptr && !own && descriptors.output == STDOUT_FILENO) {
        // Others write there too: line by line, so that lines don't mix.
        std::setvbuf(streams_[1], nullptr, _IOLBF, BUFSIZ);
    }
    if (streams_[2] != nullptr) {
        std::setvbuf(streams_[2], nullptr, _IONBF, 0);
    }
}

std::set<std::FILE*> LibcState::open_streams() {
    const std::lock_guard guard(streams_lock);
    std::set<std::FILE*> open = streams;
    open.insert({output(), error(), streams_[1], streams_[2]});
    open.erase(nullptr);
    return open;
}

void LibcState::flush_streams() {
    for (std::FILE* stream : open_streams()) {
        std::fflush(stream);
    }
}

bool LibcState::is_standard(const std::FILE* stream) const {
    return std::find(std::begin(streams_), std::end(streams_), stream) != std::end(streams_);
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
    std::copy_n(environment, count, first_environment.get());
    value<char**>(Variable::environment) = first_environment.get();
    if (arguments != nullptr && arguments[0] != nullptr) {
        char* slash = std::strrchr(arguments[0], '/');
        value<char*>(Variable::program_path) = arguments[0];
        value<char*>(Variable::program_name) = slash != nullptr ? slash + 1 : arguments[0];
    }
}

LibcState& LibcState::current() {
    if (Image* image = current_image()) {
        return image->libc_state();
    }
    static LibcState& of_none = *new LibcState;
    return of_none;
}

} // namespace warren::image
