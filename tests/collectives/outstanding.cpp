// Many nonblocking and persistent collective operations under way together, on several
// communicators, with messages and blocking collectives between them: started in orders that differ
// by rank where the standard lets them, completed in random orders; datatypes and operations are
// freed as soon as they have been named. Runs on any MPI.

#include "reference.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <random>

using namespace reference;

namespace {

using Random = std::mt19937;

int pick(Random& random, int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
}

// f(x) = slope · x + shift modulo 2^32: composition does not commute.
struct Affine {
    unsigned slope, shift;
};

void compose(void* in, void* inout, int* count, MPI_Datatype*) {
    const auto* first = static_cast<const Affine*>(in);
    auto* then = static_cast<Affine*>(inout);
    for (int i = 0; i < *count; ++i) {
        then[i] = {first[i].slope * then[i].slope, then[i].slope * first[i].shift + then[i].shift};
    }
}

// One operation: its memory, how it is begun, what it must leave.
struct Operation {
    enum Kind {
        barrier,
        bcast,
        reduce,
        allreduce,
        ordered_allreduce,
        gatherv,
        scatterv,
        allgather,
        allgatherv,
        alltoall,
        alltoallw,
        scan,
        exscan,
        reduce_scatter,
        reduce_scatter_block,
        kinds
    };

    MPI_Comm comm;
    int rank = 0, size = 0;
    Kind kind;
    int root;
    int count;
    int serial; // what is sent depends on it

    std::vector<int> in, out;
    std::vector<Affine> affine_in, affine_out;
    std::vector<int> counts, displacements, bytes;
    std::vector<MPI_Datatype> types;

    Operation(MPI_Comm on, Random& random, int number) : comm(on), serial(number) {
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        kind = static_cast<Kind>(pick(random, kinds));
        root = pick(random, size);
        const int sizes[] = {0, 1, 3, 50, 700, 5000};
        count = sizes[pick(random, 6)];
        const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
        in.resize(all);
        out.resize(all);
        affine_in.resize(static_cast<std::size_t>(count));
        affine_out.resize(static_cast<std::size_t>(count));
        for (int r = 0; r < size; ++r) {
            counts.push_back(count);
            displacements.push_back(count * (size - 1 - r)); // backwards
            bytes.push_back(displacements.back() * static_cast<int>(sizeof(int)));
        }
    }

    int small(int from, long index) const { return value(from, serial, index) & 0xffff; }
    int& at(std::vector<int>& ints, long index) { return ints[static_cast<std::size_t>(index)]; }

    void fill() {
        for (int r = 0; r < size; ++r) {
            for (int i = 0; i < count; ++i) {
                const long place = static_cast<long>(r) * count + i;
                const long backwards = static_cast<long>(size - 1 - r) * count + i;
                switch (kind) {
                case alltoall:
                    at(in, place) = value(rank, r + serial, i);
                    break;
                case scatterv:
                case alltoallw:
                    at(in, backwards) = value(rank, r + serial, i);
                    break;
                case bcast:
                case gatherv:
                case allgather:
                case allgatherv:
                    at(in, place) = value(rank, serial, i);
                    break;
                default:
                    at(in, place) = small(rank, place);
                }
            }
        }
        for (int i = 0; i < count; ++i) {
            affine_in[static_cast<std::size_t>(i)] = affine(rank, i);
        }
        out.assign(out.size(), gap);
        if (kind == bcast && rank == root) {
            out = in;
        }
    }
    Affine affine(int from, int index) const {
        return {static_cast<unsigned>(value(from, serial, index)) | 1U,
                static_cast<unsigned>(value(from, serial, index + 1))};
    }

