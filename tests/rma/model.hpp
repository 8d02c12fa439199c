// The sequential model that random one-sided programs are compared with: operations on elements, in
// plain C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <mpi.h>

namespace model {

// Element types of the programs, with the sizes that the model needs.
struct Type {
    MPI_Datatype handle;
    int bytes;
    const char* name;
};
extern const Type types[];
extern const int type_count;

enum class Op { sum, min, max, product, bit_and, bit_or, bit_xor, replace, no_op };
inline constexpr int op_count = 9;
MPI_Op handle_of(Op op);
const char* name_of(Op op);
// Whether MPI defines the operation on the type.
bool defined(Op op, const Type& type);

// target = target op origin, of one element.
void apply(Op op, const Type& type, void* target, const void* origin);

// A value that is exact in all types and small enough for some products.
void draw(std::uint32_t random, const Type& type, void* value);

} // namespace model
