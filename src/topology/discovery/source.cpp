#include "topology/discovery/source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topology/format.hpp"
#include "topology/mapping.hpp"
#include "warren/topology.h"

namespace warren::discovery {

namespace {

// hwloc reads the folder from the environment.
class DumpFolder {
  public:
    explicit DumpFolder(const Source& source) : is_set_(source.kind == SourceKind::dump) {
        if (is_set_) {
            setenv("HWLOC_FSROOT", source.text.c_str(), 1);
        }
    }
    ~DumpFolder() {
        if (is_set_) {
            unsetenv("HWLOC_FSROOT");
        }
    }
    DumpFolder(const DumpFolder&) = delete;
    DumpFolder& operator=(const DumpFolder&) = delete;

  private:
    bool is_set_;
};

} // namespace

// It is read here, so that what is looked at is what hwloc gets.
Error read_xml(const std::string& path, std::string& text) {
    constexpr std::size_t most_bytes = std::size_t{256} << 20;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const auto refuse = [&](const char* why) {
        if (file >= 0) {
            close(file);
        }
        return fail(WARREN_TOPOLOGY_ERR_FILE, "%s: %s", path.c_str(), why);
    };
    if (file < 0) {
        return refuse(std::strerror(errno));
    }
    struct stat status {};
    if (fstat(file, &status) != 0) {
        return refuse(std::strerror(errno));
    }
    if (Error error = topology::check_plain_file(status, path)) {
        close(file);
        return error;
    }
    char part[65536];
    while (true) {
        const ssize_t bytes = read(file, part, sizeof part);
        if (bytes < 0 && errno == EINTR) {
            continue;
        }
        if (bytes < 0) {
            return refuse(std::strerror(errno));
        }
        if (bytes == 0) {
            break;
        }
        text.append(part, static_cast<std::size_t>(bytes));
        if (text.size() > most_bytes) {
            return refuse("it is too large for a topology");
        }
    }
    close(file);
    return {};
}

namespace {

Error check_dump(const std::string& folder) {
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0) {
        return fail(WARREN_TOPOLOGY_ERR_FILE, "%s: %s", folder.c_str(), std::strerror(errno));
    }
    if (Error error = topology::check_owner(status, folder)) {
        return error;
    }
    // Where hwloc looks for processors.
    for (const char* processors : {"/sys/devices/system/cpu", "/sys/bus/cpu/devices"}) {
        if (access((folder + processors).c_str(), R_OK | X_OK) == 0) {
            return {};
        }
    }
    return fail(
        WARREN_TOPOLOGY_ERR_FILE,
        "%s is no copy of a machine's /sys and /proc: there is no %s/sys/devices/system/cpu "
        "that can be read",
        folder.c_str(), folder.c_str());
}

// How many objects a synthetic description has, at least, up to one more than an image can have:
// each word is a level with so many children for each object of the one above ("core:4", or "4");
// a word in brackets is an object of each; parentheses have attributes.
std::uint64_t synthetic_objects(const std::string& text) {
    constexpr std::uint64_t most = topology::max_objects + 1;
    std::uint64_t level = 1;
    std::uint64_t all = 1;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool begins = at == 0 || std::strchr(": \t\n", text[at - 1]) != nullptr;
        if (text[at] == '(') {
            at = std::min(text.find(')', at), text.size());
        } else if (text[at] == '[') {
            at = std::min(text.find(']', at), text.size());
            all = std::min(all + level, most);
        } else if (begins && std::strchr("+-0123456789", text[at]) != nullptr) {
            // As hwloc reads them: "0x10" is 16, "010" is 8.
            level = std::min<std::uint64_t>(std::strtoull(&text[at], nullptr, 0), most) * level;
            level = std::min(level, most);
            all = std::min(all + level, most);
        }
    }
    return all;
}

} // namespace

Error check_source(const Source& source) {
    if (source.kind == SourceKind::dump) {
        return check_dump(source.text);
    }
    if (source.kind == SourceKind::synthetic &&
        synthetic_objects(source.text) > topology::max_objects) {
        return fail(WARREN_TOPOLOGY_ERR_LIMIT, "the topology has more than %u objects",
                    topology::max_objects);
    }
    return {};
}

Error load(const HwlocLibrary& hwloc, const Source& source, hwloc_topology_t& topology) {
    std::string own;
    const std::string& xml = source.content != nullptr ? *source.content : own;
    if (source.kind == SourceKind::xml && source.content == nullptr) {
        if (Error error = read_xml(source.text, own)) {
            return error;
        }
    }
    if (Error error = check_source(source)) {
        return error;
    }
    const HwlocLibrary::WithoutPlugins without_plugins;
    if (hwloc.topology_init(&topology) != 0) {
        return fail(WARREN_TOPOLOGY_ERR_DISCOVERY, "hwloc_topology_init fails: %s",
                    std::strerror(errno));
    }
    const DumpFolder folder(source);
    int status = 0;
    if (source.kind == SourceKind::xml) {
        errno = EINVAL;
        status =
            hwloc.topology_set_xmlbuffer(topology, xml.c_str(), static_cast<int>(xml.size()) + 1);
    } else if (source.kind == SourceKind::synthetic) {
        status = hwloc.topology_set_synthetic(topology, source.text.c_str());
    } else {
        for (const char* name : {"x86", "cuda", "opencl", "nvml", "rsmi", "levelzero", "gl"}) {
            hwloc.topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, name);
        }
    }
    if (status != 0) {
        const int why = errno;
        hwloc.topology_destroy(topology);
        if (source.kind == SourceKind::synthetic) {
            return fail(WARREN_TOPOLOGY_ERR_ARGUMENT,
                        "\"%s\" is no synthetic description of a topology", source.text.c_str());
        }
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED,
                    "%s: hwloc doesn't take it for an XML topology (%s)", source.text.c_str(),
                    std::strerror(why));
    }
    hwloc.topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc.topology_set_io_types_filter(topology, source.devices ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT
                                                                : HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc.topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc.topology_load(topology) != 0) {
        const int why = errno;
        hwloc.topology_destroy(topology);
        return fail(source.kind == SourceKind::xml ? WARREN_TOPOLOGY_ERR_DAMAGED
                                                   : WARREN_TOPOLOGY_ERR_DISCOVERY,
                    "%s%shwloc_topology_load fails: %s", source.text.c_str(),
                    source.text.empty() ? "" : ": ", std::strerror(why));
    }
    return {};
}

} // namespace warren::discovery