    // With the argument that a form has more.
    template <typename Form>
    void begin(Form form) {
        MPI_Datatype pair, own_int;
        MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
        MPI_Type_commit(&pair);
        MPI_Type_dup(MPI_INT, &own_int);
        types.assign(static_cast<std::size_t>(size), own_int);
        MPI_Op ordered;
        MPI_Op_create(compose, 0, &ordered);
        switch (kind) {
        case barrier:
            form(MPI_Ibarrier, MPI_Barrier_init, comm);
            break;
        case bcast:
            form(MPI_Ibcast, MPI_Bcast_init, out.data(), count, own_int, root, comm);
            break;
        case reduce:
            form(MPI_Ireduce, MPI_Reduce_init, in.data(), out.data(), count, MPI_INT, MPI_SUM, root,
                 comm);
            break;
        case allreduce:
            form(MPI_Iallreduce, MPI_Allreduce_init, in.data(), out.data(), count, MPI_INT, MPI_SUM,
                 comm);
            break;
        case ordered_allreduce:
            form(MPI_Iallreduce, MPI_Allreduce_init, affine_in.data(), affine_out.data(), count,
                 pair, ordered, comm);
            break;
        case gatherv:
            form(MPI_Igatherv, MPI_Gatherv_init, in.data(), count, MPI_INT, out.data(),
                 counts.data(), displacements.data(), own_int, root, comm);
            break;
        case scatterv:
            form(MPI_Iscatterv, MPI_Scatterv_init, in.data(), counts.data(), displacements.data(),
                 own_int, out.data(), count, MPI_INT, root, comm);
            break;
        case allgather:
            form(MPI_Iallgather, MPI_Allgather_init, in.data(), count, own_int, out.data(), count,
                 MPI_INT, comm);
            break;
        case allgatherv:
            form(MPI_Iallgatherv, MPI_Allgatherv_init, in.data(), count, MPI_INT, out.data(),
                 counts.data(), displacements.data(), own_int, comm);
            break;
        case alltoall:
            form(MPI_Ialltoall, MPI_Alltoall_init, in.data(), count, own_int, out.data(), count,
                 own_int, comm);
            break;
        case alltoallw:
            form(MPI_Ialltoallw, MPI_Alltoallw_init, in.data(), counts.data(), bytes.data(),
                 types.data(), out.data(), counts.data(), bytes.data(), types.data(), comm);
            break;
        case scan:
            form(MPI_Iscan, MPI_Scan_init, in.data(), out.data(), count, MPI_INT, MPI_SUM, comm);
            break;
        case exscan:
            form(MPI_Iexscan, MPI_Exscan_init, in.data(), out.data(), count, MPI_INT, MPI_SUM,
                 comm);
            break;
        case reduce_scatter:
            form(MPI_Ireduce_scatter, MPI_Reduce_scatter_init, in.data(), out.data(), counts.data(),
                 MPI_INT, MPI_SUM, comm);
            break;
        case reduce_scatter_block:
        case kinds:
            form(MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, in.data(), out.data(),
                 count, MPI_INT, MPI_SUM, comm);
        }
        MPI_Type_free(&pair);
        MPI_Type_free(&own_int);
        MPI_Op_free(&ordered);
    }

    int sum(int ranks, long index) const {
        int total = 0;
        for (int r = 0; r < ranks; ++r) {
            total += small(r, index);
        }
        return total;
    }

    // The result at place `index`; `gap` where nothing is written.
    int expected(long index) const {
        const int block = static_cast<int>(index / count);
        const int within = static_cast<int>(index % count);
        const int backwards = size - 1 - block;
        const bool first = block == 0;
        switch (kind) {
        case bcast:
            return first          ? value(root, serial, within)
                   : rank == root ? value(rank, serial, within)
                                  : gap;
        case reduce:
            return first && rank == root ? sum(size, index) : gap;
        case allreduce:
            return first ? sum(size, index) : gap;
        case gatherv:
            return rank == root ? value(backwards, serial, within) : gap;
        case scatterv:
            return first ? value(root, rank + serial, within) : gap;
        case allgather:
            return value(block, serial, within);
        case allgatherv:
            return value(backwards, serial, within);
        case alltoall:
            return value(block, rank + serial, within);
        case alltoallw:
            return value(backwards, rank + serial, within);
        case scan:
            return first ? sum(rank + 1, index) : gap;
        case exscan:
            return first && rank > 0 ? sum(rank, index) : gap;
        case reduce_scatter:
        case reduce_scatter_block:
            return first ? sum(size, static_cast<long>(rank) * count + index) : gap;
        default:
            return gap;
        }
    }

