// Datatype: the layout of data in a program's buffer, and its copies to and from contiguous bytes.
//
// The numbers that every call needs (size, bounds, extent, contiguous or not) are in the object
// itself; a derived type's layout, signature, name and attributes hang from it. Predefined types
// are constants in read-only memory without any pointer to relocate, so they cost a rank nothing;
// derived types live in the rank's TypeTable (type_table.hpp).
// Thread rule: the layout never changes; references and the committed flag, under the rank's lock.
// Invariants: size is the data of one element and ≥ 0; element i of a buffer begins at
// base + i * extent; contiguous means that data is one block at offset 0 that fills the extent, or
// that there is none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <sys/uio.h>

#include "mpi.h"

namespace warren::datatype {

struct Body;
struct Derived;

// Kind of an element for a reduction operation: the machine's type behind a predefined datatype.
// Derived types have none.
enum class Element : std::uint8_t {
    none,
    int8,
    int16,
    int32,
    int64,
    int128,
    uint8,
    uint16,
    uint32,
    uint64,
    float16, // _Float16: MPI_REAL2
    float32,
    float64,
    float128,       // __float128: MPI_REAL16
    float_extended, // long double: x87 extended on x86-64, the same as float128 on aarch64
    complex32,      // two float16
    complex64,
    complex128,
    complex256, // two float128
    complex_extended,
    boolean,  // _Bool, bool
    logical8, // Fortran LOGICALs: zero is false
    logical16,
    logical32,
    logical64,
    logical128,
    byte,      // MPI_BYTE
    packed,    // MPI_PACKED
    character, // MPI_CHAR, MPI_CHARACTER, MPI_WCHAR: no arithmetic
    float_int, // MINLOC, MAXLOC pairs as C structs
    double_int,
    long_int,
    int_int, // MPI_2INT, MPI_2INTEGER
    short_int,
    long_double_int,
    two_float32,
    two_float64
};

struct Datatype {
    MPI_Count size = 0; // bytes of data
    MPI_Count lower_bound = 0;
    MPI_Count extent = 0;
    MPI_Count true_lower_bound = 0;
    MPI_Count true_extent = 0;
    const Body* layout = nullptr; // of types that aren't contiguous
    Derived* derived = nullptr;   // what only derived types have
    // The handle, types made from it and requests that use it; of derived types.
    std::uint32_t references = 0;
    std::uint32_t handles = 0;       // that the program owns: 0 once it has freed the type
    Element element = Element::none; // of a predefined type
    std::uint8_t alignment = 0;      // largest of its basic elements
    // The only basic type in it, as handle - MPI_DATATYPE_NULL; 0 when there are several, or none.
    std::uint8_t basic = 0;
    bool committed = false;
    bool predefined = false;
    bool contiguous = false;
    bool bounded = false; // its bounds were set explicitly (MPI_Type_create_resized and subarrays)

    // Bytes of `count` elements. False when the product overflows.
    [[nodiscard]] bool bytes_of(MPI_Count count, MPI_Count& bytes) const {
        return !__builtin_mul_overflow(count, size, &bytes);
    }

    // The memory of `count` elements at base if it is one piece without gaps, else null.
    void* one_piece(const void* base, MPI_Count count) const;

    // Copies `count` elements at `base` to contiguous memory, and back. Unpack takes `bytes`, at
    // most count elements' worth, which may end inside an element.
    void pack(const void* base, MPI_Count count, void* packed) const {
        pack_part(base, count, 0, count * size, packed);
    }
    void unpack(const void* packed, MPI_Count bytes, void* base, MPI_Count count) const {
        unpack_part(packed, 0, bytes, base, count);
    }

    // As above, for bytes [first, first + bytes) of the packed data, wherever they begin and end:
    // `packed` holds just these. Any order of parts, no state between them.
    void pack_part(const void* base, MPI_Count count, MPI_Count first, MPI_Count bytes,
                   void* packed) const;
    void unpack_part(const void* packed, MPI_Count first, MPI_Count bytes, void* base,
                     MPI_Count count) const;

    // Lists the pieces of memory of bytes [first, first + bytes) of the data, in order, adjacent
    // ones joined. Stops at `limit` pieces; `covered`: the number of bytes listed.
    std::size_t pieces(const void* base, MPI_Count count, MPI_Count first, MPI_Count bytes,
                       iovec* list, std::size_t limit, MPI_Count& covered) const;

    // Blocks of memory of one element, some of which may touch. Not of types without data.
    MPI_Count block_count() const;

    // Whole elements in `bytes` of packed data (MPI_Get_count): MPI_UNDEFINED when not whole.
    MPI_Count count_in(MPI_Count bytes) const;

    // Basic elements in `bytes` of packed data (MPI_Get_elements): MPI_UNDEFINED when the data ends
    // inside a basic element. The two halves of a pair type are basic elements.
    MPI_Count elements_in(MPI_Count bytes) const;

    // The name of a predefined type as MPI_Type_get_name gives it, or "".
    const char* predefined_name() const;
};

inline constexpr std::uintptr_t predefined_first = 0x200; // MPI_DATATYPE_NULL
inline constexpr std::uintptr_t predefined_limit = 256;

extern const std::array<Datatype, predefined_limit> predefined_table;

// Bytes of an element of predefined types without gaps, by the same index; too_long for all others.
// For the fast path of messages of a few bytes, which other types don't take.
inline constexpr std::uint8_t too_long = 255;
extern const std::array<std::uint8_t, predefined_limit> short_sizes;

// The predefined datatype of a handle, or null (MPI_DATATYPE_NULL, no such type).
inline const Datatype* predefined(MPI_Datatype handle) {
    const std::uintptr_t index = reinterpret_cast<std::uintptr_t>(handle) - predefined_first;
    if (index >= predefined_limit || !predefined_table[index].predefined) [[unlikely]] {
        return nullptr;
    }
    return &predefined_table[index];
}

// A predefined datatype that surely exists.
inline const Datatype& basic(MPI_Datatype handle) {
    return predefined_table[reinterpret_cast<std::uintptr_t>(handle) - predefined_first];
}

// Keeps a type alive for a request or another user, and lets it go. For all types; under the lock.
inline void retain(const Datatype& type) {
    if (!type.predefined) {
        // Not a mutable member: that would move the predefined table to writable memory. A type
        // that isn't predefined is never a constant.
        ++const_cast<Datatype&>(type).references;
    }
}
void release(const Datatype& type);

// Keeps types alive for a call that waits: another thread of the rank may free them meanwhile.
class Kept {
  public:
    explicit Kept(const Datatype& one) : Kept(one, one) {}
    Kept(const Datatype& one, const Datatype& other) : types_{&one, &other} {
        retain(one);
        retain(other);
    }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() {
        for (const Datatype* type : types_) {
            if (!type->predefined) [[unlikely]] {
                release(*type);
            }
        }
    }

  private:
    const Datatype* const types_[2];
};

} // namespace warren::datatype
