// Random one-sided programs, compared with a sequential model.
//
//     rma.random --seed S --steps N [--from FIRST] [--kill MS]
//
// All ranks draw the same program from the seed. In each step (an epoch on one window), a block of
// a target's memory belongs to one origin, which may do anything there, or to all, which add to it.
// So each rank knows what all memory must be at the end of the step, and what each of its
// operations must have returned. Behind the blocks is bulk memory, to which all add at the same
// time: single words, and many, which the library adds part by part. A failure names the step;
// --from starts there with fresh windows. --kill: the last rank is killed after so many
// milliseconds, at whatever instruction; the others must end.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

#include <mpi.h>

#include "model.hpp"

namespace {

using model::Op;
using model::Type;

constexpr int block_bytes = 128;
constexpr int blocks = 24;
constexpr int block_memory = block_bytes * blocks;
constexpr int bulk_words = 3 * 8192 + 100; // more than three parts
constexpr int bytes_per_rank = block_memory + bulk_words * 8;

int rank;
int size;
unsigned long seed;
long step;
int failures;

std::string doing;

void expect_bytes(const void* found, const void* expected, int bytes, const char* what) {
    if (std::memcmp(found, expected, static_cast<std::size_t>(bytes)) == 0) {
        return;
    }
    int at = 0;
    while (static_cast<const char*>(found)[at] == static_cast<const char*>(expected)[at]) {
        ++at;
    }
    std::fprintf(stderr,
                 "rma.random: seed %lu, step %ld, rank %d: %s: byte %d of %d differs (%s)\n", seed,
                 step, rank, what, at, bytes, doing.c_str());
    ++failures;
}

// --- Windows of all flavours

enum Flavour { created, allocated, shared, dynamic, flavours };
const char* const flavour_names[] = {"created", "allocated", "shared", "dynamic"};

// Ranks of several nodes share no memory.
bool on_one_node() {
    MPI_Comm here;
    int near = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &near);
    MPI_Comm_free(&here);
    return near == size;
}

struct Window {
    Flavour flavour = created;
    MPI_Win win = MPI_WIN_NULL;
    int unit = 1;
    char* memory = nullptr;
    std::vector<MPI_Aint> addresses;
    std::vector<std::vector<char>> expected; // by rank: the model of the blocks
    std::vector<std::int64_t> bulk;          // of this rank: the model of the bulk memory