    bool right() const {
        for (std::size_t i = 0; i<out.size(); i += out.size()> 2000 ? 7 : 1) {
            if (out[i] != expected(static_cast<long>(i))) {
                return false;
            }
        }
        for (int i = 0; kind == ordered_allreduce && i < count; ++i) {
            Affine total = affine(0, i);
            for (int r = 1; r < size; ++r) {
                Affine next = affine(r, i);
                int one = 1;
                compose(&total, &next, &one, nullptr);
                total = next;
            }
            const Affine& got = affine_out[static_cast<std::size_t>(i)];
            if (got.slope != total.slope || got.shift != total.shift) {
                return false;
            }
        }
        return true;
    }
    void check(const char* when) const {
        expect(right(), when,
               "kind " + std::to_string(kind) + ", count " + std::to_string(count) + ", root " +
                   std::to_string(root) + " of " + std::to_string(size));
    }

    void start(MPI_Request* request) {
        fill();
        begin(
            [&](auto nonblocking, auto, auto... arguments) { nonblocking(arguments..., request); });
    }
    void keep(MPI_Request* request) {
        begin([&](auto, auto persistent, auto... arguments) {
            persistent(arguments..., MPI_INFO_NULL, request);
        });
    }
};

// Completes all requests, in one of many ways; `ended` hears of each.
void complete(std::vector<MPI_Request>& requests, Random& random,
              const std::function<void(std::size_t)>& ended) {
    const int total = static_cast<int>(requests.size());
    int left = total;
    std::vector<bool> done(requests.size());
    const auto end = [&](int index) {
        expect(!done[static_cast<std::size_t>(index)], "completion", "twice of one request");
        done[static_cast<std::size_t>(index)] = true;
        ended(static_cast<std::size_t>(index));
        --left;
    };
    std::vector<int> indices(requests.size());
    while (left > 0) {
        int index = MPI_UNDEFINED;
        int number = 0;
        switch (pick(random, 4)) {
        case 0:
            MPI_Waitany(total, requests.data(), &index, MPI_STATUS_IGNORE);
            end(index);
            break;
        case 1:
            MPI_Testsome(total, requests.data(), &number, indices.data(), MPI_STATUSES_IGNORE);
            for (int i = 0; i < number; ++i) {
                end(indices[static_cast<std::size_t>(i)]);
            }
            break;
        case 2:
            MPI_Waitsome(total, requests.data(), &number, indices.data(), MPI_STATUSES_IGNORE);
            for (int i = 0; i < number; ++i) {
                end(indices[static_cast<std::size_t>(i)]);
            }
            break;
        default:
            do {
                index = pick(random, total);
            } while (done[static_cast<std::size_t>(index)]);
            MPI_Wait(&requests[static_cast<std::size_t>(index)], MPI_STATUS_IGNORE);
            end(index);
        }
    }
}

// The world's neighbours exchange messages meanwhile.
struct Ring {
    static constexpr int messages = 8;
    int rank, size;
    std::vector<int> out, in;

    Ring() {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        out.resize(messages * 3000);
        in.resize(messages * 3000);
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = value(rank, 0, static_cast<long>(i));
        }
    }
    void start(std::vector<MPI_Request>& requests) {
        for (int m = 0; m < messages; ++m) {
            requests.emplace_back();
            MPI_Irecv(in.data() + m * 3000, 3000, MPI_INT, (rank + size - 1) % size, m,
                      MPI_COMM_WORLD, &requests.back());
            requests.emplace_back();
            MPI_Isend(out.data() + m * 3000, m % 2 == 0 ? 3000 : 5, MPI_INT, (rank + 1) % size, m,
                      MPI_COMM_WORLD, &requests.back());
        }
    }
    void check() const {
        const int from = (rank + size - 1) % size;
        bool good = true;
        for (std::size_t i = 0; i < in.size(); ++i) {
            const auto message = static_cast<int>(i / 3000);
            if (message % 2 == 0 || i % 3000 < 5) {
                good = good && in[i] == value(from, 0, static_cast<long>(i));
            }
        }
        expect(good, "messages", "between neighbours, beside collectives");
    }
};

