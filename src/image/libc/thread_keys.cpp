#include "image/libc/thread_keys.hpp"

#include <cerrno>
#include <new>

namespace warren::image {

namespace {

bool is_used(std::uint32_t use) {
    return use % 2 == 1;
}

} // namespace

KeyValue* KeyValues::find(pthread_key_t key, bool make) {
    if (key < keys_of_block) {
        return &first_[key];
    }
    std::unique_ptr<KeyValue[]>& block = further_[key / keys_of_block];
    if (block == nullptr && make) {
        block.reset(new (std::nothrow) KeyValue[keys_of_block]);
    }
    return block == nullptr ? nullptr : &block[key % keys_of_block];
}

ThreadKeys::~ThreadKeys() {
    for (const auto& block : blocks_) {
        delete block.load();
    }
}

ThreadKeys::Key* ThreadKeys::find(pthread_key_t key) const {
    if (key >= PTHREAD_KEYS_MAX) {
        return nullptr;
    }
    Block* block = blocks_[key / keys_of_block].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : &(*block)[key % keys_of_block];
}

int ThreadKeys::create(pthread_key_t& key, Destructor destructor) {
    const std::lock_guard guard(lock_);
    for (pthread_key_t number = 0; number < PTHREAD_KEYS_MAX; ++number) {
        Key* found = find(number);
        if (found == nullptr) {
            auto* block = new (std::nothrow) Block;
            if (block == nullptr) {
                return ENOMEM;
            }
            blocks_[number / keys_of_block].store(block, std::memory_order_release);
            found = &(*block)[number % keys_of_block];
        }
        const std::uint32_t use = found->use.load(std::memory_order_relaxed);
        if (!is_used(use)) {
            found->destructor.store(destructor, std::memory_order_relaxed);
            found->use.store(use + 1, std::memory_order_release);
            key = number;
            return 0;
        }
    }
    return EAGAIN;
}

int ThreadKeys::remove(pthread_key_t key) {
    const std::lock_guard guard(lock_);
    Key* found = find(key);
    const std::uint32_t use = found == nullptr ? 0 : found->use.load(std::memory_order_relaxed);
    if (!is_used(use)) {
        return EINVAL;
    }
    found->use.store(use + 1, std::memory_order_release);
    return 0;
}

int ThreadKeys::set(KeyValues& values, pthread_key_t key, void* value) {
    const Key* found = find(key);
    const std::uint32_t use = found == nullptr ? 0 : found->use.load(std::memory_order_acquire);
    if (!is_used(use)) {
        return EINVAL;
    }
    KeyValue* place = values.find(key, value != nullptr);
    if (place == nullptr) {
        return value == nullptr ? 0 : ENOMEM;
    }
    *place = {use, value};
    return 0;
}

void* ThreadKeys::get(KeyValues& values, pthread_key_t key) const {
    const Key* found = find(key);
    if (found == nullptr) {
        return nullptr;
    }
    const KeyValue* place = values.find(key, false);
    const bool counts =
        place != nullptr && place->use == found->use.load(std::memory_order_acquire);
    return counts ? place->value : nullptr;
}

void ThreadKeys::run_destructors(KeyValues& values) {
    bool again = true;
    for (int round = 0; again && round < PTHREAD_DESTRUCTOR_ITERATIONS; ++round) {
        again = false;
        for (pthread_key_t number = 0; number < PTHREAD_KEYS_MAX; ++number) {
            const Key* key = find(number);
            if (key == nullptr) {
                number += keys_of_block - 1;
                continue;
            }
            void* value = get(values, number);
            const Destructor destructor = key->destructor.load(std::memory_order_relaxed);
            if (value != nullptr && destructor != nullptr) {
                values.find(number, false)->value = nullptr;
                destructor(value);
                again = true;
            }
        }
    }
}

} // namespace warren::image
