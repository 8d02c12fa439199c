#include "image/open_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace warren::image {

// (O_NONBLOCK: a pipe has no end of waiting.)
void OpenFile::open(const char* path) {
    number_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

OpenFile::~OpenFile() {
    close();
}

void OpenFile::close() {
    if (number_ >= 0) {
        ::close(std::exchange(number_, -1));
    }
}

} // namespace warren::image
