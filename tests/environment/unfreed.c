/* A program that frees nothing of what it has made. It ends well, and (under a sanitizer) without a
   leak of the library's. */
#include <mpi.h>
#include <stddef.h>

static int copy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
    (void)comm, (void)keyval, (void)extra;
    *(void**)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static void combine(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)in, (void)inout, (void)count, (void)type;
}

static void handle(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
}

int main(int count, char** words) {
    MPI_Init(&count, &words);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    MPI_Comm with_attribute, with_info, half, ring, between;
    int keyval;
    MPI_Comm_dup(MPI_COMM_WORLD, &with_attribute);
    MPI_Comm_set_name(with_attribute, "unfreed");
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(with_attribute, keyval, &keyval);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm_dup_with_info(with_attribute, info, &with_info);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(with_info, handler);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank < 2 ? 0 : 1 + rank * 7 % 5, &half);
    const int dimensions[] = {size}, periodic[] = {1};
    MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periodic, 0, &ring);
    if (size > 1) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 1, &between);
    }
    MPI_Group group, others;
    const int first = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group_excl(group, 1, &first, &others);

    MPI_Datatype strided, moved;
    MPI_Type_vector(5, 1, 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    const int one = 1;
    const MPI_Aint place = 4;
    MPI_Type_create_struct(1, &one, &place, &strided, &moved);
    MPI_Type_commit(&moved);
    MPI_Op op;
    MPI_Op_create(combine, 1, &op);

    static int a[64], b[64];
    const int next = (rank + 1) % size;
    MPI_Request requests[9];
    MPI_Allreduce_init(a, b, 10, MPI_INT, op, with_info, MPI_INFO_NULL, &requests[0]);
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Bcast_init(a, 1, moved, 0, with_attribute, MPI_INFO_NULL, &requests[1]);
    MPI_Send_init(a, 1, strided, 0, 0, with_attribute, &requests[2]);
    MPI_Recv_init(a, 1, strided, 0, 0, with_attribute, &requests[3]);
    MPI_Bsend_init(a, 1, strided, 0, 0, with_attribute, &requests[4]);
    MPI_Precv_init(a, 2, 1, strided, next, 3, with_attribute, MPI_INFO_NULL, &requests[5]);
    MPI_Psend_init(a, 2, 1, strided, next, 4, with_attribute, MPI_INFO_NULL, &requests[6]);
    MPI_Neighbor_alltoall_init(a, 1, MPI_INT, b, 1, MPI_INT, ring, MPI_INFO_NULL, &requests[7]);
    MPI_Barrier_init(half, MPI_INFO_NULL, &requests[8]);
    MPI_Barrier(with_attribute);
    MPI_Finalize();
    return 0;
}
