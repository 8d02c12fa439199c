// Arguments that look wrong and are right: null buffers of nothing, MPI_BOTTOM with addresses in
// the datatype, wildcards, MPI_PROC_NULL, null requests; and the paths of an error to its handler.
#include <cstdio>
#include <cstring>

#include <mpi.h>

namespace {

int failures;

void expect(bool holds, const char* what, int line) {
    if (!holds) {
        std::printf("line %d: %s\n", line, what);
        ++failures;
    }
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

void null_buffers_of_nothing() {
    MPI_Status status;
    EXPECT(MPI_Sendrecv(nullptr, 0, MPI_INT, 0, 0, nullptr, 0, MPI_INT, 0, 0, MPI_COMM_SELF,
                        &status) == MPI_SUCCESS);
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    EXPECT(MPI_Send(nullptr, 5, empty, MPI_PROC_NULL, 0, MPI_COMM_SELF) == MPI_SUCCESS);
    MPI_Type_free(&empty);
    EXPECT(MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
}

void bottom_with_absolute_addresses() {
    int sent = 42;
    int received = 0;
    MPI_Datatype at_sent;
    MPI_Datatype at_received;
    const int length = 1;
    MPI_Aint address;
    MPI_Get_address(&sent, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &at_sent);
    MPI_Get_address(&received, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &at_received);
    MPI_Type_commit(&at_sent);
    MPI_Type_commit(&at_received);
    EXPECT(MPI_Sendrecv(MPI_BOTTOM, 1, at_sent, 0, 3, MPI_BOTTOM, 1, at_received, 0, 3,
                        MPI_COMM_SELF, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    EXPECT(received == 42);
    MPI_Type_free(&at_sent);
    MPI_Type_free(&at_received);
    // MPI_BOTTOM is the null pointer: with an ordinary datatype it is a mistake.
    EXPECT(class_of(MPI_Send(MPI_BOTTOM, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF)) ==
           MPI_ERR_BUFFER);
}

void wildcards_and_null_peers() {
    int value = 1;
    MPI_Status status;
    EXPECT(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_SELF, &status) ==
           MPI_SUCCESS);
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT(count == 0);
    int flag = 1;
    EXPECT(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &status) == MPI_SUCCESS);
    EXPECT(flag == 0);
    int* tag_limit;
    MPI_Comm_get_attr(MPI_COMM_SELF, MPI_TAG_UB, &tag_limit, &flag);
    EXPECT(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, *tag_limit, MPI_COMM_SELF) == MPI_SUCCESS);
}

void null_requests_are_done() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    EXPECT(MPI_Wait(&request, &status) == MPI_SUCCESS);
    EXPECT(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    int flag = 0;
    EXPECT(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag == 1);
}

int on_copy;
void count_on_copy(MPI_Comm*, int*, ...) {
    ++on_copy;
}

// A request's failure belongs to its communicator, and only that failure.
void failed_requests_find_their_communicator() {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(count_on_copy, &handler);
    MPI_Comm_set_errhandler(copy, handler);
    MPI_Errhandler_free(&handler);
    int value = 0;
    MPI_Request request;
    MPI_Recv_init(&value, 1, MPI_INT, 0, 9, copy, &request);
    EXPECT(MPI_Start(&request) == MPI_SUCCESS);
    // Nothing is wrong with `copy` here.
    MPI_Request null = MPI_REQUEST_NULL;
    EXPECT(class_of(MPI_Start(&null)) == MPI_ERR_REQUEST && on_copy == 0);
    EXPECT(class_of(MPI_Start(&request)) == MPI_ERR_REQUEST && on_copy == 1);
    MPI_Send(&value, 1, MPI_INT, 0, 9, copy);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);

    const int sent[2] = {1, 2};
    MPI_Request receive;
    MPI_Irecv(&value, 1, MPI_INT, 0, 9, copy, &receive);
    MPI_Send(sent, 2, MPI_INT, 0, 9, copy);
    EXPECT(class_of(MPI_Wait(&receive, MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE && on_copy == 2);
    MPI_Comm_free(&copy);
}

// The way to a handler: a duplicate inherits it, and a failed receive goes to its communicator's.
void errors_find_their_handler() {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(copy, &handler);
    EXPECT(handler == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    EXPECT(handler == MPI_ERRHANDLER_NULL);
    const int sent[2] = {1, 2};
    int received = 0;
    MPI_Request request;
    MPI_Isend(sent, 2, MPI_INT, 0, 0, copy, &request);
    const int code = MPI_Recv(&received, 1, MPI_INT, 0, 0, copy, MPI_STATUS_IGNORE);
    EXPECT(class_of(code) == MPI_ERR_TRUNCATE);
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    EXPECT(std::strstr(text, "MPI_Recv") != nullptr);
    EXPECT(length == static_cast<int>(std::strlen(text)));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    null_buffers_of_nothing();
    bottom_with_absolute_addresses();
    wildcards_and_null_peers();
    null_requests_are_done();
    failed_requests_find_their_communicator();
    errors_find_their_handler();
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
