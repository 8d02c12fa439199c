// The electric potential of charges on a sunflower's spiral in a grounded box, by multigrid.
//
//     mpiexec -n 16 poisson [--intervals 2048] [--tolerance 1e-9] [--picture poisson.png]
//                           [--expect CHECKSUM]
//
// Solves -Δu = f on the unit square. Prints the residual of each cycle, the time and a checksum of
// the bits of the solution, which does not depend on the number of ranks; --expect fails if it is
// not the given one. Draws the potential with its equipotential lines. Plain MPI: runs on any
// library.

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numbers>
#include <stdexcept>
#include <string>

#include "grid.hpp"
#include "multigrid.hpp"
#include "picture.hpp"

namespace {

constexpr int cycle_limit = 40;
constexpr int picture_side = 1024;
constexpr int charges = 233;

struct Options {
    int intervals = 2048;
    double tolerance = 1e-9;
    std::string picture;
    std::string expected;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i], value = argv[i + 1];
        if (name == "--intervals") {
            options.intervals = std::stoi(value);
        } else if (name == "--tolerance") {
            options.tolerance = std::stod(value);
        } else if (name == "--picture") {
            options.picture = value;
        } else if (name == "--expect") {
            options.expected = value;
        } else {
            throw std::invalid_argument("unknown option " + name);
        }
    }
    if (argc % 2 == 0) {
        throw std::invalid_argument(std::string("no value after ") + argv[argc - 1]);
    }
    if (options.intervals < 32 || !std::has_single_bit(static_cast<unsigned>(options.intervals))) {
        throw std::invalid_argument("--intervals must be a power of two, 32 at least");
    }
    return options;
}

// Adds the charges' densities to the right side. They sit on grid points and their profile is a
// polynomial, so that no rounding of a mathematics library enters the checksum.
void place_charges(Field& f, int intervals) {
    const double golden_angle = std::numbers::pi * (3.0 - std::sqrt(5.0));
    const double spread = 0.46 * intervals;
    const double radius = 0.011 * intervals;
    const double scale = 1.0 / (static_cast<double>(intervals) * intervals);
    for (int charge = 0; charge < charges; ++charge) {
        const double distance = spread * std::sqrt((charge + 0.5) / charges);
        const double angle = charge * golden_angle;
        const int x = static_cast<int>(std::lround(intervals / 2 + distance * std::cos(angle)));
        const int y = static_cast<int>(std::lround(intervals / 2 + distance * std::sin(angle)));
        const double sign = charge % 3 == 0 ? 2.0 : -1.0; // in all: nearly neutral
        const int reach = static_cast<int>(radius) + 1;
        for (int dy = -reach; dy <= reach; ++dy) {
            for (int dx = -reach; dx <= reach; ++dx) {
                const double inside = 1.0 - (dx * dx + dy * dy) / (radius * radius);
                const int i = x + dx - f.x().low, j = y + dy - f.y().low;
                if (inside > 0.0 && i >= 1 && i <= f.x().count() && j >= 1 && j <= f.y().count()) {
                    f.row(j)[i] += sign * inside * inside * scale;
                }
            }
        }
    }
}

