#include "mpi/entry/error_codes.hpp"

#include <cstring>

namespace warren::mpi {

namespace {

struct ErrorClass {
    short value;
    char name[32];
    char text[64];
};

// Characters and not pointers: read-only pages that all ranks share, nothing to relocate.
#define WARREN_ERROR_CLASS(name, text)                                                             \
    { name, #name, text }
constexpr ErrorClass classes[] = {
    WARREN_ERROR_CLASS(MPI_SUCCESS, "no error"),
    WARREN_ERROR_CLASS(MPI_ERR_BUFFER, "invalid buffer pointer"),
    WARREN_ERROR_CLASS(MPI_ERR_COUNT, "invalid count argument"),
    WARREN_ERROR_CLASS(MPI_ERR_TYPE, "invalid datatype argument"),
    WARREN_ERROR_CLASS(MPI_ERR_TAG, "invalid tag argument"),
    WARREN_ERROR_CLASS(MPI_ERR_COMM, "invalid communicator"),
    WARREN_ERROR_CLASS(MPI_ERR_RANK, "invalid rank"),
    WARREN_ERROR_CLASS(MPI_ERR_REQUEST, "invalid request or message handle"),
    WARREN_ERROR_CLASS(MPI_ERR_ROOT, "invalid root"),
    WARREN_ERROR_CLASS(MPI_ERR_GROUP, "invalid group"),
    WARREN_ERROR_CLASS(MPI_ERR_OP, "invalid reduction operation"),
    WARREN_ERROR_CLASS(MPI_ERR_TOPOLOGY, "invalid topology"),
    WARREN_ERROR_CLASS(MPI_ERR_DIMS, "invalid dimension argument"),
    WARREN_ERROR_CLASS(MPI_ERR_ARG, "invalid argument of some other kind"),
    WARREN_ERROR_CLASS(MPI_ERR_UNKNOWN, "unknown error"),
    WARREN_ERROR_CLASS(MPI_ERR_TRUNCATE, "message truncated on receive"),
    WARREN_ERROR_CLASS(MPI_ERR_OTHER, "known error not in this list"),
    WARREN_ERROR_CLASS(MPI_ERR_INTERN, "internal error of the library"),
    WARREN_ERROR_CLASS(MPI_ERR_PENDING, "pending request"),
    WARREN_ERROR_CLASS(MPI_ERR_IN_STATUS, "error code is in the status"),
    WARREN_ERROR_CLASS(MPI_ERR_ACCESS, "permission denied"),
    WARREN_ERROR_CLASS(MPI_ERR_AMODE, "invalid access mode of a file"),
    WARREN_ERROR_CLASS(MPI_ERR_ASSERT, "invalid assertion"),
    WARREN_ERROR_CLASS(MPI_ERR_BAD_FILE, "invalid file name"),
    WARREN_ERROR_CLASS(MPI_ERR_BASE, "invalid base address"),
    WARREN_ERROR_CLASS(MPI_ERR_CONVERSION, "data conversion function failed"),
    WARREN_ERROR_CLASS(MPI_ERR_DISP, "invalid displacement"),
    WARREN_ERROR_CLASS(MPI_ERR_DUP_DATAREP, "data representation is defined already"),
    WARREN_ERROR_CLASS(MPI_ERR_FILE_EXISTS, "file exists"),
    WARREN_ERROR_CLASS(MPI_ERR_FILE_IN_USE, "file is in use"),
    WARREN_ERROR_CLASS(MPI_ERR_FILE, "invalid file handle"),
    WARREN_ERROR_CLASS(MPI_ERR_INFO_KEY, "info key is too long or empty"),
    WARREN_ERROR_CLASS(MPI_ERR_INFO_NOKEY, "info key is not set"),
    WARREN_ERROR_CLASS(MPI_ERR_INFO_VALUE, "info value is too long or empty"),
    WARREN_ERROR_CLASS(MPI_ERR_INFO, "invalid info object"),
    WARREN_ERROR_CLASS(MPI_ERR_IO, "input or output failed"),
    WARREN_ERROR_CLASS(MPI_ERR_KEYVAL, "invalid attribute key"),
    WARREN_ERROR_CLASS(MPI_ERR_LOCKTYPE, "invalid lock type"),
    WARREN_ERROR_CLASS(MPI_ERR_NAME, "service name has not been published"),
    WARREN_ERROR_CLASS(MPI_ERR_NO_MEM, "memory is exhausted"),
    WARREN_ERROR_CLASS(MPI_ERR_NOT_SAME, "a collective argument differs between processes"),
    WARREN_ERROR_CLASS(MPI_ERR_NO_SPACE, "not enough space"),
    WARREN_ERROR_CLASS(MPI_ERR_NO_SUCH_FILE, "file does not exist"),
    WARREN_ERROR_CLASS(MPI_ERR_PORT, "invalid port name"),
    WARREN_ERROR_CLASS(MPI_ERR_QUOTA, "quota exceeded"),
    WARREN_ERROR_CLASS(MPI_ERR_READ_ONLY, "read-only file or file system"),
    WARREN_ERROR_CLASS(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    WARREN_ERROR_CLASS(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    WARREN_ERROR_CLASS(MPI_ERR_RMA_RANGE, "target memory is not part of the window"),
    WARREN_ERROR_CLASS(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    WARREN_ERROR_CLASS(MPI_ERR_RMA_SYNC, "wrong synchronisation of one-sided calls"),
    WARREN_ERROR_CLASS(MPI_ERR_SERVICE, "invalid service name"),
    WARREN_ERROR_CLASS(MPI_ERR_SIZE, "invalid size argument"),
    WARREN_ERROR_CLASS(MPI_ERR_SPAWN, "processes cannot be spawned"),
    WARREN_ERROR_CLASS(MPI_ERR_UNSUPPORTED_DATAREP, "unsupported data representation"),
    WARREN_ERROR_CLASS(MPI_ERR_UNSUPPORTED_OPERATION, "unsupported operation"),
    WARREN_ERROR_CLASS(MPI_ERR_WIN, "invalid window"),
    WARREN_ERROR_CLASS(MPI_ERR_RMA_FLAVOR, "window has the wrong flavour"),
    WARREN_ERROR_CLASS(MPI_ERR_PROC_ABORTED, "a peer process has aborted"),
    WARREN_ERROR_CLASS(MPI_ERR_VALUE_TOO_LARGE, "value is too large to store"),
    WARREN_ERROR_CLASS(MPI_ERR_SESSION, "invalid session"),
    WARREN_ERROR_CLASS(MPI_ERR_ERRHANDLER, "invalid error handler"),
    WARREN_ERROR_CLASS(MPI_ERR_ABI, "the call does not fit the application binary interface"),
    WARREN_ERROR_CLASS(MPI_T_ERR_CANNOT_INIT, "the tool interface cannot be initialised"),
    WARREN_ERROR_CLASS(MPI_T_ERR_NOT_ACCESSIBLE, "not accessible"),
    WARREN_ERROR_CLASS(MPI_T_ERR_NOT_INITIALIZED, "the tool interface is not initialised"),
    WARREN_ERROR_CLASS(MPI_T_ERR_NOT_SUPPORTED, "not supported"),
    WARREN_ERROR_CLASS(MPI_T_ERR_MEMORY, "memory is exhausted"),
    WARREN_ERROR_CLASS(MPI_T_ERR_INVALID, "invalid use of the tool interface"),
    WARREN_ERROR_CLASS(MPI_T_ERR_INVALID_INDEX, "invalid index"),
    WARREN_ERROR_CLASS(MPI_T_ERR_INVALID_ITEM, "invalid item index"),
    WARREN_ERROR_CLASS(MPI_T_ERR_INVALID_SESSION, "invalid session"),
    WARREN_ERROR_CLASS(MPI_T_ERR_INVALID_HANDLE, "invalid handle"),
    WARREN_ERROR_CLASS(MPI_T_ERR_INVALID_NAME, "invalid name"),
    WARREN_ERROR_CLASS(MPI_T_ERR_OUT_OF_HANDLES, "no more handles"),
    WARREN_ERROR_CLASS(MPI_T_ERR_OUT_OF_SESSIONS, "no more sessions"),
    WARREN_ERROR_CLASS(MPI_T_ERR_CVAR_SET_NOT_NOW, "the variable cannot be set now"),
    WARREN_ERROR_CLASS(MPI_T_ERR_CVAR_SET_NEVER, "the variable cannot be set"),
    WARREN_ERROR_CLASS(MPI_T_ERR_PVAR_NO_WRITE, "the variable cannot be written"),
    WARREN_ERROR_CLASS(MPI_T_ERR_PVAR_NO_STARTSTOP, "the variable cannot be started or stopped"),
    WARREN_ERROR_CLASS(MPI_T_ERR_PVAR_NO_ATOMIC, "the variable cannot be read and reset at once"),
    WARREN_ERROR_CLASS(MPI_ERR_LASTCODE, "the last error code of the standard"),
};
#undef WARREN_ERROR_CLASS

const ErrorClass* find(int error_class) {
    for (const ErrorClass& known : classes) {
        if (known.value == error_class) {
            return &known;
        }
    }
    return nullptr;
}

Error never_added(int code, const char* what) {
    return fail(MPI_ERR_ARG, "%d is no %s that the program has added", code, what);
}

} // namespace

const char* error_class_name(int error_class) {
    const ErrorClass* known = find(error_class);
    return known != nullptr ? known->name : nullptr;
}

const char* error_class_text(int error_class) {
    const ErrorClass* known = find(error_class);
    return known != nullptr ? known->text : nullptr;
}

int ErrorCodes::instance(int error_class, std::string&& text) {
    // The program's own codes have their own strings. MPI_ERR_IN_STATUS is a sign, not a failure:
    // programs compare it.
    if (find(error_class) == nullptr || error_class == MPI_ERR_IN_STATUS) {
        return error_class;
    }
    if (failures_ == nullptr) {
        failures_ = std::make_unique<std::array<Failure, kept>>();
    }
    const std::uint32_t serial = serial_++ & serial_mask;
    const int code = instance_bit | static_cast<int>(serial << class_bits) | error_class;
    (*failures_)[serial % kept] = {code, std::move(text)};
    return code;
}

int ErrorCodes::class_of(int code) const {
    if (code >= instance_bit) {
        code &= (1 << class_bits) - 1;
    }
    const auto added = added_.find(code);
    if (added != added_.end()) {
        return added->second.error_class;
    }
    return find(code) != nullptr ? code : MPI_ERR_UNKNOWN;
}

bool ErrorCodes::known(int code) const {
    const int plain = code >= instance_bit ? code & ((1 << class_bits) - 1) : code;
    return code >= 0 && (find(plain) != nullptr || added_.contains(code));
}

std::string ErrorCodes::text_of(int code) const {
    if (code >= instance_bit && failures_ != nullptr) {
        const auto serial = static_cast<std::uint32_t>(code) >> class_bits & serial_mask;
        const Failure& failure = (*failures_)[serial % kept];
        if (failure.code == code) {
            return failure.text;
        }
    }
    const auto added = added_.find(code);
    if (added != added_.end()) {
        return added->second.text;
    }
    const ErrorClass* known = find(class_of(code));
    return std::string(known->name) + ": " + known->text;
}

int ErrorCodes::add_class() {
    const int value = ++last_used_;
    added_[value] = {value, 0, ""};
    return value;
}

int ErrorCodes::add_code(int error_class) {
    const int value = ++last_used_;
    added_[value] = {error_class, 0, ""};
    const auto owner = added_.find(error_class);
    if (owner != added_.end()) {
        ++owner->second.codes;
    }
    return value;
}

Error ErrorCodes::remove_class(int error_class) {
    const auto added = added_.find(error_class);
    if (added == added_.end() || added->second.error_class != error_class) {
        return never_added(error_class, "error class");
    }
    if (added->second.codes != 0) {
        return fail(MPI_ERR_OTHER, "error class %d still has %u codes: remove them first",
                    error_class, added->second.codes);
    }
    if (!added->second.text.empty()) {
        return fail(MPI_ERR_OTHER, "error class %d still has its string: remove it first",
                    error_class);
    }
    added_.erase(added);
    return {};
}

Error ErrorCodes::remove_code(int code) {
    const auto added = added_.find(code);
    if (added == added_.end() || added->second.error_class == code) {
        return never_added(code, "error code");
    }
    if (!added->second.text.empty()) {
        return fail(MPI_ERR_OTHER, "error code %d still has its string: remove it first", code);
    }
    const auto owner = added_.find(added->second.error_class);
    if (owner != added_.end()) {
        --owner->second.codes;
    }
    added_.erase(added);
    return {};
}

Error ErrorCodes::set_text(int code, const char* text) {
    const auto added = added_.find(code);
    if (added == added_.end()) {
        return never_added(code, "error class or code");
    }
    added->second.text.assign(text, strnlen(text, MPI_MAX_ERROR_STRING - 1));
    return {};
}

Error ErrorCodes::remove_text(int code) {
    const auto added = added_.find(code);
    if (added == added_.end()) {
        return never_added(code, "error class or code");
    }
    if (added->second.text.empty()) {
        return fail(MPI_ERR_ARG, "error code %d has no string", code);
    }
    added->second.text.clear();
    return {};
}

} // namespace warren::mpi
