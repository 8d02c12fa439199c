#include "locality/log_end.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace warren::locality {

namespace {

// The offset behind the last byte that is not 0.
off_t end_of_data(int descriptor, off_t size) {
    char block[1 << 16];
    while (size > 0) {
        const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(sizeof block));
        const ssize_t bytes =
            pread(descriptor, block, static_cast<std::size_t>(size - begin), begin);
        if (bytes <= 0) {
            return size;
        }
        for (ssize_t at = bytes; at > 0; --at) {
            if (block[at - 1] != 0) {
                return begin + at;
            }
        }
        size = begin;
    }
    return 0;
}

template <typename Record>
void end_log(const std::string& folder, const char* what, std::vector<Loss>& losses) {
    const std::string path = folder + "/" + Record::file;
    const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) {
        return;
    }
    struct stat about {};
    FileHeader header{};
    if (fstat(descriptor, &about) == 0 &&
        pread(descriptor, &header, sizeof header, 0) == sizeof header &&
        std::memcmp(header.magic, file_magic, sizeof file_magic) == 0) {
        const auto data = static_cast<std::uint64_t>(end_of_data(descriptor, about.st_size));
        const std::uint64_t begin = std::min<std::uint64_t>(sizeof header, data);
        const std::uint64_t records = (data - begin + sizeof(Record) - 1) / sizeof(Record);
        const std::uint64_t end = sizeof header + records * sizeof(Record);
        if (end < static_cast<std::uint64_t>(about.st_size) &&
            ftruncate(descriptor, static_cast<off_t>(end)) != 0) {
            // The room stays as it is: readers skip it.
        }
        if (header.lost > 0) {
            losses.push_back({what, header.lost, "the disk was full or the limit reached"});
        }
    }
    close(descriptor);
}

} // namespace

void end_logs(const std::string& folder, std::vector<Loss>& losses) {
    end_log<AllocationRecord>(folder, "allocations", losses);
    end_log<StackRecord>(folder, "calls of allocations", losses);
    end_log<PhaseRecord>(folder, "phases", losses);
    end_log<NameRecord>(folder, "names", losses);
}

} // namespace warren::locality
