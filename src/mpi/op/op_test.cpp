// Every predefined operation on every predefined datatype, against plain references in long double
// or 128-bit arithmetic; and which pairs the standard refuses.

#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>
#include <vector>

#include "mpi/op/op.hpp"
#include "mpi/op/op_kernels.hpp"

namespace warren::coll {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UnsignedInt128;

constexpr int elements = 67; // vector loops and their rests

const MPI_Op all_operations[] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_BAND,   MPI_BOR,
                                 MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_MINLOC, MPI_MAXLOC};

// Which groups of datatypes (MPI chapter 6.9.2) an operation is defined on.
enum Group : unsigned { integer = 1, real = 2, complex = 4, logical = 8, byte = 16, pair = 32 };

unsigned groups_of(MPI_Op op) {
    if (op == MPI_SUM || op == MPI_PROD) {
        return integer | real | complex;
    }
    if (op == MPI_MIN || op == MPI_MAX) {
        return integer | real;
    }
    if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) {
        return integer | byte;
    }
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) {
        return integer | logical;
    }
    return pair;
}

template <typename T>
T reference(MPI_Op op, T a, T b) {
    if (op == MPI_MIN) {
        return b < a ? b : a;
    }
    if (op == MPI_MAX) {
        return a < b ? b : a;
    }
    if constexpr (std::is_floating_point_v<T>) {
        return op == MPI_SUM ? a + b : a * b;
    } else {
        const Int128 x = a, y = b;
        Int128 result = 0;
        if (op == MPI_SUM) {
            result = x + y;
        } else if (op == MPI_PROD) {
            // Beyond 128 bits it wraps, as in T.
            result = static_cast<Int128>(static_cast<UnsignedInt128>(x) *
                                         static_cast<UnsignedInt128>(y));
        } else if (op == MPI_BAND) {
            result = x & y;
        } else if (op == MPI_BOR) {
            result = x | y;
        } else if (op == MPI_BXOR) {
            result = x ^ y;
        } else if (op == MPI_LAND) {
            result = x != 0 && y != 0;
        } else if (op == MPI_LOR) {
            result = x != 0 || y != 0;
        } else {
            result = (x != 0) != (y != 0);
        }
        return static_cast<T>(result);
    }
}

class OpTest : public testing::Test {
  protected:
    const Op& op(MPI_Op handle) { return *ops_.find(handle); }

    // Both what is computed and what is refused.
    template <typename T>
    void check_numbers(MPI_Datatype handle, Group group) {
        const datatype::Datatype& type = datatype::basic(handle);
        ASSERT_EQ(type.size, static_cast<MPI_Count>(sizeof(T))) << type.predefined_name();
        for (MPI_Op operation : all_operations) {
            Error error = op(operation).check(type);
            ASSERT_EQ(!error, (groups_of(operation) & group) != 0)
                << type.predefined_name() << " " << operation;
            if (error) {
                EXPECT_EQ(error.error_class(), MPI_ERR_OP);
                error.drop();
                continue;
            }
            std::vector<T> in(elements), inout(elements), expected(elements);
            for (int i = 0; i < elements; ++i) {
                const auto k = static_cast<std::size_t>(i);
                // Small values of either sign, zeros among them; of logicals only 0 and 1.
                in[k] = static_cast<T>(group == logical ? i % 2 : (i * 7) % 11 - 3);
                inout[k] = static_cast<T>(group == logical ? i / 2 % 2 : (i * 5) % 7 - 2);
                expected[k] = reference<T>(operation, in[k], inout[k]);
            }
            // In three places, and with the result in the place of either operand.
            std::vector<T> apart(elements), left = in;
            op(operation).combine(in.data(), inout.data(), apart.data(), elements, type);
            op(operation).combine(left.data(), inout.data(), left.data(), elements, type);
            op(operation).apply(in.data(), inout.data(), elements, type);
            for (std::size_t k = 0; k < elements; ++k) {
                ASSERT_TRUE(apart[k] == expected[k] && left[k] == expected[k])
                    << type.predefined_name() << " " << operation << " element " << k;
                ASSERT_TRUE(inout[k] == expected[k])
                    << type.predefined_name() << " " << operation << " element " << k;
            }
        }
    }

