#include "image/module.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "image/open_file.hpp"
#include "warren/image.h"

// A leak detector's function, when the process has one: where pointers to allocated memory may be.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" [[gnu::weak]] void __lsan_register_root_region(const void* start, std::size_t bytes);
extern "C" [[gnu::weak]] void __lsan_unregister_root_region(const void* start, std::size_t bytes);
// NOLINTEND(readability-identifier-naming)

namespace warren::image {

namespace {

template <typename Tell>
void tell_leak_detector(const ElfFile& file, std::byte* base, Tell tell) {
    for (const Segment& segment : file.segments()) {
        if (tell != nullptr && segment.writable) {
            tell(base + segment.address, segment.memory_bytes);
        }
    }
}

int protection_of(const Segment& segment) {
    return (segment.readable ? PROT_READ : 0) | (segment.writable ? PROT_WRITE : 0) |
           (segment.executable ? PROT_EXEC : 0);
}

// Advice when the process may have no more mappings (an image takes one per segment), else
// nothing.
std::string remedy_of_mappings() {
    // (Streams of the C++ library would bring all of its locales along, into every process.)
    const auto open = [](const char* path) {
        return std::unique_ptr<FILE, int (*)(FILE*)>(std::fopen(path, "re"), std::fclose);
    };
    std::size_t limit = 0;
    const auto limits = open("/proc/sys/vm/max_map_count");
    const auto mappings = open("/proc/self/maps");
    if (limits == nullptr || mappings == nullptr || std::fscanf(limits.get(), "%zu", &limit) != 1) {
        return "";
    }
    std::size_t count = 0;
    for (int character = 0; (character = std::getc(mappings.get())) != EOF;) {
        count += character == '\n';
    }
    constexpr std::size_t nearly = 16;
    return count + nearly < limit
               ? ""
               : "; the process has as many mappings as vm.max_map_count allows, " +
                     std::to_string(limit) +
                     ": raise it (sysctl -w vm.max_map_count=" + std::to_string(4 * limit) +
                     "), or have fewer images";
}

Error map_failure(const ElfFile& file) {
    const int reason = errno;
    return fail(WARREN_IMAGE_ERR_MEMORY, "%s: mapping %llu bytes: %s%s", file.path().c_str(),
                static_cast<unsigned long long>(file.span()), std::strerror(reason),
                reason == ENOMEM ? remedy_of_mappings().c_str() : "");
}

// Address space of the span at the file's alignment, without memory.
std::byte* reserve(const ElfFile& file) {
    const std::uint64_t slack = file.alignment() - page_bytes;
    void* found = mmap(nullptr, file.span() + slack, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) {
        return nullptr;
    }
    auto* first = static_cast<std::byte*>(found);
    const auto address = reinterpret_cast<std::uintptr_t>(first);
    // The segments' addresses are aligned as they are, the mapping is as the lowest of them.
    const std::uint64_t before = (file.lowest() - address) & (file.alignment() - 1);
    if (before > 0) {
        munmap(first, before);
    }
    if (slack > before) {
        munmap(first + before + file.span(), slack - before);
    }
    return first + before;
}

bool map_segment(int descriptor, const Segment& segment, std::byte* base) {
    const std::uint64_t in_page = segment.address % page_bytes;
    std::byte* first = base + page_down(segment.address);
    std::byte* file_end = base + segment.address + segment.file_bytes;
    const std::uint64_t file_pages = segment.file_bytes == 0 //
                                         ? 0
                                         : page_up(in_page + segment.file_bytes);
    const std::uint64_t all_pages = page_up(in_page + segment.memory_bytes);
    const int protection = protection_of(segment);
    if (file_pages > 0 && mmap(first, file_pages, protection, MAP_PRIVATE | MAP_FIXED, descriptor,
                               static_cast<off_t>(segment.offset - in_page)) == MAP_FAILED) {
        return false;
    }
    if (all_pages > file_pages &&
        mmap(first + file_pages, all_pages - file_pages, protection,
             MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
        return false;
    }
    if (segment.memory_bytes > segment.file_bytes && file_pages > 0) {
        // The rest of the file's last page is not of this segment.
        std::byte* pages_end = first + file_pages;
        std::memset(file_end, 0, static_cast<std::size_t>(pages_end - file_end));
    }
    return true;
}

Error map_segments(const ElfFile& file, std::byte* base) {
    bool mapped = true;
    {
        OpenFile opened;
        int descriptor;
        if (Error error = file.open_again(opened, descriptor)) {
            return error;
        }
        for (const Segment& segment : file.segments()) {
            mapped = mapped && map_segment(descriptor, segment, base);
        }
    }
    return mapped ? Error{} : map_failure(file);
}

} // namespace

Module::~Module() {
    if (start != nullptr) {
        if (link.l_ld != nullptr) { // mapped to the end
            tell_leak_detector(*file, base, &__lsan_unregister_root_region);
        }
        munmap(start, file->span());
    }
}

Error Module::map() {
    start = reserve(*file);
    if (start == nullptr) {
        return map_failure(*file);
    }
    base = start - file->lowest();
    if (Error error = map_segments(*file, base)) {
        return error;
    }
    tell_leak_detector(*file, base, &__lsan_register_root_region);
    link.l_addr = reinterpret_cast<ElfW(Addr)>(base);
    link.l_name = const_cast<char*>(file->location().c_str());
    link.l_ld = reinterpret_cast<ElfW(Dyn)*>(at(file->dynamic().address));
    return {};
}

Error Module::protect() {
    const Range relro = file->relro();
    // The system's loader rounds both ends down: the last page may have other data too.
    const std::uint64_t first = page_down(relro.address);
    const std::uint64_t last = page_down(relro.address + relro.bytes);
    if (relro.bytes != 0 && last > first && mprotect(at(first), last - first, PROT_READ) != 0) {
        const int reason = errno;
        return fail(WARREN_IMAGE_ERR_MEMORY, "%s: mprotect: %s%s", file->path().c_str(),
                    std::strerror(reason), reason == ENOMEM ? remedy_of_mappings().c_str() : "");
    }
    return {};
}

} // namespace warren::image
