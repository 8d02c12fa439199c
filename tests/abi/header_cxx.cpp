// The header in C++.
#include <mpi.h>

#include <cstdint>
#include <type_traits>

namespace {

const MPI_Comm communicator = MPI_COMM_SELF;
constexpr int limit = MPI_MAX_OBJECT_NAME;
static_assert(std::is_same_v<MPI_Aint, std::intptr_t>);
static_assert(std::is_enum_v<MPI_T_cb_safety> && std::is_enum_v<MPI_T_source_order>);
static_assert(!std::is_same_v<MPI_Comm, MPI_Datatype>, "overloads tell handles apart");

template <int size>
struct Buffer {
    char bytes[size];
};

int kind(MPI_Comm) {
    return 1;
}
int kind(MPI_Datatype) {
    return 2;
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Buffer<limit> name;
    MPI_Status status = {};
    const bool good = kind(communicator) == 1 && kind(MPI_INT) == 2 && sizeof name == 128 &&
                      status.MPI_ERROR == MPI_SUCCESS && MPI_Wtime() > 0;
    MPI_Finalize();
    return good ? 0 : 1;
}
