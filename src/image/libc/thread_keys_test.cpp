#include "image/libc/thread_keys.hpp"

#include <cerrno>
#include <gtest/gtest.h>
#include <memory>
#include <set>

namespace warren::image {

namespace {

struct Recorder {
    ThreadKeys* keys = nullptr;
    KeyValues* values = nullptr;
    pthread_key_t again = 0;
    int runs = 0;
};
Recorder recorder;

TEST(ThreadKeys, are_as_many_as_a_process_has) {
    ThreadKeys keys;
    std::set<pthread_key_t> made;
    pthread_key_t key = 0;
    while (keys.create(key, nullptr) == 0) {
        EXPECT_TRUE(made.insert(key).second);
    }
    EXPECT_EQ(made.size(), static_cast<std::size_t>(PTHREAD_KEYS_MAX));
    EXPECT_EQ(keys.create(key, nullptr), EAGAIN);
    EXPECT_EQ(keys.remove(500), 0);
    EXPECT_EQ(keys.create(key, nullptr), 0);
    EXPECT_EQ(key, 500U);
}

TEST(ThreadKeys, forget_values_of_removed_keys) {
    ThreadKeys keys;
    KeyValues values;
    KeyValues others;
    pthread_key_t key = 0;
    int one = 1;
    ASSERT_EQ(keys.create(key, nullptr), 0);
    EXPECT_EQ(keys.get(values, key), nullptr);
    EXPECT_EQ(keys.set(values, key, &one), 0);
    EXPECT_EQ(keys.get(values, key), &one);
    EXPECT_EQ(keys.get(others, key), nullptr);
    EXPECT_EQ(keys.remove(key), 0);
    EXPECT_EQ(keys.remove(key), EINVAL);
    EXPECT_EQ(keys.set(values, key, &one), EINVAL);
    ASSERT_EQ(keys.create(key, nullptr), 0);
    EXPECT_EQ(keys.get(values, key), nullptr);
    for (const pthread_key_t wrong : {pthread_key_t{7}, pthread_key_t{PTHREAD_KEYS_MAX}}) {
        EXPECT_EQ(keys.set(values, wrong, &one), EINVAL);
        EXPECT_EQ(keys.get(values, wrong), nullptr);
        EXPECT_EQ(keys.remove(wrong), EINVAL);
    }
}

TEST(ThreadKeys, run_destructors_in_rounds) {
    ThreadKeys keys;
    KeyValues values;
    pthread_key_t none = 0;
    pthread_key_t late = 0;
    int one = 1;
    ASSERT_EQ(keys.create(none, nullptr), 0);
    recorder = {&keys, &values, 0, 0};
    ASSERT_EQ(keys.create(recorder.again,
                          [](void* value) {
                              ++recorder.runs;
                              recorder.keys->set(*recorder.values, recorder.again, value);
                          }),
              0);
    for (int i = 0; i < 40; ++i) { // beyond the first block
        ASSERT_EQ(keys.create(late, [](void* value) { *static_cast<int*>(value) += 1; }), 0);
    }
    keys.set(values, none, &one);
    keys.set(values, recorder.again, &one);
    keys.set(values, late, &one);
    keys.run_destructors(values);
    EXPECT_EQ(recorder.runs, PTHREAD_DESTRUCTOR_ITERATIONS);
    EXPECT_EQ(one, 2);
    EXPECT_EQ(keys.get(values, none), &one);
    EXPECT_EQ(keys.get(values, late), nullptr);
}

} // namespace

} // namespace warren::image
