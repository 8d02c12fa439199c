// Collective operations through staging areas under stress: random sequences, the same at all
// ranks, of random sizes around those where data is cut or changes its place, against values that
// every rank can compute. Each rank does what is short enough for it in either way, as it likes.

#include <bit>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "mpi/coll/paths.hpp"
#include "mpi/coll/shared_data.hpp"
#include "mpi/coll/short_blocks.hpp"
#include "mpi/coll/test_ranks.hpp"
#include "mpi/datatype/type_table.hpp"

namespace warren::coll {
namespace {

// Element i of what rank `from` has for rank `to` in an operation.
std::int64_t value(std::uint32_t operation, int from, int to, MPI_Count i) {
    return static_cast<std::int64_t>(operation) * 1000003 + from * 7919 + to * 104729 + i * 31;
}

// Elements of 8 bytes around the sizes of lines, staging areas and pieces; less for many ranks.
MPI_Count draw_count(Random& random, int size) {
    constexpr MPI_Count borders[] = {1, 7, 8, 9, 64, 512, 520, 1024, 2048, 8192, 8200, 20000};
    const std::uint32_t kinds = size > 8 ? 7 : (size > 3 ? 10 : 12);
    const MPI_Count border = borders[random() % kinds];
    const MPI_Count shift = static_cast<MPI_Count>(random() % 5) - 2;
    return border + shift > 0 ? border + shift : 1;
}

struct Operands {
    std::vector<std::int64_t> in, out;

    void fill(std::uint32_t operation, int rank, int blocks, MPI_Count count) {
        in.resize(static_cast<std::size_t>(blocks * count));
        out.assign(static_cast<std::size_t>(blocks * count), -1);
        for (int r = 0; r < blocks; ++r) {
            for (MPI_Count i = 0; i < count; ++i) {
                in[static_cast<std::size_t>(r * count + i)] = value(operation, rank, r, i);
            }
        }
    }
    // Whether block `block` of `out` is what `from` had for `to`.
    bool holds(std::uint32_t operation, int block, MPI_Count count, int from, int to) const {
        for (MPI_Count i = 0; i < count; ++i) {
            if (out[static_cast<std::size_t>(block * count + i)] != value(operation, from, to, i)) {
                return false;
            }
        }
        return true;
    }
    // Whether it is the sum of what the first `ranks` ranks had for rank `to`; or, for the
    // operation "last", the last one's.
    bool combined(std::uint32_t operation, MPI_Count count, int ranks, bool sum, int to = 0) const {
        for (MPI_Count i = 0; i < count; ++i) {
            std::int64_t all = 0;
            for (int r = sum ? 0 : ranks - 1; r < ranks; ++r) {
                all += value(operation, r, to, i);
            }
            if (out[static_cast<std::size_t>(i)] != all) {
                return false;
            }
        }
        return true;
    }
};

// One rank's operations on staging areas. Each function does one and returns whether it is right.
class Operations {
  public:
    Operations(Member& member, std::uint32_t seed)
        : member_(member),
          world_(member.communicators.world()),
          data_(member.engine, world_),
          blocks_(member.engine, world_),
          rank_(world_.rank()),
          size_(world_.size()),
          shared_{seed},
          own_{seed ^ static_cast<std::uint32_t>(rank_ * 7919)} {}

    // The next one: the same at all ranks.
    bool next(int number) {
        number_ = static_cast<std::uint32_t>(number);
        const std::uint32_t kind = shared_() % 10;
        root_ = static_cast<int>(shared_() % static_cast<std::uint32_t>(size_));
        in_place_ = shared_() % 4 == 0;
        summed_ = shared_() % 4 != 0;
        count_ = draw_count(shared_, size_);
        free_choice_ = own_() % 2 == 0;
        constexpr bool (Operations::*kinds[])() = {
            &Operations::bcast,     &Operations::gather,        &Operations::scatter,
            &Operations::allgather, &Operations::alltoall,      &Operations::reduce,
            &Operations::scan,      &Operations::reduce_scatter};
        const bool good = kind < std::size(kinds) ? (this->*kinds[kind])() : allreduce();
        EXPECT_TRUE(good) << "operation " << kind << " of " << count_ << " elements, rank " << rank_
                          << " of " << size_ << ", root " << root_;
        return good;
    }
    // Some ranks are slow.
    void pause() {
        const std::uint32_t pause = own_() % 512;
        if (pause == 0) {
            usleep(200); // long enough for the others to sleep
        } else if (pause < 8) {
            sched_yield();
        }
    }

  private:
    using Elements = std::vector<std::int64_t>;

