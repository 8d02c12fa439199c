#include "analyser/recorder/recording_folder.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyser/recorder/file_limit.hpp"

namespace warren::locality {

namespace {

constexpr int other_error = 16; // MPI_ERR_OTHER

bool is_empty(const std::string& folder) {
    DIR* entries = opendir(folder.c_str());
    if (entries == nullptr) {
        return false;
    }
    bool empty = true;
    while (const dirent* entry = readdir(entries)) {
        empty = empty &&
                (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0);
    }
    closedir(entries);
    return empty;
}

// A disk without space for a process's description has none for a recording. If that can't be told
// before, the writers notice it.
Error require_space(const std::string& folder) {
    const auto least_bytes = static_cast<off_t>(allowed_bytes(0, 8192));
    const std::string path = folder + "/room-" + std::to_string(getpid());
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int code = file < 0 ? errno : 0;
    if (file >= 0) {
        code = least_bytes != 0 && fallocate(file, 0, 0, least_bytes) != 0 ? errno : 0;
        close(file);
        unlink(path.c_str());
    }
    if (code == ENOSPC || code == EDQUOT) {
        return fail(other_error, "nothing can be recorded in %s: %s", folder.c_str(),
                    std::strerror(code));
    }
    return {};
}

} // namespace

Error make_folder(const std::string& wanted, std::int32_t rank, std::string& absolute) {
    if (mkdir(wanted.c_str(), 0777) != 0 && errno != EEXIST) {
        return fail(other_error, "the folder %s can't be made: %s", wanted.c_str(),
                    std::strerror(errno));
    }
    char* real = realpath(wanted.c_str(), nullptr);
    if (real == nullptr) {
        return fail(other_error, "%s: %s", wanted.c_str(), std::strerror(errno));
    }
    absolute = real;
    std::free(real);
    struct stat about {};
    if (stat(absolute.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) {
        return fail(other_error, "%s is no folder", wanted.c_str());
    }
    if (rank < 0) {
        if (!is_empty(absolute)) {
            return fail(other_error,
                        "the folder %s is not empty: choose another by -o, or remove it",
                        wanted.c_str());
        }
        return require_space(absolute);
    }
    char name[32];
    std::snprintf(name, sizeof name, "/rank-%05d", rank);
    if (access((absolute + name).c_str(), F_OK) == 0) {
        return fail(other_error,
                    "the folder %s has a recording of rank %d already: choose another by -o, or "
                    "remove it",
                    wanted.c_str(), rank);
    }
    return require_space(absolute);
}

} // namespace warren::locality