// Operations on each communicator in one order, communicators in an order that each rank chooses.
void nonblocking(const std::vector<Named>& communicators, unsigned seed) {
    constexpr int per_communicator = 12;
    int world_rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    Random own(seed * 1000 + static_cast<unsigned>(world_rank));
    std::vector<std::vector<std::unique_ptr<Operation>>> planned;
    std::vector<std::size_t> turns;
    for (std::size_t c = 0; c < communicators.size(); ++c) {
        // The same at all members: what they have in common is the name.
        Random shared(seed +
                      static_cast<unsigned>(std::hash<std::string>()(communicators[c].name)));
        planned.emplace_back();
        for (int i = 0; i < per_communicator; ++i) {
            planned.back().push_back(
                std::make_unique<Operation>(communicators[c].comm, shared, i + 1));
            turns.push_back(c);
        }
    }
    std::shuffle(turns.begin(), turns.end(), own);
    std::vector<MPI_Request> requests;
    std::vector<Operation*> started;
    std::vector<std::size_t> next(communicators.size());
    Ring ring;
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
        if (turn == turns.size() / 2) {
            ring.start(requests);
            started.resize(requests.size(), nullptr);
        }
        const std::size_t c = turns[turn];
        started.push_back(planned[c][next[c]++].get());
        requests.emplace_back();
        started.back()->start(&requests.back());
    }
    complete(requests, own, [&](std::size_t index) {
        expect(requests[index] == MPI_REQUEST_NULL, "completion", "leaves the handle");
        if (started[index] != nullptr) {
            started[index]->check("nonblocking");
        }
    });
    ring.check();
}

// Blocking operations of a communicator between its nonblocking ones.
void between_blocking_ones(const Named& named, unsigned seed) {
    Random shared(seed);
    int rank, size;
    MPI_Comm_rank(named.comm, &rank);
    MPI_Comm_size(named.comm, &size);
    std::vector<std::unique_ptr<Operation>> operations;
    std::vector<MPI_Request> requests(10);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        operations.push_back(std::make_unique<Operation>(named.comm, shared, static_cast<int>(i)));
        operations.back()->start(&requests[i]);
        int sum = rank;
        std::vector<int> all(static_cast<std::size_t>(size) * 100, rank);
        switch (pick(shared, 3)) {
        case 0:
            MPI_Barrier(named.comm);
            break;
        case 1:
            MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, named.comm);
            expect(sum == size * (size - 1) / 2, "MPI_Allreduce", "between nonblocking ones");
            break;
        default:
            MPI_Allgather(MPI_IN_PLACE, 100, MPI_INT, all.data(), 100, MPI_INT, named.comm);
            for (int r = 0; r < size; ++r) {
                expect(all[static_cast<std::size_t>(r) * 100 + 99] == r, "MPI_Allgather",
                       "between nonblocking ones");
            }
        }
    }
    Random own(seed + static_cast<unsigned>(rank));
    complete(requests, own,
             [&](std::size_t index) { operations[index]->check("between blocking ones"); });
}

