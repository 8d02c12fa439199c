#include "topology/discovery/named_source.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topology/format.hpp"
#include "topology/mapping.hpp"
#include "topology/view.hpp"
#include "warren/topology.h"

namespace warren::discovery {

namespace {

// Pipes and devices: reading them may never end.
Error refuse_special(const std::string& path, const struct stat& status) {
    return S_ISREG(status.st_mode)
               ? Error{}
               : fail(WARREN_TOPOLOGY_ERR_FILE, "%s is neither a file nor a folder", path.c_str());
}

Error check_path(const std::string& path, bool is_folder) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
        return fail(WARREN_TOPOLOGY_ERR_FILE, "%s: %s", path.c_str(), std::strerror(errno));
    }
    if (!is_folder) {
        return refuse_special(path, status);
    }
    return S_ISDIR(status.st_mode)
               ? Error{}
               : fail(WARREN_TOPOLOGY_ERR_FILE, "%s is no folder", path.c_str());
}

// Finds out the kind of the source at a path, when the user doesn't give it.
Error look(const std::string& path, NamedSource& named) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
        return fail(WARREN_TOPOLOGY_ERR_FILE, "%s: %s", path.c_str(), std::strerror(errno));
    }
    if (S_ISDIR(status.st_mode)) {
        named.source.kind = SourceKind::dump;
        return {};
    }
    if (Error error = refuse_special(path, status)) {
        return error;
    }
    named.source.kind = SourceKind::xml;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) {
        return fail(WARREN_TOPOLOGY_ERR_FILE, "%s: %s", path.c_str(), std::strerror(errno));
    }
    std::uint64_t magic = 0;
    named.is_image = read(file, &magic, sizeof magic) == static_cast<ssize_t>(sizeof magic) &&
                     magic == topology::image_magic;
    close(file);
    return {};
}

} // namespace

Error name_source(const std::string& text, NamedSource& named) {
    struct Prefix {
        const char* word;
        SourceKind kind;
        bool is_image;
    };
    named = {};
    if (text.empty() || text == "native") {
        return {};
    }
    for (const Prefix& prefix :
         {Prefix{"synthetic:", SourceKind::synthetic, false},
          Prefix{"xml:", SourceKind::xml, false}, Prefix{"image:", SourceKind::native, true},
          Prefix{"folder:", SourceKind::dump, false}}) {
        if (text.starts_with(prefix.word)) {
            named.is_image = prefix.is_image;
            named.source.kind = prefix.kind;
            named.source.text = text.substr(std::strlen(prefix.word));
            return prefix.kind == SourceKind::synthetic
                       ? Error{}
                       : check_path(named.source.text, prefix.kind == SourceKind::dump);
        }
    }
    named.source.text = text;
    return look(text, named);
}

Error named_image(const std::string& text, bool devices, std::vector<std::byte>& image,
                  std::string& note) {
    note.clear();
    NamedSource named;
    if (Error error = name_source(text, named)) {
        return error;
    }
    named.source.devices = devices;
    named.source.note = &note;
    if (!named.is_image) {
        return discover_image(named.source, image);
    }
    topology::ImageMemory memory;
    if (Error error = topology::ImageMemory::read(named.source.text, memory)) {
        return error;
    }
    topology::TopologyView view;
    if (Error error = topology::TopologyView::check(memory.bytes(), view)) {
        return error;
    }
    image.assign(memory.bytes().begin(), memory.bytes().end());
    return {};
}

} // namespace warren::discovery
