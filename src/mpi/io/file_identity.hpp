// FileIdentity: what tells a file from others, also as another node sees it.
//
// A file system of one kernel (ext4, tmpfs, …) is known by that kernel and the device. A shared one
// has other devices on other nodes: there the file's number in it counts, and when the file was
// made, where the file system knows that. Thread rule: values.
#pragma once

#include <cstdint>

namespace warren::io {

struct FileIdentity {
    std::uint64_t kernel = 0; // of a file system that only one kernel has, else 0
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    std::uint64_t made_ns = 0; // 0: unknown
};

FileIdentity identity_of(int descriptor);

// Whether two nodes, or two ranks of one, have the same file.
bool is_same_file(const FileIdentity& one, const FileIdentity& other);

} // namespace warren::io
