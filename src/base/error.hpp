// Error: the result of everything that can fail, from the core up to the entry points.
//
// A success is a null pointer in a register. A failure owns a record with the MPI error class and a
// sentence that names what was wrong and its value. Whoever ends an error's way (an entry point,
// which hands it to the error handler) calls take() once; nothing else allocates or frees.
// Thread rule: a value like any other; records are not shared.
#pragma once

#include <string>

namespace warren {

struct ErrorRecord {
    int error_class;
    std::string text;
};

class [[nodiscard]] Error {
  public:
    constexpr Error() = default;

    explicit operator bool() const { return record_ != nullptr; }

    // The error class (MPI_ERR_…); MPI_SUCCESS when there is no error.
    int error_class() const { return record_ ? record_->error_class : 0; }

    // The record, owned by the caller from now on; empty afterwards.
    ErrorRecord* take() {
        ErrorRecord* record = record_;
        record_ = nullptr;
        return record;
    }

    // Ends an error that nobody needs to hear of.
    void drop() {
        delete record_;
        record_ = nullptr;
    }

    static Error adopt(ErrorRecord* record) {
        Error error;
        error.record_ = record;
        return error;
    }

  private:
    ErrorRecord* record_ = nullptr;
};

// The first of two errors, which counts; the second one is dropped.
inline Error first_of(Error first, Error second) {
    if (!first) {
        return second;
    }
    second.drop();
    return first;
}

// Makes an error: fail(MPI_ERR_RANK, "rank %d is not in 0…%d", rank, size - 1).
[[gnu::cold, gnu::format(printf, 2, 3)]] Error fail(int error_class, const char* format, ...);

} // namespace warren
