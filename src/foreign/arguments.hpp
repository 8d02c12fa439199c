// How the arguments of a foreign procedure become the standard's, and results the foreign ones.
//
// A generated procedure reads
//     HandlePointer<handle::Request, Way::out> request_(request);
//     return foreign_error(core.Isend(core_buffer(buf), …, handle::Comm::core(comm),
//     request_.data()));
// Plain values are translated in the call. What a pointer leads to gets a holder: it has the
// standard's form while the core works, and stores the foreign form when it ends. A null pointer
// stays one, so that the core refuses it. The folder of the ABI has handles.hpp, status.hpp,
// weights.hpp. Thread rule: a holder belongs to its call. Invariant: no allocation up to
// `small_array` elements.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "handles.hpp"
#include "mpi.h"
#include "mpi/entry/foreign_hooks.hpp"
#include "mpi/entry_points.hpp"
#include "numbers.hpp"
#include "status.hpp"
#include "weights.hpp"

namespace warren::foreign {

// The standard's procedures. By name they would be the foreign ones.
inline const mpi::EntryPoints& core = warren_entry_points;
inline const mpi::ForeignHooks& hooks = warren_foreign_hooks;

// Error codes: classes by the table; of others see errors.cpp.
int core_error(int code);
[[gnu::cold]] int foreign_failure(int code);
inline int foreign_error(int code) {
    return code == MPI_SUCCESS ? code : foreign_failure(code);
}
// The failure of a call that lacks memory for its arguments.
[[gnu::cold]] int no_memory();

enum class Way { in, out, inout };

// No procedure stores this value, so a place that holds it has not been written.
inline constexpr int unset = INT_MIN;

template <typename Kind>
typename Kind::Core no_handle() {
    return reinterpret_cast<typename Kind::Core>(~std::uintptr_t{0});
}

// Whether a request has ended, or was none: most have after a call that completes several.
template <typename Handle>
bool is_ended(Handle) {
    return false;
}
inline bool is_ended(MPI_Request request) {
    return request == MPI_REQUEST_NULL;
}

inline int length_at(const int* place) {
    return place != nullptr ? *place : 0;
}

// An array of the core's form: on the stack if it is small.
inline constexpr MPI_Count small_array = 128;

template <typename Element>
class Array {
  public:
    explicit Array(MPI_Count length)
        : length_(length > 0 ? length : 0),
          elements_(length_ <= small_array
                        ? small_
                        : static_cast<Element*>(
                              std::malloc(static_cast<std::size_t>(length_) * sizeof(Element)))) {}
    ~Array() {
        if (elements_ != small_) {
            std::free(elements_);
        }
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    bool made() const { return elements_ != nullptr; }
    MPI_Count length() const { return made() ? length_ : 0; }
    Element* data() { return elements_; }
    Element& operator[](MPI_Count i) { return elements_[i]; }

  private:
    const MPI_Count length_;
    Element* const elements_;
    Element small_[small_array]; // not initialised
};

template <typename Kind, Way way>
class HandlePointer {
  public:
    using Core = typename Kind::Core;
    using Foreign = typename Kind::Foreign;

    explicit HandlePointer(Foreign* place) : place_(place) {
        handle_ = way == Way::inout && place != nullptr ? Kind::core(*place) : no_handle<Kind>();
        before_ = handle_;
    }
    // The program keeps a handle that the core has not changed, because it was refused.
    ~HandlePointer() {
        if (handle_ != before_) {
            *place_ = Kind::foreign(handle_);
        }
    }
    HandlePointer(const HandlePointer&) = delete;
    HandlePointer& operator=(const HandlePointer&) = delete;

    Core* data() { return place_ != nullptr ? &handle_ : nullptr; }
    // Whether the core has given a handle: a call that has failed may return MPI_SUCCESS, if its
    // error handler says so.
    bool made() const { return handle_ != before_; }

  private:
    Foreign* const place_;
    Core handle_;
    Core before_;
};

template <typename Kind, Way way>
class Handles {
  public:
    using Foreign = typename Kind::Foreign;

