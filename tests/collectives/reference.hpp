// What the collective tests share: values that every rank can compute for every other, buffers with
// gaps whose gaps are watched, and the count of failures.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace reference {

inline int failures = 0;

inline void expect(bool condition, const char* operation, const std::string& what) {
    if (!condition && ++failures <= 10) {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        std::fprintf(stderr, "world rank %d: %s: %s\n", rank, operation, what.c_str());
    }
}

// The value at `index` of what rank `from` sends to rank `to` (0 where all get the same).
inline int value(int from, int to, long index) {
    return static_cast<int>((from * 7919L + to * 104729L + index * 31L + 17) & 0x3fffffff);
}

// A datatype made of ints, and where they are: offsets and extent in ints.
struct Layout {
    const char* name;
    MPI_Datatype type;
    std::vector<int> offsets;
    int extent;

    int ints() const { return static_cast<int>(offsets.size()); }
};

constexpr int gap = -77;

// A buffer of `blocks` blocks of `count` elements each, all gaps at first. Block b begins at
// element b · (count + spacing).
class Buffer {
  public:
    Buffer(const Layout& layout, int blocks, int count, int spacing = 0)
        : layout_(layout),
          count_(count),
          step_(count + spacing),
          ints_(static_cast<std::size_t>(blocks) * static_cast<std::size_t>(step_) *
                        static_cast<std::size_t>(layout.extent) +
                    8,
                gap) {}

    void* data() { return ints_.data(); }
    MPI_Datatype type() const { return layout_.type; }
    int ints() const { return count_ * layout_.ints(); } // of a block

    int& at(int block, long index) {
        const long element = static_cast<long>(block) * step_ + index / layout_.ints();
        return ints_[static_cast<std::size_t>(
            element * layout_.extent +
            layout_.offsets[static_cast<std::size_t>(index % layout_.ints())])];
    }
    void fill(int block, int from, int to) {
        for (long i = 0; i < ints(); ++i) {
            at(block, i) = value(from, to, i);
        }
    }
    // Whether the block is what `from` sent to `to`; it is then made a gap.
    bool take(int block, int from, int to) {
        bool good = true;
        for (long i = 0; i < ints(); ++i) {
            good = good && at(block, i) == value(from, to, i);
            at(block, i) = gap;
        }
        return good;
    }
    // Whether nothing else has been touched, once all blocks are taken.
    bool untouched() const {
        for (int i : ints_) {
            if (i != gap) {
                return false;
            }
        }
        return true;
    }

  private:
    const Layout& layout_;
    int count_;
    int step_;
    std::vector<int> ints_;
};

inline std::vector<Layout> make_layouts() {
    std::vector<Layout> layouts;
    layouts.push_back({"int", MPI_INT, {0}, 1});
    MPI_Datatype made, resized;
    MPI_Type_contiguous(3, MPI_INT, &made);
    MPI_Type_commit(&made);
    layouts.push_back({"three ints", made, {0, 1, 2}, 3});
    MPI_Type_vector(2, 1, 2, MPI_INT, &made);
    MPI_Type_create_resized(made, 0, 4 * sizeof(int), &resized);
    MPI_Type_free(&made);
    MPI_Type_commit(&resized);
    layouts.push_back({"vector with gaps", resized, {0, 2}, 4});
    return layouts;
}

inline void free_layouts(std::vector<Layout>& layouts) {
    for (Layout& layout : layouts) {
        if (layout.type != MPI_INT) {
            MPI_Type_free(&layout.type);
        }
    }
}

struct Named {
    std::string name;
    MPI_Comm comm;
};

// Communicators of many shapes; MPI_COMM_NULL ones left out. Collective over the world.
inline std::vector<Named> make_communicators() {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<Named> made;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    made.push_back({"duplicate of the world", comm});
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
    made.push_back({"odd or even, reversed", comm});
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, (rank * 7) % 5, &comm);
    if (comm != MPI_COMM_NULL) {
        made.push_back({"all but rank 0, shuffled", comm});
    }
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int members : {1, 2, 3, 5, 7, 8, 13}) {
        if (members >= size) {
            break;
        }
        int range[1][3] = {{size - 1, size - members, -1}};
        MPI_Group group;
        MPI_Group_range_incl(world, 1, range, &group);
        if (members % 2 == 0) {
            MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
        } else {
            comm = MPI_COMM_NULL;
            if (rank >= size - members) {
                MPI_Comm_create_group(MPI_COMM_WORLD, group, members, &comm);
            }
        }
        if (comm != MPI_COMM_NULL) {
            made.push_back({"the last " + std::to_string(members), comm});
        }
        MPI_Group_free(&group);
    }
    MPI_Group_free(&world);
    return made;
}

inline void free_communicators(std::vector<Named>& made) {
    for (Named& named : made) {
        MPI_Comm_free(&named.comm);
    }
}

// --- The forms of an operation: every test of one is a test of all three.

enum class Form { blocking, nonblocking, persistent };
inline Form form = Form::blocking;

// By the program's argument.
inline void choose_form(int argc, char** argv) {
    const std::string chosen = argc > 1 ? argv[1] : "";
    form = chosen == "nonblocking"  ? Form::nonblocking
           : chosen == "persistent" ? Form::persistent
                                    : Form::blocking;
}

// Carries out an operation with the arguments of its blocking form.
template <typename Blocking, typename Nonblocking, typename Persistent, typename... Arguments>
void call(Blocking blocking, Nonblocking nonblocking, Persistent persistent,
          Arguments... arguments) {
    MPI_Request request = MPI_REQUEST_NULL;
    switch (form) {
    case Form::blocking:
        blocking(arguments...);
        break;
    case Form::nonblocking:
        nonblocking(arguments..., &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case Form::persistent:
        persistent(arguments..., MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        break;
    }
    expect(request == MPI_REQUEST_NULL, "a request", "is not null at its end");
}

// Ends the program: every rank learns whether all were right.
inline int finish(const char* program) {
    int all = 0;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        if (all == 0) {
            std::printf("%s: no errors\n", program);
        } else {
            std::printf("%s: %d errors\n", program, all);
        }
    }
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}

} // namespace reference
