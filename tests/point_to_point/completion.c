/* Wait and test for any, some and all: indices, statuses, null requests, errors in statuses. */
#include "check.h"

enum { count = 8 };

static void post(int values[count], MPI_Request requests[count]) {
    for (int i = 0; i < count; i++) {
        values[i] = -1;
        MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, 100, MPI_COMM_WORLD);
}

static void check_one(int index, const int values[count], const MPI_Status* status,
                      const char* what) {
    CHECK(index >= 0 && index < count, "%s: index %d", what, index);
    CHECK(values[index] == 7 * index, "%s: value %d of request %d", what, values[index], index);
    check_status(status, 0, index, 4, what);
}

static void waits(void) {
    int values[count], indices[count], index = -1, done = -1;
    MPI_Request requests[count];
    MPI_Status status, statuses[count];

    post(values, requests);
    for (int i = 0; i < count; i++) {
        MPI_Waitany(count, requests, &index, &status);
        check_one(index, values, &status, "MPI_Waitany");
        CHECK(requests[index] == MPI_REQUEST_NULL, "MPI_Waitany leaves request %d", index);
    }

    post(values, requests);
    for (int left = count; left > 0; left -= done) {
        MPI_Waitsome(count, requests, &done, indices, statuses);
        CHECK(done >= 1 && done <= left, "MPI_Waitsome gives %d", done);
        for (int i = 0; i < done; i++) {
            check_one(indices[i], values, &statuses[i], "MPI_Waitsome");
        }
    }

    post(values, requests);
    MPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; i++) {
        check_one(i, values, &statuses[i], "MPI_Waitall");
        CHECK(requests[i] == MPI_REQUEST_NULL, "MPI_Waitall leaves request %d", i);
    }
}

static void tests(void) {
    int values[count], indices[count], flag = -1, index = -1, done = -1;
    MPI_Request requests[count];
    MPI_Status status, statuses[count];

    post(values, requests);
    for (int left = count; left > 0; left -= flag) {
        MPI_Testany(count, requests, &index, &flag, &status);
        if (flag) {
            check_one(index, values, &status, "MPI_Testany");
        } else {
            CHECK(index == MPI_UNDEFINED, "MPI_Testany gives index %d without a flag", index);
        }
    }

    post(values, requests);
    for (int left = count; left > 0; left -= done) {
        MPI_Testsome(count, requests, &done, indices, statuses);
        for (int i = 0; i < done; i++) {
            check_one(indices[i], values, &statuses[i], "MPI_Testsome");
        }
    }

    post(values, requests);
    for (flag = 0; !flag;) {
        MPI_Testall(count, requests, &flag, statuses);
        for (int i = 0; i < count && !flag; i++) {
            CHECK(requests[i] != MPI_REQUEST_NULL, "MPI_Testall took one of an incomplete set");
        }
    }
    for (int i = 0; i < count; i++) {
        check_one(i, values, &statuses[i], "MPI_Testall");
    }
}

static void single_requests(void) {
    int values[count], flag = -1;
    MPI_Request requests[count];
    MPI_Status status;

    post(values, requests);
    for (int i = count - 1; i >= 0; i--) {
        MPI_Wait(&requests[i], &status);
        check_one(i, values, &status, "MPI_Wait in reverse");
    }

    post(values, requests);
    for (int i = 0; i < count; i++) {
        for (flag = 0; !flag;) {
            MPI_Request_get_status(requests[i], &flag, &status);
        }
        check_one(i, values, &status, "MPI_Request_get_status");
        CHECK(requests[i] != MPI_REQUEST_NULL, "MPI_Request_get_status frees");
        for (flag = 0; !flag;) {
            MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        }
    }

    post(values, requests);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) {
        CHECK(values[i] == 7 * i, "value %d without statuses", i);
    }
}

static void receiver(void) {
    waits();
    tests();
    single_requests();
}

