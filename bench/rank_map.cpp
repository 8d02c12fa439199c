// Measures a look-up in a rank map, for every kind, against plain tables of 4 and 8 bytes:
// instructions, nanoseconds and cache misses.
//
//     rank_map                      nanoseconds and bytes, round robin over 16 to 768 K ranks
//     rank_map --instructions       the same look-ups counted by valgrind (callgrind)
//     rank_map --misses             and the data cache's misses of a round robin (callgrind)
//
// Every kind has a function of its own that does one look-up and nothing else. Counts are of its
// instructions from call to return. The functions are called through pointers, so that the compiler
// can't share work among look-ups.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <unistd.h>
#include <variant>
#include <vector>

#include "mpi/comm/rank_map.hpp"

using warren::comm::Process;
using warren::comm::process_of;
using warren::comm::RankMap;

namespace {

struct Plain4 {
    const std::uint32_t* table;
};
struct Plain8 {
    const std::uint64_t* table;
};

} // namespace

// Outside the namespace and not inlined: callgrind's account has a line for each name.
#define LOOK_UP(type, name) extern "C" [[gnu::noinline]] type name
#define LOOK_UP_WORLD_RANK(name)                                                                   \
    LOOK_UP(std::uint32_t, name)(const void* map, int rank) {                                      \
        return (*static_cast<const RankMap*>(map))[rank];                                          \
    }
#define LOOK_UP_PROCESS(name)                                                                      \
    LOOK_UP(Process, name)(const void* map, int rank) {                                            \
        return static_cast<const RankMap*>(map)->process(rank);                                    \
    }
LOOK_UP_WORLD_RANK(look_up_direct)
LOOK_UP_WORLD_RANK(look_up_offset)
LOOK_UP_WORLD_RANK(look_up_strided)
LOOK_UP_WORLD_RANK(look_up_reversed)
LOOK_UP_WORLD_RANK(look_up_block)
LOOK_UP_WORLD_RANK(look_up_nested)
LOOK_UP_WORLD_RANK(look_up_table)
LOOK_UP_PROCESS(look_up_worlds)
LOOK_UP_PROCESS(look_up_process_strided)
LOOK_UP_PROCESS(look_up_process_table)
LOOK_UP(std::uint32_t, look_up_plain4)(const void* map, int rank) {
    return static_cast<const Plain4*>(map)->table[rank];
}
LOOK_UP(std::uint64_t, look_up_plain8)(const void* map, int rank) {
    return static_cast<const Plain8*>(map)->table[rank];
}

namespace {

using WorldRank = std::uint32_t (*)(const void*, int);
using WholeProcess = std::uint64_t (*)(const void*, int);

struct Subject {
    const char* name;
    const char* function;
    std::variant<WorldRank, WholeProcess> look_up;
    const void* map;
    double bytes; // beside the object
};

struct Subjects {
    std::vector<std::uint32_t> four;
    std::vector<std::uint64_t> eight;
    Plain4 plain4;
    Plain8 plain8;
    std::vector<RankMap> maps;
    std::vector<Subject> list;

