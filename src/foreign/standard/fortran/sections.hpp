// Choice buffers of the module mpi_f08: descriptors of arrays, which need not be contiguous.
//
// The elements of a section, in the order of the array, are a buffer without gaps to MPI (MPI 5.0,
// 19.1.12). What a procedure gets in place of it:
//
// | holder        | procedures                              | a section with gaps becomes     |
// |---------------|-----------------------------------------|---------------------------------|
// | BlockSection  | one block of `count` elements of a type | a datatype with the gaps        |
// | SpacedSection | partitioned: blocks of one type         | a type of a larger extent, else |
// |               |                                         | refused                         |
// | CopiedSection | other collective operations, packing    | a copy, which goes back         |
// | FirstElement  | one-sided, one element                  | its first element               |
// | WholeSection  | what must stay: windows, Buffer_attach  | refused                         |
//
// Thread rule: a holder belongs to its call. Invariant: contiguous buffers are passed as they are,
// and nothing is allocated for them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foreign/fortran/arguments.hpp"

// WARREN_FORTRAN_SECTIONS(name, suffix, (parameters)) { … }: pmpi_name_suffix_, and its weak form
// mpi_name_suffix_.
#define WARREN_FORTRAN_SECTIONS(name, suffix, parameters)                                          \
    extern "C"                                                                                     \
        __attribute__((visibility("default"))) void fortran_##name##_##suffix parameters asm(      \
            "pmpi_" #name "_" #suffix "_");                                                        \
    extern "C" __attribute__((                                                                     \
        weak, alias("pmpi_" #name "_" #suffix "_"),                                                \
        visibility("default"))) void weak_##name##_##suffix parameters asm("mpi_" #name            \
                                                                           "_" #suffix "_");       \
    void fortran_##name##_##suffix parameters

namespace warren::foreign::fortran {

// CFI_cdesc_t (Fortran 2018, 18.5.3) as far as compilers agree: gfortran and LLVM's flang have
// other members between rank and dimensions.
struct Descriptor {
    struct Dimension {
        std::ptrdiff_t lower_bound;
        std::ptrdiff_t extent; // -1: the last one of an assumed-size array
        std::ptrdiff_t stride; // bytes
    };

    void* base;
    std::size_t element_bytes;
    int version;
    std::int8_t rank;
    std::int8_t others[3];
    Dimension dimensions[15];
};
static_assert(offsetof(Descriptor, dimensions) == 24);

// Whether the elements follow each other without gaps, or there are none.
inline bool is_contiguous(const Descriptor& section) {
    auto expected = static_cast<std::ptrdiff_t>(section.element_bytes);
    bool gaps = false;
    for (int i = 0; i < section.rank; ++i) {
        const auto& dimension = section.dimensions[i];
        if (dimension.extent == 0) {
            return true;
        }
        gaps |= dimension.extent != 1 && dimension.stride != expected;
        expected *= dimension.extent;
    }
    return !gaps;
}

inline MPI_Datatype refused_type() {
    return nullptr;
}

// Whether a section's datatype may lose the program's types: not where an operation needs them, as
// accumulates do. They take one predefined type only.
enum class Types { bytes_suffice, kept };

class BlockSection {
  public:
    BlockSection(const Descriptor* section, MPI_Count count, MPI_Datatype type,
                 Types types = Types::bytes_suffice)
        : buffer_(c_buffer(section->base)), count_(count), type_(type) {
        if (!is_contiguous(*section)) [[unlikely]] {
            describe(*section, types);
        }
    }
    ~BlockSection() {
        if (made_type_ != MPI_DATATYPE_NULL) [[unlikely]] {
            core.Type_free(&made_type_);
        }
    }
    BlockSection(const BlockSection&) = delete;
    BlockSection& operator=(const BlockSection&) = delete;

    bool made() const { return type_ != refused_type(); }
    void* data() const { return buffer_; }
    MPI_Count count() const { return count_; }
    MPI_Datatype type() const { return type_; }

  private:
    void describe(const Descriptor& section, Types types);

    void* buffer_;
    MPI_Count count_;
    MPI_Datatype type_;
    MPI_Datatype made_type_ = MPI_DATATYPE_NULL;
};

class SpacedSection {
  public:
    SpacedSection(const Descriptor* section, MPI_Datatype type)
        : buffer_(c_buffer(section->base)), type_(type) {
        if (!is_contiguous(*section)) [[unlikely]] {
            describe(*section);
        }
    }
    ~SpacedSection() {
        if (made_type_ != MPI_DATATYPE_NULL) [[unlikely]] {
            core.Type_free(&made_type_);
        }
    }
    SpacedSection(const SpacedSection&) = delete;
    SpacedSection& operator=(const SpacedSection&) = delete;

    bool made() const { return type_ != refused_type(); }
    void* data() const { return buffer_; }
    MPI_Datatype type() const { return type_; }

  private:
    void describe(const Descriptor& section);

    void* buffer_;
    MPI_Datatype type_;
    MPI_Datatype made_type_ = MPI_DATATYPE_NULL;
};

class CopiedSection {
  public:
    CopiedSection(const Descriptor* section, Way way)
        : section_(section), way_(way), buffer_(c_buffer(section->base)) {
        if (!is_contiguous(*section)) [[unlikely]] {
            copy();
        }
    }
    ~CopiedSection() {
        if (copy_ != nullptr) [[unlikely]] {
            copy_back();
        }
    }
    CopiedSection(const CopiedSection&) = delete;
    CopiedSection& operator=(const CopiedSection&) = delete;

    bool made() const { return made_; }
    void* data() const { return buffer_; }

    // After the call of a nonblocking or persistent procedure: its operation goes on with the copy.
    void leave_to(int code, MPI_Request request) {
        if (copy_ != nullptr) [[unlikely]] {
            leave_copy(code, request);
        }
    }

  private:
    void copy();
    void copy_back();
    void leave_copy(int code, MPI_Request request);

    const Descriptor* const section_;
    const Way way_;
    void* buffer_;
    char* copy_ = nullptr;
    bool made_ = true;
};

// One element of `type`, which the section's first elements hold if these are contiguous.
class FirstElement {
  public:
    FirstElement(const Descriptor* section, MPI_Datatype type)
        : buffer_(c_buffer(section->base)),
          made_(is_contiguous(*section) || fits(*section, type)) {}

    bool made() const { return made_; }
    void* data() const { return buffer_; }

  private:
    static bool fits(const Descriptor& section, MPI_Datatype type);

    void* buffer_;
    bool made_;
};

class WholeSection {
  public:
    explicit WholeSection(const Descriptor* section)
        : buffer_(c_buffer(section->base)), made_(is_contiguous(*section)) {}

    bool made() const { return made_; }
    void* data() const { return buffer_; }

  private:
    void* buffer_;
    bool made_;
};

// The failure of a call whose section can't be passed: MPI_ERR_UNSUPPORTED_OPERATION through the
// error handler of its object.
[[gnu::cold]] void refuse_section(int* ierror, MPI_Comm comm);
[[gnu::cold]] void refuse_section(int* ierror, MPI_Win win);
[[gnu::cold]] void refuse_section(int* ierror, MPI_File file);

} // namespace warren::foreign::fortran
