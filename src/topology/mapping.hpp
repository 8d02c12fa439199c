// ImageMemory: the memory that a topology image is in, from wherever it comes.
//
// A sealed memory file is mapped as it is, and shared by all that map it: nobody can change, shrink
// or grow it, so what has been checked stays true, and reading it can't end the process. A file can
// be changed by its owner at any time, and is therefore copied to private memory before it is
// checked. Files of other users than the caller (or root) are refused. Thread rule: a value that
// can be moved.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <sys/stat.h>
#include <utility>

#include "base/error.hpp"

namespace warren::topology {

class ImageMemory {
  public:
    ImageMemory() = default;
    ImageMemory(ImageMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
    ImageMemory& operator=(ImageMemory&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~ImageMemory();

    // Maps the memory file in `descriptor`, which stays the caller's. Errors:
    // WARREN_TOPOLOGY_ERR_FILE (no descriptor; not sealed), _OWNER, _DAMAGED (an impossible size).
    static Error map(int descriptor, ImageMemory& memory);

    // Reads a file. Errors: the same.
    static Error read(const std::string& path, ImageMemory& memory);

    // Copies what is somewhere already.
    static Error copy(std::span<const std::byte> bytes, ImageMemory& memory);

    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    static Error reserve(std::size_t count, ImageMemory& memory, std::byte*& bytes);

    std::span<const std::byte> bytes_;
};

// Seals that the memory file of an image needs: F_SEAL_… of fcntl.
extern const int image_seals;

// An empty memory file for an image: a descriptor that is closed on exec.
Error make_image_file(int& descriptor);

// Writes the image to such a file and seals it.
Error fill_image_file(int descriptor, std::span<const std::byte> image);

// A sealed memory file with the image, for others to map: a descriptor that is closed on exec.
Error share_image(std::span<const std::byte> image, int& descriptor);

// Writes the image to a file that only its owner can change: whole or not at all.
Error write_image(std::span<const std::byte> image, const std::string& path);

// Refuses what belongs neither to this user nor to root: the rule for all files and folders that
// say what a machine is. `what` names it.
Error check_owner(const struct stat& status, const std::string& what);
// Like check_owner(), and refuses what is no plain file.
Error check_plain_file(const struct stat& status, const std::string& what);

} // namespace warren::topology
