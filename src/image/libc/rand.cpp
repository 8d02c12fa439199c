// Random numbers, strtok, broken-down times: the C library's own algorithms on the image's state.
#include <cerrno>
#include <cstring>
#include <ctime>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::inside {

long random_number() {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.random_lock);
    std::int32_t number = 0;
    random_r(&state.random, &number);
    return number;
}

int short_random_number() {
    return static_cast<int>(random_number());
}

int refuse_conversion() {
    errno = ENOTSUP;
    return -1;
}

void seed_random(unsigned seed) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.random_lock);
    srandom_r(seed, &state.random);
}

char* begin_random_state(unsigned seed, char* memory, std::size_t bytes) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.random_lock);
    // The C library gives the start of the state before: where its words are, less the first.
    char* before = reinterpret_cast<char*>(state.random.state - 1);
    return initstate_r(seed, memory, bytes, &state.random) == 0 ? before : nullptr;
}

char* set_random_state(char* memory) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.random_lock);
    char* before = reinterpret_cast<char*>(state.random.state - 1);
    return setstate_r(memory, &state.random) == 0 ? before : nullptr;
}

double drand48_number() {
    LibcState& state = LibcState::current();
    double number = 0;
    drand48_r(&state.random48, &number);
    return number;
}

double erand48_number(unsigned short* words) {
    double number = 0;
    erand48_r(words, &LibcState::current().random48, &number);
    return number;
}

long lrand48_number() {
    long number = 0;
    lrand48_r(&LibcState::current().random48, &number);
    return number;
}

long nrand48_number(unsigned short* words) {
    long number = 0;
    nrand48_r(words, &LibcState::current().random48, &number);
    return number;
}

long mrand48_number() {
    long number = 0;
    mrand48_r(&LibcState::current().random48, &number);
    return number;
}

long jrand48_number(unsigned short* words) {
    long number = 0;
    jrand48_r(words, &LibcState::current().random48, &number);
    return number;
}

void seed_random48(long seed) {
    srand48_r(seed, &LibcState::current().random48);
}

unsigned short* set_random48(unsigned short* words) {
    LibcState& state = LibcState::current();
    seed48_r(words, &state.random48);
    return state.random48.__old_x;
}

void set_random48_parameters(unsigned short* words) {
    lcong48_r(words, &LibcState::current().random48);
}

char* next_token(char* text, const char* separators) {
    return strtok_r(text, separators, &LibcState::current().string_place);
}

std::tm* local_time(const std::time_t* time) {
    tzset(); // which localtime does each time, and localtime_r need not
    return localtime_r(time, &LibcState::current().time);
}

std::tm* universal_time(const std::time_t* time) {
    return gmtime_r(time, &LibcState::current().time);
}

char* time_text(const std::tm* time) {
    return asctime_r(time, LibcState::current().time_text.data());
}

char* local_time_text(const std::time_t* time) {
    return time_text(local_time(time));
}

} // namespace warren::image::inside
