#include "mpi/entry/block_lists.hpp"

#include "mpi/entry/requests.hpp"

namespace warren::mpi {

using message::Buffer;

Error negative_count(const char* name, int index, MPI_Count value) {
    return fail(MPI_ERR_COUNT, "%s[%d] is %lld: a count cannot be negative", name, index,
                static_cast<long long>(value));
}

Error list_blocks(int number, void* base, const CountArray& counts, const CountArray& displs,
                  const datatype::Datatype& type, const char* name, std::vector<Buffer>& blocks) {
    blocks.resize(static_cast<std::size_t>(number));
    for (int i = 0; i < number; ++i) {
        if (counts[i] < 0) {
            return negative_count(name, i, counts[i]);
        }
        blocks[static_cast<std::size_t>(i)] =
            buffer_of(static_cast<std::byte*>(base) + displs[i] * type.extent, counts[i], type);
    }
    return {};
}

Error list_typed_blocks(Context& context, coll::Steps& steps, int number, void* base,
                        const CountArray& counts, const CountArray& displs,
                        const MPI_Datatype types[], const char* name, std::vector<Buffer>& blocks) {
    blocks.resize(static_cast<std::size_t>(number));
    for (int i = 0; i < number; ++i) {
        if (counts[i] < 0) {
            return fail(MPI_ERR_COUNT,
                        "the count beside %s[%d] is %lld: a count cannot be negative", name, i,
                        static_cast<long long>(counts[i]));
        }
        const datatype::Datatype* type = context.datatypes.find(types[i]);
        if (type == nullptr || !type->committed) {
            return fail(MPI_ERR_TYPE, "%s[%d] is %s", name, i,
                        type == nullptr ? "not a datatype" : "not committed");
        }
        steps.keep(*type);
        blocks[static_cast<std::size_t>(i)] =
            buffer_of(static_cast<std::byte*>(base) + displs[i], counts[i], *type);
    }
    return {};
}

} // namespace warren::mpi