    void make(Flavour its, int displacement_unit) {
        flavour = its == shared && !on_one_node() ? allocated : its;
        unit = flavour == dynamic ? 1 : displacement_unit;
        addresses.clear();
        switch (flavour) {
        case created:
            memory = static_cast<char*>(std::malloc(bytes_per_rank));
            MPI_Win_create(memory, bytes_per_rank, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            break;
        case allocated:
            MPI_Win_allocate(bytes_per_rank, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
            break;
        case shared:
            MPI_Win_allocate_shared(bytes_per_rank, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                                    &win);
            break;
        default:
            memory = static_cast<char*>(std::malloc(bytes_per_rank));
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_attach(win, memory, bytes_per_rank);
            addresses.resize(static_cast<std::size_t>(size));
            MPI_Get_address(memory, &addresses[static_cast<std::size_t>(rank)]);
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, addresses.data(), 1, MPI_AINT, MPI_COMM_WORLD);
        }
        expected.assign(static_cast<std::size_t>(size), std::vector<char>(block_memory, 0));
        bulk.assign(bulk_words, 0);
        std::memset(memory, 0, bytes_per_rank);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void end() {
        if (flavour == dynamic) {
            MPI_Win_detach(win, memory);
        }
        MPI_Win_free(&win);
        if (flavour == created || flavour == dynamic) {
            std::free(memory);
        }
    }
    MPI_Aint at(int target, int byte) const {
        return flavour == dynamic ? addresses[static_cast<std::size_t>(target)] + byte
                                  : byte / unit;
    }
    char* model_of(int target, int byte) {
        return expected[static_cast<std::size_t>(target)].data() + byte;
    }
};

// --- One operation

enum Kind { put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap, kinds };
const char* const kind_names[] = {
    "put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"};

struct Operation {
    int origin;
    int target;
    Kind kind;
    const Type* type;
    Op op;
    int first;  // byte of the target's memory
    int count;  // elements
    int stride; // of elements, there
    bool with_gaps_here;
    bool with_request;
    std::uint32_t values;
    bool swaps; // compare_and_swap compares with what is there

    int place(int i) const { return first + i * stride * type->bytes; }
};

// Types for a pattern: made, used, freed.
MPI_Datatype spread(const Operation& operation, int stride) {
    MPI_Datatype made;
    MPI_Type_vector(operation.count, 1, stride, operation.type->handle, &made);
    MPI_Type_commit(&made);
    return made;
}

// What an operation does, in the model; `result` gets what was there.
void model_operation(Window& window, const Operation& operation, const char* values, char* result) {
    const auto bytes = static_cast<std::size_t>(operation.type->bytes);
    for (int i = 0; i < operation.count; ++i) {
        char* there = window.model_of(operation.target, operation.place(i));
        std::memcpy(result + i * operation.type->bytes, there, bytes);
        const char* value = values + i * operation.type->bytes;
        if (operation.kind == put) {
            std::memcpy(there, value, bytes);
        } else if (operation.kind == compare_and_swap) {
            if (operation.swaps) {
                std::memcpy(there, value, bytes);
            }
        } else if (operation.kind != get) {
            model::apply(operation.op, *operation.type, there, value);
        }
    }
}

// Packed elements as the origin's memory has them: every second one if there are gaps.
struct Own {
    explicit Own(const Operation& operation)
        : stride(operation.with_gaps_here ? 2 : 1),
          bytes(operation.type->bytes),
          memory(static_cast<std::size_t>(operation.count * stride * bytes + 16), 0x55) {}
    void fill(const char* packed, int count) {
        for (int i = 0; i < count; ++i) {
            std::memcpy(memory.data() + i * stride * bytes, packed + i * bytes,
                        static_cast<std::size_t>(bytes));
        }
    }
    void take(char* packed, int count) const {
        for (int i = 0; i < count; ++i) {
            std::memcpy(packed + i * bytes, memory.data() + i * stride * bytes,
                        static_cast<std::size_t>(bytes));
        }
    }
    int stride;
    int bytes;
    std::vector<char> memory;
};

// Carries an operation out; `result` gets what MPI returns.
void carry_out(Window& window, const Operation& o, const char* values, char* result) {
    Own own(o);
    Own got(o);
    own.fill(values, o.count);
    const MPI_Aint at = window.at(o.target, o.first);
    MPI_Datatype here = o.type->handle;
    int count_here = o.count;
    MPI_Datatype there = o.type->handle;
    int count_there = o.count;
    const bool single = o.kind == fetch_and_op || o.kind == compare_and_swap;
    if (o.with_gaps_here && !single) {
        here = spread(o, 2);
        count_here = 1;
    }
    if (o.stride != 1 && !single) {
        there = spread(o, o.stride);
        count_there = 1;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Op op = model::handle_of(o.op);
    char compared[16] = {};
    switch (o.kind) {
    case put:
        o.with_request ? MPI_Rput(own.memory.data(), count_here, here, o.target, at, count_there,
                                  there, window.win, &request)
                       : MPI_Put(own.memory.data(), count_here, here, o.target, at, count_there,
                                 there, window.win);
        break;
    case get:
        o.with_request ? MPI_Rget(got.memory.data(), count_here, here, o.target, at, count_there,
                                  there, window.win, &request)
                       : MPI_Get(got.memory.data(), count_here, here, o.target, at, count_there,
                                 there, window.win);
        break;
    case accumulate:
        o.with_request ? MPI_Raccumulate(own.memory.data(), count_here, here, o.target, at,
                                         count_there, there, op, window.win, &request)
                       : MPI_Accumulate(own.memory.data(), count_here, here, o.target, at,
                                        count_there, there, op, window.win);
        break;
    case get_accumulate:
        o.with_request
            ? MPI_Rget_accumulate(own.memory.data(), count_here, here, got.memory.data(),
                                  count_here, here, o.target, at, count_there, there, op,
                                  window.win, &request)
            : MPI_Get_accumulate(own.memory.data(), count_here, here, got.memory.data(), count_here,
                                 here, o.target, at, count_there, there, op, window.win);
        break;
    case fetch_and_op:
        MPI_Fetch_and_op(own.memory.data(), got.memory.data(), o.type->handle, o.target, at, op,
                         window.win);
        break;
    default:
        // `result` has what the model says is there.
        std::memcpy(compared, result, static_cast<std::size_t>(o.type->bytes));
        compared[0] = static_cast<char>(o.swaps ? compared[0] : compared[0] ^ 1);
        MPI_Compare_and_swap(own.memory.data(), compared, got.memory.data(), o.type->handle,
                             o.target, at, window.win);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (here != o.type->handle) {
        MPI_Type_free(&here);
    }
    if (there != o.type->handle) {
        MPI_Type_free(&there);
    }
    got.take(result, o.count);
}

// --- One step

enum Way { fences, locks, all_locks, groups, ways };

struct Program {
    std::mt19937 random;
    Way way = fences;
    std::vector<int> owners; // by target and block: the origin, or -1: all add to it
    std::vector<bool> used;  // put to or got from in this step

    explicit Program(unsigned long first, long number)
        : random(static_cast<std::mt19937::result_type>(first * 1000003 +
                                                        static_cast<unsigned long>(number))) {}
    int draw(int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); }

    void begin() {
        way = static_cast<Way>(draw(ways));
        owners.resize(static_cast<std::size_t>(size * blocks));
        used.assign(owners.size(), false);
        for (int& owner : owners) {
            owner = draw(size + 1) - 1;
        }
    }

    // Null type: no block fits.
    Operation draw_operation(int origin) {
        Operation o = {};
        o.origin = origin;
        o.target = draw(size);
        const int block = draw(blocks);
        const auto index = static_cast<std::size_t>(o.target * blocks + block);
        const bool added = owners[index] < 0;
        o.kind = added ? accumulate : static_cast<Kind>(draw(kinds));
        o.type = &model::types[added ? 3 : draw(model::type_count)];
        o.op = added ? Op::sum : static_cast<Op>(draw(model::op_count));
        if (o.kind == accumulate && o.op == Op::no_op) { // which only calls that fetch take
            o.op = Op::replace;
        }
        const int room = block_bytes / o.type->bytes;
        o.stride = 1 + draw(3);
        o.count = 1 + draw((room - 1) / o.stride + 1);
        o.values = static_cast<std::uint32_t>(random());
        o.with_gaps_here = draw(3) == 0;
        o.with_request = draw(4) == 0 && (way == locks || way == all_locks);
        o.swaps = draw(2) == 0;
        if (o.kind == fetch_and_op || o.kind == compare_and_swap) {
            o.count = 1;
            o.stride = 1;
        }
        const int span = (o.count - 1) * o.stride + 1;
        // Displacements are multiples of 8 bytes, the largest unit.
        o.first = block * block_bytes + draw((room - span) * o.type->bytes / 8 + 1) * 8;
        const bool moves = o.kind == put || o.kind == get;
        const bool ordered = way == locks || way == all_locks; // a flush follows
        if ((!added && owners[index] != origin) || !model::defined(o.op, *o.type) ||
            (o.kind == compare_and_swap &&
             (o.type->handle == MPI_FLOAT || o.type->handle == MPI_DOUBLE)) ||
            (!ordered && used[index])) {
            o.type = nullptr;
        } else if (moves && !ordered) {
            used[index] = true;
        }
        touched(index, o, moves);
        return o;
    }

  private:
    // Without flushes a block has either one put or get, or accumulate operations.
    void touched(std::size_t index, Operation& o, bool moves) {
        if (o.type == nullptr || way == locks || way == all_locks) {
            return;
        }
        if (accumulated.size() != owners.size()) {
            accumulated.assign(owners.size(), false);
        }
        if (moves && accumulated[index]) {
            used[index] = false;
            o.type = nullptr;
        } else if (!moves) {
            accumulated[index] = true;
        }
    }
    std::vector<bool> accumulated;
};

void open_epoch(const Window& window, Way way, MPI_Group all) {
    switch (way) {
    case fences:
        MPI_Win_fence(0, window.win);
        break;
    case all_locks:
        MPI_Win_lock_all(0, window.win);
        break;
    case groups:
        MPI_Win_post(all, 0, window.win);
        MPI_Win_start(all, 0, window.win);
        break;
    default:
        break;
    }
}

void close_epoch(const Window& window, Way way) {
    switch (way) {
    case fences:
        MPI_Win_fence(0, window.win);
        break;
    case all_locks:
        MPI_Win_unlock_all(window.win);
        break;
    case groups:
        MPI_Win_complete(window.win);
        MPI_Win_wait(window.win);
        break;
    default:
        break;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

std::string description(const Operation& o) {
    char text[160];
    std::snprintf(text, sizeof text, "%s %s of %d %s at %d by %d of rank %d by %d%s",
                  kind_names[o.kind], model::name_of(o.op), o.count, o.type->name, o.first,
                  o.stride, o.target, o.origin, o.with_gaps_here ? ", gaps here" : "");
    return text;
}

void run_operation(Window& window, const Operation& o, Way way) {
    char values[block_bytes];
    char before[block_bytes];
    char result[block_bytes];
    for (int i = 0; i < o.count; ++i) {
        model::draw(o.values + static_cast<std::uint32_t>(i) * 7919, *o.type,
                    values + i * o.type->bytes);
    }
    model_operation(window, o, values, before);
    if (o.origin != rank) {
        return;
    }
    std::memcpy(result, before, sizeof result);
    doing = description(o);
    if (way == locks) {
        // Others add at the same time where the block is not this rank's.
        MPI_Win_lock(o.values % 2 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, o.target, 0,
                     window.win);
    }
    carry_out(window, o, values, result);
    if (way == locks) {
        MPI_Win_unlock(o.target, window.win);
    } else if (way == all_locks) {
        MPI_Win_flush(o.target, window.win);
    }
    const bool returns = o.kind != put && o.kind != accumulate;
    if (returns) {
        expect_bytes(result, before, o.count * o.type->bytes, "an operation's result");
    }
}

// One addition to bulk memory: the words first, first + stride, … of the target's.
struct BulkSum {
    int origin;
    int target;
    int first;
    int count;
    int stride;
    std::int64_t value; // of the first word; the next is one more
};

BulkSum draw_bulk_sum(Program& program, int origin) {
    BulkSum sum = {};
    sum.origin = origin;
    sum.target = program.draw(size);
    const bool single = program.draw(3) != 0;
    sum.stride = single ? 1 : 1 + program.draw(3);
    const int most = (bulk_words - 1) / sum.stride + 1;
    sum.count = single ? 1 + program.draw(2) : 1 + program.draw(most);
    sum.first = program.draw(bulk_words - (sum.count - 1) * sum.stride);
    sum.value = program.draw(1000) - 500;
    return sum;
}

void add_to_bulk(Window& window, const BulkSum& sum, Way way) {
    if (sum.target == rank) {
        for (int i = 0; i < sum.count; ++i) {
            window.bulk[static_cast<std::size_t>(sum.first + i * sum.stride)] += sum.value + i;
        }
    }
    if (sum.origin != rank) {
        return;
    }
    std::vector<std::int64_t> values(static_cast<std::size_t>(sum.count));
    for (int i = 0; i < sum.count; ++i) {
        values[static_cast<std::size_t>(i)] = sum.value + i;
    }
    const MPI_Aint at = window.at(sum.target, block_memory + sum.first * 8);
    if (way == locks) {
        MPI_Win_lock(MPI_LOCK_SHARED, sum.target, 0, window.win);
    }
    if (sum.count == 1) {
        std::int64_t before = 0;
        MPI_Fetch_and_op(values.data(), &before, MPI_INT64_T, sum.target, at, MPI_SUM, window.win);
    } else if (sum.stride == 1) {
        MPI_Accumulate(values.data(), sum.count, MPI_INT64_T, sum.target, at, sum.count,
                       MPI_INT64_T, MPI_SUM, window.win);
    } else {
        MPI_Datatype there;
        MPI_Type_vector(sum.count, 1, sum.stride, MPI_INT64_T, &there);
        MPI_Type_commit(&there);
        MPI_Accumulate(values.data(), sum.count, MPI_INT64_T, sum.target, at, 1, there, MPI_SUM,
                       window.win);
        MPI_Type_free(&there);
    }
    if (way == locks) {
        MPI_Win_unlock(sum.target, window.win);
    }
}

void run_step(Window& window, MPI_Group all) {
    Program program(seed, step);
    program.begin();
    doing = std::string(flavour_names[window.flavour]) + " window";
    open_epoch(window, program.way, all);
    const int operations = 1 + program.draw(30);
    for (int i = 0; i < operations; ++i) {
        for (int origin = 0; origin < size; ++origin) {
            const Operation o = program.draw_operation(origin);
            if (o.type != nullptr) {
                run_operation(window, o, program.way);
            }
            if (program.draw(8) == 0) {
                add_to_bulk(window, draw_bulk_sum(program, origin), program.way);
            }
        }
    }
    close_epoch(window, program.way);
    expect_bytes(window.memory, window.model_of(rank, 0), block_memory,
                 flavour_names[window.flavour]);
    expect_bytes(window.memory + block_memory, window.bulk.data(), bulk_words * 8, "bulk memory");
    MPI_Barrier(MPI_COMM_WORLD);
}

void kill_self(int) {
    static_cast<void>(kill(getpid(), SIGKILL));
}

void be_killed_after(long milliseconds) {
    std::signal(SIGALRM, kill_self);
    const itimerval timer = {
        .it_interval = {},
        .it_value = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}};
    setitimer(ITIMER_REAL, &timer, nullptr);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    seed = 1;
    long steps = 1000;
    long from = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        const long value = std::strtol(argv[i + 1], nullptr, 10);
        if (name == "--seed") {
            seed = static_cast<unsigned long>(value);
        } else if (name == "--steps") {
            steps = value;
        } else if (name == "--from") {
            from = value;
        } else if (name == "--kill" && rank == size - 1) {
            be_killed_after(value);
        }
    }
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    std::vector<Window> windows(flavours);
    constexpr int units[] = {1, 2, 4, 8};
    constexpr long life = 50; // steps, after which windows are made anew
    for (step = from; step < from + steps && failures == 0; ++step) {
        for (int i = 0; i < flavours; ++i) {
            if (step == from || step % life == 0) {
                if (step != from) {
                    windows[static_cast<std::size_t>(i)].end();
                }
                windows[static_cast<std::size_t>(i)].make(static_cast<Flavour>(i),
                                                          units[(step / life + i) % 4]);
            }
        }
        run_step(windows[static_cast<std::size_t>(step % flavours)], all);
        int any = failures;
        MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        failures = any;
    }
    if (failures == 0) {
        for (Window& window : windows) {
            window.end();
        }
    }
    MPI_Group_free(&all);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
