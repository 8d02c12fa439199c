// Errors without an object go to MPI_COMM_SELF's error handler, and as long as it has been given
// none to MPI_COMM_WORLD's, where they went before MPI 4.0.
#include "expect.hpp"

#include <mpi.h>

namespace {

int told_world = 0;
int told_self = 0;

void on_world(MPI_Comm* comm, int*, ...) {
    EXPECT(*comm == MPI_COMM_WORLD);
    ++told_world;
}

void on_self(MPI_Comm* comm, int*, ...) {
    EXPECT(*comm == MPI_COMM_SELF);
    ++told_self;
}

void make_mistakes() {
    int size;
    EXPECT(MPI_Type_size(MPI_DATATYPE_NULL, &size) != MPI_SUCCESS);
    EXPECT(MPI_Comm_size(MPI_COMM_NULL, &size) != MPI_SUCCESS);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Errhandler world, self;
    MPI_Comm_create_errhandler(on_world, &world);
    MPI_Comm_create_errhandler(on_self, &self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
    make_mistakes();
    EXPECT(told_world == 2 && told_self == 0);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, self);
    make_mistakes();
    EXPECT(told_world == 2 && told_self == 2);
    MPI_Errhandler_free(&world);
    MPI_Errhandler_free(&self);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
