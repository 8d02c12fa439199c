#include "image/open_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

namespace warren::image {

namespace {

// One that lets writers wait while readers come would never let them in where thousands of ranks
// begin.
pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

// In a child of fork nobody else holds it.
[[gnu::constructor]] void guard_forks() {
    pthread_atfork(nullptr, nullptr,
                   [] { lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP; });
}

} // namespace

NoOpenFiles::NoOpenFiles() {
    pthread_rwlock_wrlock(&lock);
}

NoOpenFiles::~NoOpenFiles() {
    pthread_rwlock_unlock(&lock);
}

MayOpenFiles::MayOpenFiles() {
    pthread_rwlock_rdlock(&lock);
}

MayOpenFiles::~MayOpenFiles() {
    pthread_rwlock_unlock(&lock);
}

OpenFile::OpenFile(const char* path) : number_(open(path, O_RDONLY | O_CLOEXEC)) {}

OpenFile::~OpenFile() {
    if (number_ >= 0) {
        close(number_);
    }
}

} // namespace warren::image
