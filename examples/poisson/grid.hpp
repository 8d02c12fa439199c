// The distributed grid: who owns which points, and the halo exchange.
//
// Ranks form a rectangle. A rank owns the points (low, high] in each direction; on the grid twice
// as coarse it owns (low / 2, high / 2], so a coarse point lives where the same point of the fine
// grid does, and moving between grids needs neighbours only.
#pragma once

#include <array>
#include <mpi.h>
#include <vector>

struct Range {
    int low = 0; // first owned point - 1
    int high = 0;
    int count() const { return high - low; }
};

// The rectangle of ranks, as near to a square as their number allows.
struct RankGrid {
    explicit RankGrid(MPI_Comm ranks);

    // The points of 1 … intervals - 1 that the rank in column or row `position` of `parts` owns.
    static Range range(int intervals, int parts, int position);
    // The rank at (column, row), MPI_PROC_NULL outside of the rectangle.
    int rank_at(int column_index, int row_index) const;

    MPI_Comm communicator;
    int rank = 0;
    int size = 1;
    int columns = 1;
    int rows = 1;
    int column = 0;
    int row = 0;
};

// The points of one rank on one grid, with a frame of one point of its neighbours' (halo), which is
// 0 at the edge of the domain. Row-major; x is the fast direction.
class Field {
  public:
    Field() = default;
    Field(Range x, Range y) : x_(x), y_(y), stride_(x.count() + 2) {
        values_.resize(static_cast<std::size_t>(stride_) * static_cast<std::size_t>(y.count() + 2));
    }
    Range x() const { return x_; }
    Range y() const { return y_; }
    // Row of local index j (0 and y().count() + 1 are the halo), indexed by local i likewise.
    double* row(int j) { return values_.data() + static_cast<std::ptrdiff_t>(j) * stride_; }
    const double* row(int j) const {
        return values_.data() + static_cast<std::ptrdiff_t>(j) * stride_;
    }
    void clear() { values_.assign(values_.size(), 0.0); }

  private:
    Range x_, y_;
    int stride_ = 2;
    std::vector<double> values_;
};

// Fills the frames of a field from the eight neighbours. Holds the buffers, one set per grid.
class HaloExchange {
  public:
    HaloExchange(const RankGrid& ranks, Range x, Range y);
    void operator()(Field& field);

  private:
    struct Side {
        int neighbour;
        int tag_out, tag_in;
        int send_i, send_j, receive_i, receive_j; // first point
        int width, height;
        std::vector<double> out, in;
    };
    MPI_Comm communicator_;
    std::vector<Side> sides_;
};