    // Maps of `ranks` ranks of a world twice as large.
    explicit Subjects(int ranks) {
        std::mt19937 engine(7);
        std::vector<std::uint32_t> shuffled(static_cast<std::size_t>(ranks));
        std::iota(shuffled.begin(), shuffled.end(), 0U);
        std::shuffle(shuffled.begin(), shuffled.end(), engine);
        std::vector<Process> worlds(shuffled.begin(), shuffled.end());
        for (std::size_t i = 0; i < worlds.size(); ++i) {
            worlds[i] = process_of(shuffled[i] % 2, shuffled[i] / 2);
        }
        four = shuffled;
        eight.assign(shuffled.begin(), shuffled.end());
        plain4 = {four.data()};
        plain8 = {eight.data()};
        warren::comm::RankForm planes = warren::comm::RankForm::affine(0, 1, ranks);
        planes.levels = 2;
        planes.level[0] = {2, 2};
        planes.level[1] = {8, 16};
        if (!planes.normalise()) {
            std::abort();
        }
        warren::comm::RankForm blocks = warren::comm::RankForm::affine(3, 1, ranks);
        blocks.levels = 1;
        blocks.level[0] = {3, 2};
        if (!blocks.normalise()) {
            std::abort();
        }
        maps = {RankMap::affine(0, 1, ranks),
                RankMap::affine(static_cast<Process>(ranks), 1, ranks),
                RankMap::affine(1, 2, ranks),
                RankMap::affine(static_cast<Process>(2 * ranks - 1), -2, ranks),
                RankMap::of(blocks),
                RankMap::of(planes),
                RankMap::of(shuffled),
                RankMap::of_processes(worlds)};
        const double table = maps[6].table() != nullptr ? maps[6].table()->width() * ranks : 0;
        const double wide = maps[7].table() != nullptr ? maps[7].table()->width() * ranks : 0;
        list = {
            {"plain table, 4 B", "look_up_plain4", look_up_plain4, &plain4, 4.0 * ranks},
            {"plain table, 8 B", "look_up_plain8", look_up_plain8, &plain8, 8.0 * ranks},
            {"direct", "look_up_direct", look_up_direct, &maps[0], 0},
            {"offset", "look_up_offset", look_up_offset, &maps[1], 0},
            {"strided", "look_up_strided", look_up_strided, &maps[2], 0},
            {"reversed, strided", "look_up_reversed", look_up_reversed, &maps[3], 0},
            {"block-strided", "look_up_block", look_up_block, &maps[4], 0},
            {"nested, 3 dimensions", "look_up_nested", look_up_nested, &maps[5], 128},
            {"table", "look_up_table", look_up_table, &maps[6], table},
            {"table of two worlds", "look_up_worlds", look_up_worlds, &maps[7], wide},
            {"strided, with world", "look_up_process_strided", look_up_process_strided, &maps[2],
             0},
            {"table, with world", "look_up_process_table", look_up_process_table, &maps[6], table}};
    }
};

[[gnu::noinline]] std::uint64_t round_robin(const Subject& subject, int ranks, int rounds) {
    return std::visit(
        [&](auto look_up) {
            std::uint64_t sum = 0;
            for (int round = 0; round < rounds; ++round) {
                for (int rank = 0; rank < ranks; ++rank) {
                    sum += look_up(subject.map, rank);
                }
            }
            return sum;
        },
        subject.look_up);
}

double seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// One round over every kind, to run under valgrind.
int counted(int ranks) {
    const Subjects subjects(ranks);
    std::uint64_t sum = 0;
    for (const Subject& subject : subjects.list) {
        sum += round_robin(subject, ranks, 1);
    }
    return sum == 0; // never
}

// Runs callgrind on this program and reads the account of every look-up's function, what it calls
// included.
int count(const char* program, bool misses) {
    const int ranks = misses ? 768 * 1024 : 1024;
    const char* folder = std::getenv("TMPDIR");
    const std::string out = std::string(folder != nullptr ? folder : "/tmp") + "/rank_map." +
                            std::to_string(getpid()) + ".callgrind";
    const std::string command = std::string("valgrind --tool=callgrind -q --dump-instr=no ") +
                                (misses ? "--cache-sim=yes " : "") + "--callgrind-out-file=" + out +
                                " " + program + " --counted " + std::to_string(ranks) +
                                " && callgrind_annotate --threshold=100 --inclusive=yes " +
                                (misses ? "--show=Ir,D1mr,DLmr " : "--show=Ir ") + out;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) {
        std::perror("valgrind");
        return 1;
    }
    const Subjects subjects(ranks);
    // A function has a line of its own, which is the largest of those that name it.
    std::vector<std::vector<double>> account(subjects.list.size(), std::vector<double>(3));
    char line[4096];
    while (std::fgets(line, sizeof line, pipe) != nullptr) {
        for (std::size_t kind = 0; kind < subjects.list.size(); ++kind) {
            const char* at = std::strstr(line, subjects.list[kind].function);
            if (at == nullptr ||
                std::strchr(" \n'", at[std::strlen(subjects.list[kind].function)]) == nullptr) {
                continue;
            }
            // Numbers with commas, each followed by a share in parentheses.
            std::vector<double> figures;
            for (const char* c = line; c < at && figures.size() < 3;) {
                double value = 0;
                if (*c == '(') {
                    c = std::max(c + 1, static_cast<const char*>(std::strchr(c, ')')));
                } else if (*c >= '0' && *c <= '9') {
                    for (; (*c >= '0' && *c <= '9') || *c == ','; ++c) {
                        value = *c == ',' ? value : value * 10 + (*c - '0');
                    }
                    figures.push_back(value);
                } else {
                    ++c;
                }
            }
            figures.resize(3);
            if (figures[0] > account[kind][0]) {
                account[kind] = figures;
            }
        }
    }
    bool complete = true;
    for (std::size_t kind = 0; kind < subjects.list.size(); ++kind) {
        const std::vector<double>& figures = account[kind];
        // Without the return.
        std::printf("%-22s %6.2f instructions", subjects.list[kind].name, figures[0] / ranks - 1);
        if (misses) {
            std::printf("; misses per 1000: %7.2f of the first level, %7.2f of the last",
                        1000 * figures[1] / ranks, 1000 * figures[2] / ranks);
        }
        std::printf("\n");
        complete &= figures[0] > 0;
    }
    pclose(pipe);
    std::remove(out.c_str());
    return complete ? 0 : 1;
}

int time() {
    std::printf("%-22s", "ns per look-up at ranks");
    const std::vector<int> sizes = {16, 1024, 16 * 1024, 128 * 1024, 768 * 1024};
    for (int ranks : sizes) {
        std::printf(" %9d", ranks);
    }
    std::printf("   bytes at %d\n", sizes.back());
    std::vector<Subjects> subjects;
    subjects.reserve(sizes.size());
    for (int ranks : sizes) {
        subjects.emplace_back(ranks);
    }
    // The best of rounds that take turns.
    std::uint64_t sum = 0;
    for (std::size_t kind = 0; kind < subjects[0].list.size(); ++kind) {
        std::printf("%-22s", subjects[0].list[kind].name);
        for (std::size_t size = 0; size < sizes.size(); ++size) {
            const int rounds = std::max(1, (1 << 20) / sizes[size]);
            double best = 1;
            for (int turn = 0; turn < 7; ++turn) {
                const double start = seconds();
                sum += round_robin(subjects[size].list[kind], sizes[size], rounds);
                best = std::min(best, (seconds() - start) / rounds / sizes[size]);
            }
            std::printf(" %9.2f", 1e9 * best);
        }
        std::printf("   %11.0f\n", subjects.back().list[kind].bytes);
    }
    return sum == 0;
}

} // namespace

int main(int count_of_arguments, char* arguments[]) {
    const std::string mode = count_of_arguments > 1 ? arguments[1] : "";
    if (mode == "--counted" && count_of_arguments > 2) {
        return counted(std::atoi(arguments[2]));
    }
    if (mode == "--instructions" || mode == "--misses") {
        return count(arguments[0], mode == "--misses");
    }
    return time();
}
