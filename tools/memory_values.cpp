#include "memory_values.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace warren::tools {

bool continue_values(const std::string& path, topology::ValuesFile& file) {
    if (access(path.c_str(), F_OK) != 0) {
        return true;
    }
    topology::ValuesFile former;
    if (Error error = topology::read_values(path, former)) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        std::fprintf(stderr, "warren mem: %s; remove it to begin anew\n", record->text.c_str());
        return false;
    }
    const std::string differs = topology::difference(former.machine, file.machine);
    if (!differs.empty()) {
        std::fprintf(stderr, "warren mem: %s is of another machine: %s\n", path.c_str(),
                     differs.c_str());
        return false;
    }
    file.values = std::move(former.values);
    return true;
}

bool write_values(const std::string& path, const topology::ValuesFile& file) {
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
        // The new file takes its name, so a device or pipe would be gone.
        std::fprintf(stderr, "warren mem: can't write %s: it is no plain file\n", path.c_str());
        return false;
    }
    std::error_code ignored; // the file can't be opened then, which is said
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    const std::string part = path + "." + std::to_string(getpid());
    const std::string text = topology::text_of(file);
    std::FILE* made = std::fopen(part.c_str(), "we");
    bool good = made != nullptr && std::fwrite(text.data(), 1, text.size(), made) == text.size();
    good = made != nullptr && std::fclose(made) == 0 && good;
    good = good && std::rename(part.c_str(), path.c_str()) == 0;
    if (!good) {
        std::fprintf(stderr, "warren mem: can't write %s: %s\n", path.c_str(),
                     std::strerror(errno));
        unlink(part.c_str());
    }
    return good;
}

} // namespace warren::tools
