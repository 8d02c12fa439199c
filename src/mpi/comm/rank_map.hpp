// RankMap: which process a rank of a communicator or group is, and back.
//
// The idea is AV-Rankmap's (Guo et al., "Memory Compression Techniques for Network Address
// Management in MPI", 2017): programs make regular communicators, whose map is a formula.
//     affine   offset + stride · rank: direct, offset and strided maps, of either sign, in one form
//     block    blocks of ranks at a stride of their own: one division, by a reciprocal
//     nested   arrays of blocks: a division per dimension
//     table    the rest: packed, counted, shared by the ranks of a node (mpi/comm/rank_table.hpp);
//              tables of several worlds are the same with wider entries
// A child's map is the composition of its own with its parent's, as a formula where that stays one;
// else its ranks are looked at once, up to the first that fits no formula. So equal maps have one
// form only, and no chain of ancestors is ever walked.
//
// A look-up is a compare, a jump and the formula, inline. rank_of is as constant where the map is a
// formula, a binary search in an index in tables. Process names a rank of any world
// (mpi/comm/rank_form.hpp); world ranks of world 0 are processes as they are.
//
// Thread rule: a value; copies of one table may be used by different ranks. Invariants: processes
// of a map are distinct; a table never describes what a RankForm can; empty maps are affine with
// offset 0 and stride 1, maps of one rank have stride 1.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/comm/rank_form.hpp"
#include "mpi/comm/rank_table.hpp"

namespace warren::comm {

class RankMap {
  public:
    // The look-up compares with `table`: keep below, equal, above.
    enum class Kind : std::uint32_t { affine = 0, table = 1, block = 2, nested = 0x80000001 };

    RankMap() = default;
    RankMap(const RankMap& other) : RankMap(other, 0) { retain(); }
    RankMap(RankMap&& other) noexcept : RankMap(other, 0) { other.forget(); }
    RankMap& operator=(const RankMap& other) {
        RankMap copy(other);
        swap(copy);
        return *this;
    }
    RankMap& operator=(RankMap&& other) noexcept {
        swap(other);
        return *this;
    }
    ~RankMap() {
        if (owns()) {
            release();
        }
    }
    void swap(RankMap& other) noexcept;

    // offset, offset + stride, offset + 2 · stride, …
    static RankMap affine(Process offset, std::int64_t stride, int size);
    // A form in its normal form.
    static RankMap of(const RankForm& form);
    // Any distinct world ranks of world 0, or processes of any world; a formula where they are.
    static RankMap of(const std::vector<std::uint32_t>& world_ranks);
    static RankMap of_processes(const std::vector<Process>& processes);

    int size() const { return size_; }

    // The world rank of rank 0 ≤ r < size(), in its world.
    std::uint32_t operator[](int rank) const;
    // The process of rank 0 ≤ r < size().
    Process process(int rank) const;

    // The rank of a process, or MPI_UNDEFINED when it is not in the map. `find` is for one look:
    // it builds no index of a table, but goes through it when there is none.
    int rank_of(Process process) const;
    int find(Process process) const;

    // The map of `ranks` of this map, in their order: their composition. A run of ranks with one
    // stride is `select_range`, without looking at each; `select` of a map takes its world ranks as
    // ranks of this one.
    RankMap select(const int* ranks, int count) const;
    RankMap select_range(int first, int stride, int count) const;
    RankMap select(const RankMap& ranks) const;

    // Puts a table of more than a few entries where all ranks of the node find it.
    void share(TableShelf& shelf);

    Kind kind() const { return kind_; }
    bool affine() const { return kind_ == Kind::affine; }
    bool regular() const { return kind_ != Kind::table; }
    // For regular maps.
    RankForm form() const;
    // For affine maps.
    std::uint32_t offset() const { return static_cast<std::uint32_t>(offset_); }
    std::int32_t stride() const { return static_cast<std::int32_t>(stride_); }
    // For tables; null else.
    const RankTable* table() const { return kind_ == Kind::table ? table_ : nullptr; }

    bool operator==(const RankMap& other) const;

  private:
    struct Nest; // of nested maps: form, reciprocals, users

