// The path that a collective operation takes, by its size and by how its ranks are on the node.

#include <gtest/gtest.h>

#include <memory>

#include "mpi/coll/paths.hpp"

namespace warren::coll {
namespace {

// Rank 0 of a node, with the world's collective slot.
class OnNode {
  public:
    OnNode(std::uint32_t ranks, std::uint32_t cores)
        : communicators_(comm::World::on_one_node(0, ranks)) {
        node::Segment segment;
        Error error = node::Segment::create({.ranks = ranks, .cores = cores}, segment);
        EXPECT_FALSE(error);
        rank_ = std::make_unique<Rank>(std::move(segment), 0U);
        processes(true);
    }
    // Whether each rank is a process of its own, or all are threads of one.
    void processes(bool apart) {
        const std::uint32_t ranks = rank_->size;
        for (std::uint32_t other = 0; other < ranks; ++other) {
            rank_->segment.slot(other).process = apart ? other : 0;
        }
        world().place.space = comm::CollectivePlace::Space::not_known;
    }
    void has_small_staging() {
        world().place.staging[static_cast<std::size_t>(StagingKind::small)] = staging::first;
    }
    comm::Communicator& world() { return communicators_.world(); }
    Path path(Tag operation, MPI_Count bytes, bool solid = true) {
        return choose(operation, bytes, *rank_, world(), [&] { return solid; });
    }

  private:
    std::unique_ptr<Rank> rank_;
    comm::Communicators communicators_;
};

constexpr MPI_Count large = MPI_Count{1} << 30;

TEST(Paths, without_a_slot_all_goes_by_messages) {
    OnNode node(2, 2);
    node.world().place.slot = comm::CollectivePlace::none;
    EXPECT_EQ(node.path(Tag::barrier, 0), Path::messages);
    EXPECT_EQ(node.path(Tag::allreduce, 8), Path::messages);
    EXPECT_EQ(node.path(Tag::alltoall, large), Path::messages);
}

TEST(Paths, a_few_bytes_go_through_lines) {
    for (const std::uint32_t cores : {1U, 64U}) {
        OnNode node(3, cores);
        EXPECT_EQ(node.path(Tag::barrier, 0), Path::lines);
        for (Tag operation : {Tag::bcast, Tag::reduce, Tag::allreduce}) {
            EXPECT_EQ(node.path(operation, line_data_bytes), Path::lines);
            EXPECT_EQ(node.path(operation, line_data_bytes + 1), Path::staging);
        }
    }
}

TEST(Paths, short_blocks_fit_lines_or_the_small_staging_area) {
    OnNode node(2, 2);
    EXPECT_EQ(node.path(Tag::allgather, 28), Path::short_blocks);
    EXPECT_EQ(node.path(Tag::allgather, 28, false), Path::staging);
    EXPECT_EQ(node.path(Tag::allgather, 29), Path::staging);
    node.has_small_staging();
    EXPECT_EQ(node.path(Tag::allgather, 29), Path::short_blocks);
    EXPECT_EQ(node.path(Tag::allgather, short_block_bytes), Path::short_blocks);
    EXPECT_EQ(node.path(Tag::allgather, short_block_bytes + 1), Path::staging);
    EXPECT_EQ(node.path(Tag::scan, 8), Path::staging);
    OnNode crowded(2, 1);
    crowded.has_small_staging();
    EXPECT_EQ(crowded.path(Tag::allgather, 8), Path::staging);
}

TEST(Paths, blocks_of_a_pair_go_by_messages_above_a_limit) {
    OnNode node(2, 2);
    for (Tag operation : {Tag::bcast, Tag::gather, Tag::scatter}) {
        EXPECT_EQ(node.path(operation, 1024), Path::staging);
        EXPECT_EQ(node.path(operation, 1025), Path::messages);
    }
    EXPECT_EQ(node.path(Tag::reduce_scatter, 8192), Path::staging);
    EXPECT_EQ(node.path(Tag::reduce_scatter, 8193), Path::messages);
    EXPECT_EQ(node.path(Tag::allreduce, large), Path::staging);
    EXPECT_EQ(node.path(Tag::alltoall, large), Path::staging);
    node.processes(false);
    EXPECT_EQ(node.path(Tag::alltoall, direct_from_bytes), Path::staging);
    EXPECT_EQ(node.path(Tag::alltoall, direct_from_bytes + 1), Path::messages);
    EXPECT_EQ(node.path(Tag::reduce, direct_pair_from_bytes), Path::direct);
    EXPECT_EQ(node.path(Tag::allreduce, large), Path::staging);
}

TEST(Paths, ranks_of_one_address_space_go_direct_from_a_limit_on) {
    OnNode node(3, 64);
    EXPECT_EQ(node.path(Tag::bcast, large), Path::staging);
    node.processes(false);
    for (Tag operation : {Tag::bcast, Tag::gather, Tag::alltoall, Tag::reduce, Tag::allreduce}) {
        EXPECT_EQ(node.path(operation, direct_from_bytes - 1), Path::staging);
        EXPECT_EQ(node.path(operation, direct_from_bytes), Path::direct);
    }
    EXPECT_EQ(node.path(Tag::scan, large), Path::staging);
}

TEST(Paths, ranks_that_share_processors_go_direct_later) {
    OnNode node(3, 2);
    node.processes(false);
    EXPECT_EQ(node.path(Tag::bcast, direct_crowded_from_bytes - 1), Path::staging);
    EXPECT_EQ(node.path(Tag::bcast, direct_crowded_from_bytes), Path::direct);
    EXPECT_EQ(node.path(Tag::scan, 4096), Path::staging);
    EXPECT_EQ(node.path(Tag::scan, 4097), Path::messages);
    OnNode many(direct_many_ranks, 2);
    many.processes(false);
    EXPECT_EQ(many.path(Tag::alltoall, 1), Path::direct);
    EXPECT_EQ(many.path(Tag::allgather, 1), Path::staging);
}

TEST(Paths, a_rank_alone_or_without_data_has_no_use_for_shared_memory) {
    OnNode alone(1, 2);
    EXPECT_EQ(alone.path(Tag::gather, 8), Path::messages);
    OnNode node(3, 64);
    EXPECT_EQ(node.path(Tag::scan, 0), Path::messages);
}

} // namespace
} // namespace warren::coll
