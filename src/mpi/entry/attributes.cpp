#include "mpi/entry/attributes.hpp"

#include <cstring>

#include "mpi/datatype/derived.hpp"
#include "mpi/entry/context.hpp"
#include "mpi/entry/window_release.hpp"

namespace warren::mpi {

namespace {

using comm::AttributeOwner;
using comm::Keyval;

// The attributes of a datatype, as they hang from it.
struct TypeAttributes : datatype::Attachment {
    explicit TypeAttributes(Context& owner) : context(owner), attributes(owner.keyvals) {}

    Error copy(MPI_Datatype old_handle, std::unique_ptr<Attachment>& copied) override {
        auto made = std::make_unique<TypeAttributes>(context);
        Error error = made->attributes.copy_from(context.rank.lock, old_handle, attributes);
        copied = std::move(made);
        return error;
    }
    Error clear(MPI_Datatype handle) override {
        return attributes.clear(context.rank.lock, handle);
    }

    Context& context;
    comm::Attributes attributes;
};

comm::Attributes* attributes_of(Context& context, const datatype::Datatype& type) {
    const datatype::Extras* extras = context.datatypes.find_extras(type);
    return extras != nullptr && extras->attachment != nullptr
               ? &static_cast<TypeAttributes&>(*extras->attachment).attributes
               : nullptr;
}

template <typename Copy, typename Delete>
Error create(Context& context, AttributeOwner owner, Copy* copy, Delete* remove, int* keyval,
             void* extra_state) {
    *keyval = context.keyvals.insert(owner, reinterpret_cast<Keyval::Copy>(copy),
                                     reinterpret_cast<Keyval::Delete>(remove), extra_state);
    return {};
}

Error no_keyval(int keyval) {
    if (keyval == MPI_KEYVAL_INVALID) {
        return fail(MPI_ERR_KEYVAL, "keyval is MPI_KEYVAL_INVALID");
    }
    if ((keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) ||
        (keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL)) {
        return fail(MPI_ERR_KEYVAL, "keyval = %d is a predefined one: its value can't be changed",
                    keyval);
    }
    return fail(MPI_ERR_KEYVAL,
                "keyval = %d is no key for this kind of object: it was never made, or has been "
                "freed",
                keyval);
}

Error free_keyval(Context& context, AttributeOwner owner, int* keyval) {
    Keyval* found = context.keyvals.find(*keyval, owner);
    if (found == nullptr) {
        return no_keyval(*keyval);
    }
    context.keyvals.free(*found);
    *keyval = MPI_KEYVAL_INVALID;
    return {};
}

// Stores a pointer at an address that the standard declares void* for the caller's comfort.
void give(void* place, void* value) {
    std::memcpy(place, &value, sizeof value);
}

// Gets an object's value for a program's key. `attributes`: null if the object has none.
Error get_attribute(Context& context, AttributeOwner owner, const comm::Attributes* attributes,
                    int keyval, void* value, int* flag) {
    const Keyval* found = context.keyvals.find(keyval, owner);
    if (found == nullptr) {
        return no_keyval(keyval);
    }
    void* stored = nullptr;
    *flag = attributes != nullptr && attributes->get(*found, stored);
    if (*flag != 0) {
        give(value, stored);
    }
    return {};
}

template <typename Handle>
Error remove_attribute(Context& context, AttributeOwner owner, comm::Attributes* attributes,
                       Handle handle, int keyval) {
    Keyval* found = context.keyvals.find(keyval, owner);
    if (found == nullptr) {
        return no_keyval(keyval);
    }
    return attributes == nullptr ? Error() : attributes->remove(context.rank.lock, handle, *found);
}

// The variable of a predefined key's value; null for other keys.
int* predefined_value(Context& context, int keyval) {
    switch (keyval) {
    case MPI_TAG_UB:
        return &context.attributes.tag_ub;
    case MPI_IO:
        return &context.attributes.io;
    case MPI_HOST:
        return &context.attributes.host;
    case MPI_WTIME_IS_GLOBAL:
        return &context.attributes.wtime_is_global;
    case MPI_APPNUM:
        return &context.attributes.application;
    case MPI_UNIVERSE_SIZE:
        return &context.attributes.universe_size;
    case MPI_LASTUSEDCODE:
        return context.process.error_codes.last_used();
    default:
        return nullptr;
    }
}

// The variable of a window's predefined key; null for MPI_WIN_BASE, whose value is the address, and
// for other keys.
void* predefined_value(rma::Window& window, int keyval) {
    switch (keyval) {
    case MPI_WIN_SIZE:
        return &window.values.size;
    case MPI_WIN_DISP_UNIT:
        return &window.values.displacement_unit;
    case MPI_WIN_CREATE_FLAVOR:
        return &window.values.flavour;
    case MPI_WIN_MODEL:
        return &window.values.model;
    default:
        return nullptr;
    }
}

} // namespace

Error comm_create_keyval(Context& context, MPI_Comm_copy_attr_function* copy,
                         MPI_Comm_delete_attr_function* remove, int* keyval, void* extra_state) {
    return create(context, AttributeOwner::communicator, copy, remove, keyval, extra_state);
}

Error comm_free_keyval(Context& context, int* keyval) {
    return free_keyval(context, AttributeOwner::communicator, keyval);
}

Error comm_set_attr(Context& context, comm::Communicator& comm, int keyval, void* value) {
    Keyval* found = context.keyvals.find(keyval, AttributeOwner::communicator);
    if (found == nullptr) {
        return no_keyval(keyval);
    }
    if (comm.attributes == nullptr) {
        comm.attributes = new comm::Attributes(context.keyvals);
    }
    return comm.attributes->set(context.rank.lock, context.communicators.handle_of(comm), *found,
                                value);
}

Error comm_get_attr(Context& context, comm::Communicator& comm, int keyval, void* value,
                    int* flag) {
    if (int* predefined = predefined_value(context, keyval)) {
        give(value, predefined);
        *flag = 1;
        return {};
    }
    return get_attribute(context, AttributeOwner::communicator, comm.attributes, keyval, value,
                         flag);
}

Error comm_delete_attr(Context& context, comm::Communicator& comm, int keyval) {
    return remove_attribute(context, AttributeOwner::communicator, comm.attributes,
                            context.communicators.handle_of(comm), keyval);
}

Error type_create_keyval(Context& context, MPI_Type_copy_attr_function* copy,
                         MPI_Type_delete_attr_function* remove, int* keyval, void* extra_state) {
    return create(context, AttributeOwner::datatype, copy, remove, keyval, extra_state);
}

Error type_free_keyval(Context& context, int* keyval) {
    return free_keyval(context, AttributeOwner::datatype, keyval);
}

Error type_set_attr(Context& context, const datatype::Datatype& type, int keyval, void* value) {
    Keyval* found = context.keyvals.find(keyval, AttributeOwner::datatype);
    if (found == nullptr) {
        return no_keyval(keyval);
    }
    comm::Attributes* attributes = attributes_of(context, type);
    if (attributes == nullptr) {
        auto made = std::make_unique<TypeAttributes>(context);
        attributes = &made->attributes;
        context.datatypes.extras(type).attachment = std::move(made);
    }
    return attributes->set(context.rank.lock, datatype::TypeTable::handle_of(type), *found, value);
}

Error type_get_attr(Context& context, const datatype::Datatype& type, int keyval, void* value,
                    int* flag) {
    return get_attribute(context, AttributeOwner::datatype, attributes_of(context, type), keyval,
                         value, flag);
}

Error type_delete_attr(Context& context, const datatype::Datatype& type, int keyval) {
    return remove_attribute(context, AttributeOwner::datatype, attributes_of(context, type),
                            datatype::TypeTable::handle_of(type), keyval);
}

Error win_create_keyval(Context& context, MPI_Win_copy_attr_function* copy,
                        MPI_Win_delete_attr_function* remove, int* keyval, void* extra_state) {
    return create(context, AttributeOwner::window, copy, remove, keyval, extra_state);
}

Error win_free_keyval(Context& context, int* keyval) {
    return free_keyval(context, AttributeOwner::window, keyval);
}

Error win_set_attr(Context& context, rma::Window& win, int keyval, void* value) {
    Keyval* found = context.keyvals.find(keyval, AttributeOwner::window);
    if (found == nullptr) {
        return no_keyval(keyval);
    }
    if (win.attributes == nullptr) {
        win.attributes = new comm::Attributes(context.keyvals);
    }
    return win.attributes->set(context.rank.lock, handle_of(win), *found, value);
}

Error win_get_attr(Context& context, rma::Window& win, int keyval, void* value, int* flag) {
    if (void* predefined = predefined_value(win, keyval)) {
        give(value, predefined);
        *flag = 1;
        return {};
    }
    if (keyval == MPI_WIN_BASE) { // MPI_BOTTOM, or what the program gave
        give(value, win.values.base);
        *flag = 1;
        return {};
    }
    return get_attribute(context, AttributeOwner::window, win.attributes, keyval, value, flag);
}

Error win_delete_attr(Context& context, rma::Window& win, int keyval) {
    return remove_attribute(context, AttributeOwner::window, win.attributes, handle_of(win),
                            keyval);
}

} // namespace warren::mpi
