#include "mpi/datatype/type_table.hpp"

#include <utility>

namespace warren::datatype {

TypeTable::~TypeTable() {
    derived_.for_each([](Datatype& type) { delete type.derived; });
}

Error TypeTable::insert(Draft&& draft, MPI_Datatype& handle) {
    Datatype* type = derived_.insert(draft.type);
    if (type == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no room for another datatype beside %zu", derived_.live());
    }
    type->derived = draft.derived.release();
    type->derived->table = this;
    type->layout = type->derived->layout.get();
    type->references = 1;
    type->handles = 1;
    for (const Datatype* used : type->derived->contents.types) {
        retain(*used);
    }
    handle = handle_of(*type);
    return {};
}

Error TypeTable::insert_once(const Key& key, Draft&& draft, MPI_Datatype& handle) {
    const auto [found, is_new] = once_.try_emplace(key, MPI_DATATYPE_NULL);
    if (is_new) {
        if (Error error = insert(std::move(draft), found->second)) {
            once_.erase(found);
            return error;
        }
    }
    handle = found->second;
    return {};
}

MPI_Datatype TypeTable::handle_of(const Datatype& type) {
    if (type.predefined) {
        return reinterpret_cast<MPI_Datatype>(predefined_first + type.basic);
    }
    return static_cast<MPI_Datatype>(HandleTable<Datatype>::handle_of(type));
}

MPI_Datatype TypeTable::share(const Datatype& type) {
    if (!type.predefined) {
        retain(type);
        ++const_cast<Datatype&>(type).handles;
    }
    return handle_of(type);
}

Error TypeTable::check_free(const Datatype& type) {
    if (type.predefined) {
        return fail(MPI_ERR_TYPE, "predefined datatype %s can't be freed", type.predefined_name());
    }
    switch (type.derived->contents.combiner) {
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
        return fail(MPI_ERR_TYPE, "a datatype of MPI_Type_create_f90_… is predefined: it can't be "
                                  "freed");
    default:
        return {};
    }
}

Error TypeTable::free(const Datatype& type) {
    if (Error error = check_free(type)) {
        return error;
    }
    --const_cast<Datatype&>(type).handles;
    release(type);
    return {};
}

Extras& TypeTable::extras(const Datatype& type) {
    return type.predefined ? predefined_extras_[type.basic] : type.derived->extras;
}

const Extras* TypeTable::find_extras(const Datatype& type) const {
    if (!type.predefined) {
        return &type.derived->extras;
    }
    const auto found = predefined_extras_.find(type.basic);
    return found == predefined_extras_.end() ? nullptr : &found->second;
}

MPI_Datatype TypeTable::from_integer(std::uint32_t integer) const {
    if (integer < first_handle) {
        return reinterpret_cast<MPI_Datatype>(std::uintptr_t{integer});
    }
    return static_cast<MPI_Datatype>(derived_.from_integer(integer));
}

void TypeTable::destroy(const Datatype& type) {
    const std::unique_ptr<Derived> derived(type.derived);
    derived_.remove(const_cast<Datatype&>(type));
    for (const Datatype* used : derived->contents.types) {
        release(*used);
    }
}

void release(const Datatype& type) {
    if (!type.predefined && --const_cast<Datatype&>(type).references == 0) {
        type.derived->table->destroy(type);
    }
}

} // namespace warren::datatype
