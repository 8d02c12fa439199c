// Numbers with a fraction as text: what std::from_chars and std::to_chars do for them, whatever the
// program's locale. Those bring all of the C++ library's locales along, and the mathematical
// library, into every process that loads a library with them, at 20 µs each. Thread rule: any
// thread at any time.
#pragma once

#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace warren {

// The calling thread's locale is the plain one while this lives.
class PlainLocale {
  public:
    PlainLocale() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(plain_)) {}
    ~PlainLocale() {
        uselocale(before_);
        freelocale(plain_);
    }
    PlainLocale(const PlainLocale&) = delete;
    PlainLocale& operator=(const PlainLocale&) = delete;

  private:
    locale_t plain_; // one that the C library has: nothing is allocated
    locale_t before_;
};

// All of `text` as a decimal number, without space, sign + or names of numbers. False: it is none,
// or too large.
inline bool read_decimal(std::string_view text, double& number) {
    if (text.empty() || text.front() == '+' ||
        text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
        return false;
    }
    const std::string terminated(text);
    const PlainLocale plain;
    char* end = nullptr;
    const double value = std::strtod(terminated.c_str(), &end);
    if (end != terminated.c_str() + terminated.size() || std::isinf(value)) {
        return false;
    }
    number = value;
    return true;
}

// The shortest text that is read as the same number, which is finite; without an exponent where
// that is no longer.
inline std::string decimal_text(double number) {
    const PlainLocale plain;
    char text[64];
    const bool is_usual = number == 0 || (std::fabs(number) >= 1e-5 && std::fabs(number) < 1e15);
    constexpr int most_digits = 17;
    for (int digits = 0; digits <= most_digits + 4; ++digits) { // zeros behind the point count
        std::snprintf(text, sizeof text, is_usual ? "%.*f" : "%.*g", digits, number);
        if (std::strtod(text, nullptr) == number) {
            break;
        }
    }
    return text;
}

} // namespace warren
