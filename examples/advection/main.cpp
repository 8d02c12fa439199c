// Advection in three dimensions: du/dt + du/dx = 0 on the unit cube, u = 0 where the wind comes in,
// in MPI and OpenMP, with a driver in C++ and kernels in Fortran (kernel.f90).
//
//     mpiexec -n 1 advection [--points 256,128,128] [--steps 20] [--version baseline]
//                           [--checkpoint FILE]
//
// The program of Diener et al., "Improving the memory access locality of hybrid MPI applications"
// (2017), for the locality analyser: its versions differ only in who touches u_buffer first.
//     baseline   std::vector::resize writes all of it: every page is near the first thread
//     manual     a parallel loop writes it between reserve() and resize() (the paper's figure 3)
//     allocator  warren::FirstTouchAllocator (warren/first_touch.hpp)
// Ranks divide x among them, and exchange the columns next to their borders; threads divide z.
// With a checkpoint, the state is written to the file after half of the steps, and read again.
// Prints the time and the largest difference to the exact solution u(x, t) = u(x - t, 0), and fails
// if that is more than the method's.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpi.h>
#include <omp.h>

#include "checkpoint.hpp"
#include "grid.hpp"
#include "warren/first_touch.hpp"

extern "C" {
void advection_create_workspace(int nx, int ny, int nz);
void advection_destroy_workspace();
void advection_differentiate(const double* u, int nx, int ny, int nz, double spacing);
void advection_advance(double* u, int nx, int ny, int nz, double keep, double weight, double step);
}

namespace {

using advection::Grid;

struct Options {
    std::array<int, 3> points{256, 128, 128}; // in x, y, z
    int steps = 20;
    std::string version = "baseline";
    std::string checkpoint; // file; none: ""
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i], value = argv[i + 1];
        if (name == "--points") {
            char rest = 0;
            if (std::sscanf(value.c_str(), "%d,%d,%d%c", &options.points[0], &options.points[1],
                            &options.points[2], &rest) != 3) {
                throw std::invalid_argument("--points wants X,Y,Z, not " + value);
            }
        } else if (name == "--steps") {
            options.steps = std::stoi(value);
        } else if (name == "--version") {
            options.version = value;
        } else if (name == "--checkpoint") {
            options.checkpoint = value;
        } else {
            throw std::invalid_argument("unknown option " + name);
        }
    }
    if (argc % 2 == 0) {
        throw std::invalid_argument(std::string("no value after ") + argv[argc - 1]);
    }
    for (const int points : options.points) {
        if (points < 1 || points > 8192) {
            throw std::invalid_argument("--points are 1 to 8192 in each direction");
        }
    }
    if (options.steps < 1) {
        throw std::invalid_argument("--steps is 1 at least");
    }
    return options;
}

// A smooth hill from x = 0.1 to 0.4.
double hill(double x) {
    return x > 0.1 && x < 0.4 ? std::pow(std::sin(std::numbers::pi * (x - 0.1) / 0.3), 8) : 0;
}

// The state at time 0, of the columns beside the rank's own too.
void initialise(double* u, const Grid& grid) {
#pragma omp parallel for schedule(static)
    for (int k = 0; k < grid.nz; ++k) {
        for (int j = 0; j < grid.ny; ++j) {
            for (int i = -Grid::left; i < grid.nx + Grid::right; ++i) {
                u[grid.index(i, j, k)] = hill(grid.x(i));
            }
        }
    }
}

// Each thread writes the planes that it will use, and nothing but that.
void touch_first(double* u, const Grid& grid) {
#pragma omp parallel for schedule(static)
    for (int k = 0; k < grid.nz; ++k) {
        std::fill(u + grid.index(-Grid::left, 0, k), u + grid.index(-Grid::left, 0, k + 1), 0.0);
    }
}

