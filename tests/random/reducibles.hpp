// Predefined types with predefined operations, and values for which every order of evaluation gives
// the same result.
#pragma once

#include "types.hpp"

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace programs {

// A type and an operation on it: how a contribution is drawn and how two are combined.
struct Reducible {
    std::string name;
    MPI_Datatype type;
    MPI_Op op;
    Basic basic;
    void (*draw)(Bits bits, unsigned char* out);
    void (*combine)(const unsigned char* left, unsigned char* right); // into the right one
};

using Reducibles = std::vector<Reducible>;

const Reducibles& predefined_reductions();

template <typename T>
T load(const unsigned char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <typename T>
void store(unsigned char* to, T value, std::size_t bytes = sizeof(T)) {
    std::memcpy(to, &value, bytes);
}

} // namespace programs
