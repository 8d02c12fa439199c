// Random MPI programs, compared with a sequential model. Runs on any MPI library of version 4.1.
//     mpiexec -n 5 random_programs --seed 1 --programs 20 --steps 200
//     mpiexec -n 2 random_programs --threads 3       programs at the same time in threads
//     mpiexec --ranks-per-process 4 -n 8 random_programs_bound     (Warren) threads as ranks
// A failure names seed, step, operation and what was expected, and ends the job with an error.
// --only 17,30-40 executes these steps only (and models the others), as shrink.py does.
#include "program.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#ifdef BOUND_RANKS
#include "warren/ranks.h"
#endif

namespace programs {

namespace {

// The calling thread is one of rank `number` of this process.
void bind(int number) {
#ifdef BOUND_RANKS
    if (number >= process_rank_limit || warren_rank_bind(number) != WARREN_RANK_SUCCESS) {
        fail("a thread can't be bound to its rank");
    }
    process_rank = number;
#else
    static_cast<void>(number);
#endif
}

[[noreturn]] void usage() {
    std::fprintf(stderr,
                 "random_programs [--seed S] [--programs N] [--steps N] [--threads N]\n"
                 "    [--bytes N] [--only STEPS] [--without KIND] [--alarm SECONDS] [--verbose]\n");
    std::exit(2);
}

Options options_of(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--verbose") {
            options.verbose = true;
            continue;
        }
        if (i + 1 == argc) {
            usage();
        }
        const char* value = argv[++i];
        if (name == "--seed") {
            options.seed = std::strtoul(value, nullptr, 10);
        } else if (name == "--programs") {
            options.programs = std::atoi(value);
        } else if (name == "--steps") {
            options.steps = std::atoi(value);
        } else if (name == "--threads") {
            options.threads = std::atoi(value);
        } else if (name == "--bytes") {
            options.bytes = std::atol(value);
        } else if (name == "--alarm") {
            options.alarm = static_cast<unsigned>(std::atoi(value));
        } else if (name == "--without") {
            options.without.insert(value);
        } else if (name == "--only") {
            for (const char* next = value; *next != 0;) {
                char* end = nullptr;
                const int first = static_cast<int>(std::strtol(next, &end, 10));
                const int last =
                    *end == '-' ? static_cast<int>(std::strtol(end + 1, &end, 10)) : first;
                options.only.emplace(first, last);
                next = *end == ',' ? end + 1 : end;
                if (*next != 0 && next == value) {
                    usage();
                }
            }
        } else {
            usage();
        }
    }
    return options;
}

// One program per thread, all of different seeds.
long run(const Options& options, unsigned long seed, int number) {
    std::vector<MPI_Comm> bases(static_cast<std::size_t>(options.threads));
    for (MPI_Comm& base : bases) {
        MUST(MPI_Comm_dup(MPI_COMM_WORLD, &base));
    }
    MPI_Comm shared = MPI_COMM_NULL;
    if (options.threads > 1) {
        MUST(MPI_Comm_dup(MPI_COMM_WORLD, &shared));
    }
    std::vector<long> steps(bases.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < bases.size(); ++i) {
        const auto work = [&, i] {
            bind(number);
            const int thread = static_cast<int>(i);
            Program program(options, thread == 0 ? seed : seed * 1000 + i, thread, bases[i],
                            shared);
            program.run();
            steps[i] = program.steps_run();
        };
        if (i + 1 == bases.size()) {
            work();
        } else {
            threads.emplace_back(work);
        }
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (MPI_Comm& base : bases) {
        MUST(MPI_Comm_free(&base));
    }
    if (shared != MPI_COMM_NULL) {
        MUST(MPI_Comm_free(&shared));
    }
    return std::accumulate(steps.begin(), steps.end(), 0L);
}

void run_rank(const Options& options, int number) {
    const int wanted = options.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int provided = -1, rank = -1;
    bind(number);
    MPI_Init_thread(nullptr, nullptr, wanted, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided < wanted) {
        fail("the library has no MPI_THREAD_MULTIPLE");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    long steps = 0;
    for (int i = 0; i < options.programs; ++i) {
        steps += run(options, options.seed + static_cast<unsigned long>(i), number);
    }
    if (rank == 0) {
        std::printf("random programs: seeds %lu to %lu, %ld steps, no errors\n", options.seed,
                    options.seed + static_cast<unsigned long>(options.programs) - 1, steps);
    }
    MPI_Finalize();
}

} // namespace

} // namespace programs

int main(int argc, char** argv) {
    using namespace programs;
    const Options options = options_of(argc, argv);
    report_signals(options.alarm);
    avoid_types(options.without);
    count_elements = options.without.count("elements") == 0;
    int ranks = 1;
#ifdef BOUND_RANKS
    ranks = warren_rank_count();
#endif
    std::vector<std::thread> others;
    for (int number = 1; number < ranks; ++number) {
        others.emplace_back(run_rank, std::cref(options), number);
    }
    run_rank(options, 0);
    for (std::thread& other : others) {
        other.join();
    }
    return 0;
}
