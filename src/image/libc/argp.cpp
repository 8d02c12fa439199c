// argp: the C library's parser, with what is the image's: its variables, its streams, its end. The
// parser would exit for the process, so it is told not to, and the program's wish is followed here.
// (Complaints of getopt in it go to the process's errors.)
#include <argp.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

// A call of argp_parse: the program's argp is a child of ours, beside the usual options.
struct ParserCall {
    argp top{}; // first: by it a state's call is found
    argp_child children[4] = {};
    unsigned flags = 0; // the program's
    bool complained = false;
    std::FILE* errors = nullptr;
};

error_t parse_top(int key, char*, argp_state* state);

unsigned flags_of(const argp_state* state) {
    const bool is_ours = state->root_argp != nullptr && state->root_argp->parser == parse_top;
    return is_ours ? reinterpret_cast<const ParserCall*>(state->root_argp)->flags : state->flags;
}

bool may_exit(const argp_state* state) {
    return state == nullptr || (flags_of(state) & ARGP_NO_EXIT) == 0;
}

bool may_complain(const argp_state* state) {
    return state == nullptr || (state->flags & ARGP_NO_ERRS) == 0;
}

int exit_status() {
    return LibcState::current().value<int>(Variable::argp_err_exit_status);
}

// The C library's variables, which its functions print, are the image's.
void give_variables() {
    LibcState& state = LibcState::current();
    argp_program_version = state.value<const char*>(Variable::argp_program_version);
    argp_program_bug_address = state.value<const char*>(Variable::argp_program_bug_address);
}

// Writes to the image's errors, and knows that it has.
ssize_t complain(void* call, const char* text, std::size_t bytes) {
    static_cast<ParserCall*>(call)->complained = true;
    return static_cast<ssize_t>(std::fwrite(text, 1, bytes, LibcState::current().error()));
}

error_t parse_top(int key, char*, argp_state* state) {
    if (key != ARGP_KEY_INIT) {
        return ARGP_ERR_UNKNOWN;
    }
    auto* call = reinterpret_cast<ParserCall*>(const_cast<argp*>(state->root_argp));
    state->err_stream = call->errors;
    state->out_stream = LibcState::current().output();
    state->child_inputs[0] = state->input;
    return 0;
}

constexpr int key_of_name = -2;
constexpr int key_of_usage = -3;
constexpr int key_of_hang = -4;

const argp_option usual_options[] = {
    {"help", '?', nullptr, 0, "Give this help list", -1},
    {"usage", key_of_usage, nullptr, 0, "Give a short usage message", 0},
    {"program-name", key_of_name, "NAME", OPTION_HIDDEN, "Set the program name", 0},
    {"HANG", key_of_hang, "SECS", OPTION_ARG_OPTIONAL | OPTION_HIDDEN,
     "Hang for SECS seconds (default 3600)", 0},
    {nullptr, 0, nullptr, 0, nullptr, 0},
};

