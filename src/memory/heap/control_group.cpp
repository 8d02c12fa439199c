#include "memory/heap/control_group.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>

#include "memory/heap/system_file.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

namespace {

// How the two versions call things.
struct Version {
    const char* controllers; // between the colons of the line in /proc/self/cgroup
    const char* mounted;
    const char* limit;
    const char* used;
    const char* files[2]; // in memory.stat: inactive, active
};
constexpr Version versions[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file ", "active_file "}},
    {":memory:",
     "/sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file ", "total_active_file "}}};

// Buffers for file names and contents. They are too large for threads' stacks, which may be as
// small as 16 KiB.
struct Texts {
    char path[PATH_MAX];
    char folder[PATH_MAX];
    char groups[8192]; // /proc/self/cgroup
    char text[8192];   // of one file of a group
};

class Room {
  public:
    Room() {
        void* mapped = mmap(nullptr, sizeof(Texts), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        texts_ = mapped != MAP_FAILED ? static_cast<Texts*>(mapped) : nullptr;
    }
    ~Room() {
        if (texts_ != nullptr) {
            munmap(static_cast<void*>(texts_), sizeof(Texts));
        }
    }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;

    Texts* texts() const { return texts_; }

  private:
    Texts* texts_;
};

bool read_of_group(Texts& texts, const char* name) {
    return std::snprintf(texts.path, sizeof texts.path, "%s/%s", texts.folder, name) <
               static_cast<int>(sizeof texts.path) &&
           read_start(texts.path, texts.text);
}

// Bytes that the group in texts.folder may still take.
std::int64_t left_in(const Version& version, Texts& texts) {
    const char* text = texts.text;
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    // "max" is no number; version 1 has a very large one.
    if (!read_of_group(texts, version.limit) || !number_behind(text, "", limit) || *text == 'm' ||
        limit > INT64_MAX / 2 || !read_of_group(texts, version.used) ||
        !number_behind(text, "", used)) {
        return INT64_MAX;
    }
    const bool is_known = read_of_group(texts, "memory.stat");
    for (const char* label : version.files) {
        std::uint64_t files = 0;
        if (is_known && number_behind(text, label, files)) {
            used -= std::min(used, files);
        }
    }
    used += std::min(limit / 16, most_group_reserve_bytes);
    return used < limit ? static_cast<std::int64_t>(limit - used) : 0;
}

// The group and those above it, up to where they are mounted. In a container the path may be as
// seen from outside: what is not there is no limit.
std::int64_t left_along(const Version& version, const char* root, const char* group,
                        std::size_t length, Texts& texts) {
    char* const folder = texts.folder;
    const int mounted = std::snprintf(folder, sizeof texts.folder, "%s%s%.*s", root,
                                      version.mounted, static_cast<int>(length), group);
    if (mounted < 0 || static_cast<std::size_t>(mounted) >= sizeof texts.folder) {
        return INT64_MAX;
    }
    const std::size_t top = std::strlen(root) + std::strlen(version.mounted);
    std::int64_t left = INT64_MAX;
    for (;;) {
        left = std::min(left, left_in(version, texts));
        char* slash = std::strrchr(folder, '/');
        if (slash == nullptr || slash < folder + top) {
            return left;
        }
        *slash = '\0';
    }
}

} // namespace

std::int64_t group_bytes(const char* root) {
    const Room room;
    Texts* const texts = room.texts();
    if (texts == nullptr ||
        std::snprintf(texts->path, sizeof texts->path, "%s/proc/self/cgroup", root) >=
            static_cast<int>(sizeof texts->path) ||
        !read_start(texts->path, texts->groups)) {
        return INT64_MAX;
    }
    std::int64_t left = INT64_MAX;
    for (const char* line = texts->groups; line != nullptr && *line != '\0';) {
        const char* end = std::strchr(line, '\n');
        const std::size_t length =
            end != nullptr ? static_cast<std::size_t>(end - line) : std::strlen(line);
        // "0::/user.slice" or "9:memory:/docker/1a2b"
        for (const Version& version : versions) {
            const char* colon = std::find(line, line + length, ':');
            const std::size_t skipped = std::strlen(version.controllers);
            if (colon != line + length && std::strncmp(colon, version.controllers, skipped) == 0) {
                const char* group = colon + skipped;
                left = std::min(left, left_along(version, root, group,
                                                 static_cast<std::size_t>(line + length - group),
                                                 *texts));
            }
        }
        line = end != nullptr ? end + 1 : nullptr;
    }
    return left;
}

} // namespace warren::memory
