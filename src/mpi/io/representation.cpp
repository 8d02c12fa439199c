#include "mpi/io/representation.hpp"

#include <climits>
#include <cstring>

#include "mpi/datatype/external32.hpp"
#include "mpi/datatype/lent_handle.hpp"

namespace warren::io {

using datatype::Buffer;

namespace {

Error code_of_function(const Representation& representation, const char* function, int code) {
    if (code == MPI_SUCCESS) {
        return {};
    }
    return fail(MPI_ERR_CONVERSION, "the %s function of representation \"%s\" returned %d",
                function, representation.name.c_str(), code);
}

// Calls the form that the program has registered, without the rank's lock.
int convert(MPI_Datarep_conversion_function* function, MPI_Datarep_conversion_function_c* large,
            const Buffer& memory, MPI_Count items, void* file, void* state, RankLock& lock) {
    const datatype::LentHandle type(*memory.type);
    lock.unlock();
    int code = MPI_SUCCESS;
    if (large != nullptr) {
        code = large(memory.base, type.value(), items, file, 0, state);
    } else if (items <= INT_MAX) {
        code = function(memory.base, type.value(), static_cast<int>(items), file, 0, state);
    } else {
        code = MPI_ERR_COUNT; // too many for a function of int
    }
    lock.lock();
    return code;
}

} // namespace

Error Representation::to_file(const Buffer& memory, std::byte* file, RankLock& lock) const {
    if (kind == Kind::external32) {
        datatype::pack_external(*memory.type, memory.base, memory.count, file);
        return {};
    }
    if (write == nullptr && write_c == nullptr) {
        memory.type->pack(memory.base, memory.count, file);
        return {};
    }
    return code_of_function(*this, "write conversion",
                            convert(write, write_c, memory, memory.count, file, extra_state, lock));
}

Error Representation::from_file(const std::byte* file, MPI_Count bytes, MPI_Count item_bytes,
                                const Buffer& memory, RankLock& lock, MPI_Count& filled) const {
    if (kind == Kind::external32) {
        filled = datatype::unpack_external(*memory.type, file, bytes, memory.base, memory.count);
        return {};
    }
    const MPI_Count items = item_bytes != 0 ? bytes / item_bytes : 0;
    filled = items * memory.type->size;
    if (items == 0) {
        return {};
    }
    return code_of_function(
        *this, "read conversion",
        convert(read, read_c, memory, items, const_cast<std::byte*>(file), extra_state, lock));
}

Representations::Representations() {
    known_.push_back({.name = "native"});
    known_.push_back({.name = "internal"});
    known_.push_back({.name = "external32", .kind = Representation::Kind::external32});
}

const Representation* Representations::find(const char* name) const {
    for (const Representation& known : known_) {
        if (known.name == name) {
            return &known;
        }
    }
    return nullptr;
}

Error Representations::add(const Representation& representation) {
    if (find(representation.name.c_str()) != nullptr) {
        return fail(MPI_ERR_DUP_DATAREP, "there is a data representation \"%s\" already",
                    representation.name.c_str());
    }
    known_.push_back(representation);
    return {};
}

} // namespace warren::io
