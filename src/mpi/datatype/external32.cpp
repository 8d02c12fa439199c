#include "mpi/datatype/external32.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/derived.hpp"
#include "mpi/datatype/signature.hpp"

namespace warren::datatype {

namespace {

#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 Float128;
#else
using Float128 = long double;
#endif

enum class Conversion : std::uint8_t {
    bytes,            // the same number of bytes in the other order
    signed_integer,   // fewer bytes there
    unsigned_integer, // likewise
    extended          // long double and IEEE's 128 bits
};

// `repeats` numbers of a basic element: two of a complex number, none of what doesn't exist.
struct Numbers32 {
    std::uint8_t native = 0;
    std::uint8_t external = 0;
    std::uint8_t repeats = 0;
    Conversion conversion = Conversion::bytes;
};

// A basic element: its numbers, and those of the second half of a pair.
struct Format {
    Numbers32 first;
    Numbers32 second;

    MPI_Count native() const {
        return first.native * first.repeats + second.native * second.repeats;
    }
    MPI_Count external() const {
        return first.external * first.repeats + second.external * second.repeats;
    }
};

constexpr Numbers32 plain(MPI_Count bytes, std::uint8_t repeats = 1) {
    return {.native = static_cast<std::uint8_t>(bytes),
            .external = static_cast<std::uint8_t>(bytes),
            .repeats = repeats};
}
constexpr Numbers32 c_long{
    .native = sizeof(long), .external = 4, .repeats = 1, .conversion = Conversion::signed_integer};
constexpr Numbers32 c_unsigned_long{.native = sizeof(unsigned long),
                                    .external = 4,
                                    .repeats = 1,
                                    .conversion = Conversion::unsigned_integer};
constexpr Numbers32 c_wide_character{.native = sizeof(wchar_t),
                                     .external = 2,
                                     .repeats = 1,
                                     .conversion = Conversion::unsigned_integer};
constexpr Numbers32 c_long_double{.native = sizeof(long double),
                                  .external = 16,
                                  .repeats = 1,
                                  .conversion = Conversion::extended};

Format format_of(std::uint8_t index) {
    const Datatype& type = predefined_table[index];
    const auto is = [&](MPI_Datatype handle) { return &type == &basic(handle); };
    if (is(MPI_LONG)) {
        return {c_long, {}};
    }
    if (is(MPI_UNSIGNED_LONG)) {
        return {c_unsigned_long, {}};
    }
    if (is(MPI_WCHAR)) {
        return {c_wide_character, {}};
    }
    switch (type.element) {
    case Element::complex32:
    case Element::complex64:
    case Element::complex128:
    case Element::complex256:
        return {plain(type.size / 2, 2), {}};
    case Element::float_extended:
        return {c_long_double, {}};
    case Element::complex_extended:
        return {c_long_double, c_long_double};
    case Element::long_int:
        return {c_long, plain(sizeof(int))};
    case Element::long_double_int:
        return {c_long_double, plain(sizeof(int))};
    default: {
        const BasicParts parts = parts_of(index);
        return {plain(parts.first), plain(parts.second, parts.second == 0 ? 0 : 1)};
    }
    }
}

void reverse(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::reverse_copy(from, from + bytes, to);
}

void to_external(const Numbers32& numbers, const std::byte*& native, std::byte*& external) {
    for (int i = 0; i < numbers.repeats; ++i) {
        if (numbers.conversion == Conversion::extended) {
            long double here = 0;
            std::memcpy(&here, native, sizeof here);
            const auto there = static_cast<Float128>(here);
            reverse(external, reinterpret_cast<const std::byte*>(&there), sizeof there);
        } else {
            reverse(external, native, numbers.external); // the least significant come first here
        }
        native += numbers.native;
        external += numbers.external;
    }
}

void from_external(const Numbers32& numbers, std::byte*& native, const std::byte*& external) {
    for (int i = 0; i < numbers.repeats; ++i) {
        if (numbers.conversion == Conversion::extended) {
            Float128 there = 0;
            reverse(reinterpret_cast<std::byte*>(&there), external, sizeof there);
            const auto here = static_cast<long double>(there);
            std::memset(native, 0, sizeof here); // x87's ten bytes leave six
            std::memcpy(native, &here, sizeof here);
        } else {
            reverse(native, external, numbers.external);
            const bool negative = numbers.conversion == Conversion::signed_integer &&
                                  (external[0] & std::byte{0x80}) != std::byte{0};
            std::memset(native + numbers.external, negative ? 0xff : 0,
                        static_cast<std::size_t>(numbers.native - numbers.external));
        }
        native += numbers.native;
        external += numbers.external;
    }
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

MPI_Count external_size(const Signature& signature) {
    MPI_Count bytes = 0;
    for (const Run& run : signature.runs) {
        bytes +=
            run.count * (run.inner ? external_size(*run.inner) : format_of(run.basic).external());
    }
    return bytes;
}

// Goes through the basic elements of a buffer in the order of its type map.
class PackedWalk {
  public:
    PackedWalk(const Datatype& type, const void* base, MPI_Count count) // packs
        : type_(type), from_(base), count_(count) {}
    PackedWalk(const Datatype& type, void* base, MPI_Count count, const std::byte* packed,
               MPI_Count bytes) // unpacks
        : type_(type), to_(base), count_(count), unpacks_(true), source_(packed), left_(bytes) {}

    void pack_to(std::byte* packed) {
        target_ = packed;
        whole();
    }
    MPI_Count unpack() {
        whole();
        return done_;
    }

  private:
    void whole() {
        if (type_.size == 0) {
            return;
        }
        if (type_.basic != 0) {
            const Format format = format_of(type_.basic);
            elements(format, count_ * (type_.size / format.native()));
            return;
        }
        for (MPI_Count i = 0; i < count_ && !ended_; ++i) {
            runs(*type_.derived->signature);
        }
    }

    void runs(const Signature& signature) {
        for (const Run& run : signature.runs) {
            if (ended_) {
                return;
            }
            if (!run.inner) {
                elements(format_of(run.basic), run.count);
                continue;
            }
            for (MPI_Count i = 0; i < run.count && !ended_; ++i) {
                runs(*run.inner);
            }
        }
    }

    // How many of `count` elements the packed data still has.
    MPI_Count there(const Format& format, MPI_Count count) {
        const MPI_Count has = format.external() == 0 ? count : left_ / format.external();
        ended_ = ended_ || has < count;
        const MPI_Count now = std::min(count, has);
        left_ -= now * format.external();
        return now;
    }

    // The next `count` basic elements, which are all of one type, by way of a buffer on the stack.
    void elements(const Format& format, MPI_Count count) {
        constexpr MPI_Count buffer_bytes = 4096;
        std::byte buffer[buffer_bytes];
        const MPI_Count portion = buffer_bytes / format.native();
        count = unpacks_ ? there(format, count) : count;
        for (; count > 0; count -= portion) {
            const MPI_Count now = std::min(count, portion);
            const MPI_Count bytes = now * format.native();
            if (unpacks_) {
                std::byte* native = buffer;
                for (MPI_Count i = 0; i < now; ++i) {
                    from_external(format.first, native, source_);
                    from_external(format.second, native, source_);
                }
                type_.unpack_part(buffer, done_, bytes, to_, count_);
            } else {
                type_.pack_part(from_, count_, done_, bytes, buffer);
                const std::byte* native = buffer;
                for (MPI_Count i = 0; i < now; ++i) {
                    to_external(format.first, native, target_);
                    to_external(format.second, native, target_);
                }
            }
            done_ += bytes;
        }
    }

    const Datatype& type_;
    const void* from_ = nullptr;
    void* to_ = nullptr;
    MPI_Count count_;
    MPI_Count done_ = 0; // bytes of packed data as it would be here
    bool unpacks_ = false;
    std::byte* target_ = nullptr;
    const std::byte* source_ = nullptr;
    MPI_Count left_ = 0; // bytes of it
    bool ended_ = false; // they were not enough
};

} // namespace

MPI_Count external_size(const Datatype& type) {
    if (type.size == 0) {
        return 0;
    }
    if (type.basic != 0) {
        const Format format = format_of(type.basic);
        return type.size / format.native() * format.external();
    }
    return external_size(*type.derived->signature);
}

void pack_external(const Datatype& type, const void* base, MPI_Count count, std::byte* packed) {
    PackedWalk(type, base, count).pack_to(packed);
}

void unpack_external(const Datatype& type, const std::byte* packed, void* base, MPI_Count count) {
    unpack_external(type, packed, std::numeric_limits<MPI_Count>::max(), base, count);
}

MPI_Count unpack_external(const Datatype& type, const std::byte* packed, MPI_Count bytes,
                          void* base, MPI_Count count) {
    return PackedWalk(type, base, count, packed, bytes).unpack();
}

} // namespace warren::datatype
