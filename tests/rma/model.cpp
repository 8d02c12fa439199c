#include "model.hpp"

namespace model {

const Type types[] = {{MPI_INT8_T, 1, "int8"},     {MPI_UINT16_T, 2, "uint16"},
                      {MPI_INT32_T, 4, "int32"},   {MPI_INT64_T, 8, "int64"},
                      {MPI_UINT64_T, 8, "uint64"}, {MPI_FLOAT, 4, "float"},
                      {MPI_DOUBLE, 8, "double"},   {MPI_SHORT, 2, "short"}};
const int type_count = sizeof types / sizeof types[0];

MPI_Op handle_of(Op op) {
    switch (op) {
    case Op::sum:
        return MPI_SUM;
    case Op::min:
        return MPI_MIN;
    case Op::max:
        return MPI_MAX;
    case Op::product:
        return MPI_PROD;
    case Op::bit_and:
        return MPI_BAND;
    case Op::bit_or:
        return MPI_BOR;
    case Op::bit_xor:
        return MPI_BXOR;
    case Op::replace:
        return MPI_REPLACE;
    case Op::no_op:
        break;
    }
    return MPI_NO_OP;
}

const char* name_of(Op op) {
    static const char* const names[] = {"sum", "min", "max",     "product", "and",
                                        "or",  "xor", "replace", "no_op"};
    return names[static_cast<int>(op)];
}

namespace {

bool is_real(const Type& type) {
    return type.handle == MPI_FLOAT || type.handle == MPI_DOUBLE;
}

template <typename Number>
Number number_of(Op op, Number a, Number b) {
    // In the range of the type, as the library has it: sums and products of integers wrap.
    switch (op) {
    case Op::sum:
        return static_cast<Number>(a + b);
    case Op::product:
        return static_cast<Number>(a * b);
    case Op::min:
        return a < b ? a : b;
    case Op::max:
        return a > b ? a : b;
    case Op::replace:
        return b;
    default:
        return a;
    }
}

template <typename Integer, typename Wrapping>
void apply_to(Op op, void* target, const void* origin) {
    Integer a;
    Integer b;
    std::memcpy(&a, target, sizeof a);
    std::memcpy(&b, origin, sizeof b);
    switch (op) {
    case Op::bit_and:
        a = static_cast<Integer>(a & b);
        break;
    case Op::bit_or:
        a = static_cast<Integer>(a | b);
        break;
    case Op::bit_xor:
        a = static_cast<Integer>(a ^ b);
        break;
    case Op::sum:
    case Op::product:
        a = static_cast<Integer>(
            number_of<Wrapping>(op, static_cast<Wrapping>(a), static_cast<Wrapping>(b)));
        break;
    default:
        a = number_of(op, a, b);
    }
    std::memcpy(target, &a, sizeof a);
}

template <typename Real>
void apply_to_real(Op op, void* target, const void* origin) {
    Real a;
    Real b;
    std::memcpy(&a, target, sizeof a);
    std::memcpy(&b, origin, sizeof b);
    a = number_of(op, a, b);
    std::memcpy(target, &a, sizeof a);
}

} // namespace

bool defined(Op op, const Type& type) {
    return !is_real(type) || (op != Op::bit_and && op != Op::bit_or && op != Op::bit_xor);
}

void apply(Op op, const Type& type, void* target, const void* origin) {
    if (op == Op::no_op) {
        return;
    }
    if (type.handle == MPI_INT8_T) {
        apply_to<std::int8_t, std::uint32_t>(op, target, origin);
    } else if (type.handle == MPI_UINT16_T) {
        apply_to<std::uint16_t, std::uint32_t>(op, target, origin);
    } else if (type.handle == MPI_SHORT) {
        apply_to<short, std::uint32_t>(op, target, origin);
    } else if (type.handle == MPI_INT32_T) {
        apply_to<std::int32_t, std::uint32_t>(op, target, origin);
    } else if (type.handle == MPI_INT64_T) {
        apply_to<std::int64_t, std::uint64_t>(op, target, origin);
    } else if (type.handle == MPI_UINT64_T) {
        apply_to<std::uint64_t, std::uint64_t>(op, target, origin);
    } else if (type.handle == MPI_FLOAT) {
        apply_to_real<float>(op, target, origin);
    } else {
        apply_to_real<double>(op, target, origin);
    }
}

void draw(std::uint32_t random, const Type& type, void* value) {
    const auto small = static_cast<std::int8_t>(random % 7) - 3;
    if (type.handle == MPI_FLOAT) {
        const auto number = static_cast<float>(small);
        std::memcpy(value, &number, sizeof number);
    } else if (type.handle == MPI_DOUBLE) {
        const auto number = static_cast<double>(small);
        std::memcpy(value, &number, sizeof number);
    } else {
        const std::int64_t wide = small + static_cast<std::int64_t>(random % 5 * 11);
        std::memcpy(value, &wide, static_cast<std::size_t>(type.bytes)); // little-endian
    }
}

} // namespace model
