#include "image/libc/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/architecture.hpp"
#include "warren/image.h"

namespace warren::image {

namespace {

// The kind of a mutex that is made with an attribute (pthread_mutex.cpp).
template <typename Set>
int mutex_kind(Set set) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    set(&attributes);
    pthread_mutex_t mutex;
    pthread_mutex_init(&mutex, &attributes);
    const int kind = mutex.__data.__kind;
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_destroy(&attributes);
    return kind;
}

bool knows_mutexes() {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    bool known = mutex.__data.__lock == 0 && pthread_mutex_lock(&mutex) == 0;
    known = known && mutex.__data.__lock == 1 &&
            mutex.__data.__owner == static_cast<int>(syscall(SYS_gettid));
    known = known && pthread_mutex_unlock(&mutex) == 0 && mutex.__data.__lock == 0;
    return known && mutex_kind([](auto* one) {
                        pthread_mutexattr_settype(one, PTHREAD_MUTEX_ERRORCHECK);
                    }) == PTHREAD_MUTEX_ERRORCHECK_NP &&
           mutex_kind([](auto* one) { pthread_mutexattr_setrobust(one, PTHREAD_MUTEX_ROBUST); }) ==
               (16 | 128) &&
           mutex_kind(
               [](auto* one) { pthread_mutexattr_setprotocol(one, PTHREAD_PRIO_INHERIT); }) == 32 &&
           mutex_kind(
               [](auto* one) { pthread_mutexattr_setpshared(one, PTHREAD_PROCESS_SHARED); }) == 128;
}

bool knows_read_write_locks() {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    const unsigned& readers = lock.__data.__readers;
    bool known = readers == 0 && pthread_rwlock_rdlock(&lock) == 0;
    known = known && readers >> 3 == 1 && pthread_rwlock_rdlock(&lock) == 0 && readers >> 3 == 2;
    known = known && pthread_rwlock_unlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0;
    known = known && pthread_rwlock_wrlock(&lock) == 0 && readers == 3; // the phase and the lock
    known = known && pthread_rwlock_unlock(&lock) == 0 && readers >> 1 == 0;
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_t other;
    pthread_rwlock_init(&other, &attributes);
    known = known && other.__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP &&
            other.__data.__shared != 0 && lock.__data.__shared == 0;
    pthread_rwlock_destroy(&other);
    pthread_rwlockattr_destroy(&attributes);
    return known;
}

std::size_t flags_word = offsetof(pthread_cond_t, __data.__wrefs) / sizeof(std::uint32_t);

bool knows_conditions() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    const auto made = [&attributes] {
        pthread_cond_t condition;
        ConditionWords words{};
        std::memset(&condition, 0, sizeof condition);
        pthread_cond_init(&condition, &attributes);
        static_assert(sizeof words == sizeof condition);
        std::memcpy(words.data(), &condition, sizeof words);
        return words;
    };
    const ConditionWords plain = made();
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const ConditionWords monotonic = made();
    pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    const ConditionWords shared = made();
    pthread_condattr_destroy(&attributes);
    const std::size_t word = word_of_flags(plain, monotonic, shared);
    if (word == plain.size()) {
        return false;
    }
    flags_word = word;
    return true;
}

bool knows_semaphores() {
    const auto words = [](int shared, unsigned value) {
        sem_t semaphore;
        std::array<std::uint32_t, sizeof semaphore / sizeof(std::uint32_t)> all{};
        sem_init(&semaphore, shared, value);
        std::memcpy(all.data(), &semaphore, sizeof semaphore);
        return all;
    };
    return words(0, 77)[0] == 77 && words(0, 77)[1] == 0 && words(0, 77)[2] == 0 &&
           words(1, 77)[0] == 77 && words(1, 77)[2] != 0;
}

bool knows_barriers() {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, 3);
    std::array<std::uint32_t, 5> words{};
    static_assert(sizeof words <= sizeof barrier);
    std::memcpy(words.data(), &barrier, sizeof words);
    pthread_barrier_destroy(&barrier);
    return words == std::array<std::uint32_t, 5>{0, 0, 3, 0, 0};
}

bool knows_once() {
    static pthread_once_t control = PTHREAD_ONCE_INIT;
    pthread_once(&control, [] {});
    return (static_cast<std::uint32_t>(control) & 3) == 2;
}

// Their descriptor and what they have read (stdio.cpp).
bool knows_streams() {
    char text[] = "two";
    std::FILE* stream = fmemopen(text, sizeof text, "r");
    bool known = stream != nullptr && std::fgetc(stream) == 't' &&
                 stream->_IO_read_ptr < stream->_IO_read_end && *stream->_IO_read_ptr == 'w';
    if (stream != nullptr) {
        std::fclose(stream);
    }
    const int copy = dup(STDERR_FILENO);
    std::FILE* other = copy < 0 ? nullptr : fdopen(copy, "w");
    if (other != nullptr) {
        known = known && other->_fileno == copy;
        std::fclose(other);
    }
    return known;
}

bool knows_random_numbers() {
    std::array<char, 128> memory{};
    random_data state{};
    return initstate_r(1, memory.data(), memory.size(), &state) == 0 &&
           reinterpret_cast<char*>(state.state - 1) == memory.data();
}

// A thread's name is its thread pointer: fibres switch between such.
bool knows_threads() {
    return pthread_self() == reinterpret_cast<pthread_t>(architecture::thread_pointer());
}

constexpr LayoutCheck all_checks[] = {
    {"threads", knows_threads},
    {"mutexes", knows_mutexes},
    {"read-write locks", knows_read_write_locks},
    {"condition variables", knows_conditions},
    {"semaphores", knows_semaphores},
    {"barriers", knows_barriers},
    {"pthread_once", knows_once},
    {"streams", knows_streams},
    {"the state of random numbers", knows_random_numbers},
};

} // namespace

std::size_t word_of_flags(const ConditionWords& plain, const ConditionWords& monotonic,
                          const ConditionWords& shared) {
    std::size_t found = plain.size();
    for (std::size_t i = 0; i != plain.size(); ++i) {
        if (plain[i] == 0 && monotonic[i] == 2 && shared[i] == 3 && found == plain.size()) {
            found = i;
        } else if (monotonic[i] != plain[i] || shared[i] != plain[i]) {
            return plain.size();
        }
    }
    return found;
}

std::uint32_t condition_flags(const pthread_cond_t& condition) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(&condition);
    return __atomic_load_n(words + flags_word, __ATOMIC_RELAXED);
}

std::span<const LayoutCheck> layout_checks() {
    return all_checks;
}

Error check_layout(std::span<const LayoutCheck> checks) {
    for (const LayoutCheck& check : checks) {
        if (!check.is_known()) {
            return fail(WARREN_IMAGE_ERR_HOST,
                        "glibc %s keeps %s in another way than glibc %d.%d, with which Warren was "
                        "built: build it again here, or run ranks as processes",
                        gnu_get_libc_version(), check.what, __GLIBC__, __GLIBC_MINOR__);
        }
    }
    return {};
}

} // namespace warren::image