double largest_error(const double* u, const Grid& grid, double time) {
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
    for (int k = 0; k < grid.nz; ++k) {
        for (int j = 0; j < grid.ny; ++j) {
            for (int i = 0; i < grid.nx; ++i) {
                const double error = std::abs(u[grid.index(i, j, k)] - hill(grid.x(i) - time));
                // A NaN is no number that is larger: it must be seen nevertheless.
                largest = std::isnan(error) ? INFINITY : std::max(largest, error);
            }
        }
    }
    return largest;
}

// Three stages of third order (Williamson 1980).
void step(double* u, const Grid& grid, advection::Halo& halo, double time_step) {
    constexpr double keep[] = {0, -5.0 / 9, -153.0 / 128};
    constexpr double weight[] = {1.0 / 3, 15.0 / 16, 8.0 / 15};
    for (int stage = 0; stage < 3; ++stage) {
        halo.exchange(u);
        advection_differentiate(u, grid.nx, grid.ny, grid.nz, grid.spacing);
        advection_advance(u, grid.nx, grid.ny, grid.nz, keep[stage], weight[stage], time_step);
    }
}

// Solves in the given buffer; returns whether the result is the exact one, up to the method's
// error.
bool solve(double* u, const Grid& grid, const Options& options, int threads) {
    advection_create_workspace(grid.nx, grid.ny, grid.nz);
    advection::Halo halo(grid, MPI_COMM_WORLD);
    initialise(u, grid);

    const double time_step = 0.4 * grid.spacing;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int count = 0; count < options.steps; ++count) {
        if (count == options.steps / 2 && !options.checkpoint.empty()) {
            advection::write_checkpoint(options.checkpoint, u, grid, options.points);
            std::fill(u, u + grid.count(), 0.0);
            advection::read_checkpoint(options.checkpoint, u, grid, options.points);
        }
        step(u, grid, halo, time_step);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - begin;

    const double own_error = largest_error(u, grid, options.steps * time_step);
    double error = 0;
    MPI_Allreduce(&own_error, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    advection_destroy_workspace();
    // Of fifth order in space and third in time; the factors are about twice what runs show.
    const double limit = 5e7 * std::pow(grid.spacing, 5) + 500 * std::pow(grid.spacing, 3);
    if (grid.rank == 0) {
        std::printf("%s: %d x %d x %d points, %d steps, %d ranks of %d threads: %.3f s, error %.2e "
                    "(at most %.2e)\n",
                    options.version.c_str(), options.points[0], options.points[1],
                    options.points[2], options.steps, grid.ranks, threads, seconds, error, limit);
    }
    return error <= limit;
}

bool run(const Options& options) {
    const Grid grid(options.points, MPI_COMM_WORLD);
    const int threads = omp_get_max_threads();
    if (options.version == "baseline") {
        std::vector<double> u_buffer;
        u_buffer.resize(grid.count());
        return solve(u_buffer.data(), grid, options, threads);
    }
    if (options.version == "manual") {
        std::vector<double> u_buffer;
        u_buffer.reserve(grid.count());
        double* const u = u_buffer.data();
        // As in the paper, which says itself that the standard doesn't allow it.
        touch_first(u, grid);
        u_buffer.resize(grid.count());
        return solve(u, grid, options, threads);
    }
    if (options.version == "allocator") {
        const auto size = [](int points) { return static_cast<std::size_t>(points); };
        const warren::BoxPartition planes(size(grid.nz), size(grid.ny), size(grid.columns()),
                                          threads, 1, 1);
        std::vector<double, warren::FirstTouchAllocator<double, warren::BoxPartition>> u_buffer(
            grid.count(), planes);
        return solve(u_buffer.data(), grid, options, threads);
    }
    throw std::invalid_argument("--version is baseline, manual or allocator, not " +
                                options.version);
}

} // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    try {
        if (!run(parse(argc, argv))) {
            std::fprintf(stderr, "advection: the result is not the exact solution\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "advection: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}
