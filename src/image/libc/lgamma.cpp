// Functions of mathematics that set a variable: the image's. The mathematics library is there when
// a program uses them, and else is not needed.
#include <dlfcn.h>

#include "image/libc/functions.hpp"
#include "image/libc/state.hpp"

namespace warren::image::libc {

namespace {

// The sign of the result goes to signgam.
template <typename Number>
Number with_sign(const char* name, Number value) {
    using Function = Number (*)(Number, int*);
    static const auto function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
    return function(value, &LibcState::current().value<int>(Variable::signgam));
}

} // namespace

Float128 lgammaf128(Float128 value) {
    return with_sign("lgammaf128_r", value);
}

double lgamma(double value) {
    return with_sign("lgamma_r", value);
}

float lgammaf(float value) {
    return with_sign("lgammaf_r", value);
}

long double lgammal(long double value) {
    return with_sign("lgammal_r", value);
}

} // namespace warren::image::libc
