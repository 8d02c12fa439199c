#include "checkpoint.hpp"

#include <stdexcept>

namespace advection {

namespace {

void check(int code, const std::string& file) {
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code, text, &length);
        throw std::runtime_error(file + ": " + text);
    }
}

// A rank's own points, in the file and in memory beside its neighbours' columns.
struct Layouts {
    MPI_Datatype in_file = MPI_DATATYPE_NULL;
    MPI_Datatype in_memory = MPI_DATATYPE_NULL;

    Layouts(const Grid& grid, const std::array<int, 3>& points) {
        const int whole[] = {points[2], points[1], points[0]};
        const int memory[] = {grid.nz, grid.ny, grid.columns()};
        const int own[] = {grid.nz, grid.ny, grid.nx};
        const int at[] = {0, 0, grid.first};
        const int behind_left[] = {0, 0, Grid::left};
        MPI_Type_create_subarray(3, whole, own, at, MPI_ORDER_C, MPI_DOUBLE, &in_file);
        MPI_Type_create_subarray(3, memory, own, behind_left, MPI_ORDER_C, MPI_DOUBLE, &in_memory);
        MPI_Type_commit(&in_file);
        MPI_Type_commit(&in_memory);
    }
    Layouts(const Layouts&) = delete;
    Layouts& operator=(const Layouts&) = delete;
    ~Layouts() {
        MPI_Type_free(&in_file);
        MPI_Type_free(&in_memory);
    }
};

} // namespace

void write_checkpoint(const std::string& file, const double* u, const Grid& grid,
                      const std::array<int, 3>& points) {
    const Layouts layouts(grid, points);
    MPI_File open = MPI_FILE_NULL;
    check(MPI_File_open(MPI_COMM_WORLD, file.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                        MPI_INFO_NULL, &open),
          file);
    check(MPI_File_set_view(open, 0, MPI_DOUBLE, layouts.in_file, "native", MPI_INFO_NULL), file);
    check(MPI_File_write_all(open, u, 1, layouts.in_memory, MPI_STATUS_IGNORE), file);
    check(MPI_File_close(&open), file);
}

void read_checkpoint(const std::string& file, double* u, const Grid& grid,
                     const std::array<int, 3>& points) {
    const Layouts layouts(grid, points);
    MPI_File open = MPI_FILE_NULL;
    check(MPI_File_open(MPI_COMM_WORLD, file.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &open), file);
    check(MPI_File_set_view(open, 0, MPI_DOUBLE, layouts.in_file, "native", MPI_INFO_NULL), file);
    MPI_Status status;
    int elements = 0;
    check(MPI_File_read_all(open, u, 1, layouts.in_memory, &status), file);
    MPI_Get_count(&status, MPI_DOUBLE, &elements);
    if (elements != grid.nx * grid.ny * grid.nz) {
        throw std::runtime_error(file + " is no checkpoint of this grid");
    }
    check(MPI_File_close(&open), file);
}

} // namespace advection
