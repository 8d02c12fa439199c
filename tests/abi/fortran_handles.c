/* Handles and statuses as Fortran's integers: what mpi.h has of it, in C and C++. */
#include <mpi.h>
#include <string.h>

#include "../foreign/check.h"

#define THERE_AND_BACK(kind, handle)                                                               \
    CHECK(MPI_##kind##_f2c(MPI_##kind##_c2f(handle)) == (handle) &&                                \
          PMPI_##kind##_f2c(PMPI_##kind##_c2f(handle)) == (handle))

static void predefined(void) {
    THERE_AND_BACK(Comm, MPI_COMM_WORLD);
    THERE_AND_BACK(Comm, MPI_COMM_NULL);
    THERE_AND_BACK(Errhandler, MPI_ERRORS_RETURN);
    THERE_AND_BACK(File, MPI_FILE_NULL);
    THERE_AND_BACK(Group, MPI_GROUP_EMPTY);
    THERE_AND_BACK(Info, MPI_INFO_NULL);
    THERE_AND_BACK(Message, MPI_MESSAGE_NO_PROC);
    THERE_AND_BACK(Op, MPI_SUM);
    THERE_AND_BACK(Request, MPI_REQUEST_NULL);
    THERE_AND_BACK(Session, MPI_SESSION_NULL);
    THERE_AND_BACK(Type, MPI_INT);
    THERE_AND_BACK(Win, MPI_WIN_NULL);
}

static void made(int rank) {
    MPI_Fint (*convert)(MPI_Comm) = MPI_Comm_c2f;
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Info info;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(MPI_Comm_f2c(convert(comm)) == comm);
    MPI_Comm_group(comm, &group);
    THERE_AND_BACK(Group, group);
    MPI_Type_contiguous(3, MPI_INT, &type);
    THERE_AND_BACK(Type, type);
    MPI_Info_create(&info);
    THERE_AND_BACK(Info, info);
    const int sent[3] = {1, 2, 3};
    int received[3];
    MPI_Request requests[2];
    MPI_Status statuses[2], copy;
    MPI_Irecv(received, 3, MPI_INT, rank, 5, comm, &requests[0]);
    THERE_AND_BACK(Request, requests[0]);
    MPI_Isend(sent, 3, MPI_INT, rank, 5, comm, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Fint words[MPI_F_STATUS_SIZE];
    CHECK(MPI_Status_c2f(&statuses[0], words) == MPI_SUCCESS);
    CHECK(words[MPI_F_SOURCE] == rank && words[MPI_F_TAG] == 5);
    memset(&copy, 0, sizeof copy);
    CHECK(MPI_Status_f2c(words, &copy) == MPI_SUCCESS);
    int count = 0;
    MPI_Get_count(&copy, MPI_INT, &count);
    CHECK(count == 3 && copy.MPI_SOURCE == rank && copy.MPI_TAG == 5);
    MPI_F08_status status;
    memset(words, 0, sizeof words);
    CHECK(MPI_Status_c2f08(&copy, &status) == MPI_SUCCESS);
    CHECK(MPI_Status_f082f(&status, words) == MPI_SUCCESS && words[MPI_F_TAG] == 5);
    words[MPI_F_TAG] = 6;
    CHECK(MPI_Status_f2f08(words, &status) == MPI_SUCCESS);
    CHECK(MPI_Status_f082c(&status, &copy) == MPI_SUCCESS && copy.MPI_TAG == 6);
    MPI_Info_free(&info);
    MPI_Type_free(&type);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    predefined();
    made(rank);
    MPI_Finalize();
    return failures != 0;
}
