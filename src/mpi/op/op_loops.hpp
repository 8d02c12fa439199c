// The loops of the predefined operations, one per operation and kind of element.
//
// Included by one file for each set of instructions that they are compiled for (op_kernels.cpp,
// op_kernels_avx2.cpp; src/mpi/CMakeLists.txt has the options). So all that is
// here has internal linkage: the linker must not take one file's function for another's.
// The loops are selected by switches, not by a table of pointers, which every process would have to
// relocate in memory of its own.
#pragma once

#include <cstdint>
#include <type_traits>

#include "mpi/op/op.hpp"

#if defined(__clang__)
#define WARREN_NO_ELEMENT_NEEDS_ANOTHER _Pragma("clang loop vectorize(assume_safety)")
#else
#define WARREN_NO_ELEMENT_NEEDS_ANOTHER _Pragma("GCC ivdep")
#endif

namespace warren::coll {

namespace {

using datatype::Element;

__extension__ typedef __int128 Int128;
#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 Float128;
#else
using Float128 = long double;
#endif
#if defined(__aarch64__) && defined(__GNUC__) && __GNUC__ < 13 && !defined(__clang__)
using Float16 = __fp16; // C++ has no _Float16 there
#elif defined(__FLT16_MAX__)
using Float16 = _Float16;
#endif

// A complex number as plain memory: products without the C standard's recovery of infinities, which
// would keep the loops from being vectorised.
template <typename Real>
struct Complex {
    Real real, imaginary;
};

template <typename Value, typename Index>
struct Pair {
    Value value;
    Index index;
};

// in op inout. Arithmetic on small integers wraps like any other.
struct Sum {
    template <typename T>
    static T combine(T a, T b) {
        return static_cast<T>(a + b);
    }
    template <typename T>
    static Complex<T> combine(Complex<T> a, Complex<T> b) {
        return {static_cast<T>(a.real + b.real), static_cast<T>(a.imaginary + b.imaginary)};
    }
};

struct Product {
    template <typename T>
    static T combine(T a, T b) {
        return static_cast<T>(a * b);
    }
    template <typename T>
    static Complex<T> combine(Complex<T> a, Complex<T> b) {
        return {static_cast<T>(a.real * b.real - a.imaginary * b.imaginary),
                static_cast<T>(a.real * b.imaginary + a.imaginary * b.real)};
    }
};

struct Min {
    template <typename T>
    static T combine(T a, T b) {
        return a < b ? a : b;
    }
};

struct Max {
    template <typename T>
    static T combine(T a, T b) {
        return a > b ? a : b;
    }
};

struct BitAnd {
    template <typename T>
    static T combine(T a, T b) {
        return static_cast<T>(a & b);
    }
};

struct BitOr {
    template <typename T>
    static T combine(T a, T b) {
        return static_cast<T>(a | b);
    }
};

struct BitXor {
    template <typename T>
    static T combine(T a, T b) {
        return static_cast<T>(a ^ b);
    }
};

struct LogicalAnd {
    template <typename T>
    static T combine(T a, T b) {
        return static_cast<T>((a != 0) & (b != 0));
    }
};

struct LogicalOr {
    template <typename T>
    static T combine(T a, T b) {
        return static_cast<T>((a != 0) | (b != 0));
    }
};

struct LogicalXor {
    template <typename T>
    static T combine(T a, T b) {
        return static_cast<T>((a != 0) != (b != 0));
    }
};

// The extreme value, and of equal ones the one with the lowest index.
struct MinLocation {
    template <typename P>
    static bool takes_first(const P& a, const P& b) {
        return a.value < b.value || (a.value == b.value && a.index < b.index);
    }
};

struct MaxLocation {
    template <typename P>
    static bool takes_first(const P& a, const P& b) {
        return a.value > b.value || (a.value == b.value && a.index < b.index);
    }
};

// Writes member by member, since the padding between and behind the members belongs to the program.
template <typename Operation, typename P>
void locate(const void* left, const void* right, void* result, MPI_Count count) {
    const P* a = static_cast<const P*>(left);
    const P* b = static_cast<const P*>(right);
    P* made = static_cast<P*>(result);
    for (MPI_Count i = 0; i < count; ++i) {
        const P& taken = Operation::takes_first(a[i], b[i]) ? a[i] : b[i];
        const auto value = taken.value;
        const auto index = taken.index;
        made[i].value = value;
        made[i].index = index;
    }
}

// Signed integers are combined as unsigned ones where the bits are the same and overflow is not an
// error: sums and products.
template <typename Operation, typename T, bool = std::is_integral_v<T>>
struct Working {
    using type = T;
};
template <typename T>
struct Working<Sum, T, true> {
    using type = std::make_unsigned_t<T>;
};
template <typename T>
struct Working<Product, T, true> {
    // Not narrower than int: two 16-bit unsigned factors would be multiplied as signed ints.
    using type = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;
};

#if defined(__clang__)
// No vector holds some elements, __float128 for example.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
template <typename Operation, typename T>
void loop(const void* left, const void* right, void* result, MPI_Count count) {
    const T* a = static_cast<const T*>(left);
    const T* b = static_cast<const T*>(right);
    T* made = static_cast<T*>(result);
    using W = typename Working<Operation, T>::type;
    // An operand may be where the result is, element by element, which no vector minds.
    WARREN_NO_ELEMENT_NEEDS_ANOTHER
    for (MPI_Count i = 0; i < count; ++i) {
        made[i] = static_cast<T>(Operation::combine(static_cast<W>(a[i]), static_cast<W>(b[i])));
    }
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <typename Operation>
constexpr Kernel of_integers(Element element) {
    switch (element) {
    case Element::int8:
        return loop<Operation, std::int8_t>;
    case Element::int16:
        return loop<Operation, std::int16_t>;
    case Element::int32:
        return loop<Operation, std::int32_t>;
    case Element::int64:
        return loop<Operation, std::int64_t>;
    case Element::int128:
        return loop<Operation, Int128>;
    case Element::uint8:
        return loop<Operation, std::uint8_t>;
    case Element::uint16:
        return loop<Operation, std::uint16_t>;
    case Element::uint32:
        return loop<Operation, std::uint32_t>;
    case Element::uint64:
        return loop<Operation, std::uint64_t>;
    default:
        return nullptr;
    }
}

template <typename Operation>
constexpr Kernel of_reals(Element element) {
    switch (element) {
#if defined(__FLT16_MAX__)
    case Element::float16:
        return loop<Operation, Float16>;
#endif
    case Element::float32:
        return loop<Operation, float>;
    case Element::float64:
        return loop<Operation, double>;
    case Element::float128:
        return loop<Operation, Float128>;
    case Element::float_extended:
        return loop<Operation, long double>;
    default:
        return nullptr;
    }
}

template <typename Operation>
constexpr Kernel of_complex(Element element) {
    switch (element) {
#if defined(__FLT16_MAX__)
    case Element::complex32:
        return loop<Operation, Complex<Float16>>;
#endif
    case Element::complex64:
        return loop<Operation, Complex<float>>;
    case Element::complex128:
        return loop<Operation, Complex<double>>;
    case Element::complex256:
        return loop<Operation, Complex<Float128>>;
    case Element::complex_extended:
        return loop<Operation, Complex<long double>>;
    default:
        return nullptr;
    }
}

// Truth values of C and Fortran, of which only zero is false. A C bool is a byte here: what is not
// 0 or 1 in it must not be undefined behaviour of ours.
template <typename Operation>
constexpr Kernel of_logicals(Element element) {
    switch (element) {
    case Element::boolean:
    case Element::logical8:
        return loop<Operation, std::int8_t>;
    case Element::logical16:
        return loop<Operation, std::int16_t>;
    case Element::logical32:
        return loop<Operation, std::int32_t>;
    case Element::logical64:
        return loop<Operation, std::int64_t>;
    case Element::logical128:
        return loop<Operation, Int128>;
    default:
        return of_integers<Operation>(element);
    }
}

template <typename Operation>
constexpr Kernel of_bits(Element element) {
    return element == Element::byte ? loop<Operation, std::uint8_t>
                                    : of_integers<Operation>(element);
}

template <typename Operation>
constexpr Kernel of_ordered(Element element) {
    const Kernel kernel = of_integers<Operation>(element);
    return kernel != nullptr ? kernel : of_reals<Operation>(element);
}

template <typename Operation>
constexpr Kernel of_numbers(Element element) {
    const Kernel kernel = of_ordered<Operation>(element);
    return kernel != nullptr ? kernel : of_complex<Operation>(element);
}

template <typename Operation>
constexpr Kernel of_pairs(Element element) {
    switch (element) {
    case Element::float_int:
        return locate<Operation, Pair<float, int>>;
    case Element::double_int:
        return locate<Operation, Pair<double, int>>;
    case Element::long_int:
        return locate<Operation, Pair<long, int>>;
    case Element::int_int:
        return locate<Operation, Pair<int, int>>;
    case Element::short_int:
        return locate<Operation, Pair<short, int>>;
    case Element::long_double_int:
        return locate<Operation, Pair<long double, int>>;
    case Element::two_float32:
        return locate<Operation, Pair<float, float>>;
    case Element::two_float64:
        return locate<Operation, Pair<double, double>>;
    default:
        return nullptr;
    }
}

constexpr Kernel loop_of(OpKind kind, Element element) {
    switch (kind) {
    case OpKind::sum:
        return of_numbers<Sum>(element);
    case OpKind::product:
        return of_numbers<Product>(element);
    case OpKind::min:
        return of_ordered<Min>(element);
    case OpKind::max:
        return of_ordered<Max>(element);
    case OpKind::bit_and:
        return of_bits<BitAnd>(element);
    case OpKind::bit_or:
        return of_bits<BitOr>(element);
    case OpKind::bit_xor:
        return of_bits<BitXor>(element);
    case OpKind::logical_and:
        return of_logicals<LogicalAnd>(element);
    case OpKind::logical_or:
        return of_logicals<LogicalOr>(element);
    case OpKind::logical_xor:
        return of_logicals<LogicalXor>(element);
    case OpKind::min_location:
        return of_pairs<MinLocation>(element);
    case OpKind::max_location:
        return of_pairs<MaxLocation>(element);
    case OpKind::null:
    case OpKind::replace:
    case OpKind::no_op:
    case OpKind::user:
        break;
    }
    return nullptr;
}

} // namespace

} // namespace warren::coll
