// Datatypes of Fortran's numbers by precision and range (MPI chapter 19.1.9): selected_real_kind
// and selected_int_kind as datatypes. They are predefined without a name: committed, never freed,
// the same handle for the same numbers, and good for reductions.
#include <utility>

#include "mpi/datatype/construct.hpp"
#include "mpi/datatype/type_table.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/datatypes.hpp"

namespace warren::mpi {

namespace {

using datatype::Draft;

// A kind of number of gfortran's: how many decimal digits and which decimal exponent it has.
struct NumericKind {
    int digits;
    int exponent;
    MPI_Datatype type;
};

// Smallest first. 80-bit numbers, kind 10, are C's long double; there is no MPI_REAL10.
const NumericKind reals[] = {
    {6, 37, MPI_REAL4}, {15, 307, MPI_REAL8}, {18, 4931, MPI_LONG_DOUBLE}, {33, 4931, MPI_REAL16}};
const NumericKind complexes[] = {{6, 37, MPI_COMPLEX8},
                                 {15, 307, MPI_COMPLEX16},
                                 {18, 4931, MPI_C_LONG_DOUBLE_COMPLEX},
                                 {33, 4931, MPI_COMPLEX32}};
const NumericKind integers[] = {{2, 0, MPI_INTEGER1},
                                {4, 0, MPI_INTEGER2},
                                {9, 0, MPI_INTEGER4},
                                {18, 0, MPI_INTEGER8},
                                {38, 0, MPI_INTEGER16}};

template <std::size_t count>
const NumericKind* smallest(const NumericKind (&kinds)[count], int digits, int exponent) {
    for (const NumericKind& kind : kinds) {
        if (kind.digits >= digits && kind.exponent >= exponent) {
            return &kind;
        }
    }
    return nullptr;
}

Error insert(Context& context, int combiner, int p, int r, const NumericKind* kind,
             MPI_Datatype* newtype) {
    if (kind == nullptr) {
        return fail(MPI_ERR_ARG, "Fortran has no such numbers: precision %d, range %d", p, r);
    }
    const datatype::Datatype& base = datatype::basic(kind->type);
    Draft draft;
    make_duplicate(base, draft);
    draft.type.element = base.element;
    draft.derived->contents.combiner = combiner;
    if (combiner != MPI_COMBINER_F90_INTEGER) {
        draft.derived->contents.integers.push_back(p);
    }
    draft.derived->contents.integers.push_back(r);
    return context.datatypes.insert_once({combiner, p, r}, std::move(draft), *newtype);
}

template <std::size_t count>
Error floating(Context& context, int combiner, const NumericKind (&kinds)[count], int p, int r,
               MPI_Datatype* newtype) {
    if (p == MPI_UNDEFINED && r == MPI_UNDEFINED) {
        return fail(MPI_ERR_ARG, "p and r are both MPI_UNDEFINED");
    }
    const int digits = p == MPI_UNDEFINED ? 0 : p;
    const int exponent = r == MPI_UNDEFINED ? 0 : r;
    const NumericKind* kind =
        digits < 0 || exponent < 0 ? nullptr : smallest(kinds, digits, exponent);
    return insert(context, combiner, p, r, kind, newtype);
}

} // namespace

Error type_create_f90_real(Context& context, int p, int r, MPI_Datatype* newtype) {
    return floating(context, MPI_COMBINER_F90_REAL, reals, p, r, newtype);
}

Error type_create_f90_complex(Context& context, int p, int r, MPI_Datatype* newtype) {
    return floating(context, MPI_COMBINER_F90_COMPLEX, complexes, p, r, newtype);
}

Error type_create_f90_integer(Context& context, int r, MPI_Datatype* newtype) {
    const NumericKind* kind = r < 0 ? nullptr : smallest(integers, r, 0);
    return insert(context, MPI_COMBINER_F90_INTEGER, 0, r, kind, newtype);
}

} // namespace warren::mpi
