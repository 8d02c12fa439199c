#include "mpi/io/file_name.hpp"

#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "mpi.h"

namespace warren::io {

namespace {

// The prefix of this list that `text` begins with, or null.
const char* find_prefix(const char* text, std::initializer_list<const char*> prefixes) {
    for (const char* prefix : prefixes) {
        if (std::strncmp(text, prefix, std::strlen(prefix)) == 0) {
            return prefix;
        }
    }
    return nullptr;
}

const char* find_mounted(const char* text) {
    return find_prefix(text,
                       {"ufs:", "nfs:", "xfs:", "lustre:", "gpfs:", "panfs:", "pvfs2:", "testfs:"});
}

const char* find_unreachable(const char* text) {
    return find_prefix(text, {"daos:", "ime:", "quobyte:"});
}

} // namespace

Error path_of_name(const char* name, const char* forced, const char*& path) {
    path = name;
    if (const char* prefix = find_mounted(name)) {
        path = name + std::strlen(prefix);
        return {};
    }
    const char* kind = find_unreachable(name);
    if (kind == nullptr && forced != nullptr) {
        kind = find_unreachable(forced);
    }
    if (kind != nullptr) {
        return fail(MPI_ERR_IO,
                    "%s: \"%s\" names storage that this library can't reach: use the path of a "
                    "mounted file system without this prefix%s",
                    name, kind, kind == find_unreachable(name) ? "" : " and ROMIO_FSTYPE_FORCE");
    }
    return {};
}

} // namespace warren::io