    template <typename Real>
    void check_complex(MPI_Datatype handle) {
        struct Complex {
            Real real, imaginary;
        };
        const datatype::Datatype& type = datatype::basic(handle);
        ASSERT_EQ(type.size, static_cast<MPI_Count>(sizeof(Complex))) << type.predefined_name();
        for (MPI_Op operation : all_operations) {
            Error error = op(operation).check(type);
            ASSERT_EQ(!error, (groups_of(operation) & complex) != 0);
            error.drop();
        }
        Complex in[elements], sum[elements], product[elements];
        for (int i = 0; i < elements; ++i) {
            in[i] = {static_cast<Real>(i % 5 - 2), static_cast<Real>(i % 3)};
            sum[i] = product[i] = {static_cast<Real>(i % 7), static_cast<Real>(1 - i % 4)};
        }
        Complex right[elements];
        std::memcpy(static_cast<void*>(right), sum, sizeof right);
        op(MPI_SUM).apply(in, sum, elements, type);
        op(MPI_PROD).apply(in, product, elements, type);
        for (int i = 0; i < elements; ++i) {
            ASSERT_TRUE(sum[i].real == in[i].real + right[i].real);
            ASSERT_TRUE(sum[i].imaginary == in[i].imaginary + right[i].imaginary);
            ASSERT_TRUE(product[i].real ==
                        in[i].real * right[i].real - in[i].imaginary * right[i].imaginary);
            ASSERT_TRUE(product[i].imaginary ==
                        in[i].real * right[i].imaginary + in[i].imaginary * right[i].real);
        }
    }

    template <typename Value, typename Index>
    void check_pairs(MPI_Datatype handle) {
        struct Pair {
            Value value;
            Index index;
        };
        const datatype::Datatype& type = datatype::basic(handle);
        ASSERT_EQ(type.extent, static_cast<MPI_Count>(sizeof(Pair))) << type.predefined_name();
        for (MPI_Op operation : all_operations) {
            Error error = op(operation).check(type);
            ASSERT_EQ(!error, (groups_of(operation) & pair) != 0);
            error.drop();
        }
        for (MPI_Op operation : {MPI_MINLOC, MPI_MAXLOC}) {
            std::vector<Pair> in(elements), inout(elements);
            std::memset(static_cast<void*>(in.data()), 0x5A, sizeof(Pair) * elements);
            std::memset(static_cast<void*>(inout.data()), 0xA5, sizeof(Pair) * elements);
            for (int i = 0; i < elements; ++i) {
                const auto k = static_cast<std::size_t>(i);
                in[k].value = static_cast<Value>(i % 3);
                in[k].index = static_cast<Index>(i % 5);
                inout[k].value = static_cast<Value>(i / 3 % 3);
                inout[k].index = static_cast<Index>(i / 5 % 5);
            }
            const std::vector<Pair> right = inout;
            op(operation).apply(in.data(), inout.data(), elements, type);
            for (std::size_t k = 0; k < elements; ++k) {
                const Pair a = in[k], b = right[k];
                const bool a_wins = operation == MPI_MINLOC ? a.value < b.value : a.value > b.value;
                const Pair expected = {a_wins ? a.value : b.value,
                                       a.value == b.value ? (a.index < b.index ? a.index : b.index)
                                                          : (a_wins ? a.index : b.index)};
                ASSERT_TRUE(inout[k].value == expected.value && inout[k].index == expected.index)
                    << type.predefined_name() << " element " << k;
                // The bytes behind the index are the program's.
                const auto* bytes = reinterpret_cast<const unsigned char*>(&inout[k]);
                for (std::size_t i = offsetof(Pair, index) + sizeof(Index); i < sizeof(Pair); ++i) {
                    ASSERT_EQ(bytes[i], 0xA5) << type.predefined_name() << " element " << k;
                }
            }
        }
    }

    Ops ops_;
};