// A sum, modulo 2^64, over the bits of each value mixed with its place.
std::uint64_t checksum(const Field& u, const RankGrid& ranks) {
    std::uint64_t sum = 0;
    for (int j = 1; j <= u.y().count(); ++j) {
        for (int i = 1; i <= u.x().count(); ++i) {
            std::uint64_t mixed = std::bit_cast<std::uint64_t>(u.row(j)[i]) ^
                                  (static_cast<std::uint64_t>(u.y().low + j) << 32 |
                                   static_cast<std::uint64_t>(u.x().low + i));
            mixed = (mixed ^ (mixed >> 31)) * 0x9E3779B97F4A7C15u;
            sum += mixed ^ (mixed >> 29);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, ranks.communicator);
    return sum;
}

// Every rank colours the points that the picture shows of its part; rank 0 gathers and writes.
bool draw(const Field& u, const RankGrid& ranks, int intervals, const std::string& path) {
    const int side = std::min(intervals, picture_side);
    const int step = intervals / side;
    double largest = 0.0;
    for (int j = 1; j <= u.y().count(); ++j) {
        for (int i = 1; i <= u.x().count(); ++i) {
            largest = std::max(largest, std::fabs(u.row(j)[i]));
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, ranks.communicator);

    const auto colour_of = [&](double value) {
        const double height = std::asinh(6.0 * value / largest) / std::asinh(6.0);
        return static_cast<std::uint8_t>(std::lround(128.0 + 127.0 * height));
    };
    // A pixel is the point at the multiple of `step`; pixels of a rank are those in its range.
    const auto pixels_of = [&](Range range) { return Range{range.low / step, range.high / step}; };
    const Range columns = pixels_of(u.x()), rows = pixels_of(u.y());
    std::vector<std::uint8_t> own;
    for (int y = rows.low + 1; y <= rows.high; ++y) {
        for (int x = columns.low + 1; x <= columns.high; ++x) {
            own.push_back(colour_of(u.row(y * step - u.y().low)[x * step - u.x().low]));
        }
    }

    std::vector<int> counts, starts;
    int total = 0;
    for (int rank = 0; rank < ranks.size; ++rank) {
        const Range x = pixels_of(RankGrid::range(intervals, ranks.columns, rank % ranks.columns));
        const Range y = pixels_of(RankGrid::range(intervals, ranks.rows, rank / ranks.columns));
        counts.push_back(x.count() * y.count());
        starts.push_back(total);
        total += counts.back();
    }
    std::vector<std::uint8_t> gathered(static_cast<std::size_t>(ranks.rank == 0 ? total : 0));
    MPI_Gatherv(own.data(), static_cast<int>(own.size()), MPI_UINT8_T, gathered.data(),
                counts.data(), starts.data(), MPI_UINT8_T, 0, ranks.communicator);

    int written = 1;
    if (ranks.rank == 0) {
        const int width = side - 1; // the edge itself is 0 everywhere
        std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width) *
                                         static_cast<std::size_t>(width));
        const std::uint8_t* from = gathered.data();
        for (int rank = 0; rank < ranks.size; ++rank) {
            const Range x =
                pixels_of(RankGrid::range(intervals, ranks.columns, rank % ranks.columns));
            const Range y = pixels_of(RankGrid::range(intervals, ranks.rows, rank / ranks.columns));
            for (int row = y.low; row < y.high; ++row) {
                std::copy_n(from, x.count(),
                            &pixels[static_cast<std::size_t>(row * width + x.low)]);
                from += x.count();
            }
        }
        written = write_png(path, width, width, pixels, contour_palette()) ? 1 : 0;
        if (written == 0) {
            std::fprintf(stderr, "poisson: %s: %s\n", path.c_str(), std::strerror(errno));
        }
    }
    MPI_Bcast(&written, 1, MPI_INT, 0, ranks.communicator);
    return written == 1;
}

bool solve(const Options& options) {
    const RankGrid ranks(MPI_COMM_WORLD);
    Multigrid multigrid(ranks, options.intervals);
    place_charges(multigrid.right_side(), options.intervals);

    const bool speaks = ranks.rank == 0;
    if (speaks) {
        std::printf("%d x %d intervals on %d ranks (%d x %d)\n", options.intervals,
                    options.intervals, ranks.size, ranks.columns, ranks.rows);
    }
    const double start_s = MPI_Wtime();
    const double first = multigrid.residual();
    double residual = 1.0;
    int cycle = 0;
    while (residual > options.tolerance && cycle < cycle_limit) {
        multigrid.cycle();
        const double now = multigrid.residual() / first;
        if (speaks) {
            std::printf("cycle %2d   residual %.3e   factor %.3f\n", ++cycle, now, now / residual);
            std::fflush(stdout);
        } else {
            ++cycle;
        }
        residual = now;
    }
    const double seconds = MPI_Wtime() - start_s;
    const std::uint64_t sum = checksum(multigrid.solution(), ranks);
    char text[17];
    std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(sum));
    bool good = residual <= options.tolerance;
    if (speaks) {
        std::printf("solved in %.2f s: residual %.3e, checksum %s\n", seconds, residual, text);
        if (!good) {
            std::fprintf(stderr, "poisson: no convergence in %d cycles\n", cycle_limit);
        }
    }
    if (!options.expected.empty() && options.expected != text) {
        if (speaks) {
            std::fprintf(stderr, "poisson: the checksum should be %s\n", options.expected.c_str());
        }
        good = false;
    }
    if (!options.picture.empty()) {
        good = draw(multigrid.solution(), ranks, options.intervals, options.picture) && good;
        if (speaks && good) {
            std::printf("picture: %s\n", options.picture.c_str());
        }
    }
    return good;
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int status = EXIT_FAILURE;
    try {
        status = solve(parse(argc, argv)) ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& error) {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0) {
            std::fprintf(stderr, "poisson: %s\n", error.what());
        }
    }
    MPI_Finalize();
    return status;
}
