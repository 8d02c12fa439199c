// Geometric multigrid for -Δu = f on the unit square, u = 0 at its edge.
//
// Five-point differences, red-black Gauss-Seidel smoothing, half-weighted restriction, bilinear
// prolongation. The coarsest grid is gathered and solved by every rank. Each point's value comes
// from the same operations in the same order however the points are distributed: the solution is
// the same, bit by bit, on any number of ranks.
#pragma once

#include <vector>

#include "grid.hpp"

class Multigrid {
  public:
    // The finest grid has `intervals` (a power of two, 32 at least) per side. Throws
    // std::invalid_argument when there are too many ranks for it.
    Multigrid(const RankGrid& ranks, int intervals);

    Field& solution() { return levels_.front().u; }
    Field& right_side() { return levels_.front().f; } // times the square of the mesh width
    void cycle() { descend(0); }
    // The largest |f + Δu|, times the square of the mesh width; the same on all ranks.
    double residual();

  private:
    struct Level {
        Level(const RankGrid& ranks, Range x, Range y);
        Field u, f, r;
        HaloExchange exchange;
    };
    void descend(std::size_t depth);
    static void smooth(Level& level);
    static void compute_residual(Level& level);
    static void restrict_residual(const Level& fine, Field& coarse_f);
    static void add_correction(const Field& coarse_u, Level& fine);
    void solve_coarsest();

    const RankGrid& ranks_;
    std::vector<Level> levels_;
    Field coarsest_f_, coarsest_u_;    // of this rank
    std::vector<int> counts_, starts_; // points of each rank on the coarsest grid
    std::vector<Range> columns_, rows_;
};
