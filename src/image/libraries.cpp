#include "image/libraries.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/open_file.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

constexpr const char* cache_path = "/etc/ld.so.cache";
#if defined(__x86_64__)
constexpr const char* system_folders = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
                                       "/lib64:/usr/lib64:/lib:/usr/lib";
constexpr std::int32_t cache_flags = 0x303; // x86-64, for this C library
#elif defined(__aarch64__)
constexpr const char* system_folders = "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
                                       "/lib64:/usr/lib64:/lib:/usr/lib";
constexpr std::int32_t cache_flags = 0xa03; // AArch64, for this C library
#endif

// The cache's format: "glibc-ld.so.cache1.1", then entries; names are offsets from the start.
struct CacheHeader {
    char magic[20];
    std::uint32_t entries;
    std::uint32_t string_bytes;
    std::uint32_t unused[5];
};
struct CacheEntry {
    std::int32_t flags;
    std::uint32_t name;
    std::uint32_t path;
    std::uint32_t system_version;
    std::uint64_t capabilities; // of the processor; the plain builds have 0
};

class SystemCache {
  public:
    SystemCache() {
        const OpenFile file(cache_path);
        struct stat status {};
        if (file.number() >= 0 && fstat(file.number(), &status) == 0 && status.st_size > 0) {
            bytes_ = static_cast<std::size_t>(status.st_size);
            void* view = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file.number(), 0);
            start_ = view == MAP_FAILED ? nullptr : static_cast<const char*>(view);
        }
    }
    SystemCache(const SystemCache&) = delete;
    SystemCache& operator=(const SystemCache&) = delete;
    ~SystemCache() {
        if (start_ != nullptr) {
            munmap(const_cast<char*>(start_), bytes_);
        }
    }

    std::string find(const std::string& name) const {
        CacheHeader header;
        if (start_ == nullptr || bytes_ < sizeof header) {
            return "";
        }
        std::memcpy(&header, start_, sizeof header);
        if (std::memcmp(header.magic, "glibc-ld.so.cache1.1", sizeof header.magic) != 0 ||
            header.entries > (bytes_ - sizeof header) / sizeof(CacheEntry)) {
            return "";
        }
        for (std::uint32_t i = 0; i < header.entries; ++i) {
            CacheEntry entry;
            std::memcpy(&entry, start_ + sizeof header + i * sizeof entry, sizeof entry);
            if (entry.flags == cache_flags && entry.capabilities == 0 && text(entry.name) == name) {
                return text(entry.path);
            }
        }
        return "";
    }

  private:
    std::string text(std::uint32_t offset) const {
        return offset >= bytes_
                   ? ""
                   : std::string(start_ + offset, strnlen(start_ + offset, bytes_ - offset));
    }

    const char* start_ = nullptr;
    std::size_t bytes_ = 0;
};

// Replaces $ORIGIN in a folder of a file's search path by the folder of the file.
std::string expand(std::string folder, const ElfFile& file) {
    const std::size_t slash = file.path().rfind('/');
    const std::string origin = slash == std::string::npos ? "." : file.path().substr(0, slash);
    for (const char* word : {"$ORIGIN", "${ORIGIN}"}) {
        for (std::size_t at = folder.find(word); at != std::string::npos; at = folder.find(word)) {
            folder.replace(at, std::strlen(word), origin);
        }
    }
    return folder;
}

class Search {
  public:
    explicit Search(const std::string& name) : name_(name) {}

    // Looks into each folder of a list. True when the search is over.
    bool in(const char* folders, const ElfFile* owner) {
        std::string rest = folders == nullptr ? "" : folders;
        while (!rest.empty()) {
            const std::size_t colon = rest.find(':');
            std::string folder = rest.substr(0, colon);
            rest.erase(0, colon == std::string::npos ? colon : colon + 1);
            folder = owner != nullptr ? expand(folder, *owner) : folder;
            if (!folder.empty() && at(folder + "/" + name_)) {
                return true;
            }
        }
        return false;
    }

    bool at(const std::string& path) {
        if (path.empty() || access(path.c_str(), R_OK) != 0) {
            return false;
        }
        Error error = open_file(path, file);
        if (error && error.error_class() == WARREN_IMAGE_ERR_UNSUITABLE) {
            error.drop(); // another machine's: there may be one for this further on
            return false;
        }
        failure = error;
        return true;
    }

    FilePointer file;
    Error failure;

  private:
    const std::string& name_;
};

bool search(Search& search, const std::string& name, const std::vector<const ElfFile*>& chain) {
    if (name.find('/') != std::string::npos) {
        return search.at(name);
    }
    if (search.in(std::getenv(first_folders_variable), nullptr)) {
        return true;
    }
    const char* runpath = chain.empty() ? nullptr : chain.front()->dynamic().runpath;
    if (runpath == nullptr) {
        for (const ElfFile* file : chain) {
            if (file->dynamic().runpath == nullptr && search.in(file->dynamic().rpath, file)) {
                return true;
            }
        }
    }
    if (search.in(std::getenv("LD_LIBRARY_PATH"), nullptr) ||
        (runpath != nullptr && search.in(runpath, chain.front()))) {
        return true;
    }
    static const SystemCache cache;
    return search.at(cache.find(name)) || search.in(system_folders, nullptr);
}

} // namespace

Error open_file(const std::string& path, FilePointer& file) {
    static std::mutex lock;
    static std::map<std::string, std::weak_ptr<const ElfFile>> opened;
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
        return fail(WARREN_IMAGE_ERR_FILE, "%s: %s", path.c_str(), std::strerror(errno));
    }
    const std::lock_guard guard(lock);
    std::weak_ptr<const ElfFile>& known = opened[path];
    file = known.lock();
    if (file != nullptr && file->identity() == identity_of(status)) {
        return {};
    }
    if (Error error = ElfFile::open(path, file)) {
        opened.erase(path);
        return error;
    }
    known = file;
    return {};
}

Error find_library(const std::string& name, const std::vector<const ElfFile*>& chain,
                   FilePointer& file) {
    Search found(name);
    if (!search(found, name, chain)) {
        return fail(WARREN_IMAGE_ERR_FILE,
                    "%s: cannot open shared object file: No such file or directory (%s needs it: "
                    "set LD_LIBRARY_PATH)",
                    name.c_str(), chain.empty() ? "the caller" : chain.front()->path().c_str());
    }
    file = std::move(found.file);
    return found.failure;
}

bool is_system_library(const std::string& name) {
    // glibc's parts keep state that the kernel and the loader know of; unwinders, sanitizers and
    // the library that counts accesses look at all of a process; libquadmath makes its functions
    // printf's for all.
    static constexpr const char* names[] = {"libc.so.",
                                            "libm.so.",
                                            "libpthread.so.",
                                            "libdl.so.",
                                            "librt.so.",
                                            "libutil.so.",
                                            "libresolv.so",
                                            "libanl.so.",
                                            "libmvec.so.",
                                            "libnsl.so.",
                                            "libnss_",
                                            "ld-linux",
                                            "linux-vdso.so.",
                                            "libgcc_s.so.",
                                            "libthread_db.so.",
                                            "libasan.so.",
                                            "liblsan.so.",
                                            "libtsan.so.",
                                            "libubsan.so.",
                                            "libhwasan.so.",
                                            "libBrokenLocale.so.",
                                            "libquadmath.so.",
                                            "libwarren-hooks.so."};
    for (const char* start : names) {
        if (name.starts_with(start)) {
            return true;
        }
    }
    return false;
}

} // namespace warren::image
