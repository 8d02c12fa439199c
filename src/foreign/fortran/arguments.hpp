// How arguments of Fortran become those of the same ABI's C procedures (mpif.h and the module mpi).
//
// Everything comes by reference, handles as INTEGERs, strings with a length behind all arguments. A
// status has the layout of C's. Some variables are constants: their addresses tell (constants.hpp
// of the ABI). Thread rule: a holder belongs to its call.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"
#include "fortran_constants.hpp"

// WARREN_FORTRAN(name, NAME, (parameters)) { … }: defines pmpi_name_ and all names that Fortran
// compilers give it; MPI_ forms are weak. WARREN_FORTRAN_FUNCTION has a result.
#define WARREN_FORTRAN_ALIAS(type, name, parameters, number, symbol)                               \
    extern "C" __attribute__((weak, alias("pmpi_" #name "_"), visibility("default")))              \
    type fortran##number##_##name parameters asm(symbol);
#define WARREN_FORTRAN_FUNCTION(type, name, NAME, parameters)                                      \
    extern "C" __attribute__((visibility("default")))                                              \
    type fortran_##name parameters asm("pmpi_" #name "_");                                         \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 1, "mpi_" #name "_")                              \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 2, "mpi_" #name "__")                             \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 3, "mpi_" #name)                                  \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 4, "MPI_" #NAME)                                  \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 5, "pmpi_" #name "__")                            \
    WARREN_FORTRAN_ALIAS(type, name, parameters, 6, "PMPI_" #NAME)                                 \
    WARREN_FORTRAN_OWN_NAME(type, name, parameters, "ompi_" #name "_f")                            \
    type fortran_##name parameters
#define WARREN_FORTRAN(name, NAME, parameters) WARREN_FORTRAN_FUNCTION(void, name, NAME, parameters)

namespace warren::foreign::fortran {

// INTEGERs of handles.
namespace integer {

template <typename Handle>
Handle from_number(int number, Handle (*convert)(int)) {
    if constexpr (std::is_same_v<Handle, int>) {
        return number;
    } else if constexpr (integers_are_halves) {
        const auto bits = static_cast<std::uint32_t>(number);
        if (bits < first_handle) {
            return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(bits));
        }
        // A number that names no object would come back as a null handle, which some procedures
        // take.
        const Handle found = convert(number);
        return reinterpret_cast<std::uintptr_t>(found) >= first_handle
                   ? found
                   : reinterpret_cast<Handle>(invalid_handle);
    } else {
        return convert(number);
    }
}

template <typename Handle>
int to_number(Handle handle, int (*convert)(Handle)) {
    if constexpr (std::is_same_v<Handle, int>) {
        return handle;
    } else if constexpr (integers_are_halves) {
        return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle));
    } else {
        return convert(handle);
    }
}

#define WARREN_INTEGER(kind, type)                                                                 \
    extern "C" foreign::type f2c_##kind(int) asm("PMPI_" #kind WARREN_HANDLE_OF_INTEGER);          \
    extern "C" int c2f_##kind(foreign::type) asm("PMPI_" #kind WARREN_INTEGER_OF_HANDLE);          \
    struct kind {                                                                                  \
        using Handle = foreign::type;                                                              \
        using Kind = handle::type;                                                                 \
        static Handle from(int number) { return from_number(number, f2c_##kind); }                 \
        static int to(Handle handle) { return to_number(handle, c2f_##kind); }                     \
    };
WARREN_INTEGER(Comm, Comm)
WARREN_INTEGER(Type, Datatype)
WARREN_INTEGER(Group, Group)
WARREN_INTEGER(Info, Info)
WARREN_INTEGER(Errhandler, Errhandler)
WARREN_INTEGER(Op, Op)
WARREN_INTEGER(Request, Request)
WARREN_INTEGER(Message, Message)
WARREN_INTEGER(Win, Win)
WARREN_INTEGER(Session, Session)
WARREN_INTEGER(File, File)
#undef WARREN_INTEGER

} // namespace integer

inline void finish(int* ierror, int code) {
    if (ierror != nullptr) { // optional in the module
        *ierror = code;
    }
}

// Variables that are constants.
inline bool is_in_place(const void* buffer) {
    return buffer == in_place_address();
}
inline void* c_buffer(void* buffer) {
    return is_in_place(buffer)          ? reinterpret_cast<void*>(foreign_in_place)
           : buffer == bottom_address() ? nullptr
           : is_automatic(buffer)       ? MPI_BUFFER_AUTOMATIC
                                        : buffer;
}
inline Status* c_status(int* status) {
    return status == status_ignore_address() || status == statuses_ignore_address()
               ? ignored_status()
               : reinterpret_cast<Status*>(status);
}
inline int* c_weights(int* weights) {
    return weights == unweighted_address()      ? foreign_unweighted()
           : weights == weights_empty_address() ? foreign_weights_empty()
                                                : weights;
}
inline int* c_codes(int* codes) {
    return codes == errcodes_ignore_address() ? nullptr : codes;
}

// Indices from 1 on; MPI_UNDEFINED is negative.
inline void count_from_one(int* indices, int number) {
    for (int i = 0; i < number; ++i) {
        if (indices[i] >= 0) {
            ++indices[i];
        }
    }
}

template <typename Conversion, Way way>
class Integer {
  public:
    using Handle = typename Conversion::Handle;

    explicit Integer(int* place) : place_(place) {
        handle_ = way == Way::out ? Conversion::Kind::foreign({}) : Conversion::from(*place);
    }
    // (A call that fails leaves a null handle.)
    ~Integer() { *place_ = Conversion::to(handle_); }
    Integer(const Integer&) = delete;
    Integer& operator=(const Integer&) = delete;

    Handle* data() { return &handle_; }

  private:
    int* const place_;
    Handle handle_;
};

template <typename Conversion, Way way>
class Integers {
  public:
    using Handle = typename Conversion::Handle;

    Integers(int* array, MPI_Count length) : array_(array), handles_(length) {
        for (MPI_Count i = 0; i < handles_.length(); ++i) {
            handles_[i] = way == Way::out ? null() : Conversion::from(array[i]);
        }
    }
    ~Integers() {
        for (MPI_Count i = 0; i < handles_.length() && way != Way::in; ++i) {
            if (way != Way::out || handles_[i] != null()) { // else the call left it alone
                array_[i] = Conversion::to(handles_[i]);
            }
        }
    }
    Integers(const Integers&) = delete;
    Integers& operator=(const Integers&) = delete;

    Handle* data() { return handles_.data(); }

  private:
    static Handle null() { return Conversion::Kind::foreign({}); }

    int* const array_;
    Array<Handle> handles_;
};

// A string without its trailing blanks, with a null character.
class StringIn {
  public:
    StringIn(const char* text, std::size_t length) : copy_(trimmed(text, length) + 1) {
        if (copy_.made()) {
            const std::size_t used = trimmed(text, length);
            std::memcpy(copy_.data(), text, used);
            copy_.data()[used] = '\0';
        }
    }
    char* data() { return copy_.data(); }

  private:
    static MPI_Count trimmed(const char* text, std::size_t length) {
        while (length > 0 && text[length - 1] == ' ') {
            --length;
        }
        return static_cast<MPI_Count>(length);
    }

    Array<char> copy_;
};

// Keys and values lose their leading blanks too.
class InfoStringIn : public StringIn {
  public:
    InfoStringIn(const char* text, std::size_t length)
        : StringIn(text + leading(text, length), length - leading(text, length)) {}

  private:
    static std::size_t leading(const char* text, std::size_t length) {
        std::size_t blanks = 0;
        while (blanks < length && text[blanks] == ' ') {
            ++blanks;
        }
        return blanks;
    }
};

// A string that comes back with blanks to its end.
class StringOut {
  public:
    StringOut(char* place, std::size_t length) : place_(place), length_(length) { text_[0] = '\1'; }
    ~StringOut() {
        if (text_[0] == '\1') { // left alone
            return;
        }
        std::size_t used = std::strlen(text_);
        used = used < length_ ? used : length_;
        std::memcpy(place_, text_, used);
        std::memset(place_ + used, ' ', length_ - used);
    }
    void leave_alone() { text_[0] = '\1'; }
    StringOut(const StringOut&) = delete;
    StringOut& operator=(const StringOut&) = delete;

    char* data() { return text_; }

  private:
    static constexpr std::size_t longest = 8192; // MPI_MAX_LIBRARY_VERSION_STRING

    char* const place_;
    const std::size_t length_;
    char text_[longest + 1];
};

} // namespace warren::foreign::fortran