TEST_F(OpTest, integers_of_c_and_fortran) {
    check_numbers<signed char>(MPI_SIGNED_CHAR, integer);
    check_numbers<unsigned char>(MPI_UNSIGNED_CHAR, integer);
    check_numbers<short>(MPI_SHORT, integer);
    check_numbers<unsigned short>(MPI_UNSIGNED_SHORT, integer);
    check_numbers<int>(MPI_INT, integer);
    check_numbers<unsigned>(MPI_UNSIGNED, integer);
    check_numbers<long>(MPI_LONG, integer);
    check_numbers<unsigned long>(MPI_UNSIGNED_LONG, integer);
    check_numbers<long long>(MPI_LONG_LONG, integer);
    check_numbers<unsigned long long>(MPI_UNSIGNED_LONG_LONG, integer);
    check_numbers<std::int8_t>(MPI_INT8_T, integer);
    check_numbers<std::int16_t>(MPI_INT16_T, integer);
    check_numbers<std::int32_t>(MPI_INT32_T, integer);
    check_numbers<std::int64_t>(MPI_INT64_T, integer);
    check_numbers<std::uint8_t>(MPI_UINT8_T, integer);
    check_numbers<std::uint16_t>(MPI_UINT16_T, integer);
    check_numbers<std::uint32_t>(MPI_UINT32_T, integer);
    check_numbers<std::uint64_t>(MPI_UINT64_T, integer);
    check_numbers<MPI_Aint>(MPI_AINT, integer);
    check_numbers<MPI_Count>(MPI_COUNT, integer);
    check_numbers<MPI_Offset>(MPI_OFFSET, integer);
    check_numbers<int>(MPI_INTEGER, integer);
    check_numbers<std::int8_t>(MPI_INTEGER1, integer);
    check_numbers<std::int16_t>(MPI_INTEGER2, integer);
    check_numbers<std::int32_t>(MPI_INTEGER4, integer);
    check_numbers<std::int64_t>(MPI_INTEGER8, integer);
    check_numbers<Int128>(MPI_INTEGER16, integer);
}

TEST_F(OpTest, reals) {
    check_numbers<float>(MPI_FLOAT, real);
    check_numbers<double>(MPI_DOUBLE, real);
    check_numbers<long double>(MPI_LONG_DOUBLE, real);
    check_numbers<float>(MPI_REAL, real);
    check_numbers<double>(MPI_DOUBLE_PRECISION, real);
    check_numbers<float>(MPI_REAL4, real);
    check_numbers<double>(MPI_REAL8, real);
}

TEST_F(OpTest, complex_numbers) {
    check_complex<float>(MPI_C_FLOAT_COMPLEX);
    check_complex<double>(MPI_C_DOUBLE_COMPLEX);
    check_complex<long double>(MPI_C_LONG_DOUBLE_COMPLEX);
    check_complex<float>(MPI_CXX_FLOAT_COMPLEX);
    check_complex<double>(MPI_CXX_DOUBLE_COMPLEX);
    check_complex<long double>(MPI_CXX_LONG_DOUBLE_COMPLEX);
    check_complex<float>(MPI_COMPLEX);
    check_complex<double>(MPI_DOUBLE_COMPLEX);
    check_complex<float>(MPI_COMPLEX8);
    check_complex<double>(MPI_COMPLEX16);
}

TEST_F(OpTest, truth_values_and_bytes) {
    check_numbers<std::uint8_t>(MPI_C_BOOL, logical);
    check_numbers<std::uint8_t>(MPI_CXX_BOOL, logical);
    check_numbers<std::int32_t>(MPI_LOGICAL, logical);
    check_numbers<std::int8_t>(MPI_LOGICAL1, logical);
    check_numbers<std::int16_t>(MPI_LOGICAL2, logical);
    check_numbers<std::int32_t>(MPI_LOGICAL4, logical);
    check_numbers<std::int64_t>(MPI_LOGICAL8, logical);
    check_numbers<std::uint8_t>(MPI_BYTE, byte);
}

