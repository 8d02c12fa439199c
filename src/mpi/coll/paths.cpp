#include "mpi/coll/paths.hpp"

#include <algorithm>

namespace warren::coll {

namespace {

Shape shape_of(const Rank& rank, int ranks) {
    const bool pair = ranks == 2;
    if (!rank.oversubscribed()) {
        return pair ? Shape::pair : ranks <= flat_ranks ? Shape::few : Shape::many;
    }
    if (rank.takes_turns()) {
        return pair ? Shape::fibre_pair : Shape::fibres;
    }
    return pair                         ? Shape::crowded_pair
           : ranks >= direct_many_ranks ? Shape::crowded_many
                                        : Shape::crowded;
}

MPI_Count direct_from(const PathLimits& limits, Shape shape, int ranks) {
    const MPI_Count from = limits.direct_from[static_cast<std::size_t>(shape)];
    if (shape != Shape::fibres) {
        return from;
    }
    const auto n = static_cast<MPI_Count>(ranks);
    return limits.direct_per_fibre == direct_of_all ? from / (n * n)
                                                    : std::max(from, limits.direct_per_fibre * n);
}

} // namespace

bool in_one_space(const Rank& rank, comm::Communicator& communicator) {
    using comm::CollectivePlace;
    CollectivePlace& place = communicator.place;
    if (place.space == CollectivePlace::Space::not_known) [[unlikely]] {
        place.space = CollectivePlace::Space::one;
        for (int member = 0; member < communicator.size(); ++member) {
            if (rank.segment.slot(communicator.endpoint(member)).process != rank.slot.process) {
                place.space = CollectivePlace::Space::several;
                break;
            }
        }
    }
    return place.space == CollectivePlace::Space::one;
}

Path choose_for_large(Tag operation, MPI_Count bytes, const Rank& rank,
                      comm::Communicator& communicator) {
    const int ranks = communicator.peers(); // intercommunicators have no slot
    if (ranks == 1 || bytes == 0 || !slot_pool::has_slot(communicator) ||
        rank.algorithms[static_cast<std::size_t>(operation)] != 0) {
        return Path::messages; // if ranks == 1, to itself
    }
    const PathLimits& limits = path_table::limits[static_cast<std::size_t>(operation)];
    const Shape shape = shape_of(rank, ranks);
    if (bytes >= direct_from(limits, shape, ranks) && in_one_space(rank, communicator)) {
        return Path::direct;
    }
    if (bytes > limits.staging_to[static_cast<std::size_t>(std::min(shape, Shape::crowded_pair))] ||
        (shape == Shape::pair && bytes > limits.staging_to_in_one_space &&
         in_one_space(rank, communicator))) {
        return Path::messages;
    }
    return Path::staging;
}

} // namespace warren::coll