// Started again and again, by each rank in its own order.
void persistent(const std::vector<Named>& communicators, unsigned seed) {
    int world_rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    Random own(seed * 1000 + static_cast<unsigned>(world_rank));
    std::vector<std::unique_ptr<Operation>> operations;
    std::vector<MPI_Request> requests;
    for (const Named& named : communicators) {
        Random shared(seed + static_cast<unsigned>(std::hash<std::string>()(named.name)));
        for (int i = 0; i < 6; ++i) {
            operations.push_back(std::make_unique<Operation>(named.comm, shared, i));
            requests.emplace_back();
            operations.back()->keep(&requests.back());
        }
    }
    for (int round = 0; round < 4; ++round) {
        std::vector<std::size_t> order(requests.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            order[i] = i;
            operations[i]->serial += 10;
            operations[i]->fill();
        }
        std::shuffle(order.begin(), order.end(), own);
        std::vector<MPI_Request> shuffled;
        for (const std::size_t i : order) {
            shuffled.push_back(requests[i]);
        }
        if (round % 2 == 0) {
            MPI_Startall(static_cast<int>(shuffled.size()), shuffled.data());
        } else {
            for (MPI_Request& request : shuffled) {
                MPI_Start(&request);
            }
        }
        complete(shuffled, own,
                 [&](std::size_t index) { operations[order[index]]->check("persistent"); });
    }
    for (MPI_Request& request : requests) {
        MPI_Request_free(&request);
    }
}

// Nobody is through before the last has come.
void barrier_waits(const Named& named) {
    int rank, size;
    MPI_Comm_rank(named.comm, &rank);
    MPI_Comm_size(named.comm, &size);
    MPI_Request request;
    int flag = 0;
    if (rank == size - 1) {
        for (int r = 0; r + 1 < size; ++r) {
            MPI_Recv(nullptr, 0, MPI_INT, MPI_ANY_SOURCE, 5, named.comm, MPI_STATUS_IGNORE);
        }
        MPI_Ibarrier(named.comm, &request);
    } else {
        MPI_Ibarrier(named.comm, &request);
        for (int i = 0; i < 50; ++i) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            expect(flag == 0, "MPI_Ibarrier", "is complete before all have come");
        }
        MPI_Send(nullptr, 0, MPI_INT, size - 1, 5, named.comm);
    }
    while (flag == 0) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
}

// While a collective operation is under way its request may neither be freed nor cancelled; one
// that MPI_Request_get_status has found complete may be freed.
void must_be_complete() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); // where errors with requests go
    const auto refused = [](int code) {
        MPI_Error_class(code, &code);
        return code == MPI_ERR_REQUEST;
    };
    for (int form = 0; form < 2; ++form) {
        // The last rank comes when all others have looked, each having heard from the one before.
        if (rank == size - 1 && rank > 0) {
            MPI_Recv(nullptr, 0, MPI_INT, rank - 1, 1, comm, MPI_STATUS_IGNORE);
        }
        MPI_Request request;
        if (form == 0) {
            MPI_Ibarrier(comm, &request);
        } else {
            MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
            MPI_Start(&request);
        }
        if (rank < size - 1) {
            expect(refused(MPI_Cancel(&request)), "a request", "was cancelled");
            expect(refused(MPI_Request_free(&request)), "a request", "was freed");
            if (rank > 0) {
                MPI_Recv(nullptr, 0, MPI_INT, rank - 1, 1, comm, MPI_STATUS_IGNORE);
            }
            MPI_Send(nullptr, 0, MPI_INT, rank + 1, 1, comm);
        }
        int complete = 0;
        while (complete == 0) {
            MPI_Request_get_status(request, &complete, MPI_STATUS_IGNORE);
        }
        expect(MPI_Request_free(&request) == MPI_SUCCESS, "a complete request", "was not freed");
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const unsigned runs = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 3;
    const unsigned first = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
    std::vector<Named> communicators = make_communicators();
    for (unsigned seed = first; seed < first + runs; ++seed) {
        nonblocking(communicators, seed);
        persistent(communicators, seed);
        for (const Named& named : communicators) {
            between_blocking_ones(named, seed);
            barrier_waits(named);
        }
    }
    // The communicator's handle may go before its operations end.
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    Random shared(7);
    Operation last(copy, shared, 1);
    MPI_Request request;
    last.start(&request);
    MPI_Comm_free(&copy);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    last.check("on a freed communicator");
    must_be_complete();
    free_communicators(communicators);
    return finish("outstanding");
}