error_t parse_usual(int key, char* argument, argp_state* state) {
    switch (key) {
    case '?':
        libc::argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
        return 0;
    case key_of_usage:
        libc::argp_state_help(state, state->out_stream, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
        return 0;
    case key_of_name: {
        char* slash = std::strrchr(argument, '/');
        LibcState::current().value<char*>(Variable::program_path) = argument;
        state->name = slash != nullptr ? slash + 1 : argument;
        LibcState::current().value<char*>(Variable::program_name) = state->name;
        if ((state->flags & (ARGP_PARSE_ARGV0 | ARGP_NO_ERRS)) == ARGP_PARSE_ARGV0) {
            state->argv[0] = argument;
        }
        return 0;
    }
    case key_of_hang:
        libc::sleep(static_cast<unsigned>(argument != nullptr ? std::atoi(argument) : 3600));
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const argp_option version_options[] = {
    {"version", 'V', nullptr, 0, "Print program version", -1},
    {nullptr, 0, nullptr, 0, nullptr, 0},
};

using VersionHook = void (*)(std::FILE*, argp_state*);

error_t parse_version(int key, char*, argp_state* state) {
    if (key != 'V') {
        return ARGP_ERR_UNKNOWN;
    }
    LibcState& own = LibcState::current();
    if (const auto hook = own.value<VersionHook>(Variable::argp_program_version_hook)) {
        hook(state->out_stream, state);
    } else {
        std::fprintf(state->out_stream, "%s\n",
                     own.value<const char*>(Variable::argp_program_version));
    }
    if (may_exit(state)) {
        libc::exit(0);
    }
    return 0;
}

const argp usual = {usual_options, parse_usual, nullptr, nullptr, nullptr, nullptr, "libc"};
const argp version_parser = {version_options, parse_version, nullptr, nullptr,
                             nullptr,         nullptr,       "libc"};

// "name: text: error", the last if there is one.
void say(const argp_state* state, int error, const char* format, va_list arguments) {
    LibcState& own = LibcState::current();
    std::FILE* stream = state != nullptr ? state->err_stream : own.error();
    if (stream == nullptr) {
        return;
    }
    std::fputs(state != nullptr ? state->name : own.program_name(), stream);
    if (format != nullptr) {
        std::fputs(": ", stream);
        std::vfprintf(stream, format, arguments);
    }
    if (error != 0) {
        std::fprintf(stream, ": %s", std::strerror(error));
    }
    std::fputc('\n', stream);
}

} // namespace

int argp_parse(const argp* given, int count, char** arguments, unsigned flags, int* next,
               void* input) {
    LibcState& state = LibcState::current();
    ParserCall call;
    call.flags = flags;
    call.top.parser = parse_top;
    call.top.children = call.children;
    call.children[0].argp = given;
    if ((flags & ARGP_NO_HELP) == 0) {
        const bool has_version =
            state.value<const char*>(Variable::argp_program_version) != nullptr ||
            state.value<VersionHook>(Variable::argp_program_version_hook) != nullptr;
        call.children[1].argp = &usual;
        call.children[2].argp = has_version ? &version_parser : nullptr;
    }
    call.errors = ::fopencookie(&call, "w", {nullptr, complain, nullptr, nullptr});
    std::setvbuf(call.errors, nullptr, _IONBF, 0);
    give_variables();
    const int error =
        ::argp_parse(&call.top, count, arguments, flags | ARGP_NO_HELP | ARGP_NO_EXIT, next, input);
    std::fclose(call.errors);
    // The parser has said what is wrong with the arguments, and would have exited.
    if (error == EINVAL && call.complained && (flags & (ARGP_NO_EXIT | ARGP_NO_ERRS)) == 0) {
        libc::exit(exit_status());
    }
    return error;
}

void argp_help(const argp* given, std::FILE* stream, unsigned flags, char* name) {
    give_variables();
    ::argp_help(given, stream, flags, name);
}

void argp_state_help(const argp_state* state, std::FILE* stream, unsigned flags) {
    if (!may_complain(state) || stream == nullptr) {
        return;
    }
    give_variables();
    constexpr unsigned exits = ARGP_HELP_EXIT_ERR | ARGP_HELP_EXIT_OK;
    ::argp_state_help(state, stream, flags & ~exits);
    if (may_exit(state) && (flags & exits) != 0) {
        libc::exit((flags & ARGP_HELP_EXIT_ERR) != 0 ? exit_status() : 0);
    }
}

void argp_usage(const argp_state* state) {
    libc::argp_state_help(state, LibcState::current().error(), ARGP_HELP_STD_USAGE);
}

void argp_error(const argp_state* state, const char* format, ...) {
    if (!may_complain(state)) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    say(state, 0, format, arguments);
    va_end(arguments);
    libc::argp_state_help(state,
                          state != nullptr ? state->err_stream : LibcState::current().error(),
                          ARGP_HELP_STD_ERR);
}

void argp_failure(const argp_state* state, int status, int error, const char* format, ...) {
    if (!may_complain(state)) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    say(state, error, format, arguments);
    va_end(arguments);
    if (status != 0 && may_exit(state)) {
        libc::exit(status);
    }
}

} // namespace warren::image::libc
