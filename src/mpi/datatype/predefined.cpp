// The predefined datatypes: sizes and alignments of this machine's C compiler and of gfortran.
//
// Every type of the ABI exists for moving data. Whether a reduction knows MPI_REAL2 or MPI_REAL16
// is decided where reductions are (coll/). Everything is computed by the compiler and contains no
// pointer, so that all ranks share the pages.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/signature.hpp"

namespace warren::datatype {

namespace {

constexpr std::size_t name_limit = 28;

struct Row {
    std::uint8_t index; // handle - MPI_DATATYPE_NULL
    Element element;
    std::uint8_t alignment;
    std::uint8_t size;   // of the first part, if it is a pair
    std::uint8_t second; // bytes of the second part; 0: not a pair
    std::uint8_t second_offset;
    std::uint8_t extent;
    char name[name_limit];
};

constexpr Row row(unsigned index, Element element, std::size_t size, std::size_t alignment,
                  const char* name) {
    Row made{};
    made.index = static_cast<std::uint8_t>(index);
    made.element = element;
    made.alignment = static_cast<std::uint8_t>(alignment);
    made.size = static_cast<std::uint8_t>(size);
    made.extent = made.size;
    for (std::size_t i = 0; name[i] != '\0'; ++i) {
        made.name[i] = name[i];
    }
    return made;
}

constexpr Row plain(unsigned index, Element element, std::size_t size, std::size_t alignment,
                    const char* name) {
    return row(index, element, size, alignment, name);
}

template <typename Type>
constexpr Row plain(unsigned index, Element element, const char* name) {
    return row(index, element, sizeof(Type), alignof(Type), name);
}

template <typename First, typename Second>
constexpr Row pair(unsigned index, Element element, const char* name) {
    struct Pair {
        First first;
        Second second;
    };
    Row made = row(index, element, sizeof(First), alignof(Pair), name);
    made.second = sizeof(Second);
    made.second_offset = offsetof(Pair, second);
    made.extent = sizeof(Pair);
    return made;
}

constexpr Row predefined_rows[] = {
    plain<MPI_Aint>(0x01, Element::int64, "MPI_AINT"),
    plain<MPI_Count>(0x02, Element::int64, "MPI_COUNT"),
    plain<MPI_Offset>(0x03, Element::int64, "MPI_OFFSET"),
    plain(0x07, Element::packed, 1, 1, "MPI_PACKED"),
    plain<short>(0x08, Element::int16, "MPI_SHORT"),
    plain<int>(0x09, Element::int32, "MPI_INT"),
    plain<long>(0x0a, Element::int64, "MPI_LONG"),
    plain<long long>(0x0b, Element::int64, "MPI_LONG_LONG_INT"),
    plain<unsigned short>(0x0c, Element::uint16, "MPI_UNSIGNED_SHORT"),
    plain<unsigned>(0x0d, Element::uint32, "MPI_UNSIGNED"),
    plain<unsigned long>(0x0e, Element::uint64, "MPI_UNSIGNED_LONG"),
    plain<unsigned long long>(0x0f, Element::uint64, "MPI_UNSIGNED_LONG_LONG"),
    plain<float>(0x10, Element::float32, "MPI_FLOAT"),
    plain(0x12, Element::complex64, 2 * 4, 4, "MPI_C_COMPLEX"),
    plain(0x13, Element::complex64, 2 * 4, 4, "MPI_CXX_FLOAT_COMPLEX"),
    plain<double>(0x14, Element::float64, "MPI_DOUBLE"),
    plain(0x16, Element::complex128, 2 * 8, 8, "MPI_C_DOUBLE_COMPLEX"),
    plain(0x17, Element::complex128, 2 * 8, 8, "MPI_CXX_DOUBLE_COMPLEX"),
    plain(0x18, Element::logical32, 4, 4, "MPI_LOGICAL"),
    plain(0x19, Element::int32, 4, 4, "MPI_INTEGER"),
    plain(0x1a, Element::float32, 4, 4, "MPI_REAL"),
    plain(0x1b, Element::complex64, 2 * 4, 4, "MPI_COMPLEX"),
    plain(0x1c, Element::float64, 8, 8, "MPI_DOUBLE_PRECISION"),
    plain(0x1d, Element::complex128, 2 * 8, 8, "MPI_DOUBLE_COMPLEX"),
    plain(0x1e, Element::character, 1, 1, "MPI_CHARACTER"),
    plain<long double>(0x20, Element::float_extended, "MPI_LONG_DOUBLE"),
    plain(0x24, Element::complex_extended, 2 * sizeof(long double), alignof(long double),
          "MPI_C_LONG_DOUBLE_COMPLEX"),
    plain(0x25, Element::complex_extended, 2 * sizeof(long double), alignof(long double),
          "MPI_CXX_LONG_DOUBLE_COMPLEX"),
    pair<float, int>(0x28, Element::float_int, "MPI_FLOAT_INT"),
    pair<double, int>(0x29, Element::double_int, "MPI_DOUBLE_INT"),
    pair<long, int>(0x2a, Element::long_int, "MPI_LONG_INT"),
    pair<int, int>(0x2b, Element::int_int, "MPI_2INT"),
    pair<short, int>(0x2c, Element::short_int, "MPI_SHORT_INT"),
    pair<long double, int>(0x2d, Element::long_double_int, "MPI_LONG_DOUBLE_INT"),
    pair<float, float>(0x30, Element::two_float32, "MPI_2REAL"),
    pair<double, double>(0x31, Element::two_float64, "MPI_2DOUBLE_PRECISION"),
    pair<int, int>(0x32, Element::int_int, "MPI_2INTEGER"),
    plain<bool>(0x38, Element::boolean, "MPI_C_BOOL"),
    plain<bool>(0x39, Element::boolean, "MPI_CXX_BOOL"),
    plain<wchar_t>(0x3c, Element::character, "MPI_WCHAR"),
    plain(0x40, Element::int8, 1, 1, "MPI_INT8_T"),
    plain(0x41, Element::uint8, 1, 1, "MPI_UINT8_T"),
    plain(0x43, Element::character, 1, 1, "MPI_CHAR"),
    plain(0x44, Element::int8, 1, 1, "MPI_SIGNED_CHAR"),
    plain(0x45, Element::uint8, 1, 1, "MPI_UNSIGNED_CHAR"),
    plain(0x47, Element::byte, 1, 1, "MPI_BYTE"),
    plain(0x48, Element::int16, 2, 2, "MPI_INT16_T"),
    plain(0x49, Element::uint16, 2, 2, "MPI_UINT16_T"),
    plain(0x50, Element::int32, 4, 4, "MPI_INT32_T"),
    plain(0x51, Element::uint32, 4, 4, "MPI_UINT32_T"),
    plain(0x58, Element::int64, 8, 8, "MPI_INT64_T"),
    plain(0x59, Element::uint64, 8, 8, "MPI_UINT64_T"),
    plain(0xc0, Element::logical8, 1, 1, "MPI_LOGICAL1"),
    plain(0xc1, Element::int8, 1, 1, "MPI_INTEGER1"),
    plain(0xc8, Element::logical16, 2, 2, "MPI_LOGICAL2"),
    plain(0xc9, Element::int16, 2, 2, "MPI_INTEGER2"),
    plain(0xca, Element::float16, 2, 2, "MPI_REAL2"),
    plain(0xd0, Element::logical32, 4, 4, "MPI_LOGICAL4"),
    plain(0xd1, Element::int32, 4, 4, "MPI_INTEGER4"),
    plain(0xd2, Element::float32, 4, 4, "MPI_REAL4"),
    plain(0xd3, Element::complex32, 2 * 2, 2, "MPI_COMPLEX4"),
    plain(0xd8, Element::logical64, 8, 8, "MPI_LOGICAL8"),
    plain(0xd9, Element::int64, 8, 8, "MPI_INTEGER8"),
    plain(0xda, Element::float64, 8, 8, "MPI_REAL8"),
    plain(0xdb, Element::complex64, 2 * 4, 4, "MPI_COMPLEX8"),
    plain(0xe0, Element::logical128, 16, 16, "MPI_LOGICAL16"),
    plain(0xe1, Element::int128, 16, 16, "MPI_INTEGER16"),
    plain(0xe2, Element::float128, 16, 16, "MPI_REAL16"),
    plain(0xe3, Element::complex128, 2 * 8, 8, "MPI_COMPLEX16"),
    plain(0xeb, Element::complex256, 2 * 16, 16, "MPI_COMPLEX32"),
};

consteval std::array<Datatype, predefined_limit> make_table() {
    std::array<Datatype, predefined_limit> table{};
    for (const Row& row : predefined_rows) {
        Datatype& type = table[row.index];
        type.size = row.size + row.second;
        type.extent = row.extent;
        type.true_extent = row.second == 0 ? row.size : row.second_offset + row.second;
        type.element = row.element;
        type.alignment = row.alignment;
        type.basic = row.index;
        type.committed = true;
        type.predefined = true;
        type.contiguous = type.extent == type.size;
    }
    return table;
}

consteval std::array<std::uint8_t, predefined_limit> make_short_sizes() {
    std::array<std::uint8_t, predefined_limit> sizes{};
    sizes.fill(too_long);
    for (const Row& row : predefined_rows) {
        const int size = row.size + row.second;
        if (size == row.extent) {
            sizes[row.index] = static_cast<std::uint8_t>(size);
        }
    }
    return sizes;
}

const Row* find_row(std::uint8_t index) {
    const auto* found = std::find_if(std::begin(predefined_rows), std::end(predefined_rows),
                                     [index](const Row& row) { return row.index == index; });
    return found == std::end(predefined_rows) ? nullptr : found;
}

} // namespace

constinit const std::array<Datatype, predefined_limit> predefined_table = make_table();
constinit const std::array<std::uint8_t, predefined_limit> short_sizes = make_short_sizes();

const char* Datatype::predefined_name() const {
    const Row* found = predefined ? find_row(basic) : nullptr;
    return found == nullptr ? "" : found->name;
}

BasicParts parts_of(std::uint8_t index) {
    const Row* found = find_row(index);
    return {found->size, found->second, found->second_offset};
}

} // namespace warren::datatype