    RankMap(const RankMap& other, int) // a copy that counts nothing
        : offset_(other.offset_),
          stride_(other.stride_),
          kind_(other.kind_),
          size_(other.size_),
          factor_(other.factor_),
          jump_(other.jump_),
          table_(other.table_) {}

    // Ranks of this map that a formula selects.
    RankMap select(const RankForm& ranks) const;
    // A table of the processes get(0), get(1), …, which fit no form.
    template <typename Get>
    static RankMap tabulate(int size, const Get& get);
    // As above, for processes that are known to be at most `largest` beside `beside`.
    template <typename Get>
    static RankMap pack(int size, Process beside, Process largest, const Get& get);
    RankMap select_of_affine(const int* ranks, int count) const;
    template <typename Get>
    static RankMap detect(int size, const Get& get);

    bool owns() const { return kind_ == Kind::table || kind_ == Kind::nested; }
    void retain() const;
    void release();
    void forget() { kind_ = Kind::affine; }
    Process nested(std::uint32_t rank) const;
    // From a rank to a position of the table, and back (−1: another view's).
    int position_to_rank(int position) const;

    const std::byte* place(std::uint32_t rank) const { return entries_ + rank * step_; }

    std::uint64_t offset_ = 0; // of tables: their only world, if it is not in the entries
    union {
        std::int64_t stride_ = 1;
        std::uint32_t step_; // of tables: bytes from entry to entry
    };
    Kind kind_ = Kind::affine;
    int size_ = 0;
    union {
        std::uint64_t factor_ = 0; // of blocks: reciprocal of their unit
        std::uint64_t mask_;       // of tables: the bits of an entry
    };
    union {
        std::int64_t jump_ = 0;    // of blocks
        const std::byte* entries_; // of tables: rank 0's
    };
    union {
        RankTable* table_ = nullptr;
        Nest* nest_;
        std::uint32_t unit_; // of blocks
    };
};
static_assert(sizeof(RankMap) == 48);

// Both look-ups go four ways by one compare: the compiler would spend a load, a test and a compare
// per way. The affine way is the first to leave.
#if defined(__x86_64__)
#define WARREN_BRANCH_BY_KIND(kind)                                                                \
    asm goto("cmpl $1, %0\n\t"                                                                     \
             "jb %l[affine]\n\t"                                                                   \
             "je %l[table]\n\t"                                                                    \
             "js %l[nest]"                                                                         \
             :                                                                                     \
             : "m"(kind)                                                                           \
             : "cc"                                                                                \
             : affine, table, nest)
#else
#define WARREN_BRANCH_BY_KIND(kind)                                                                \
    if ((kind) == Kind::affine) [[likely]]                                                         \
        goto affine;                                                                               \
    if ((kind) == Kind::table)                                                                     \
        goto table;                                                                                \
    if ((kind) == Kind::nested)                                                                    \
    goto nest
#endif

inline std::uint32_t RankMap::operator[](int rank) const {
    const auto r = static_cast<std::uint32_t>(rank);
    // Modulo 2^32; each way loads what it needs itself.
    const auto low = [](auto value) { return static_cast<std::uint32_t>(value); };
    WARREN_BRANCH_BY_KIND(kind_);
    return [&] {
        std::uint32_t blocks = low(divide(r, factor_)) * low(jump_);
        asm("" : "+r"(blocks)); // the product first: the rank's register is free then
        return r * low(stride_) + blocks + low(offset_);
    }();
affine:
    return r * low(stride_) + low(offset_);
table:
    return low(RankTable::load(place(r), mask_));
nest:
    return low(nested(r));
}

inline Process RankMap::process(int rank) const {
    const auto r = static_cast<std::uint32_t>(rank);
    const auto full = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    WARREN_BRANCH_BY_KIND(kind_);
    return divide(r, factor_) * full(jump_) + r * full(stride_) + offset_;
affine:
    return r * full(stride_) + offset_;
table:
    return RankTable::load(place(r), mask_) + offset_;
nest:
    return nested(r);
}

#undef WARREN_BRANCH_BY_KIND

} // namespace warren::comm
