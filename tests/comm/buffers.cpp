// Buffers for buffered sends: which of the communicator's, the session's and the process's a send
// takes; flushing them; what the library allocates itself.
#include "check.hpp"

namespace {

constexpr int small = 16 + MPI_BSEND_OVERHEAD; // room for one message of a few ints

// What one kind of owner does with its buffer.
struct Calls {
    int (*attach)(void*, int);
    int (*detach)(void*, int*);
    int (*flush)();
    int (*iflush)(MPI_Request*);
};

MPI_Comm comm = MPI_COMM_NULL;
MPI_Session session = MPI_SESSION_NULL;

const Calls of_comm = {
    [](void* buffer, int size) { return MPI_Comm_attach_buffer(comm, buffer, size); },
    [](void* buffer, int* size) { return MPI_Comm_detach_buffer(comm, buffer, size); },
    [] { return MPI_Comm_flush_buffer(comm); },
    [](MPI_Request* request) { return MPI_Comm_iflush_buffer(comm, request); }};
const Calls of_session = {
    [](void* buffer, int size) { return MPI_Session_attach_buffer(session, buffer, size); },
    [](void* buffer, int* size) { return MPI_Session_detach_buffer(session, buffer, size); },
    [] { return MPI_Session_flush_buffer(session); },
    [](MPI_Request* request) { return MPI_Session_iflush_buffer(session, request); }};
const Calls of_process = {MPI_Buffer_attach, MPI_Buffer_detach, MPI_Buffer_flush,
                          MPI_Buffer_iflush};

int next_rank() {
    return (rank_in(comm) + 1) % size_of(comm);
}

// A buffered send of `bytes` to the next rank, with what it returns.
int send(int bytes, int tag) {
    const std::vector<char> data(static_cast<std::size_t>(bytes), static_cast<char>(tag));
    return MPI_Bsend(data.data(), bytes, MPI_BYTE, next_rank(), tag, comm);
}

void receive(int bytes, int tag) {
    std::vector<char> data(static_cast<std::size_t>(bytes));
    MPI_Status status;
    EXPECT(MPI_Recv(data.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, &status) ==
           MPI_SUCCESS);
    int count;
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT(count == bytes && (bytes == 0 || data.back() == static_cast<char>(tag)));
}

void check_detach(const Calls& calls, void* buffer, int size) {
    void* detached = nullptr;
    int detached_size = -1;
    EXPECT(calls.detach(&detached, &detached_size) == MPI_SUCCESS);
    EXPECT(detached == buffer && detached_size == size);
}

// Attached, used, flushed in both ways, detached; and refused when there are two or too little.
void use(const Calls& calls) {
    std::vector<char> memory(100000);
    const int size = static_cast<int>(memory.size());
    EXPECT(class_of(send(8, 1)) == MPI_ERR_BUFFER);
    EXPECT(calls.flush() == MPI_SUCCESS); // nothing to do
    EXPECT(calls.attach(memory.data(), size) == MPI_SUCCESS);
    EXPECT(class_of(calls.attach(memory.data(), size)) == MPI_ERR_BUFFER);
    for (int round = 0; round < 20; ++round) {
        // Together more than the buffer: it is used again.
        EXPECT(send(40000, round) == MPI_SUCCESS);
        MPI_Request request;
        if (round % 2 == 0) {
            EXPECT(calls.iflush(&request) == MPI_SUCCESS);
            receive(40000, round);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            receive(40000, round);
            EXPECT(calls.flush() == MPI_SUCCESS);
        }
    }
    EXPECT(class_of(send(size, 1)) == MPI_ERR_BUFFER);
    check_detach(calls, memory.data(), size);
    EXPECT(class_of(send(8, 1)) == MPI_ERR_BUFFER);

    EXPECT(calls.attach(MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
    for (int round = 0; round < 20; ++round) {
        EXPECT(send(50000, round) == MPI_SUCCESS);
    }
    for (int round = 0; round < 20; ++round) {
        receive(50000, round);
    }
    check_detach(calls, MPI_BUFFER_AUTOMATIC, 0);
}

// A send takes the nearest buffer: one that is too small is not made up for by another.
void nearest_first(const std::vector<const Calls*>& nearest) {
    static char place[3][small];
    for (std::size_t i = nearest.size(); i-- > 0;) {
        nearest[i]->attach(MPI_BUFFER_AUTOMATIC, 0);
        EXPECT(send(1000, 0) == MPI_SUCCESS);
        receive(1000, 0);
        check_detach(*nearest[i], MPI_BUFFER_AUTOMATIC, 0);
        nearest[i]->attach(place[i], small);
        EXPECT(class_of(send(1000, 0)) == MPI_ERR_BUFFER);
        EXPECT(send(8, 0) == MPI_SUCCESS);
        receive(8, 0);
        nearest[i]->flush();
    }
    for (std::size_t i = 0; i < nearest.size(); ++i) {
        check_detach(*nearest[i], place[i], small);
    }
}

} // namespace

int main(int argc, char** argv) {
    start(&argc, &argv);
    // Communicators of MPI_Init.
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    use(of_comm);
    use(of_process);
    nearest_first({&of_comm, &of_process});
    // A disconnect ends the use of the buffer.
    std::vector<char> memory(100000);
    of_comm.attach(memory.data(), static_cast<int>(memory.size()));
    EXPECT(send(90000, 6) == MPI_SUCCESS);
    receive(90000, 6);
    EXPECT(MPI_Comm_disconnect(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    std::fill(memory.begin(), memory.end(), '?');

    // Of a session; what is made of them belongs to it, too.
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group all, group;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    int backwards[1][3] = {{world_size - 1, 0, -1}};
    MPI_Group_range_incl(all, 1, backwards, &group);
    MPI_Comm first, second;
    MPI_Comm_create_from_group(group, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &first);
    MPI_Comm_dup(first, &second);
    MPI_Comm_split(second, world_rank % 2, 0, &comm);
    use(of_session);
    use(of_comm);
    use(of_process);
    nearest_first({&of_comm, &of_session, &of_process});
    MPI_Comm_free(&comm);
    // A group of the communicator, and a communicator of that.
    MPI_Group again;
    MPI_Comm_group(second, &again);
    MPI_Comm_create_from_group(again, "again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    nearest_first({&of_comm, &of_session, &of_process});
    // Another session's buffer is none of its business; and one that ends gives its messages up.
    MPI_Session other;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other);
    MPI_Session_attach_buffer(other, MPI_BUFFER_AUTOMATIC, 0);
    EXPECT(class_of(send(8, 1)) == MPI_ERR_BUFFER);
    MPI_Session_finalize(&other);
    // The end of a session ends the use of its buffer.
    MPI_Session_attach_buffer(session, MPI_BUFFER_AUTOMATIC, 0);
    EXPECT(send(100000, 4) == MPI_SUCCESS);
    receive(100000, 4);
    for (MPI_Group* each : {&all, &group, &again}) {
        MPI_Group_free(each);
    }
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return finish();
}
