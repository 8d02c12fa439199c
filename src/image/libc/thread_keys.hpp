// ThreadKeys: an image's keys of thread-specific data, and KeyValues: a thread's values. The C
// library has 1,024 keys for all images together; each image has as many.
//
// Thread rule: any thread of the image; values are their thread's. Reading and setting a value
// takes no lock. Invariant: a key's number of uses is odd while the key is in use, and a value
// counts only if it was set during the same use.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <pthread.h>

namespace warren::image {

struct KeyValue {
    std::uint32_t use = 0;
    void* value = nullptr;
};

inline constexpr std::size_t keys_of_block = 32;
inline constexpr std::size_t key_blocks = PTHREAD_KEYS_MAX / keys_of_block;

class KeyValues {
  public:
    // Null: there is none, and with `make` no memory for one. `key` is below PTHREAD_KEYS_MAX.
    KeyValue* find(pthread_key_t key, bool make);

  private:
    std::array<KeyValue, keys_of_block> first_{};
    std::array<std::unique_ptr<KeyValue[]>, key_blocks> further_{}; // the first is not used
};

class ThreadKeys {
  public:
    using Destructor = void (*)(void*);

    ThreadKeys() = default;
    ThreadKeys(const ThreadKeys&) = delete;
    ThreadKeys& operator=(const ThreadKeys&) = delete;
    ~ThreadKeys();

    // They return an errno, as pthread_key_create and its kin do.
    int create(pthread_key_t& key, Destructor destructor);
    int remove(pthread_key_t key);
    int set(KeyValues& values, pthread_key_t key, void* value);
    void* get(KeyValues& values, pthread_key_t key) const;
    // Calls the destructors of a thread's values, again while these set others, a few times.
    void run_destructors(KeyValues& values);
    // In a child of fork, where another thread may have held the lock.
    void renew_lock() { std::construct_at(&lock_); }

  private:
    struct Key {
        std::atomic<std::uint32_t> use{0};
        std::atomic<Destructor> destructor{nullptr};
    };
    using Block = std::array<Key, keys_of_block>;

    Key* find(pthread_key_t key) const;

    std::mutex lock_; // of who creates and removes keys
    std::array<std::atomic<Block*>, key_blocks> blocks_{};
};

} // namespace warren::image
