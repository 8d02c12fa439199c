#include "grid.hpp"

RankGrid::RankGrid(MPI_Comm ranks) : communicator(ranks) {
    MPI_Comm_rank(ranks, &rank);
    MPI_Comm_size(ranks, &size);
    for (int width = 1; width * width <= size; ++width) {
        if (size % width == 0) {
            rows = width;
            columns = size / width;
        }
    }
    column = rank % columns;
    row = rank / columns;
}

Range RankGrid::range(int intervals, int parts, int position) {
    const auto cut = [&](int at) {
        return at == parts ? intervals - 1
                           : static_cast<int>(static_cast<long long>(intervals) * at / parts);
    };
    return {cut(position), cut(position + 1)};
}

int RankGrid::rank_at(int column_index, int row_index) const {
    const bool inside =
        column_index >= 0 && column_index < columns && row_index >= 0 && row_index < rows;
    return inside ? row_index * columns + column_index : MPI_PROC_NULL;
}

HaloExchange::HaloExchange(const RankGrid& ranks, Range x, Range y)
    : communicator_(ranks.communicator) {
    // Along a direction of step -1, 0 or 1: what is sent starts at the first, first or last own
    // point; what is received starts in the frame, or at the first.
    const auto send_start = [](int step, int count) { return step > 0 ? count : 1; };
    const auto receive_start = [](int step, int count) {
        return step < 0 ? 0 : step > 0 ? count + 1 : 1;
    };
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            const int neighbour = ranks.rank_at(ranks.column + dx, ranks.row + dy);
            if ((dx == 0 && dy == 0) || neighbour == MPI_PROC_NULL) {
                continue;
            }
            Side side{};
            side.neighbour = neighbour;
            side.tag_out = (dy + 1) * 3 + dx + 1; // the direction of travel
            side.tag_in = (1 - dy) * 3 + 1 - dx;
            side.send_i = send_start(dx, x.count());
            side.send_j = send_start(dy, y.count());
            side.receive_i = receive_start(dx, x.count());
            side.receive_j = receive_start(dy, y.count());
            side.width = dx == 0 ? x.count() : 1;
            side.height = dy == 0 ? y.count() : 1;
            side.out.resize(static_cast<std::size_t>(side.width * side.height));
            side.in.resize(side.out.size());
            sides_.push_back(std::move(side));
        }
    }
}

void HaloExchange::operator()(Field& field) {
    std::array<MPI_Request, 16> requests{};
    int active = 0;
    for (Side& side : sides_) {
        MPI_Irecv(side.in.data(), static_cast<int>(side.in.size()), MPI_DOUBLE, side.neighbour,
                  side.tag_in, communicator_, &requests[static_cast<std::size_t>(active++)]);
    }
    for (Side& side : sides_) {
        double* to = side.out.data();
        for (int j = 0; j < side.height; ++j) {
            const double* from = field.row(side.send_j + j) + side.send_i;
            for (int i = 0; i < side.width; ++i) {
                *to++ = from[i];
            }
        }
        MPI_Isend(side.out.data(), static_cast<int>(side.out.size()), MPI_DOUBLE, side.neighbour,
                  side.tag_out, communicator_, &requests[static_cast<std::size_t>(active++)]);
    }
    MPI_Waitall(active, requests.data(), MPI_STATUSES_IGNORE);
    for (const Side& side : sides_) {
        const double* from = side.in.data();
        for (int j = 0; j < side.height; ++j) {
            double* to = field.row(side.receive_j + j) + side.receive_i;
            for (int i = 0; i < side.width; ++i) {
                to[i] = *from++;
            }
        }
    }
}
