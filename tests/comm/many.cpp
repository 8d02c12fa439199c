// Communicators without end: very many made and freed one after the other, and many at once.
// many.cpp ROUNDS LIVE
#include "check.hpp"

int main(int argc, char** argv) {
    start(&argc, &argv);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1000000;
    const int live = argc > 2 ? std::atoi(argv[2]) : 50000;
    MPI_Comm comm;
    for (int i = 0; i < rounds; ++i) {
        EXPECT(MPI_Comm_dup(i % 2 == 0 ? MPI_COMM_SELF : MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
        MPI_Comm_free(&comm);
    }
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(live), MPI_COMM_NULL);
    for (int i = 0; i < live; ++i) {
        MPI_Comm& made = comms[static_cast<std::size_t>(i)];
        EXPECT(MPI_Comm_dup(i % 16 == 0 ? MPI_COMM_WORLD : MPI_COMM_SELF, &made) == MPI_SUCCESS);
    }
    // Each has messages of its own.
    for (int i = live - 1; i >= 0; --i) {
        MPI_Comm& made = comms[static_cast<std::size_t>(i)];
        const int size = size_of(made), rank = rank_in(made);
        int got = -1;
        MPI_Request request;
        MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % size, 0, made, &request);
        MPI_Send(&i, 1, MPI_INT, (rank + size - 1) % size, 0, made);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(got == i);
        MPI_Comm_free(&made);
    }
    return finish();
}
