#include "reducibles.hpp"

#include <array>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace programs {

namespace {

using All = Reducibles;

// Padding of long double is no part of the value.
template <typename T>
constexpr int valued = std::is_same_v<T, long double> ? 10 : static_cast<int>(sizeof(T));

template <typename T, typename Operation>
void combine(const unsigned char* left, unsigned char* right) {
    store<T>(right, static_cast<T>(Operation()(load<T>(left), load<T>(right))), valued<T>);
}

// −3 … 3, and 0 … 6 of unsigned types: sums of many are exact in all types.
template <typename T>
void draw_small(Bits bits, unsigned char* out) {
    const int value = static_cast<int>(bits % 7);
    if constexpr (std::is_unsigned_v<T>) {
        store<T>(out, static_cast<T>(value), valued<T>);
    } else {
        store<T>(out, static_cast<T>(value - 3), valued<T>);
    }
}
// Products of many are exact.
template <typename T>
void draw_factor(Bits bits, unsigned char* out) {
    const int value = bits % 16 == 0 && sizeof(T) > 2 ? 2 : 1;
    if constexpr (std::is_unsigned_v<T>) {
        store<T>(out, static_cast<T>(value), valued<T>);
    } else {
        store<T>(out, static_cast<T>((bits & 16) != 0 ? value : -value), valued<T>);
    }
}
template <typename T>
void draw_bits(Bits bits, unsigned char* out) {
    store<T>(out, static_cast<T>(bits));
}
template <typename T>
void draw_truth(Bits bits, unsigned char* out) {
    store<T>(out, static_cast<T>(bits % 5 < 2 ? 0 : std::is_same_v<T, bool> ? 1 : bits % 5));
}
template <typename T>
void draw_complex(Bits bits, unsigned char* out) {
    store(out, std::complex<T>(static_cast<T>(bits % 3), static_cast<T>(bits / 3 % 3) - 1));
}
// 1 or 2 + i: no product has a zero whose sign depends on the order.
template <typename T>
void draw_complex_factor(Bits bits, unsigned char* out) {
    store(out, bits % 4 == 0 ? std::complex<T>(2, 1) : std::complex<T>(1, 0));
}

struct Maximum {
    template <typename T>
    T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};
struct Minimum {
    template <typename T>
    T operator()(T a, T b) const {
        return b < a ? b : a;
    }
};
struct Xor {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>((a != 0) != (b != 0));
    }
};
struct And {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(a != 0 && b != 0);
    }
};
struct Or {
    template <typename T>
    T operator()(T a, T b) const {
        return static_cast<T>(a != 0 || b != 0);
    }
};

// As MPI_DOUBLE_INT and its relatives lie in memory.
template <typename T>
struct Located {
    T value;
    int place;
};
template <typename T, bool Maximal>
void combine_located(const unsigned char* left, unsigned char* right) {
    const auto a = load<Located<T>>(left), b = load<Located<T>>(right);
    const bool left_wins = Maximal ? a.value > b.value : a.value < b.value;
    if (left_wins || (a.value == b.value && a.place < b.place)) {
        store(right, a.value, valued<T>);
        std::memcpy(right + offsetof(Located<T>, place), &a.place, sizeof(int));
    }
}
template <typename T>
void draw_located(Bits bits, unsigned char* out) { // with many ties
    const T value = static_cast<T>(bits % 4);
    store(out, value, valued<T>);
    const int place = static_cast<int>(bits >> 40);
    std::memcpy(out + offsetof(Located<T>, place), &place, sizeof place);
}

template <typename T>
Basic basic_of(const char* name, MPI_Datatype type) {
    return {name, type, static_cast<int>(sizeof(T)), static_cast<int>(alignof(T)), valued<T>};
}