    MPI_Count bytes() const { return 8 * count_; }
    Buffer block(Elements& of) const { return {of.data(), count_, &type_}; }
    static std::byte* bytes_at(Elements& of) { return reinterpret_cast<std::byte*>(of.data()); }
    bool shortly() {
        return free_choice_ && choose(Tag::allgather, bytes(), member_.rank, world_,
                                      [] { return true; }) == Path::short_blocks;
    }
    // Whether a short operation succeeded.
    static bool fine(Error error) {
        const bool none = !error;
        error.drop();
        return none;
    }
    void fill(int blocks) {
        operands_.fill(number_, rank_, blocks, count_);
        if (in_place_) {
            operands_.out = operands_.in;
        }
    }
    Elements& in() { return in_place_ ? operands_.out : operands_.in; }
    Elements& out() { return operands_.out; }
    Reduction reduction() const { return {count_, type_, summed_ ? sum_ : last_}; }
    // Whether block r is what rank r had for rank `to`, for all ranks but `but`.
    bool holds_all(int to, int but = -1) const {
        bool good = true;
        for (int r = 0; r < size_; ++r) {
            good = good && (r == but || operands_.holds(number_, r, count_, r, to));
        }
        return good;
    }

    bool bcast() {
        operands_.fill(number_, rank_, 1, count_);
        Buffer buffer = block(rank_ == root_ ? operands_.in : operands_.out);
        const bool done = shortly() ? fine(blocks_.bcast(buffer.base, bytes(), root_))
                                    : data_.bcast(buffer, root_);
        return done && (rank_ == root_ || operands_.holds(number_, 0, count_, root_, 0));
    }
    bool gather() {
        operands_.fill(number_, rank_, size_, count_);
        const bool done =
            shortly() ? fine(blocks_.gather(operands_.in.data(), bytes_at(out()), bytes(), root_))
                      : data_.gather(block(operands_.in), Blocks(block(out())), root_);
        return done && (rank_ != root_ || holds_all(0, rank_));
    }
    bool scatter() {
        operands_.fill(number_, rank_, size_, count_);
        const bool done =
            shortly() ? fine(blocks_.scatter(bytes_at(operands_.in), out().data(), bytes(), root_))
                      : data_.scatter(Blocks(block(operands_.in)), block(out()), root_);
        return done && (rank_ == root_ || operands_.holds(number_, 0, count_, root_, rank_));
    }
    bool allgather() {
        operands_.fill(number_, rank_, size_, count_);
        std::memcpy(out().data() + rank_ * count_, operands_.in.data(),
                    static_cast<std::size_t>(bytes()));
        const bool done =
            shortly() ? fine(blocks_.allgather(operands_.in.data(), bytes_at(out()), bytes()))
                      : data_.allgather(block(operands_.in), Blocks(block(out())));
        return done && holds_all(0);
    }
    bool alltoall() {
        count_ = size_ > 4 ? 1 + (count_ - 1) / size_ : count_;
        fill(size_);
        const bool done = shortly() && ShortBlocks::fits_alltoall(bytes(), size_)
                              ? fine(blocks_.alltoall(bytes_at(in()), bytes_at(out()), bytes()))
                              : data_.alltoall(Blocks(block(in())), Blocks(block(out())));
        return done && holds_all(rank_, rank_);
    }
    bool reduce() {
        fill(1);
        const std::int64_t* operand = rank_ == root_ ? in().data() : operands_.in.data();
        const bool done = shortly()
                              ? fine(blocks_.reduce(reduction(), operand, out().data(), root_))
                              : data_.reduce(reduction(), operand, out().data(), root_);
        return done && (rank_ != root_ || operands_.combined(number_, count_, size_, summed_));
    }
    bool scan() {
        fill(1);
        const bool exclusive = shared_() % 2 == 0;
        const bool done = data_.scan(reduction(), in().data(), out().data(), exclusive);
        const int ranks = exclusive ? rank_ : rank_ + 1;
        return done && (ranks == 0 || operands_.combined(number_, count_, ranks, summed_));
    }
    bool reduce_scatter() {
        count_ = size_ > 4 ? 1 + (count_ - 1) / size_ : count_;
        operands_.fill(number_, rank_, size_, count_);
        // Rank 1 gets less, and its block is as long as it gets.
        std::vector<MPI_Count> counts(static_cast<std::size_t>(size_), count_);
        counts[1] = count_ / 2;
        operands_.in.erase(operands_.in.begin() + count_ + counts[1],
                           operands_.in.begin() + 2 * count_);
        if (in_place_) {
            operands_.out = operands_.in;
        }
        const Reduction all = {static_cast<MPI_Count>(operands_.in.size()), type_,
                               summed_ ? sum_ : last_};
        const bool done = data_.reduce_scatter(all, in().data(), out().data(), counts.data());
        return done && operands_.combined(number_, counts[static_cast<std::size_t>(rank_)], size_,
                                          summed_, rank_);
    }
    bool allreduce() {
        fill(1);
        const bool done = shortly()
                              ? fine(blocks_.allreduce(reduction(), in().data(), out().data()))
                              : data_.allreduce(reduction(), in().data(), out().data());
        return done && operands_.combined(number_, count_, size_, summed_);
    }

