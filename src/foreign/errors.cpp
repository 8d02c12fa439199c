// Error codes: three sorts, and what becomes of them.
//
//     classes of the standard         the ABI's numbers, by the table
//     codes that the program added    above the ABI's MPI_ERR_LASTCODE
//     single failures (bit 30 set)    themselves: MPI_Error_class and MPI_Error_string know them
// mpi/entry/error_codes.hpp describes the standard's side. An ABI whose MPI_ERR_LASTCODE is below
// bit 30 only has added codes among the single failures: with bit 13 set, which no class has.

#include "foreign/arguments.hpp"

namespace warren::foreign {

namespace {

constexpr int failure_bit = 1 << 30;
constexpr int added_bit = 1 << 13;
constexpr int class_bits = 14; // of a single failure

constexpr bool added_above = foreign_last_code > core_last_code;

int foreign_added(int code) {
    const int number = code - core_last_code - 1;
    return failure_bit | added_bit | number >> 13 << class_bits | (number & (added_bit - 1));
}

int core_added(int code) {
    const int high = (code & ~failure_bit) >> class_bits;
    return core_last_code + 1 + (high << 13 | (code & (added_bit - 1)));
}

} // namespace

int foreign_failure(int code) {
    if (code >= failure_bit || code < 0) {
        return code;
    }
    if (code > core_last_code) {
        return added_above ? foreign_added(code) : code;
    }
    return foreign_error_class(code);
}

int core_error(int code) {
    if (code >= failure_bit) {
        return added_above && (code & added_bit) != 0 ? core_added(code) : code;
    }
    return code > core_last_code ? code : core_error_class(code);
}

int no_memory() {
    core.Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    return foreign_error(MPI_ERR_NO_MEM);
}

} // namespace warren::foreign