    Handles(const Foreign* array, MPI_Count length) : array_(array), handles_(length) {
        if (array != nullptr) {
            for (MPI_Count i = 0; i < handles_.length(); ++i) {
                handles_[i] = way == Way::out ? no_handle<Kind>() : Kind::core(array[i]);
            }
        }
    }
    ~Handles() {
        if (way != Way::in && array_ != nullptr) {
            auto* array = const_cast<Foreign*>(array_);
            for (MPI_Count i = 0; i < handles_.length(); ++i) {
                // (Most have ended: the first comparison spares them the second's translation.)
                if (is_ended(handles_[i]) ||
                    handles_[i] != (way == Way::out ? no_handle<Kind>() : Kind::core(array[i]))) {
                    array[i] = Kind::foreign(handles_[i]);
                }
            }
        }
    }
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;

    bool made() const { return handles_.made(); }
    typename Kind::Core* data() { return array_ != nullptr ? handles_.data() : nullptr; }

  private:
    const Foreign* const array_;
    Array<typename Kind::Core> handles_;
};

template <int (*to_core)(int), int (*to_foreign)(int), Way way>
class NumberPointer {
  public:
    explicit NumberPointer(int* place)
        : place_(place), number_(way == Way::inout && place != nullptr ? to_core(*place) : unset) {}
    ~NumberPointer() {
        if (place_ != nullptr && number_ != unset) {
            *place_ = to_foreign(number_);
        }
    }
    NumberPointer(const NumberPointer&) = delete;
    NumberPointer& operator=(const NumberPointer&) = delete;

    int* data() { return place_ != nullptr ? &number_ : nullptr; }

  private:
    int* const place_;
    int number_;
};

template <int (*to_core)(int), int (*to_foreign)(int), Way way>
class Numbers {
  public:
    Numbers(const int* array, MPI_Count length) : array_(array), numbers_(length) {
        for (MPI_Count i = 0; i < numbers_.length() && array != nullptr; ++i) {
            numbers_[i] = way == Way::out ? unset : to_core(array[i]);
        }
    }
    ~Numbers() {
        for (MPI_Count i = 0; way != Way::in && array_ != nullptr && i < numbers_.length(); ++i) {
            if (numbers_[i] != unset) {
                const_cast<int*>(array_)[i] = to_foreign(numbers_[i]);
            }
        }
    }
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;

    bool made() const { return numbers_.made(); }
    int* data() { return array_ != nullptr ? numbers_.data() : nullptr; }

  private:
    const int* const array_;
    Array<int> numbers_;
};

// The codes of processes that were spawned; null: MPI_ERRCODES_IGNORE.
using ErrorCodes = Numbers<core_error, foreign_error, Way::out>;

// Marks a status that the core may set in part.
inline void clear_status(MPI_Status& status) {
    status.MPI_SOURCE = unset;
    status.MPI_ERROR = unset;
}

inline void store_status(const MPI_Status& from, Status& to) {
    if (from.MPI_SOURCE != unset) {
        to.MPI_SOURCE = foreign_rank(from.MPI_SOURCE);
        to.MPI_TAG = foreign_tag(from.MPI_TAG);
        store_internal(from, to);
    }
    if (from.MPI_ERROR != unset) {
        to.MPI_ERROR = foreign_error(from.MPI_ERROR);
    }
}

inline MPI_Status load_status(const Status& from) {
    MPI_Status to{};
    to.MPI_SOURCE = core_rank(from.MPI_SOURCE);
    to.MPI_TAG = core_tag(from.MPI_TAG);
    to.MPI_ERROR = core_error(from.MPI_ERROR);
    load_internal(from, to);
    return to;
}

class StatusOut {
  public:
    explicit StatusOut(Status* place) : place_(place) { clear_status(status_); }
    ~StatusOut() {
        if (!is_ignored(place_)) {
            store_status(status_, *place_);
        }
    }
    StatusOut(const StatusOut&) = delete;
    StatusOut& operator=(const StatusOut&) = delete;

    MPI_Status* data() { return is_ignored(place_) ? MPI_STATUS_IGNORE : &status_; }

