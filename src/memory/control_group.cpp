#include "memory/control_group.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

#include "memory/system_file.hpp"

namespace warren::memory {

namespace {

constexpr std::uint64_t most_reserve_bytes = 32 * 1024 * 1024;

// How the two versions call things.
struct Version {
    const char* controllers; // between the colons of the line in /proc/self/cgroup
    const char* mounted;
    const char* limit;
    const char* used;
    const char* files; // in memory.stat
};
constexpr Version versions[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "}};

bool read_of_group(const char* folder, const char* name, char* text, std::size_t bytes) {
    char path[PATH_MAX];
    return std::snprintf(path, sizeof path, "%s/%s", folder, name) <
               static_cast<int>(sizeof path) &&
           read_start(path, text, bytes);
}

std::int64_t left_in(const Version& version, const char* folder) {
    char text[4096];
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    // "max" is no number; version 1 has a very large one.
    if (!read_of_group(folder, version.limit, text, sizeof text) ||
        !number_behind(text, "", limit) || *text == 'm' || limit > INT64_MAX / 2 ||
        !read_of_group(folder, version.used, text, sizeof text) || !number_behind(text, "", used)) {
        return INT64_MAX;
    }
    std::uint64_t files = 0;
    if (read_of_group(folder, "memory.stat", text, sizeof text)) {
        number_behind(text, version.files, files);
    }
    used -= std::min(used, files);
    used += std::min(limit / 16, most_reserve_bytes);
    return used < limit ? static_cast<std::int64_t>(limit - used) : 0;
}

// The group and those above it, up to where they are mounted. In a container the path may be as
// seen from outside: what is not there is no limit.
std::int64_t left_along(const Version& version, const char* root, const char* group,
                        std::size_t length) {
    char folder[PATH_MAX];
    const int mounted = std::snprintf(folder, sizeof folder, "%s%s%.*s", root, version.mounted,
                                      static_cast<int>(length), group);
    if (mounted < 0 || static_cast<std::size_t>(mounted) >= sizeof folder) {
        return INT64_MAX;
    }
    const std::size_t top = std::strlen(root) + std::strlen(version.mounted);
    std::int64_t left = INT64_MAX;
    for (;;) {
        left = std::min(left, left_in(version, folder));
        char* slash = std::strrchr(folder, '/');
        if (slash == nullptr || slash < folder + top) {
            return left;
        }
        *slash = '\0';
    }
}

} // namespace

std::int64_t group_bytes(const char* root) {
    char path[PATH_MAX];
    char text[8192];
    if (std::snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >=
            static_cast<int>(sizeof path) ||
        !read_start(path, text)) {
        return INT64_MAX;
    }
    std::int64_t left = INT64_MAX;
    for (const char* line = text; line != nullptr && *line != '\0';) {
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
                                                 static_cast<std::size_t>(line + length - group)));
            }
        }
        line = end != nullptr ? end + 1 : nullptr;
    }
    return left;
}

} // namespace warren::memory
