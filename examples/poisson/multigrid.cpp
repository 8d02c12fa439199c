#include "multigrid.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace {

constexpr int coarsest_intervals = 16;
constexpr int coarsest_sweeps = 40;
// The best over-relaxation for the five-point Laplacian on 16 intervals: 2 / (1 + sin(π/16)).
constexpr double coarsest_relaxation = 1.6735;
constexpr int sweeps_before = 2;
constexpr int sweeps_after = 1;

Range halved(Range range, int times) {
    return {range.low >> times, range.high >> times};
}

int log2_of(int power) {
    int exponent = 0;
    while ((1 << exponent) < power) {
        ++exponent;
    }
    return exponent;
}

} // namespace

Multigrid::Level::Level(const RankGrid& ranks, Range x, Range y)
    : u(x, y), f(x, y), r(x, y), exchange(ranks, x, y) {}

Multigrid::Multigrid(const RankGrid& ranks, int intervals) : ranks_(ranks) {
    const int depth = log2_of(intervals / coarsest_intervals);
    for (int column = 0; column < ranks.columns; ++column) {
        columns_.push_back(RankGrid::range(intervals, ranks.columns, column));
    }
    for (int row = 0; row < ranks.rows; ++row) {
        rows_.push_back(RankGrid::range(intervals, ranks.rows, row));
    }
    // The coarsest grid that is still distributed must have points for everybody.
    const auto has_points = [&](Range range) { return halved(range, depth - 1).count() > 0; };
    if (!std::all_of(columns_.begin(), columns_.end(), has_points) ||
        !std::all_of(rows_.begin(), rows_.end(), has_points)) {
        throw std::invalid_argument("too many ranks: " + std::to_string(ranks.columns) + " x " +
                                    std::to_string(ranks.rows) + ", at most 31 per side");
    }
    const Range x = columns_[static_cast<std::size_t>(ranks.column)];
    const Range y = rows_[static_cast<std::size_t>(ranks.row)];
    for (int level = 0; level < depth; ++level) {
        levels_.emplace_back(ranks, halved(x, level), halved(y, level));
    }
    for (Range& range : columns_) {
        range = halved(range, depth);
    }
    for (Range& range : rows_) {
        range = halved(range, depth);
    }
    coarsest_f_ = Field(halved(x, depth), halved(y, depth));
    coarsest_u_ = coarsest_f_;
    int start = 0;
    for (const Range& row : rows_) {
        for (const Range& column : columns_) {
            counts_.push_back(row.count() * column.count());
            starts_.push_back(start);
            start += counts_.back();
        }
    }
}

void Multigrid::smooth(Level& level) {
    Field& u = level.u;
    const int width = u.x().count();
    for (int colour = 0; colour < 2; ++colour) {
        for (int j = 1; j <= u.y().count(); ++j) {
            const double* below = u.row(j - 1);
            const double* above = u.row(j + 1);
            const double* f = level.f.row(j);
            double* here = u.row(j);
            // The colour is that of the point on the whole grid.
            const int first = 1 + ((u.x().low + u.y().low + j + 1 + colour) & 1);
            for (int i = first; i <= width; i += 2) {
                here[i] = 0.25 * (f[i] + ((here[i - 1] + here[i + 1]) + (below[i] + above[i])));
            }
        }
        level.exchange(u);
    }
}

void Multigrid::compute_residual(Level& level) {
    for (int j = 1; j <= level.u.y().count(); ++j) {
        const double* below = level.u.row(j - 1);
        const double* here = level.u.row(j);
        const double* above = level.u.row(j + 1);
        const double* f = level.f.row(j);
        double* r = level.r.row(j);
        for (int i = 1; i <= level.u.x().count(); ++i) {
            r[i] = f[i] + ((here[i - 1] + here[i + 1]) + (below[i] + above[i])) - 4.0 * here[i];
        }
    }
}

void Multigrid::restrict_residual(const Level& fine, Field& coarse_f) {
    const Field& r = fine.r;
    for (int j = 1; j <= coarse_f.y().count(); ++j) {
        const int fine_j = 2 * (coarse_f.y().low + j) - r.y().low;
        for (int i = 1; i <= coarse_f.x().count(); ++i) {
            const int fine_i = 2 * (coarse_f.x().low + i) - r.x().low;
            const double* here = r.row(fine_j) + fine_i;
            const double beside =
                (here[-1] + here[1]) + (r.row(fine_j - 1)[fine_i] + r.row(fine_j + 1)[fine_i]);
            // 4: the square of the coarse mesh width is four times that of the fine one.
            coarse_f.row(j)[i] = 4.0 * (0.125 * (4.0 * here[0] + beside));
        }
    }
}