  private:
    Status* const place_;
    MPI_Status status_;
};

class StatusIn {
  public:
    explicit StatusIn(const Status* place)
        : place_(place), status_(is_ignored(place) ? MPI_Status{} : load_status(*place)) {}

    MPI_Status* data() { return is_ignored(place_) ? nullptr : &status_; }

  private:
    const Status* const place_;
    MPI_Status status_;
};

class StatusInOut {
  public:
    explicit StatusInOut(Status* place) : place_(place), status_(place) {}
    ~StatusInOut() {
        if (!is_ignored(place_)) {
            store_status(*status_.data(), *place_);
        }
    }
    StatusInOut(const StatusInOut&) = delete;
    StatusInOut& operator=(const StatusInOut&) = delete;

    MPI_Status* data() { return status_.data(); }

  private:
    Status* const place_;
    StatusIn status_;
};

class Statuses {
  public:
    Statuses(Status* array, MPI_Count length)
        : array_(array), statuses_(is_ignored(array) ? 0 : length) {
        for (MPI_Count i = 0; i < statuses_.length(); ++i) {
            clear_status(statuses_[i]);
        }
    }
    ~Statuses() {
        for (MPI_Count i = 0; i < statuses_.length(); ++i) {
            store_status(statuses_[i], array_[i]);
        }
    }
    Statuses(const Statuses&) = delete;
    Statuses& operator=(const Statuses&) = delete;

    bool made() const { return statuses_.made(); }
    MPI_Status* data() { return is_ignored(array_) ? MPI_STATUSES_IGNORE : statuses_.data(); }

  private:
    Status* const array_;
    Array<MPI_Status> statuses_;
};

// A string that the core writes, cut to the foreign ABI's length. Lengths count the null character.
template <int core_length, int foreign_length>
class String {
  public:
    String(char* place, int* length) : place_(place), length_(length) { text_[0] = untouched; }
    ~String() {
        if (place_ == nullptr || text_[0] == untouched) {
            return;
        }
        std::size_t length = std::strlen(text_);
        if (length >= foreign_length) {
            length = foreign_length - 1;
        }
        std::memcpy(place_, text_, length);
        place_[length] = '\0';
        if (length_ != nullptr) {
            *length_ = static_cast<int>(length);
        }
    }
    String(const String&) = delete;
    String& operator=(const String&) = delete;

    char* data() { return place_ != nullptr ? text_ : nullptr; }

  private:
    static constexpr char untouched = '\1'; // which no name begins with

    char* const place_;
    int* const length_;
    char text_[std::max(core_length, foreign_length)];
};

// The address of a buffer that was attached comes back; MPI_BUFFER_AUTOMATIC is the ABI's.
class DetachedBuffer {
  public:
    explicit DetachedBuffer(void* place) : place_(place) {}
    ~DetachedBuffer() {
        if (place_ != nullptr && buffer_ != untouched()) {
            void* buffer = foreign_buffer(buffer_);
            std::memcpy(place_, &buffer, sizeof buffer);
        }
    }
    DetachedBuffer(const DetachedBuffer&) = delete;
    DetachedBuffer& operator=(const DetachedBuffer&) = delete;

    void* data() { return place_ != nullptr ? &buffer_ : nullptr; }

  private:
    static void* untouched() { return reinterpret_cast<void*>(~std::uintptr_t{0}); }

    void* const place_;
    void* buffer_ = untouched();
};

// Numbers of datatypes that an operation with one per block gets; 0 when the communicator is none.
inline int peers(Comm comm) {
    return hooks.peers(handle::Comm::core(comm));
}
inline int types_of_sends(const void* sendbuf, Comm comm) {
    return core_buffer(sendbuf) == MPI_IN_PLACE ? 0 : peers(comm);
}
inline int neighbours_in(Comm comm) {
    return hooks.neighbours_in(handle::Comm::core(comm));
}
inline int neighbours_out(Comm comm) {
    return hooks.neighbours_out(handle::Comm::core(comm));
}

} // namespace warren::foreign
