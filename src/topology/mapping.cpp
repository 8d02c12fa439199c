#include "topology/mapping.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "topology/format.hpp"
#include "warren/topology.h"

namespace warren::topology {

namespace {

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) {
            close(number_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return number_; }
    int release() { return std::exchange(number_, -1); }

  private:
    int number_;
};

Error file_error(const std::string& what) {
    return fail(WARREN_TOPOLOGY_ERR_FILE, "%s: %s", what.c_str(), std::strerror(errno));
}

Error check_size(const struct stat& status, const std::string& what) {
    if (status.st_size < static_cast<off_t>(sizeof(Header)) ||
        status.st_size > static_cast<off_t>(max_image_bytes)) {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "%s: %lld bytes are no topology image",
                    what.c_str(), static_cast<long long>(status.st_size));
    }
    return {};
}

Error write_all(int descriptor, std::span<const std::byte> bytes, const std::string& what) {
    while (!bytes.empty()) {
        const ssize_t written = write(descriptor, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) {
            return file_error(what);
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written < 0 ? 0 : written));
    }
    return {};
}

} // namespace

const int image_seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

Error check_owner(const struct stat& status, const std::string& what) {
    return status.st_uid == 0 || status.st_uid == geteuid()
               ? Error{}
               : fail(WARREN_TOPOLOGY_ERR_OWNER,
                      "%s belongs to user %u, neither to you nor to root: copy it if you trust it",
                      what.c_str(), status.st_uid);
}

Error check_plain_file(const struct stat& status, const std::string& what) {
    if (Error error = check_owner(status, what)) {
        return error;
    }
    return S_ISREG(status.st_mode)
               ? Error{}
               : fail(WARREN_TOPOLOGY_ERR_FILE, "%s is no plain file", what.c_str());
}

ImageMemory::~ImageMemory() {
    if (!bytes_.empty()) {
        munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

Error ImageMemory::map(int descriptor, ImageMemory& memory) {
    const std::string what = "descriptor " + std::to_string(descriptor);
    struct stat status {};
    if (fstat(descriptor, &status) != 0) {
        return file_error(what);
    }
    if (Error error = check_plain_file(status, what)) {
        return error;
    }
    const int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || (seals & image_seals) != image_seals) {
        return fail(WARREN_TOPOLOGY_ERR_FILE,
                    "%s is no memory file that is sealed against writing, shrinking and growing",
                    what.c_str());
    }
    if (Error error = check_size(status, what)) {
        return error;
    }
    const auto count = static_cast<std::size_t>(status.st_size);
    // Not populated at once: the kernel is quicker when the first access has it map 16 pages.
    void* mapped = mmap(nullptr, count, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) {
        return file_error(what);
    }
    ImageMemory own;
    own.bytes_ = {static_cast<const std::byte*>(mapped), count};
    memory = std::move(own);
    return {};
}

Error ImageMemory::reserve(std::size_t count, ImageMemory& memory, std::byte*& bytes) {
    void* mapped = mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return fail(WARREN_TOPOLOGY_ERR_MEMORY, "no memory for an image of %zu bytes", count);
    }
    bytes = static_cast<std::byte*>(mapped);
    ImageMemory own;
    own.bytes_ = {bytes, count};
    memory = std::move(own);
    return {};
}

Error ImageMemory::copy(std::span<const std::byte> bytes, ImageMemory& memory) {
    std::byte* own = nullptr;
    if (bytes.empty()) {
        return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "an empty topology image");
    }
    if (Error error = reserve(bytes.size(), memory, own)) {
        return error;
    }
    std::memcpy(own, bytes.data(), bytes.size());
    mprotect(own, bytes.size(), PROT_READ);
    return {};
}

Error ImageMemory::read(const std::string& path, ImageMemory& memory) {
    // Not to wait for whoever opens the other end, if this is no plain file.
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file.get() < 0) {
        return file_error(path);
    }
    struct stat status {};
    if (fstat(file.get(), &status) != 0) {
        return file_error(path);
    }
    if (Error error = check_plain_file(status, path)) {
        return error;
    }
    if (Error error = check_size(status, path)) {
        return error;
    }
    const auto count = static_cast<std::size_t>(status.st_size);
    ImageMemory own;
    std::byte* bytes = nullptr;
    if (Error error = reserve(count, own, bytes)) {
        return error;
    }
    for (std::size_t done = 0; done < count;) {
        const ssize_t got = ::read(file.get(), bytes + done, count - done);
        if (got < 0 && errno != EINTR) {
            return file_error(path);
        }
        if (got == 0) {
            return fail(WARREN_TOPOLOGY_ERR_DAMAGED, "%s became shorter while it was read",
                        path.c_str());
        }
        done += static_cast<std::size_t>(got < 0 ? 0 : got);
    }
    mprotect(bytes, count, PROT_READ);
    memory = std::move(own);
    return {};
}

namespace {

constexpr const char* image_file = "a memory file for the topology";

} // namespace

Error make_image_file(int& descriptor) {
    descriptor = memfd_create("warren-topology", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return descriptor >= 0 ? Error{} : file_error(image_file);
}

Error fill_image_file(int descriptor, std::span<const std::byte> image) {
    if (Error error = write_all(descriptor, image, image_file)) {
        return error;
    }
    return fcntl(descriptor, F_ADD_SEALS, image_seals | F_SEAL_SEAL) == 0 ? Error{}
                                                                          : file_error(image_file);
}

Error share_image(std::span<const std::byte> image, int& descriptor) {
    int made = -1;
    if (Error error = make_image_file(made)) {
        return error;
    }
    Descriptor file(made);
    if (Error error = fill_image_file(file.get(), image)) {
        return error;
    }
    descriptor = file.release();
    return {};
}

Error write_image(std::span<const std::byte> image, const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        // The new file takes over the name, so anything but a plain file would be lost.
        return fail(WARREN_TOPOLOGY_ERR_FILE, "%s is no plain file", path.c_str());
    }
    std::string temporary = path + ".XXXXXX";
    Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));
    if (file.get() < 0) {
        return file_error(temporary);
    }
    constexpr mode_t readable = S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH;
    Error error = write_all(file.get(), image, temporary);
    if (!error && (fchmod(file.get(), readable) != 0 || fsync(file.get()) != 0 ||
                   std::rename(temporary.c_str(), path.c_str()) != 0)) {
        error = file_error(path);
    }
    if (error) {
        unlink(temporary.c_str());
    }
    return error;
}

} // namespace warren::topology