static void sender(void) {
    for (int round = 0; round < 9; round++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++) {
            const int tag = (i * 5 + round) % count, value = 7 * tag;
            MPI_Send(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
        }
    }
}

static void null_requests_are_complete(void) {
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    int index = 5, flag = 0, done = 5, indices[3];
    memset(&status, 0x55, sizeof status);
    memset(statuses, 0x55, sizeof statuses);
    MPI_Wait(&requests[0], &status);
    check_empty(&status, "MPI_Wait of null");
    memset(&status, 0x55, sizeof status);
    MPI_Test(&requests[0], &flag, &status);
    CHECK(flag == 1, "MPI_Test of null");
    check_empty(&status, "MPI_Test of null");
    MPI_Waitany(3, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED, "MPI_Waitany of nulls gives %d", index);
    check_empty(&status, "MPI_Waitany of nulls");
    index = 5;
    flag = 0;
    MPI_Testany(3, requests, &index, &flag, &status);
    CHECK(flag == 1 && index == MPI_UNDEFINED, "MPI_Testany of nulls: %d, %d", flag, index);
    check_empty(&status, "MPI_Testany of nulls");
    MPI_Waitsome(3, requests, &done, indices, statuses);
    CHECK(done == MPI_UNDEFINED, "MPI_Waitsome of nulls gives %d", done);
    done = 5;
    MPI_Testsome(3, requests, &done, indices, statuses);
    CHECK(done == MPI_UNDEFINED, "MPI_Testsome of nulls gives %d", done);
    MPI_Waitall(3, requests, statuses);
    for (int i = 0; i < 3; i++) {
        check_empty(&statuses[i], "MPI_Waitall of nulls");
    }
    flag = 0;
    MPI_Testall(3, requests, &flag, statuses);
    CHECK(flag == 1, "MPI_Testall of nulls");
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status);
    CHECK(flag == 1, "MPI_Request_get_status of null");
    check_empty(&status, "MPI_Request_get_status of null");
}

static void errors_are_in_statuses(int rank) {
    if (rank == 0) {
        const int two[2] = {1, 2};
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(two, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Send(two, 2, MPI_INT, 1, 2, MPI_COMM_WORLD); /* too long */
        MPI_Send(two, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    } else if (rank == 1) {
        int values[3];
        MPI_Request requests[3];
        MPI_Status statuses[3];
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        for (int i = 0; i < 3; i++) {
            MPI_Irecv(&values[i], 1, MPI_INT, 0, i + 1, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        /* An implementation may return early, with requests pending: then wait for these. */
        int classes[3] = {MPI_ERR_PENDING, MPI_ERR_PENDING, MPI_ERR_PENDING};
        for (int turn = 0; turn < 3; turn++) {
            const int code = MPI_Waitall(3, requests, statuses);
            if (code == MPI_SUCCESS) {
                for (int i = 0; i < 3; i++) {
                    classes[i] = classes[i] == MPI_ERR_PENDING ? MPI_SUCCESS : classes[i];
                }
                break;
            }
            CHECK(check_class(code) == MPI_ERR_IN_STATUS, "MPI_Waitall gives class %d",
                  check_class(code));
            for (int i = 0; i < 3; i++) {
                if (classes[i] == MPI_ERR_PENDING) {
                    classes[i] = check_class(statuses[i].MPI_ERROR);
                }
            }
        }
        CHECK(classes[0] == MPI_SUCCESS, "status 0 has class %d", classes[0]);
        CHECK(classes[1] == MPI_ERR_TRUNCATE, "status 1 has class %d", classes[1]);
        CHECK(classes[2] == MPI_SUCCESS, "status 2 has class %d", classes[2]);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 2);
    if (rank == 0) {
        sender();
    } else if (rank == 1) {
        receiver();
    }
    null_requests_are_complete();
    errors_are_in_statuses(rank);
    MPI_Finalize();
    return 0;
}
