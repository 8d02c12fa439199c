// The environment of an image: its variable `environ` and the functions on it.
//
// Strings that setenv made are kept until the image ends: somebody may have got them from getenv.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

char**& list_of(LibcState& state) {
    return state.value<char**>(Variable::environment);
}

std::size_t count_of(char* const* list) {
    std::size_t count = 0;
    while (list != nullptr && list[count] != nullptr) {
        ++count;
    }
    return count;
}

bool is_named(const char* entry, const char* name, std::size_t bytes) {
    return std::strncmp(entry, name, bytes) == 0 && entry[bytes] == '=';
}

bool is_bad_name(const char* name) {
    return name == nullptr || *name == 0 || std::strchr(name, '=') != nullptr;
}

// Puts an entry where one of that name is, or at the end of a longer list.
void put(LibcState& state, char* entry, std::size_t name_bytes) {
    char** list = list_of(state);
    const std::size_t count = count_of(list);
    auto longer = std::make_unique<char*[]>(count + 2);
    std::copy_n(list, count, longer.get());
    std::size_t at = 0;
    while (at < count && !is_named(longer[at], entry, name_bytes)) {
        ++at;
    }
    longer[at] = entry;
    list_of(state) = longer.get();
    state.environment_list = std::move(longer);
}

} // namespace

char* getenv(const char* name) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.environment_lock);
    const std::size_t bytes = std::strlen(name);
    for (char** entry = list_of(state); entry != nullptr && *entry != nullptr; ++entry) {
        if (is_named(*entry, name, bytes)) {
            return *entry + bytes + 1;
        }
    }
    return nullptr;
}

int setenv(const char* name, const char* value, int overwrite) {
    if (is_bad_name(name)) {
        errno = EINVAL;
        return -1;
    }
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.environment_lock);
    if (overwrite == 0 && libc::getenv(name) != nullptr) {
        return 0;
    }
    const std::size_t name_bytes = std::strlen(name);
    const std::size_t value_bytes = std::strlen(value);
    auto entry = std::make_unique<char[]>(name_bytes + value_bytes + 2);
    std::memcpy(entry.get(), name, name_bytes);
    entry[name_bytes] = '=';
    std::memcpy(entry.get() + name_bytes + 1, value, value_bytes + 1);
    put(state, entry.get(), name_bytes);
    state.environment_strings.insert(std::move(entry));
    return 0;
}

int unsetenv(const char* name) {
    if (is_bad_name(name)) {
        errno = EINVAL;
        return -1;
    }
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.environment_lock);
    const std::size_t bytes = std::strlen(name);
    char** to = list_of(state);
    for (char** from = to; from != nullptr && *from != nullptr; ++from) {
        if (!is_named(*from, name, bytes)) {
            *to++ = *from;
        }
    }
    if (to != nullptr) {
        *to = nullptr;
    }
    return 0;
}

int putenv(char* entry) {
    const char* equals = std::strchr(entry, '=');
    if (equals == nullptr) {
        return libc::unsetenv(entry);
    }
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.environment_lock);
    put(state, entry, static_cast<std::size_t>(equals - entry));
    return 0;
}

int clearenv() {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.environment_lock);
    list_of(state) = nullptr;
    return 0;
}

} // namespace warren::image::libc
