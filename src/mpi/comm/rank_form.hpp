// RankForm: the regular rank maps, as a formula, and the algebra on them.
//
//     process(r) = offset + stride · r + Σ jump_k · ⌊r / unit_k⌋          0 ≤ r < size
//
// No level: direct, offset and strided maps. One level: blocks of `unit` ranks at a stride of their
// own. More: arrays of ranks of more dimensions (rows, planes, …), each unit a multiple of the one
// before. A process is named by 64 bits, its world above its rank in that world, so strides and
// jumps may lead from world to world: two worlds one behind the other are a block-strided map.
//
// A form is kept in its normal form: no jump is 0, 2 ≤ unit_0, unit_k < unit_{k+1} < size, and
// every map of one rank has stride 1. A sequence of processes has one normal form only, so maps are
// equal exactly when their forms are. Besides, forms can be inverted digit by digit: sorted by
// size, each digit's stride exceeds all that the smaller ones can add up to. What violates that
// (its parts are interleaved irregularly) or needs more levels is a table's business.
//
// Thread rule: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace warren::comm {

// A process: its world, and its rank there. World ranks of world 0 are processes as they are.
using Process = std::uint64_t;
constexpr Process process_of(std::uint32_t world, std::uint32_t world_rank) {
    return std::uint64_t{world} << 32 | world_rank;
}
constexpr std::uint32_t world_of(Process process) {
    return static_cast<std::uint32_t>(process >> 32);
}
constexpr std::uint32_t world_rank_of(Process process) {
    return static_cast<std::uint32_t>(process);
}

__extension__ typedef unsigned __int128 DoubleWord;

// Division by a constant: ⌊n / d⌋ = ⌊n · reciprocal / 2⁶⁴⌋ for n < 2³², 2 ≤ d < 2³².
constexpr std::uint64_t reciprocal_of(std::uint32_t divisor) {
    return ~std::uint64_t{0} / divisor + 1;
}
constexpr std::uint64_t divide(std::uint32_t number, std::uint64_t reciprocal) {
    std::uint64_t wide = number;
    if (!std::is_constant_evaluated()) {
        // Else g++, where it knows that a rank is not negative, makes the product a signed one,
        // which takes three instructions more.
        asm("" : "+r"(wide));
    }
    return static_cast<std::uint64_t>(DoubleWord{wide} * reciprocal >> 64);
}

class RankForm {
  public:
    static constexpr int level_limit = 4; // arrays of five dimensions

    struct Level {
        std::uint32_t unit = 0; // ranks in a block
        std::int64_t jump = 0;  // what the step to the next block adds to unit · (stride below)

        bool operator==(const Level&) const = default;
    };

    std::uint64_t offset = 0; // of rank 0
    std::int64_t stride = 1;
    int size = 0;
    int levels = 0;
    Level level[level_limit];

    static RankForm affine(Process offset, std::int64_t stride, int size);

    Process operator[](int rank) const;

    // The rank of a process, or −1: digit by digit, no search.
    int rank_of(Process process) const;

    // Brings the form into its normal form. False: it can't be inverted digit by digit.
    bool normalise();

    // The first `count` ranks of the map: also regular.
    RankForm first(int count) const;

    // The map r → parent[child[r]], whose child's values are ranks of the parent. False: the
    // formulas don't tell whether it is regular (a block that the child cuts in two).
    static bool compose(const RankForm& parent, const RankForm& child, RankForm& made);

    // Finds the form of a sequence, get(0), get(1), … get(size − 1), of distinct processes. One
    // pass that ends at the first process that fits no form; false: it is irregular.
    template <typename Get>
    static bool detect(int size, const Get& get, RankForm& made);

    // The set of its processes, disregarding their order: equal for equal sets. False: the last
    // block is cut, so that the set is no full array.
    bool sorted(RankForm& set) const;

    bool operator==(const RankForm& other) const;

  private:
    // One of the numbers that a rank consists of, r = Σ digit_k · unit_k, 0 ≤ digit_k < count_k.
    struct Digit {
        std::int64_t unit;
        std::int64_t stride;
        std::int64_t count;
    };
    static constexpr int digit_limit = 2 * level_limit + 1;

    int digits(Digit digit[]) const;
    static bool of_digits(Process offset, int size, const Digit digit[], int count, RankForm& made);
    static bool split(Digit digit[], int& count, std::int64_t unit);
};

template <typename Get>
bool RankForm::detect(int size, const Get& get, RankForm& made) {
    if (size < 2) {
        made = affine(size == 1 ? get(0) : 0, 1, size);
        return true;
    }
    made = affine(get(0), static_cast<std::int64_t>(get(1) - get(0)), size);
    // The entries seen so far are regular; all of them repeats `step` further on, until it doesn't:
    // then it is a block (a row, a plane, …) of a larger form, or irregular.
    int unit = 1;
    std::int64_t below = 0; // the step of the level below, in all
    std::int64_t step = made.stride;
    for (int rank = 2; rank < size; ++rank) {
        if (static_cast<std::int64_t>(get(rank) - get(rank - unit)) == step) {
            continue;
        }
        if (rank % unit != 0 || made.levels == level_limit) {
            return false;
        }
        below = step;
        const int blocks = rank / unit;
        unit = rank;
        step = static_cast<std::int64_t>(get(rank) - made.offset);
        made.level[made.levels++] = {static_cast<std::uint32_t>(unit), step - blocks * below};
    }
    return made.normalise();
}

} // namespace warren::comm