TEST_F(OpTest, pairs_of_value_and_location) {
    check_pairs<float, int>(MPI_FLOAT_INT);
    check_pairs<double, int>(MPI_DOUBLE_INT);
    check_pairs<long, int>(MPI_LONG_INT);
    check_pairs<int, int>(MPI_2INT);
    check_pairs<short, int>(MPI_SHORT_INT);
    check_pairs<long double, int>(MPI_LONG_DOUBLE_INT);
    check_pairs<float, float>(MPI_2REAL);
    check_pairs<double, double>(MPI_2DOUBLE_PRECISION);
    check_pairs<int, int>(MPI_2INTEGER);
}

#if defined(__FLT16_MAX__)
TEST_F(OpTest, half_and_quadruple_precision) {
    // Exact in both: small integers.
    _Float16 half_in[3] = {1, -2, 3}, half_inout[3] = {4, 5, -6};
    op(MPI_SUM).apply(half_in, half_inout, 3, datatype::basic(MPI_REAL2));
    EXPECT_EQ(static_cast<float>(half_inout[2]), -3.0F);
    if (datatype::basic(MPI_REAL16).size == 16) {
        __extension__ __float128 in[2] = {1, -2};
        __extension__ __float128 inout[2] = {4, 5};
        op(MPI_PROD).apply(in, inout, 2, datatype::basic(MPI_REAL16));
        EXPECT_EQ(static_cast<double>(inout[1]), -10.0);
    }
}
#endif

TEST_F(OpTest, unsigned_values_above_the_signed_range) {
    std::uint32_t in[] = {0xf0000000U, 3}, inout[] = {1, 0xffffffffU};
    op(MPI_MAX).apply(in, inout, 2, datatype::basic(MPI_UINT32_T));
    EXPECT_EQ(inout[0], 0xf0000000U);
    EXPECT_EQ(inout[1], 0xffffffffU);
    std::int32_t left[] = {0x7fffffff}, right[] = {1};
    op(MPI_SUM).apply(left, right, 1, datatype::basic(MPI_INT32_T)); // wraps
    EXPECT_EQ(right[0], static_cast<std::int32_t>(0x80000000));
}

#if defined(__x86_64__)

// Finite values of a kind of element, or any bits of integers.
template <typename T>
std::vector<std::byte> values(std::uint32_t seed) {
    std::vector<std::byte> bytes(elements * 16 * sizeof(T));
    for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
        seed = seed * 1664525U + 1013904223U;
        T value;
        if constexpr (std::is_floating_point_v<T>) {
            value = static_cast<T>(static_cast<int>(seed >> 8) - (1 << 23)) / T{70001};
        } else {
            value = static_cast<T>(seed >> 7 ^ static_cast<std::uint64_t>(seed) << 29);
        }
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof value);
    }
    return bytes;
}

template <typename T>
void compare_kernels(datatype::Element element, MPI_Count count) {
    for (int kind = 0; kind <= static_cast<int>(OpKind::max_location); ++kind) {
        const auto op = static_cast<OpKind>(kind);
        const Kernel baseline = kernel_of_baseline(op, element);
        ASSERT_EQ(baseline == nullptr, kernel_of_avx2(op, element) == nullptr);
        if (baseline == nullptr) {
            continue;
        }
        const std::vector<std::byte> in = values<T>(1);
        std::vector<std::byte> expected = values<T>(2);
        baseline(in.data(), expected.data(), expected.data(), count);
        EXPECT_NE(expected, values<T>(2)) << kind;
        std::vector<std::byte> out = values<T>(2);
        kernel_of_avx2(op, element)(in.data(), out.data(), out.data(), count);
        EXPECT_EQ(out, expected) << kind << " of element " << static_cast<int>(element);
    }
}

