#include "grid.hpp"

#include <algorithm>
#include <stdexcept>

namespace advection {

Grid::Grid(const std::array<int, 3>& points, MPI_Comm communicator)
    : ny(points[1]), nz(points[2]), spacing(1.0 / points[0]) {
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    const int share = points[0] / ranks;
    const int longer = points[0] % ranks; // ranks with a column more
    if (share < std::max(left, right)) {
        throw std::invalid_argument("too many ranks: each needs 3 points in x");
    }
    nx = share + (rank < longer ? 1 : 0);
    first = rank * share + std::min(rank, longer);
}

Halo::Halo(const Grid& grid, MPI_Comm communicator)
    : grid_(grid),
      communicator_(communicator),
      before_(grid.rank > 0 ? grid.rank - 1 : MPI_PROC_NULL),
      behind_(grid.rank + 1 < grid.ranks ? grid.rank + 1 : MPI_PROC_NULL) {
    const std::size_t rows = static_cast<std::size_t>(grid.ny) * static_cast<std::size_t>(grid.nz);
    if (before_ != MPI_PROC_NULL) {
        to_left_.resize(rows * Grid::right);
        from_left_.resize(rows * Grid::left);
    }
    if (behind_ != MPI_PROC_NULL) {
        to_right_.resize(rows * Grid::left);
        from_right_.resize(rows * Grid::right);
    }
}

void Halo::pack(const double* u, int first, int width, std::vector<double>& columns) const {
#pragma omp parallel for schedule(static)
    for (int k = 0; k < grid_.nz; ++k) {
        for (int j = 0; j < grid_.ny; ++j) {
            std::copy_n(u + grid_.index(first, j, k), width,
                        columns.data() + static_cast<std::ptrdiff_t>(k * grid_.ny + j) * width);
        }
    }
}

void Halo::unpack(double* u, int first, int width, const std::vector<double>& columns) const {
#pragma omp parallel for schedule(static)
    for (int k = 0; k < grid_.nz; ++k) {
        for (int j = 0; j < grid_.ny; ++j) {
            std::copy_n(columns.data() + static_cast<std::ptrdiff_t>(k * grid_.ny + j) * width,
                        width, u + grid_.index(first, j, k));
        }
    }
}

void Halo::exchange(double* u) {
    const int nx = grid_.nx;
    if (before_ != MPI_PROC_NULL) {
        pack(u, 0, Grid::right, to_left_);
    }
    if (behind_ != MPI_PROC_NULL) {
        pack(u, nx - Grid::left, Grid::left, to_right_);
    }
    const auto count = [](const std::vector<double>& columns) {
        return static_cast<int>(columns.size());
    };
    MPI_Sendrecv(to_right_.data(), count(to_right_), MPI_DOUBLE, behind_, 0, from_left_.data(),
                 count(from_left_), MPI_DOUBLE, before_, 0, communicator_, MPI_STATUS_IGNORE);
    MPI_Sendrecv(to_left_.data(), count(to_left_), MPI_DOUBLE, before_, 0, from_right_.data(),
                 count(from_right_), MPI_DOUBLE, behind_, 0, communicator_, MPI_STATUS_IGNORE);
    if (before_ != MPI_PROC_NULL) {
        unpack(u, -Grid::left, Grid::left, from_left_);
    }
    if (behind_ != MPI_PROC_NULL) {
        unpack(u, nx, Grid::right, from_right_);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int k = 0; k < grid_.nz; ++k) {
        for (int j = 0; j < grid_.ny; ++j) {
            std::fill_n(u + grid_.index(nx, j, k), Grid::right, u[grid_.index(nx - 1, j, k)]);
        }
    }
}

} // namespace advection
