// A rank's part of the grid, and the exchange of the columns beside it.
//
// Points are the middles of cells. Ranks divide x; a rank has `left` columns of its neighbour
// before its own and `right` ones behind them, as kernel.f90 wants it. Thread rule: none, one user.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <mpi.h>

namespace advection {

struct Grid {
    static constexpr int left = 3;
    static constexpr int right = 2;

    // Throws std::invalid_argument if a rank would have fewer columns than its neighbours want.
    Grid(const std::array<int, 3>& points, MPI_Comm communicator);

    int columns() const { return left + nx + right; }
    std::size_t count() const { return index(-left, 0, nz); }
    // Of the point (i, j, k) in the rank's array; its own columns are 0 to nx - 1.
    std::size_t index(int i, int j, int k) const {
        const std::size_t row = static_cast<std::size_t>(k) * static_cast<std::size_t>(ny) +
                                static_cast<std::size_t>(j);
        return row * static_cast<std::size_t>(columns()) + static_cast<std::size_t>(i + left);
    }
    double x(int i) const { return (first + i + 0.5) * spacing; }

    int rank = 0, ranks = 1;
    int nx, ny, nz; // of this rank
    int first;      // column of the whole grid
    double spacing; // in x
};

class Halo {
  public:
    Halo(const Grid& grid, MPI_Comm communicator);

    // Takes the neighbours' columns; where there is no neighbour, nothing flows in and what flows
    // out goes on as it is.
    void exchange(double* u);

  private:
    void pack(const double* u, int first, int width, std::vector<double>& columns) const;
    void unpack(double* u, int first, int width, const std::vector<double>& columns) const;

    const Grid& grid_;
    MPI_Comm communicator_;
    int before_, behind_; // ranks, or MPI_PROC_NULL
    std::vector<double> to_left_, to_right_, from_left_, from_right_;
};

} // namespace advection