TEST_F(OpTest, every_set_of_instructions_gives_the_same_bits) {
    if (!has_avx2()) {
        GTEST_SKIP() << "the processor has the baseline only";
    }
    using datatype::Element;
    compare_kernels<std::int8_t>(Element::int8, elements);
    compare_kernels<std::int16_t>(Element::int16, elements);
    compare_kernels<std::int32_t>(Element::int32, elements);
    compare_kernels<std::int64_t>(Element::int64, elements);
    compare_kernels<std::uint8_t>(Element::uint8, elements);
    compare_kernels<std::uint16_t>(Element::uint16, elements);
    compare_kernels<std::uint32_t>(Element::uint32, elements);
    compare_kernels<std::uint64_t>(Element::uint64, elements);
    compare_kernels<float>(Element::float32, elements);
    compare_kernels<double>(Element::float64, elements);
    compare_kernels<float>(Element::complex64, elements);
    compare_kernels<double>(Element::complex128, elements);
    compare_kernels<double>(Element::two_float64, elements);
    compare_kernels<float>(Element::two_float32, elements);
    compare_kernels<std::int32_t>(Element::int_int, elements);
}

#endif

TEST_F(OpTest, characters_and_one_sided_operations_are_refused) {
    for (MPI_Datatype handle : {MPI_CHAR, MPI_CHARACTER, MPI_WCHAR, MPI_PACKED}) {
        for (MPI_Op operation : all_operations) {
            Error error = op(operation).check(datatype::basic(handle));
            EXPECT_EQ(error.error_class(), MPI_ERR_OP);
            error.drop();
        }
    }
    for (MPI_Op operation : {MPI_REPLACE, MPI_NO_OP}) {
        Error error = op(operation).check(datatype::basic(MPI_INT));
        EXPECT_EQ(error.error_class(), MPI_ERR_OP);
        error.drop();
    }
    EXPECT_EQ(ops_.find(MPI_OP_NULL), nullptr);
    EXPECT_EQ(ops_.find(reinterpret_cast<MPI_Op>(0x25)), nullptr);
}

MPI_Datatype seen_type;

void concatenate(void* in, void* inout, int* count, MPI_Datatype* type) {
    seen_type = *type;
    for (int i = 0; i < *count; ++i) {
        static_cast<int*>(inout)[i] += 10 * static_cast<int*>(in)[i];
    }
}

void concatenate_large(void* in, void* inout, MPI_Count* count, MPI_Datatype*) {
    for (MPI_Count i = 0; i < *count; ++i) {
        static_cast<int*>(inout)[i] += 100 * static_cast<int*>(in)[i];
    }
}

TEST_F(OpTest, user_operations_get_their_operands_in_order) {
    Op* made = ops_.insert(&concatenate, false);
    const MPI_Op handle = ops_.handle_of(*made);
    EXPECT_EQ(ops_.find(handle), made);
    EXPECT_FALSE(made->commutative());
    int in[] = {1, 2}, inout[] = {3, 4};
    made->apply(in, inout, 2, datatype::basic(MPI_INT));
    EXPECT_EQ(inout[0], 13);
    EXPECT_EQ(inout[1], 24);
    EXPECT_EQ(seen_type, MPI_INT);
    ops_.remove(*made);
    EXPECT_EQ(ops_.find(handle), nullptr);
    made = ops_.insert(&concatenate_large, true);
    int apart[2] = {};
    made->combine(in, inout, apart, 2, datatype::basic(MPI_INT));
    EXPECT_EQ(apart[0], 113);
    made->apply(in, inout, 2, datatype::basic(MPI_INT));
    EXPECT_EQ(inout[0], 113);
}

TEST_F(OpTest, an_adapter_is_called_in_place_of_the_function_and_gets_it) {
    for (Op* made : {ops_.insert(&concatenate, false), ops_.insert(&concatenate_large, false)}) {
        made->adapt([](Op::Function function, void* in, void* inout, void*, MPI_Datatype type) {
            EXPECT_TRUE(function == reinterpret_cast<Op::Function>(&concatenate) ||
                        function == reinterpret_cast<Op::Function>(&concatenate_large));
            EXPECT_EQ(type, MPI_INT);
            *static_cast<int*>(inout) = -*static_cast<int*>(in);
        });
        int in = 5, inout = 3;
        made->apply(&in, &inout, 1, datatype::basic(MPI_INT));
        EXPECT_EQ(inout, -5);
    }
}

} // namespace
} // namespace warren::coll