template <typename T>
void add_numbers(All& all, const char* name, MPI_Datatype type) {
    const Basic basic = basic_of<T>(name, type);
    all.push_back({"sum", type, MPI_SUM, basic, draw_small<T>, combine<T, std::plus<T>>});
    all.push_back({"prod", type, MPI_PROD, basic, draw_factor<T>, combine<T, std::multiplies<T>>});
    all.push_back({"max", type, MPI_MAX, basic, draw_small<T>, combine<T, Maximum>});
    all.push_back({"min", type, MPI_MIN, basic, draw_small<T>, combine<T, Minimum>});
}
template <typename T>
void add_bits(All& all, const char* name, MPI_Datatype type) {
    const Basic basic = basic_of<T>(name, type);
    all.push_back({"band", type, MPI_BAND, basic, draw_bits<T>, combine<T, std::bit_and<T>>});
    all.push_back({"bor", type, MPI_BOR, basic, draw_bits<T>, combine<T, std::bit_or<T>>});
    all.push_back({"bxor", type, MPI_BXOR, basic, draw_bits<T>, combine<T, std::bit_xor<T>>});
}
template <typename T>
void add_truths(All& all, const char* name, MPI_Datatype type) {
    const Basic basic = basic_of<T>(name, type);
    all.push_back({"land", type, MPI_LAND, basic, draw_truth<T>, combine<T, And>});
    all.push_back({"lor", type, MPI_LOR, basic, draw_truth<T>, combine<T, Or>});
    all.push_back({"lxor", type, MPI_LXOR, basic, draw_truth<T>, combine<T, Xor>});
}
template <typename T>
void add_integers(All& all, const char* name, MPI_Datatype type) {
    add_numbers<T>(all, name, type);
    add_bits<T>(all, name, type);
    add_truths<T>(all, name, type);
}
template <typename T>
void add_complex(All& all, const char* name, MPI_Datatype type) {
    using C = std::complex<T>;
    const Basic basic = basic_of<C>(name, type);
    all.push_back({"sum", type, MPI_SUM, basic, draw_complex<T>, combine<C, std::plus<C>>});
    all.push_back(
        {"prod", type, MPI_PROD, basic, draw_complex_factor<T>, combine<C, std::multiplies<C>>});
}
template <typename T>
void add_located(All& all, const char* name, MPI_Datatype type) {
    const Basic basic = basic_of<Located<T>>(name, type);
    all.push_back({"maxloc", type, MPI_MAXLOC, basic, draw_located<T>, combine_located<T, true>});
    all.push_back({"minloc", type, MPI_MINLOC, basic, draw_located<T>, combine_located<T, false>});
}

} // namespace

const Reducibles& predefined_reductions() {
    static const All all = [] {
        All made;
        add_integers<int>(made, "int", MPI_INT);
        add_integers<signed char>(made, "signed char", MPI_SIGNED_CHAR);
        add_integers<unsigned char>(made, "unsigned char", MPI_UNSIGNED_CHAR);
        add_integers<short>(made, "short", MPI_SHORT);
        add_integers<unsigned short>(made, "unsigned short", MPI_UNSIGNED_SHORT);
        add_integers<unsigned>(made, "unsigned", MPI_UNSIGNED);
        add_integers<long>(made, "long", MPI_LONG);
        add_integers<unsigned long long>(made, "unsigned long long", MPI_UNSIGNED_LONG_LONG);
        add_integers<std::int16_t>(made, "int16", MPI_INT16_T);
        add_integers<std::uint64_t>(made, "uint64", MPI_UINT64_T);
        add_numbers<float>(made, "float", MPI_FLOAT);
        add_numbers<double>(made, "double", MPI_DOUBLE);
        add_numbers<long double>(made, "long double", MPI_LONG_DOUBLE);
        add_complex<float>(made, "float complex", MPI_C_FLOAT_COMPLEX);
        add_complex<double>(made, "double complex", MPI_C_DOUBLE_COMPLEX);
        add_truths<bool>(made, "bool", MPI_C_BOOL);
        add_bits<unsigned char>(made, "byte", MPI_BYTE);
        add_integers<MPI_Aint>(made, "aint", MPI_AINT);
        add_located<float>(made, "float int", MPI_FLOAT_INT);
        add_located<double>(made, "double int", MPI_DOUBLE_INT);
        add_located<long>(made, "long int", MPI_LONG_INT);
        add_located<int>(made, "2 int", MPI_2INT);
        add_located<short>(made, "short int", MPI_SHORT_INT);
        add_located<long double>(made, "long double int", MPI_LONG_DOUBLE_INT);
        return made;
    }();
    return all;
}

} // namespace programs
