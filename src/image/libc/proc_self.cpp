// The system describes a process, which is the host's. These substitutes describe the program
// instead: its file, its arguments, its name (/proc/self/exe, cmdline, comm, environ; AT_EXECFN and
// its kin).
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <string>
#include <string_view>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/libc/own_path.hpp"

namespace warren::image::libc {

namespace {

constexpr std::size_t longest_name = 15; // of a thread; the system's limit

const std::string& program_file(const Image& image) {
    return image.program()->file->location();
}

bool is_program_file(const Image* image, const char* path) {
    return image != nullptr && part_of_process(path) == "exe";
}

void append_words(std::string& text, char* const* words) {
    for (; words != nullptr && *words != nullptr; ++words) {
        text.append(*words).push_back('\0');
    }
}

// The name of the program's first thread, which is the process's.
std::string own_name() {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.thread_name_lock);
    const std::string name =
        state.thread_name.empty() ? std::string(state.program_name()) : state.thread_name;
    return name.substr(0, longest_name);
}

std::string read_whole(const char* path) {
    std::string text;
    char piece[4096];
    const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    while (descriptor >= 0 && (got = ::read(descriptor, piece, sizeof piece)) > 0) {
        text.append(piece, static_cast<std::size_t>(got));
    }
    if (descriptor >= 0) {
        ::close(descriptor);
    }
    return text;
}

// The system's text with the program's name between `before` and `behind`.
std::string with_own_name(std::string text, const char* before, std::size_t end) {
    const std::size_t found = text.find(before);
    if (found != std::string::npos && end != std::string::npos) {
        const std::size_t begin = found + std::strlen(before);
        text.replace(begin, end - begin, own_name());
    }
    return text;
}

// The contents of a file that is about the program; false: it is about the process.
bool contents_of(const Image& image, std::string_view part, std::string& text) {
    if (part == "cmdline") {
        append_words(text, image.arguments);
    } else if (part == "environ") {
        append_words(text, image.environment);
    } else if (part == "comm") {
        text = own_name() + "\n";
    } else if (part == "status") {
        text = read_whole("/proc/self/status");
        text = with_own_name(text, "Name:\t", text.find('\n'));
    } else if (part == "stat") {
        text = read_whole("/proc/self/stat");
        text = with_own_name(text, "(", text.rfind(')'));
    } else {
        return false;
    }
    return true;
}

// A file with the contents, or -1.
int open_contents(const std::string& text, int flags) {
    const int descriptor = memfd_create("warren-proc", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
    std::size_t written = 0;
    while (descriptor >= 0 && written < text.size()) {
        const ssize_t got = write(descriptor, text.data() + written, text.size() - written);
        if (got <= 0) {
            close(descriptor);
            return -1;
        }
        written += static_cast<std::size_t>(got);
    }
    if (descriptor >= 0) {
        lseek(descriptor, 0, SEEK_SET);
    }
    return descriptor;
}

// The file that a path means, when it is about the program.
int open_own(const char* path, int flags, bool& is_own) {
    const Image* image = program_image();
    std::string text;
    is_own = image != nullptr && (flags & O_ACCMODE) == O_RDONLY &&
             contents_of(*image, part_of_process(path), text);
    return is_own ? open_contents(text, flags) : -1;
}

std::size_t copy_link(const std::string& link, char* text, std::size_t bytes) {
    const std::size_t copied = std::min(bytes, link.size());
    std::copy_n(link.data(), copied, text); // a link has no final zero
    return copied;
}

int (*place_file)(int descriptor) = nullptr;

int placed(int descriptor) {
    return place_file != nullptr && descriptor >= 0 ? place_file(descriptor) : descriptor;
}

mode_t mode_of(int flags, va_list arguments) {
    const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    return makes ? va_arg(arguments, mode_t) : 0;
}

} // namespace

int openat(int folder, const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    bool is_own = false;
    const int descriptor = open_own(path, flags, is_own);
    return placed(is_own ? descriptor : ::openat(folder, OwnPath(path).get(), flags, mode));
}

int creat(const char* path, mode_t mode) {
    return libc::openat(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

void place_files_by(int (*place)(int descriptor)) {
    place_file = place;
}

int openat_2(int folder, const char* path, int flags) {
    return libc::openat(folder, path, flags);
}

int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return libc::openat(AT_FDCWD, path, flags, mode);
}

int open_2(const char* path, int flags) {
    return libc::openat(AT_FDCWD, path, flags);
}

std::FILE* fopen(const char* path, const char* mode) {
    bool is_own = false;
    const bool reads = mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
    const int descriptor = open_own(path, reads ? O_RDONLY | O_CLOEXEC : O_RDWR, is_own);
    if (!is_own) {
        return libc::keep_stream(std::fopen(OwnPath(path).get(), mode));
    }
    return descriptor < 0 ? nullptr : libc::fdopen(descriptor, mode);
}

ssize_t readlink(const char* path, char* text, std::size_t bytes) {
    const Image* image = program_image();
    return is_program_file(image, path)
               ? static_cast<ssize_t>(copy_link(program_file(*image), text, bytes))
               : ::readlink(OwnPath(path).get(), text, bytes);
}

ssize_t readlink_chk(const char* path, char* text, std::size_t bytes, std::size_t room) {
    if (bytes > room) {
        libc::chk_fail();
    }
    return libc::readlink(path, text, bytes);
}

ssize_t readlinkat(int folder, const char* path, char* text, std::size_t bytes) {
    const Image* image = program_image();
    return is_program_file(image, path) ? libc::readlink(path, text, bytes)
                                        : ::readlinkat(folder, OwnPath(path).get(), text, bytes);
}

ssize_t readlinkat_chk(int folder, const char* path, char* text, std::size_t bytes,
                       std::size_t room) {
    if (bytes > room) {
        libc::chk_fail();
    }
    return libc::readlinkat(folder, path, text, bytes);
}

char* realpath(const char* path, char* resolved) {
    return ::realpath(OwnPath(path).get(), resolved);
}

char* realpath_chk(const char* path, char* resolved, std::size_t room) {
    if (room < PATH_MAX) {
        libc::chk_fail();
    }
    return libc::realpath(path, resolved);
}

char* canonicalize_file_name(const char* path) {
    return libc::realpath(path, nullptr);
}

int access(const char* path, int mode) {
    return ::access(OwnPath(path).get(), mode);
}

int stat(const char* path, struct stat* status) {
    return ::stat(OwnPath(path).get(), status);
}

int stat_link(const char* path, struct stat* status) {
    return ::lstat(OwnPath(path).get(), status);
}

// Programs of old headers ask with a version, of which there is one.
int stat_of_version(int, const char* path, struct stat* status) {
    return libc::stat(path, status);
}

int stat_link_of_version(int, const char* path, struct stat* status) {
    return libc::stat_link(path, status);
}

int truncate(const char* path, off_t bytes) {
    return ::truncate(OwnPath(path).get(), bytes);
}

DIR* opendir(const char* path) {
    return ::opendir(OwnPath(path).get());
}

int scandir(const char* path, dirent*** found, int (*selects)(const dirent*),
            int (*compare)(const dirent**, const dirent**)) {
    return ::scandir(OwnPath(path).get(), found, selects, compare);
}

// A file without a name gets one by the link to its descriptor.
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
    return ::linkat(from_folder, OwnPath(from).get(), to_folder, to, flags);
}

// The C library follows no link by a descriptor's link in /proc/self.
int fchmodat(int folder, const char* path, mode_t mode, int flags) {
    if (flags != AT_SYMLINK_NOFOLLOW || program_image() == nullptr) {
        return ::fchmodat(folder, OwnPath(path).get(), mode, flags);
    }
    const int file = ::openat(folder, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status {};
    if (file < 0) {
        return -1;
    }
    int result = -1;
    if (::fstat(file, &status) == 0 && S_ISLNK(status.st_mode)) {
        errno = EOPNOTSUPP;
    } else {
        char link[48];
        std::snprintf(link, sizeof link, "/proc/thread-self/fd/%d", file);
        result = ::chmod(link, mode);
    }
    const int error = errno;
    ::close(file);
    errno = error;
    return result;
}

int lchmod(const char* path, mode_t mode) {
    return libc::fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

int chmod(const char* path, mode_t mode) {
    return ::chmod(OwnPath(path).get(), mode);
}

unsigned long getauxval(unsigned long type) {
    const Image* image = program_image();
    if (image == nullptr) {
        return ::getauxval(type);
    }
    const Module& program = *image->program();
    const Elf64_Ehdr& header = program.file->header();
    switch (type) {
    case AT_EXECFN:
        return reinterpret_cast<unsigned long>(program.file->path().c_str());
    case AT_PHDR:
        return reinterpret_cast<unsigned long>(program.at(header.e_phoff));
    case AT_PHNUM:
        return header.e_phnum;
    case AT_ENTRY:
        return reinterpret_cast<unsigned long>(program.at(header.e_entry));
    default:
        return ::getauxval(type);
    }
}

// ---- The name of a thread

namespace {

// The program's, if the calling thread is its first one.
Image* image_of_first_thread() {
    Image* image = running_image();
    return image != nullptr && thread_head().thread == image->running().first_thread ? image
                                                                                     : nullptr;
}

void set_own_name(Image& image, const char* name) {
    LibcState& state = image.libc_state();
    const std::lock_guard guard(state.thread_name_lock);
    state.thread_name.assign(name, strnlen(name, longest_name));
}

} // namespace

// A fibre's kernel thread is a worker, which others are named by, too.
int prctl(int option, unsigned long first, unsigned long second, unsigned long third,
          unsigned long fourth) {
    Image* image =
        option == PR_SET_NAME || option == PR_GET_NAME ? image_of_first_thread() : nullptr;
    if (image == nullptr) {
        return ::prctl(option, first, second, third, fourth);
    }
    if (option == PR_SET_NAME) {
        set_own_name(*image, reinterpret_cast<const char*>(first));
        return is_fibre() ? 0 : ::prctl(option, first, second, third, fourth);
    }
    const std::string name = own_name();
    std::memcpy(reinterpret_cast<char*>(first), name.c_str(), name.size() + 1);
    return 0;
}

int pthread_setname_np(pthread_t thread, const char* name) {
    Image* image = pthread_equal(thread, pthread_self()) != 0 ? image_of_first_thread() : nullptr;
    if (image == nullptr) {
        return ::pthread_setname_np(thread, name);
    }
    if (std::strlen(name) > longest_name) {
        return ERANGE;
    }
    set_own_name(*image, name);
    return is_fibre() ? 0 : ::pthread_setname_np(thread, name);
}

int pthread_getname_np(pthread_t thread, char* name, std::size_t bytes) {
    if (pthread_equal(thread, pthread_self()) == 0 || image_of_first_thread() == nullptr) {
        return ::pthread_getname_np(thread, name, bytes);
    }
    if (bytes <= longest_name) {
        return ERANGE;
    }
    const std::string own = own_name();
    std::memcpy(name, own.c_str(), own.size() + 1);
    return 0;
}

} // namespace warren::image::libc
