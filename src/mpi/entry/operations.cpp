// Reduction operations: what their entry points call.

#include "mpi/entry/context.hpp"
#include "mpi/entry/datatypes.hpp"

namespace warren::mpi {

Error op_create(Context& context, MPI_User_function* user_fn, MPI_User_function_c* user_fn_c,
                int commute, MPI_Op* op) {
    if (user_fn == nullptr && user_fn_c == nullptr) {
        return fail(MPI_ERR_ARG, "user_fn is a null pointer");
    }
    const coll::Op* made = user_fn_c != nullptr ? context.operations.insert(user_fn_c, commute != 0)
                                                : context.operations.insert(user_fn, commute != 0);
    if (made == nullptr) {
        return fail(MPI_ERR_NO_MEM, "no memory for another operation");
    }
    *op = context.operations.handle_of(*made);
    return {};
}

Error op_free(Context& context, coll::Op& op) {
    if (op.predefined()) {
        return fail(MPI_ERR_OP, "a predefined operation cannot be freed");
    }
    context.operations.remove(op);
    return {};
}

Error op_commutative(Context&, coll::Op& op, int* commute) {
    *commute = op.commutative() ? 1 : 0;
    return {};
}

} // namespace warren::mpi