    Member& member_;
    comm::Communicator& world_;
    SharedData data_;
    ShortBlocks blocks_;
    const int rank_;
    const int size_;
    const datatype::Datatype& type_ = datatype::basic(MPI_INT64_T);
    const Op sum_{OpKind::sum};
    // Takes the right operand: shows the order of combination, for the last rank wins.
    const Op last_{[](void*, void*, int*, MPI_Datatype*) {}, false};
    Random shared_;
    Random own_;
    Operands operands_;
    // The next operation:
    std::uint32_t number_ = 0;
    int root_ = 0;
    bool in_place_ = false;
    bool summed_ = false;
    bool free_choice_ = false;
    MPI_Count count_ = 0;
};

bool random_operations(Member& member, std::uint32_t seed, int operations) {
    Operations all(member, seed);
    const std::uint64_t end_ns = monotonic_ns() + time_limit_ns;
    bool good = true;
    for (int i = 0; i < operations && good; ++i) {
        if (i % 16 == 15 && all_stop(member, end_ns)) {
            break;
        }
        good = all.next(i);
        all.pause();
    }
    return good;
}

class SharedDataTest : public testing::TestWithParam<NodeShape> {};

// Flat, counted with spinning, counted with yields and sleeps.
INSTANTIATE_TEST_SUITE_P(Shapes, SharedDataTest,
                         testing::Values(NodeShape{2, 2}, NodeShape{4, 64}, NodeShape{11, 64},
                                         NodeShape{2, 1}, NodeShape{3, 2}, NodeShape{8, 2},
                                         NodeShape{17, 2}, NodeShape{40, 2}),
                         name_of);

int number_of_operations(const NodeShape& shape) {
    return operations_of(shape, 10'000, 20);
}

TEST_P(SharedDataTest, random_operations_of_threads_agree_with_a_reference) {
    agree_as_threads(GetParam(), random_operations, number_of_operations(GetParam()));
}

TEST_P(SharedDataTest, random_operations_of_processes_agree_with_a_reference) {
    agree_as_processes(GetParam(), random_operations, number_of_operations(GetParam()));
}

TEST(Staging, come_once_and_go_back_with_the_slot) {
    node::Segment segment;
    Error error = node::Segment::create({.ranks = 4, .cores = 4}, segment);
    ASSERT_FALSE(error);
    std::atomic<std::uint32_t> first{0};
    std::atomic<std::uint32_t> second{0};
    const std::uint32_t at = staging::decide(segment, first, StagingKind::large, 4);
    ASSERT_GE(at, staging::first);
    EXPECT_EQ(staging::decide(segment, first, StagingKind::large, 4), at);
    staging::memory(segment, at)[4 * staging_phase_bytes(StagingKind::large, 4) - 1] = std::byte{1};
    EXPECT_NE(staging::decide(segment, second, StagingKind::small, 4), at);
    staging::give_back(segment, first, StagingKind::large, 4);
    staging::give_back(segment, second, StagingKind::small, 4);
    for (const std::atomic<std::uint64_t>& word : segment.at(staging_map)->used) {
        EXPECT_EQ(word, 0U);
    }
    // The node has a limit, and says so.
    std::vector<std::atomic<std::uint32_t>> words(4096);
    std::size_t made = 0;
    while (staging::decide(segment, words[made], StagingKind::large, 4) != staging::refused) {
        ASSERT_LT(++made, words.size());
    }
    EXPECT_GT(made, 1U);
    EXPECT_EQ(words[made], staging::refused);
    // Wide ones leave half of it to others.
    EXPECT_EQ(staging::decide(segment, first, StagingKind::wide, 2), staging::refused);
    staging::give_back(segment, first, StagingKind::wide, 2);
    for (std::size_t k = 1; k < made; ++k) {
        staging::give_back(segment, words[k], StagingKind::large, 4);
    }
    std::size_t wide = 0;
    while (staging::decide(segment, words[1 + wide], StagingKind::wide, 2) != staging::refused) {
        ASSERT_LT(++wide + 1, words.size());
    }
    EXPECT_GT(wide, 0U);
    std::uint64_t used = 0;
    for (const std::atomic<std::uint64_t>& word : segment.at(staging_map)->used) {
        used += static_cast<std::uint64_t>(std::popcount(word.load()));
    }
    EXPECT_LE(used, segment.units(staging_units) / 2);
    for (std::size_t k = 1; k <= wide + 1; ++k) {
        staging::give_back(segment, words[k], StagingKind::wide, 2);
    }
    for (std::atomic<std::uint32_t>& word : words) {
        staging::give_back(segment, word, StagingKind::large, 4);
        EXPECT_EQ(word, staging::undecided);
    }
    for (const std::atomic<std::uint64_t>& word : segment.at(staging_map)->used) {
        EXPECT_EQ(word, 0U);
    }
}

} // namespace
} // namespace warren::coll
