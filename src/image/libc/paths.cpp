// Functions that go by variables of the environment, which the C library would take from the
// process's: programs are found by PATH, home folders by HOME, temporary files by TMPDIR.
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <glob.h>
#include <spawn.h>
#include <string>
#include <unistd.h>

#include "image/libc/functions.hpp"
#include "image/libc/own_path.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

// Calls try_path(path) for each place where a program may be, until it returns true. Allocates
// nothing: the child of a vfork may call this.
template <typename Try>
void for_each_place(const char* name, Try&& try_path) {
    if (*name == 0 || std::strchr(name, '/') != nullptr) {
        try_path(name);
        return;
    }
    const char* folders = libc::getenv("PATH");
    folders = folders != nullptr ? folders : "/bin:/usr/bin"; // the C library's
    const std::size_t name_bytes = std::strlen(name) + 1;
    char path[PATH_MAX];
    while (true) {
        const std::size_t bytes = std::strcspn(folders, ":");
        if (bytes + 1 + name_bytes <= sizeof path) {
            std::memcpy(path, folders, bytes);
            path[bytes] = '/';
            std::memcpy(path + bytes + (bytes != 0 ? 1 : 0), name, name_bytes);
            if (try_path(path)) {
                return;
            }
        }
        if (folders[bytes] == 0) {
            return;
        }
        folders += bytes + 1;
    }
}

bool is_elsewhere(int error) {
    return error == EACCES || error == ENOENT || error == ESTALE || error == ENOTDIR ||
           error == ENODEV || error == ETIMEDOUT;
}

// A file without a format that the system knows is a shell's.
void run_by_shell(const char* path, char* const* arguments, char* const* environment) {
    constexpr std::size_t most = 1024;
    const char* all[most] = {"/bin/sh", path};
    std::size_t count = 2;
    for (std::size_t i = 1; arguments[0] != nullptr && arguments[i] != nullptr; ++i) {
        if (count == most - 1) {
            errno = E2BIG;
            return;
        }
        all[count++] = arguments[i];
    }
    libc::execute("/bin/sh", const_cast<char* const*>(all), environment);
}

} // namespace

// May only return with errno.
void exec_by_path(const char* name, char* const* arguments, char* const* environment) {
    bool is_denied = false;
    errno = ENOENT;
    for_each_place(name, [&](const char* path) {
        libc::execute(path, arguments, environment);
        if (errno == ENOEXEC) {
            run_by_shell(path, arguments, environment);
        }
        is_denied |= errno == EACCES;
        return !is_elsewhere(errno);
    });
    errno = is_denied ? EACCES : errno;
}

int posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments,
                 char* const* environment) {
    int result = ENOENT;
    bool is_denied = false;
    for_each_place(name, [&](const char* path) {
        result =
            ::posix_spawn(child, OwnPath(path).get(), actions, attributes, arguments, environment);
        is_denied |= result == EACCES;
        return !is_elsewhere(result);
    });
    return is_elsewhere(result) && is_denied ? EACCES : result;
}

char* tempnam(const char* folder, const char* prefix) {
    const char* wanted = libc::getenv("TMPDIR");
    const bool has_variable = wanted != nullptr && ::access(wanted, W_OK | X_OK) == 0;
    // Without the variable, the C library goes by its argument.
    char* name = ::tempnam(has_variable ? wanted : folder, prefix);
    const char* others = std::getenv("TMPDIR");
    if (name == nullptr || others == nullptr || !has_variable) {
        return name;
    }
    const char* base = std::strrchr(name, '/');
    const std::string own = std::string(wanted) + (base != nullptr ? base : name);
    std::free(name);
    return ::strdup(own.c_str());
}

// A home folder that is the program's own comes before the C library looks for one.
int glob(const char* pattern, int flags, int (*failed)(const char*, int), glob_t* found) {
    const char* home = libc::getenv("HOME");
    const bool is_home = pattern[0] == '~' && (pattern[1] == '/' || pattern[1] == 0);
    if ((flags & (GLOB_TILDE | GLOB_TILDE_CHECK)) == 0 || !is_home || home == nullptr ||
        *home == 0) {
        return ::glob(pattern, flags, failed, found);
    }
    std::string whole;
    for (const char* letter = home; *letter != 0; ++letter) {
        if ((flags & GLOB_NOESCAPE) == 0 && std::strchr("*?[\\", *letter) != nullptr) {
            whole += '\\';
        }
        whole += *letter;
    }
    whole += pattern + 1;
    return ::glob(whole.c_str(), flags, failed, found);
}

} // namespace warren::image::libc
