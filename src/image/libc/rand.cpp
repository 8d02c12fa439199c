// Random numbers, strtok, broken-down times: the C library's own algorithms on the image's state.
#include <cerrno>
#include <cstring>
#include <ctime>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

long random() {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.random_lock);
    std::int32_t number = 0;
    random_r(&state.random, &number);
    return number;
}

int rand() {
    return static_cast<int>(libc::random());
}

int register_printf_function() {
    libc::warnx(
        "a conversion of printf's is refused: it would be one of all programs of the process");
    errno = ENOTSUP;
    return -1;
}

void srand(unsigned seed) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.random_lock);
    srandom_r(seed, &state.random);
}

char* initstate(unsigned seed, char* memory, std::size_t bytes) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.random_lock);
    // The C library gives the start of the state before: where its words are, less the first.
    char* before = reinterpret_cast<char*>(state.random.state - 1);
    return initstate_r(seed, memory, bytes, &state.random) == 0 ? before : nullptr;
}

char* setstate(char* memory) {
    LibcState& state = LibcState::current();
    const std::lock_guard guard(state.random_lock);
    char* before = reinterpret_cast<char*>(state.random.state - 1);
    return setstate_r(memory, &state.random) == 0 ? before : nullptr;
}

double drand48() {
    LibcState& state = LibcState::current();
    double number = 0;
    drand48_r(&state.random48, &number);
    return number;
}

double erand48(unsigned short* words) {
    double number = 0;
    erand48_r(words, &LibcState::current().random48, &number);
    return number;
}

long lrand48() {
    long number = 0;
    lrand48_r(&LibcState::current().random48, &number);
    return number;
}

long nrand48(unsigned short* words) {
    long number = 0;
    nrand48_r(words, &LibcState::current().random48, &number);
    return number;
}

long mrand48() {
    long number = 0;
    mrand48_r(&LibcState::current().random48, &number);
    return number;
}

long jrand48(unsigned short* words) {
    long number = 0;
    jrand48_r(words, &LibcState::current().random48, &number);
    return number;
}

void srand48(long seed) {
    srand48_r(seed, &LibcState::current().random48);
}

unsigned short* seed48(unsigned short* words) {
    LibcState& state = LibcState::current();
    seed48_r(words, &state.random48);
    return state.random48.__old_x;
}

void lcong48(unsigned short* words) {
    lcong48_r(words, &LibcState::current().random48);
}

char* strtok(char* text, const char* separators) {
    return strtok_r(text, separators, &LibcState::current().string_place);
}

std::tm* gmtime(const std::time_t* time) {
    return gmtime_r(time, &LibcState::current().time);
}

char* asctime(const std::tm* time) {
    return asctime_r(time, LibcState::current().time_text.data());
}

} // namespace warren::image::libc
