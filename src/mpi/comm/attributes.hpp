// Attributes: values that a program hangs on a communicator or datatype under keys of its own
// (MPI chapter 7, caching), and the table of those keys.
//
// Copy and delete functions are the program's and may call MPI: the callers here give the rank's
// lock away while one runs (`Callbacks`), and the loops survive what the functions do.
// Thread rule: under the rank's lock. Invariants: a keyval lives, and is valid in all calls, while
// its handle or an attribute refers to it (a program may free it at once and delete the attributes
// later); keyvals are never reused, so one that is gone is recognised.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/comm/attribute_numbers.hpp"
#include "mpi/rank/lock.hpp"

namespace warren::comm {

enum class AttributeOwner : std::uint8_t { communicator, datatype, window };

// A key. The functions are those of MPI_Comm_create_keyval and its like, which differ in the type
// of their first argument only.
struct Keyval {
    using Copy = void (*)();
    using Delete = void (*)();
    // Call functions whose types are not the standard's (src/foreign); `handle` is the standard's.
    using CopyAdapter = int (*)(Copy function, void* handle, int keyval, void* extra_state,
                                void* value, void** copied, int* wanted);
    using DeleteAdapter = int (*)(Delete function, void* handle, int keyval, void* value,
                                  void* extra_state);

    int value = MPI_KEYVAL_INVALID;
    AttributeOwner owner = AttributeOwner::communicator;
    bool freed = false; // the program's handle is gone
    std::uint32_t references = 1;
    Copy copy = nullptr;
    Delete remove = nullptr;
    void* extra_state = nullptr;
    CopyAdapter copy_adapter = nullptr;
    DeleteAdapter delete_adapter = nullptr;

    template <typename Handle>
    int call_copy(Handle handle, void* from, void** copied, int* wanted) const {
        using Function = int (*)(Handle, int, void*, void*, void*, int*);
        if (copy_adapter != nullptr) {
            return copy_adapter(copy, handle, value, extra_state, from, copied, wanted);
        }
        return reinterpret_cast<Function>(copy)(handle, value, extra_state, from, copied, wanted);
    }
    template <typename Handle>
    int call_delete(Handle handle, void* of) const {
        using Function = int (*)(Handle, int, void*, void*);
        if (delete_adapter != nullptr) {
            return delete_adapter(remove, handle, value, of, extra_state);
        }
        return reinterpret_cast<Function>(remove)(handle, value, of, extra_state);
    }
};

class Keyvals {
  public:
    // The key behind a value, for its kind of object; null when there is none, or it is gone.
    Keyval* find(int value, AttributeOwner owner);
    int insert(AttributeOwner owner, Keyval::Copy copy, Keyval::Delete remove, void* extra_state);
    // Takes the program's handle back; again does nothing.
    void free(Keyval& keyval);
    void retain(Keyval& keyval) { ++keyval.references; }
    void release(Keyval& keyval);

    AttributeNumbers& numbers() { return numbers_; }

  private:
    AttributeNumbers numbers_;
    std::vector<std::unique_ptr<Keyval>> made_; // by rising value
    int next_ = first_value;

    // Above the predefined keys.
    static constexpr int first_value = 0x1000;
};

// The attributes of one object.
class Attributes {
  public:
    explicit Attributes(Keyvals& keyvals) : keyvals_(&keyvals) {}
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    ~Attributes(); // without calling delete functions: see clear()

    bool get(const Keyval& keyval, void*& value) const;
    bool empty() const { return entries_.empty(); }

    // `handle` is the object's, for the program's functions. An error's class is the code that the
    // function returned: the attribute then stays as it was.
    template <typename Handle>
    Error set(RankLock& lock, Handle handle, Keyval& keyval, void* value);
    template <typename Handle>
    Error remove(RankLock& lock, Handle handle, Keyval& keyval);
    // Copies what the copy functions want copied from the old object to this new one.
    template <typename Handle>
    Error copy_from(RankLock& lock, Handle old_handle, const Attributes& old);
    // Deletes all, the latest set first.
    template <typename Handle>
    Error clear(RankLock& lock, Handle handle);

  private:
    struct Entry {
        Keyval* keyval;
        void* value;
    };

    Entry* entry_of(const Keyval& keyval);
    void put(Keyval& keyval, void* value);
    void forget(Keyval& keyval);
    template <typename Handle>
    static Error call_delete(RankLock& lock, Handle handle, Keyval& keyval, void* value);
    static Error refused(const Keyval& keyval, const char* function, int code);

    Keyvals* keyvals_;
    std::vector<Entry> entries_; // in order of setting
};

template <typename Handle>
Error Attributes::call_delete(RankLock& lock, Handle handle, Keyval& keyval, void* value) {
    if (keyval.remove == nullptr) {
        return {};
    }
    lock.unlock();
    const int code = keyval.call_delete(handle, value);
    lock.lock();
    return code == MPI_SUCCESS ? Error() : refused(keyval, "delete", code);
}

template <typename Handle>
Error Attributes::set(RankLock& lock, Handle handle, Keyval& keyval, void* value) {
    if (const Entry* old = entry_of(keyval)) {
        if (Error error = call_delete(lock, handle, keyval, old->value)) {
            return error;
        }
    }
    put(keyval, value);
    return {};
}

template <typename Handle>
Error Attributes::remove(RankLock& lock, Handle handle, Keyval& keyval) {
    const Entry* old = entry_of(keyval);
    if (old == nullptr) {
        return {};
    }
    if (Error error = call_delete(lock, handle, keyval, old->value)) {
        return error;
    }
    forget(keyval);
    return {};
}

template <typename Handle>
Error Attributes::copy_from(RankLock& lock, Handle old_handle, const Attributes& old) {
    for (std::size_t i = 0; i < old.entries_.size(); ++i) {
        const Entry entry = old.entries_[i];
        if (entry.keyval->copy == nullptr) {
            continue;
        }
        // The standard's MPI_COMM_DUP_FN and its like are the address 1.
        if (reinterpret_cast<std::uintptr_t>(entry.keyval->copy) == 1) {
            const MPI_Aint* number = keyvals_->numbers().find(entry.value);
            put(*entry.keyval, number != nullptr ? keyvals_->numbers().make(*number) : entry.value);
            continue;
        }
        void* copied = nullptr;
        int wanted = 0;
        keyvals_->retain(*entry.keyval);
        lock.unlock();
        const int code = entry.keyval->call_copy(old_handle, entry.value, &copied, &wanted);
        lock.lock();
        if (code == MPI_SUCCESS && wanted != 0) {
            put(*entry.keyval, copied);
        }
        Error error = code == MPI_SUCCESS ? Error() : refused(*entry.keyval, "copy", code);
        keyvals_->release(*entry.keyval);
        if (error) {
            return error;
        }
    }
    return {};
}

template <typename Handle>
Error Attributes::clear(RankLock& lock, Handle handle) {
    while (!entries_.empty()) {
        const Entry last = entries_.back();
        if (Error error = call_delete(lock, handle, *last.keyval, last.value)) {
            return error;
        }
        forget(*last.keyval);
    }
    return {};
}

} // namespace warren::comm
