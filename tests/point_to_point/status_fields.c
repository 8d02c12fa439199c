/* What a status tells: source, tag, error, counts of whole and of basic elements, cancelled or not.
 */
#include "check.h"

static void partial_elements(int rank) {
    struct {
        int number;
        double fraction;
    } records[3];
    MPI_Datatype record, types[2] = {MPI_INT, MPI_DOUBLE}, empty;
    MPI_Aint places[2] = {0, 8};
    int lengths[2] = {1, 1}, count, elements;
    MPI_Type_create_struct(2, lengths, places, types, &record);
    MPI_Type_commit(&record);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    if (rank == 0) {
        char bytes[36];
        check_fill(bytes, 36, 3);
        MPI_Send(bytes, 24, MPI_PACKED, 1, 0, MPI_COMM_WORLD);
        MPI_Send(bytes, 16, MPI_PACKED, 1, 1, MPI_COMM_WORLD);
        MPI_Send(bytes, 0, MPI_PACKED, 1, 2, MPI_COMM_WORLD);
        MPI_Send(bytes, 7, MPI_PACKED, 1, 3, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Status status;
        MPI_Recv(records, 3, record, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, record, &count);
        MPI_Get_elements(&status, record, &elements);
        CHECK(count == 2 && elements == 4, "24 bytes: count %d, elements %d", count, elements);
        MPI_Recv(records, 3, record, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, record, &count);
        MPI_Get_elements(&status, record, &elements);
        CHECK(count == MPI_UNDEFINED && elements == 3, "16 bytes: count %d, elements %d", count,
              elements);
        MPI_Recv(records, 3, record, 0, 2, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, record, &count);
        MPI_Get_elements(&status, record, &elements);
        CHECK(count == 0 && elements == 0, "0 bytes: count %d, elements %d", count, elements);
        MPI_Get_count(&status, empty, &count);
        CHECK(count == 0, "0 bytes of an empty type: count %d", count);
        MPI_Recv(records, 7, MPI_PACKED, 0, 3, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Get_elements(&status, MPI_SHORT, &elements);
        CHECK(count == MPI_UNDEFINED && elements == MPI_UNDEFINED, "7 bytes: count %d, elements %d",
              count, elements);
        MPI_Count large = -1;
        MPI_Get_elements_x(&status, MPI_CHAR, &large);
        CHECK(large == 7, "MPI_Get_elements_x gives %lld", (long long)large);
    }
    MPI_Type_free(&record);
    MPI_Type_free(&empty);
}

static void setting(void) {
    MPI_Status status = {0};
    int count = -1, flag = -1, value = -1;
    MPI_Status_set_elements(&status, MPI_INT, 5);
    MPI_Status_set_cancelled(&status, 1);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_Test_cancelled(&status, &flag);
    CHECK(count == 5 && flag == 1, "set to 5, cancelled: %d, %d", count, flag);
    MPI_Status_set_cancelled(&status, 0);
    MPI_Test_cancelled(&status, &flag);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 5 && flag == 0, "set to 5, not cancelled: %d, %d", count, flag);
    MPI_Count large = (MPI_Count)1 << 40, got = -1;
    MPI_Status_set_elements_x(&status, MPI_CHAR, large);
    MPI_Get_elements_x(&status, MPI_CHAR, &got);
    CHECK(got == large, "set to 2^40: %lld", (long long)got);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag == 0, "2^40 elements make it cancelled");
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK(count == MPI_UNDEFINED, "2^40 in an int: %d", count);
    MPI_Status_set_source(&status, 3);
    MPI_Status_set_tag(&status, 4);
    MPI_Status_set_error(&status, MPI_ERR_OTHER);
    MPI_Status_get_source(&status, &value);
    CHECK(value == 3 && status.MPI_SOURCE == 3, "source %d", value);
    MPI_Status_get_tag(&status, &value);
    CHECK(value == 4 && status.MPI_TAG == 4, "tag %d", value);
    MPI_Status_get_error(&status, &value);
    CHECK(value == MPI_ERR_OTHER && status.MPI_ERROR == MPI_ERR_OTHER, "error %d", value);
}

static void empty_statuses_have_no_error(void) {
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int index, flag;
    for (int call = 0; call < 6; call++) {
        MPI_Status status = {.MPI_SOURCE = 3, .MPI_TAG = 4, .MPI_ERROR = MPI_ERR_OTHER};
        if (call == 0)
            MPI_Wait(&none[0], &status);
        if (call == 1)
            MPI_Test(&none[0], &flag, &status);
        if (call == 2)
            MPI_Waitany(2, none, &index, &status);
        if (call == 3)
            MPI_Testany(2, none, &index, &flag, &status);
        if (call == 4)
            MPI_Request_get_status(none[0], &flag, &status);
        if (call == 5)
            MPI_Request_get_status_any(2, none, &index, &flag, &status);
        check_status(&status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, "null requests");
        CHECK(status.MPI_ERROR == MPI_SUCCESS, "call %d: error %d", call, status.MPI_ERROR);
    }
}

static void error_field_is_left_alone(int rank) {
    /* Calls that return one status don't touch MPI_ERROR (3.2.5). */
    MPI_Status status;
    int value = 0;
    status.MPI_ERROR = 4711;
    MPI_Sendrecv(&rank, 1, MPI_INT, rank, 0, &value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_ERROR == 4711, "MPI_Sendrecv set MPI_ERROR to %d", status.MPI_ERROR);
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    partial_elements(rank);
    setting();
    empty_statuses_have_no_error();
    error_field_is_left_alone(rank);
    MPI_Finalize();
    return 0;
}
