// TypeTable: the datatypes that a rank's program holds handles to.
//
// A type is alive as long as somebody refers to it: handles of the program (MPI_Type_free takes one
// back, MPI_Type_get_contents may give out more), types made from it, and requests under way. Its
// handle is valid as long as the program owns at least one.
// Thread rule: under the rank's lock; find may run beside calls for other handles.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "base/handle_table.hpp"
#include "mpi/datatype/construct.hpp"

namespace warren::datatype {

class TypeTable {
  public:
    TypeTable() = default;
    ~TypeTable();

    // The type of a handle that the program gave, or null: not a datatype, or freed.
    const Datatype* find(MPI_Datatype handle) const {
        const Datatype* type = predefined(handle);
        if (type != nullptr) [[likely]] {
            return type;
        }
        type = derived_.find(handle);
        return type != nullptr && type->handles != 0 ? type : nullptr;
    }

    // Gives a derived type its handle. The types that its contents name are retained.
    Error insert(Draft&& draft, MPI_Datatype& handle);

    // Likewise for a type that exists once per key (its combiner and two numbers) and is never
    // freed: the key's type if there is one already.
    using Key = std::array<int, 3>;
    Error insert_once(const Key& key, Draft&& draft, MPI_Datatype& handle);

    static MPI_Datatype handle_of(const Datatype& type);

    // Another handle (the same value) for the program, to be freed on its own.
    static MPI_Datatype share(const Datatype& type);

    // Takes back one of the program's handles. check_free: whether it may.
    static Error check_free(const Datatype& type);
    static Error free(const Datatype& type);

    static void commit(const Datatype& type) {
        if (!type.committed) { // predefined types are, and can't be written to
            const_cast<Datatype&>(type).committed = true;
        }
    }

    // Name and attributes; find_extras gives null where a predefined type has none.
    const Extras* find_extras(const Datatype& type) const;
    Extras& extras(const Datatype& type);

    std::size_t live() const { return derived_.live(); }

    // The handle of a Fortran integer (MPI_Type_fromint), or null.
    MPI_Datatype from_integer(std::uint32_t integer) const;

  private:
    friend void release(const Datatype& type);
    void destroy(const Datatype& type);

    HandleTable<Datatype> derived_;
    std::map<Key, MPI_Datatype> once_;
    std::map<std::uint8_t, Extras> predefined_extras_; // of the few that have any
};

} // namespace warren::datatype
