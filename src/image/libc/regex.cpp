// The old interface of patterns, which has variables: the syntax that programs choose, and the
// pattern that re_comp keeps. (regcomp and regexec have none.)
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <regex.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

// The C library's variable is the calling image's while it compiles.
std::mutex& syntax_lock() {
    static std::mutex& only = *new std::mutex;
    return only;
}

unsigned long& own_syntax() {
    return LibcState::current().value<unsigned long>(Variable::re_syntax_options);
}

} // namespace

unsigned long re_set_syntax(unsigned long syntax) {
    const unsigned long former = own_syntax();
    own_syntax() = syntax;
    return former;
}

const char* re_compile_pattern(const char* text, std::size_t bytes, re_pattern_buffer* pattern) {
    const std::lock_guard guard(syntax_lock());
    re_syntax_options = own_syntax();
    return ::re_compile_pattern(text, bytes, pattern);
}

// Null, or what is wrong. Without a pattern: the former one, of which there must be one.
char* re_comp(const char* text) {
    LibcState& state = LibcState::current();
    if (text == nullptr) {
        return state.pattern != nullptr ? nullptr
                                        : const_cast<char*>("No previous regular expression");
    }
    state.pattern.reset(new re_pattern_buffer{});
    state.pattern->fastmap = static_cast<char*>(std::malloc(UCHAR_MAX + 1));
    const char* problem = libc::re_compile_pattern(text, std::strlen(text), state.pattern.get());
    if (problem != nullptr) {
        state.pattern.reset();
    }
    return const_cast<char*>(problem);
}

int re_exec(const char* text) {
    re_pattern_buffer* pattern = LibcState::current().pattern.get();
    const auto bytes = static_cast<regoff_t>(std::strlen(text));
    return pattern != nullptr && re_search(pattern, text, bytes, 0, bytes, nullptr) >= 0 ? 1 : 0;
}

void free_pattern(re_pattern_buffer* pattern) {
    regfree(pattern);
    delete pattern;
}

} // namespace warren::image::libc
