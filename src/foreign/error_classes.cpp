// MPI_Error_class and MPI_Error_string: the ABI has classes that the standard lacks, of extensions.
// No procedure returns one, but programs look up all that their mpi.h names.

#include <cstring>

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

WARREN_FOREIGN(int, Error_class, (int code, int* error_class)) {
    if (more_error_class(code) != nullptr && error_class != nullptr) {
        *error_class = code;
        return MPI_SUCCESS;
    }
    NumberPointer<core_error, foreign_error, Way::out> made(error_class);
    return foreign_error(core.Error_class(core_error(code), made.data()));
}

WARREN_FOREIGN(int, Error_string, (int code, char* text, int* length)) {
    const char* more = more_error_class(code);
    if (more != nullptr && text != nullptr && length != nullptr) {
        *length = static_cast<int>(std::strlen(more));
        std::memcpy(text, more, *length + 1U);
        return MPI_SUCCESS;
    }
    String<MPI_MAX_ERROR_STRING, foreign_error_text> made(text, length);
    return foreign_error(core.Error_string(core_error(code), made.data(), length));
}

} // namespace warren::foreign