void Multigrid::add_correction(const Field& coarse_u, Level& fine) {
    Field& u = fine.u;
    for (int j = 1; j <= u.y().count(); ++j) {
        const int y = u.y().low + j;
        const double* below = coarse_u.row(y / 2 - coarse_u.y().low);
        const double* above = coarse_u.row((y + 1) / 2 - coarse_u.y().low);
        for (int i = 1; i <= u.x().count(); ++i) {
            const int x = u.x().low + i;
            const int left = x / 2 - coarse_u.x().low;
            const int right = (x + 1) / 2 - coarse_u.x().low;
            u.row(j)[i] += 0.25 * ((below[left] + below[right]) + (above[left] + above[right]));
        }
    }
    fine.exchange(u);
}

// Every rank gets all points of the coarsest grid, and solves for them: cheaper than 40 exchanges.
void Multigrid::solve_coarsest() {
    constexpr int side = coarsest_intervals + 1;
    std::vector<double> own;
    for (int j = 1; j <= coarsest_f_.y().count(); ++j) {
        const double* row = coarsest_f_.row(j);
        own.insert(own.end(), row + 1, row + 1 + coarsest_f_.x().count());
    }
    std::vector<double> gathered((side - 2) * (side - 2));
    MPI_Allgatherv(own.data(), static_cast<int>(own.size()), MPI_DOUBLE, gathered.data(),
                   counts_.data(), starts_.data(), MPI_DOUBLE, ranks_.communicator);

    std::vector<double> f(side * side), u(side * side);
    const double* from = gathered.data();
    for (const Range& row : rows_) {
        for (const Range& column : columns_) {
            for (int y = row.low + 1; y <= row.high; ++y) {
                for (int x = column.low + 1; x <= column.high; ++x) {
                    f[static_cast<std::size_t>(y * side + x)] = *from++;
                }
            }
        }
    }
    for (int sweep = 0; sweep < coarsest_sweeps; ++sweep) {
        for (int y = 1; y < side - 1; ++y) {
            for (int x = 1; x < side - 1; ++x) {
                double* here = &u[static_cast<std::size_t>(y * side + x)];
                const double around = (here[-1] + here[1]) + (here[-side] + here[side]);
                const double change =
                    0.25 * (f[static_cast<std::size_t>(y * side + x)] + around) - *here;
                *here += coarsest_relaxation * change;
            }
        }
    }
    // The own points and their frame; at the edge of the domain u is 0.
    for (int j = 0; j <= coarsest_u_.y().count() + 1; ++j) {
        for (int i = 0; i <= coarsest_u_.x().count() + 1; ++i) {
            const int y = coarsest_u_.y().low + j;
            const int x = coarsest_u_.x().low + i;
            coarsest_u_.row(j)[i] = u[static_cast<std::size_t>(y * side + x)];
        }
    }
}

void Multigrid::descend(std::size_t depth) {
    Level& level = levels_[depth];
    for (int sweep = 0; sweep < sweeps_before; ++sweep) {
        smooth(level);
    }
    compute_residual(level);
    level.exchange(level.r);
    if (depth + 1 == levels_.size()) {
        restrict_residual(level, coarsest_f_);
        solve_coarsest();
        add_correction(coarsest_u_, level);
    } else {
        Level& coarse = levels_[depth + 1];
        restrict_residual(level, coarse.f);
        coarse.u.clear();
        descend(depth + 1);
        add_correction(coarse.u, level);
    }
    for (int sweep = 0; sweep < sweeps_after; ++sweep) {
        smooth(level);
    }
}

double Multigrid::residual() {
    Level& finest = levels_.front();
    compute_residual(finest);
    double largest = 0.0;
    for (int j = 1; j <= finest.r.y().count(); ++j) {
        for (int i = 1; i <= finest.r.x().count(); ++i) {
            largest = std::max(largest, std::fabs(finest.r.row(j)[i]));
        }
    }
    // A maximum, not a sum: it has the same value in whatever order it is taken.
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, ranks_.communicator);
    return largest;
}
