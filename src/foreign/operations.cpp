// MPI_Op_create: the program's functions get handles of datatypes of the foreign ABI.

#include "foreign/arguments.hpp"
#include "foreign/export.hpp"

namespace warren::foreign {

namespace {

using UserFunction = void(void* in, void* inout, void* count, Datatype* type);

void call_user_function(coll::Op::Function function, void* in, void* inout, void* count,
                        MPI_Datatype type) {
    Datatype datatype = handle::Datatype::foreign(type);
    reinterpret_cast<UserFunction*>(function)(in, inout, count, &datatype);
}

} // namespace

WARREN_FOREIGN(int, Op_create, (UserFunction * user_fn, int commute, Op* op)) {
    HandlePointer<handle::Op, Way::out> op_(op);
    const int code =
        core.Op_create(reinterpret_cast<MPI_User_function*>(user_fn), commute, op_.data());
    if (op_.made()) {
        hooks.adapt_op(*op_.data(), call_user_function, nullptr);
    }
    return foreign_error(code);
}

WARREN_FOREIGN(int, Op_create_c, (UserFunction * user_fn, int commute, Op* op)) {
    HandlePointer<handle::Op, Way::out> op_(op);
    const int code =
        core.Op_create_c(reinterpret_cast<MPI_User_function_c*>(user_fn), commute, op_.data());
    if (op_.made()) {
        hooks.adapt_op(*op_.data(), call_user_function, nullptr);
    }
    return foreign_error(code);
}

} // namespace warren::foreign
