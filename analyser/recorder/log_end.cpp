#include "analyser/recorder/log_end.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "analyser/recorder/log_sum.hpp"

namespace warren::locality {

namespace {

// Offset behind the last byte that is not 0.
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

// Adds the length and checksum of the file as it is now. An unreadable file is left out.
void sum_up(int descriptor, const char* name, std::vector<FileSum>& files) {
    FileSum sum{name, 0, 0};
    Checksum checksum;
    std::vector<char> block(std::size_t{1} << 18);
    ssize_t bytes = 0;
    while ((bytes = pread(descriptor, block.data(), block.size(), static_cast<off_t>(sum.bytes))) >
           0) {
        checksum.add(block.data(), static_cast<std::size_t>(bytes));
        sum.bytes += static_cast<std::uint64_t>(bytes);
    }
    if (bytes == 0) {
        sum.crc32 = checksum.value();
        files.push_back(sum);
    }
}

void end_log(const std::string& folder, const TrackedLog& log, ProcessDescription& description) {
    const std::string path = folder + "/" + log.file;
    const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) {
        if (errno != ENOENT) {
            description.lost.push_back({log.what, Loss::all, path + ": " + std::strerror(errno)});
        }
        return;
    }
    struct stat about {};
    FileHeader header{};
    if (fstat(descriptor, &about) == 0 &&
        pread(descriptor, &header, sizeof header, 0) == sizeof header &&
        std::memcmp(header.magic, file_magic, sizeof file_magic) == 0) {
        const auto data = static_cast<std::uint64_t>(end_of_data(descriptor, about.st_size));
        const std::uint64_t begin = std::min<std::uint64_t>(sizeof header, data);
        const std::uint64_t records = (data - begin + log.record_bytes - 1) / log.record_bytes;
        const std::uint64_t end = sizeof header + records * log.record_bytes;
        if (end < static_cast<std::uint64_t>(about.st_size) &&
            ftruncate(descriptor, static_cast<off_t>(end)) != 0) {
            // The unused space stays: readers skip it.
        }
        if (header.lost > 0) {
            description.lost.push_back({log.what, header.lost, no_space_for_log});
        }
    } else {
        description.lost.push_back({log.what, Loss::all, no_space_for_log});
    }
    sum_up(descriptor, log.file, description.files);
    close(descriptor);
}

} // namespace

FolderPlace::~FolderPlace() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

void FolderPlace::open(const std::string& path) {
    descriptor_ = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

std::string FolderPlace::path(const std::string& otherwise) const {
    return descriptor_ < 0 ? otherwise : "/proc/self/fd/" + std::to_string(descriptor_);
}

void end_logs(const std::string& folder, ProcessDescription& description) {
    for (const TrackedLog& log : tracked_logs) {
        end_log(folder, log, description);
    }
}

} // namespace warren::locality
