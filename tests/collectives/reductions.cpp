// Reduce, allreduce, scans and reduce-scatters: sums, pairs with locations, and a product of
// matrices, which does not commute, with and without gaps in memory; every root, sizes from nothing
// to large, MPI_IN_PLACE, on communicators of many shapes. Runs on any MPI.

#include "reference.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

using namespace reference;

namespace {

// --- Kinds of element: what rank `from` contributes at `index`, and how elements combine.

struct Ints {
    using Element = int;
    static constexpr const char* name = "sum of ints";
    static Element make(int from, long index) { return value(from, 0, index) & 0xffff; }
    static Element combine(const Element& a, const Element& b) { return a + b; }
    static bool same(const Element& a, const Element& b) { return a == b; }
};

struct Doubles {
    using Element = double;
    static constexpr const char* name = "maximum of doubles";
    static Element make(int from, long index) { return value(from, 0, index) % 1000 - 500.5; }
    static Element combine(const Element& a, const Element& b) { return a > b ? a : b; }
    static bool same(const Element& a, const Element& b) { return a == b; }
};

struct Located {
    struct Element {
        double value;
        int index;
    };
    static constexpr const char* name = "minimum with location";
    static Element make(int from, long index) {
        return {static_cast<double>(value(from, 0, index) % 5), from};
    }
    static Element combine(const Element& a, const Element& b) {
        if (a.value == b.value) {
            return {a.value, a.index < b.index ? a.index : b.index};
        }
        return a.value < b.value ? a : b;
    }
    static bool same(const Element& a, const Element& b) {
        return a.value == b.value && a.index == b.index;
    }
};

// 2 × 2 matrices modulo a prime, of determinant 1.
constexpr std::int64_t prime = 1'000'003;

struct Matrices {
    struct Element {
        int m[4];
    };
    static constexpr const char* name = "product of matrices";
    static Element make(int from, long index) {
        const int a = value(from, 0, index) % 1000;
        return from % 2 == 0 ? Element{{1, a, 0, 1}} : Element{{1, 0, a, 1}};
    }
    static Element combine(const Element& a, const Element& b) {
        Element product;
        for (int row = 0; row < 2; ++row) {
            for (int column = 0; column < 2; ++column) {
                product.m[2 * row + column] =
                    static_cast<int>((std::int64_t{a.m[2 * row]} * b.m[column] +
                                      std::int64_t{a.m[2 * row + 1]} * b.m[2 + column]) %
                                     prime);
            }
        }
        return product;
    }
    static bool same(const Element& a, const Element& b) {
        return std::memcmp(a.m, b.m, sizeof a.m) == 0;
    }
};

// The same, every entry followed by a gap.
struct Spaced {
    struct Element {
        int m[8];
    };
    static constexpr const char* name = "product of matrices with gaps";
    static Matrices::Element dense(const Element& e) { return {{e.m[0], e.m[2], e.m[4], e.m[6]}}; }
    static Element spaced(const Matrices::Element& e) {
        return {{e.m[0], gap, e.m[1], gap, e.m[2], gap, e.m[3], gap}};
    }
    static Element make(int from, long index) { return spaced(Matrices::make(from, index)); }
    static Element combine(const Element& a, const Element& b) {
        return spaced(Matrices::combine(dense(a), dense(b)));
    }
    static bool same(const Element& a, const Element& b) {
        return Matrices::same(dense(a), dense(b));
    }
};

template <typename Kind>
void user_function(void* in, void* inout, int* count, MPI_Datatype*) {
    auto* a = static_cast<typename Kind::Element*>(in);
    auto* b = static_cast<typename Kind::Element*>(inout);
    for (int i = 0; i < *count; ++i) {
        b[i] = Kind::combine(a[i], b[i]);
    }
}

// --- The operations

// The oracle has faults of its own.
bool mpich = false;

struct Case {
    MPI_Comm comm;
    int rank, size;
    MPI_Datatype type;
    MPI_Op op;
    std::string text;
};

template <typename Kind>
using Array = std::vector<typename Kind::Element>;

template <typename Kind>
Array<Kind> contribution(int from, int count) {
    Array<Kind> array(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        array[static_cast<std::size_t>(i)] = Kind::make(from, i);
    }
    return array;
}

// Whether elements [0, count) of `array` are the combination of elements first, first + 1, … of
// ranks [0, ranks). Of large arrays a part is looked at.
template <typename Kind>
bool combined(const Array<Kind>& array, long first, long count, int ranks) {
    for (long i = 0; i<count; i += count> 2000 && i + 98 < count ? 97 : 1) {
        typename Kind::Element expected = Kind::make(0, first + i);
        for (int r = 1; r < ranks; ++r) {
            expected = Kind::combine(expected, Kind::make(r, first + i));
        }
        if (!Kind::same(array[static_cast<std::size_t>(i)], expected)) {
            return false;
        }
    }
    return true;
}

template <typename Kind>
void run(const Case& c, int count) {
    const Array<Kind> own = contribution<Kind>(c.rank, count);
    const auto check = [&](bool good, const char* operation) {
        expect(good, operation, c.text + ", count " + std::to_string(count));
    };
    for (bool in_place : {false, true}) {
        for (int root = 0; root<c.size; root += c.size> 8 ? c.size / 2 : 1) {
            Array<Kind> in = own;
            Array<Kind> out = in_place ? own : Array<Kind>(own.size());
            const bool here = in_place && c.rank == root;
            call(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, here ? MPI_IN_PLACE : in.data(),
                 c.rank == root ? out.data() : nullptr, count, c.type, c.op, root, c.comm);
            check(c.rank != root || combined<Kind>(out, 0, count, c.size), "MPI_Reduce");
        }
        Array<Kind> in = own;
        Array<Kind> out = in_place ? own : Array<Kind>(own.size());
        void* from = in_place ? MPI_IN_PLACE : in.data();
        call(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, from, out.data(), count, c.type,
             c.op, c.comm);
        check(combined<Kind>(out, 0, count, c.size), "MPI_Allreduce");

        out = in_place ? own : Array<Kind>(own.size());
        call(MPI_Scan, MPI_Iscan, MPI_Scan_init, from, out.data(), count, c.type, c.op, c.comm);
        check(combined<Kind>(out, 0, count, c.rank + 1), "MPI_Scan");

        out = own;
        call(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, from, out.data(), count, c.type, c.op,
             c.comm);
        check(c.rank == 0 ? combined<Kind>(out, 0, count, 1)
                          : combined<Kind>(out, 0, count, c.rank),
              "MPI_Exscan");

        if (mpich && std::is_same_v<Kind, Spaced>) {
            continue; // MPICH 5.0.2 gives the function too little memory there
        }
        // Blocks of count / size elements; and uneven ones, some empty.
        const int block = count / c.size;
        Array<Kind> whole = own;
        out = in_place ? own : Array<Kind>(own.size());
        call(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init,
             in_place ? MPI_IN_PLACE : whole.data(), out.data(), block, c.type, c.op, c.comm);
        check(combined<Kind>(out, static_cast<long>(c.rank) * block, block, c.size),
              "MPI_Reduce_scatter_block");

        std::vector<int> counts(static_cast<std::size_t>(c.size));
        int left = count;
        int first = 0;
        for (int r = 0; r < c.size; ++r) {
            const int part = r + 1 == c.size ? left : (r % 3 == 1 ? 0 : left / 3);
            counts[static_cast<std::size_t>(r)] = part;
            first += r < c.rank ? part : 0;
            left -= part;
        }
        if (mpich && in_place && count > 1000) {
            continue; // MPICH 5.0.2 copies overlapping memory here, and stops
        }
        out = in_place ? own : Array<Kind>(own.size());
        call(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init,
             in_place ? MPI_IN_PLACE : whole.data(), out.data(), counts.data(), c.type, c.op,
             c.comm);
        check(combined<Kind>(out, first, counts[static_cast<std::size_t>(c.rank)], c.size),
              "MPI_Reduce_scatter");
    }
    Array<Kind> left = contribution<Kind>(0, count);
    Array<Kind> right = contribution<Kind>(1, count);
    MPI_Reduce_local(left.data(), right.data(), count, c.type, c.op);
    check(combined<Kind>(right, 0, count, 2), "MPI_Reduce_local");
}

template <typename Kind>
void run_sizes(const Named& named, MPI_Datatype type, MPI_Op op) {
    int rank, size;
    MPI_Comm_rank(named.comm, &rank);
    MPI_Comm_size(named.comm, &size);
    const Case c{named.comm, rank, size, type, op, named.name + ", " + Kind::name};
    for (int count : {0, 1, 7, 1000, 100'000}) {
        if (count > 1000 &&
            static_cast<long>(size) * static_cast<long>(sizeof(typename Kind::Element)) > 200) {
            continue;
        }
        run<Kind>(c, count);
    }
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    choose_form(argc, argv);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    mpich = std::strncmp(version, "MPICH", 5) == 0;
    std::vector<Named> communicators = make_communicators();

    MPI_Datatype matrix, spaced_vector, spaced;
    MPI_Type_contiguous(4, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Type_vector(4, 1, 2, MPI_INT, &spaced_vector);
    MPI_Type_create_resized(spaced_vector, 0, 8 * sizeof(int), &spaced);
    MPI_Type_free(&spaced_vector);
    MPI_Type_commit(&spaced);
    MPI_Op product, spaced_product, own_sum;
    MPI_Op_create(user_function<Matrices>, 0, &product);
    MPI_Op_create(user_function<Spaced>, 0, &spaced_product);
    MPI_Op_create(user_function<Ints>, 1, &own_sum);

    for (const Named& named : communicators) {
        run_sizes<Ints>(named, MPI_INT, MPI_SUM);
        run_sizes<Ints>(named, MPI_INT, own_sum);
        run_sizes<Doubles>(named, MPI_DOUBLE, MPI_MAX);
        run_sizes<Located>(named, MPI_DOUBLE_INT, MPI_MINLOC);
        run_sizes<Matrices>(named, matrix, product);
        run_sizes<Spaced>(named, spaced, spaced_product);
        MPI_Barrier(named.comm);
    }

    int commutes = 1;
    MPI_Op_commutative(product, &commutes);
    expect(commutes == 0, "MPI_Op_commutative", "of an operation that does not");
    MPI_Op_commutative(MPI_SUM, &commutes);
    expect(commutes == 1, "MPI_Op_commutative", "of MPI_SUM");
    MPI_Op_free(&product);
    MPI_Op_free(&spaced_product);
    MPI_Op_free(&own_sum);
    expect(own_sum == MPI_OP_NULL, "MPI_Op_free", "the handle is not null");
    MPI_Type_free(&matrix);
    MPI_Type_free(&spaced);
    free_communicators(communicators);
    return finish("reductions");
}
