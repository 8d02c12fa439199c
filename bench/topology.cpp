// The topology image beside hwloc's own topology: what look-ups cost, bytes per object, mapping and
// checking.
//
//     topology                      three synthetic nodes and this machine
//     topology SOURCE…              xml:FILE, folder:DIRECTORY (with a machine's /proc and /sys),
//                                   synthetic:TEXT or native
//
// Both are asked the same questions about the same random processors, by turns; each figure is the
// median of 31 runs through 16384 questions. Beside mapping and checking is, by turns with it, what
// a bare mmap of as many bytes takes that looks at each page, and what a step of a fixed loop does,
// eight additions, which says how quick the processor is just then: one that another thread of its
// core shares is half as quick. The image is made of hwloc's XML. Then, for the look-ups, hwloc is
// given values of all attributes for all pairs, if it has none, since it has nothing to look up
// else, and the image is made anew.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <hwloc.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "warren/topology.h"

namespace {

constexpr int runs = 31;
// More than processors learn by heart.
constexpr std::size_t questions = 16384;

volatile std::uintptr_t sink;

double now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// Nanoseconds per question of one run.
template <typename Ask>
[[gnu::noinline]] double time_of(Ask ask) {
    const double begin = now_ns();
    std::uintptr_t sum = 0;
    for (std::size_t question = 0; question < questions; ++question) {
        sum += static_cast<std::uintptr_t>(ask(question));
    }
    sink = sum;
    return (now_ns() - begin) / questions;
}

// By turns: processors change their speed within milliseconds.
template <typename Theirs, typename Ours>
void print(const char* what, Theirs ask_theirs, Ours ask_ours) {
    std::vector<double> theirs;
    std::vector<double> ours;
    for (int run = 0; run < runs; ++run) {
        theirs.push_back(time_of(ask_theirs));
        ours.push_back(time_of(ask_ours));
    }
    std::printf("  %-44s %9.1f %9.1f %8.1f\n", what, median(theirs), median(ours),
                median(theirs) / median(ours));
}

[[noreturn]] void give_up(const std::string& what) {
    std::fprintf(stderr, "topology: %s\n", what.c_str());
    std::exit(1);
}

hwloc_topology_t load(const std::string& source) {
    hwloc_topology_t topology = nullptr;
    const bool is_folder = source.rfind("folder:", 0) == 0;
    if (is_folder) {
        setenv("HWLOC_FSROOT", source.c_str() + 7, 1);
        setenv("HWLOC_COMPONENTS", "linux,stop", 1);
    }
    hwloc_topology_init(&topology);
    int status = 0;
    if (source.rfind("synthetic:", 0) == 0) {
        status = hwloc_topology_set_synthetic(topology, source.c_str() + 10);
    } else if (source.rfind("xml:", 0) == 0) {
        status = hwloc_topology_set_xml(topology, source.c_str() + 4);
    } else if (source != "native" && !is_folder) {
        status = -1;
    }
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (status != 0 || hwloc_topology_load(topology) != 0) {
        give_up("hwloc can't load " + source);
    }
    unsetenv("HWLOC_FSROOT");
    unsetenv("HWLOC_COMPONENTS");
    return topology;
}

void add_values(hwloc_topology_t topology) {
    const int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    for (int from = 0; from < nodes; ++from) {
        hwloc_location location{};
        location.type = HWLOC_LOCATION_TYPE_CPUSET;
        location.location.cpuset =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(from))
                ->cpuset;
        for (int to = 0; hwloc_bitmap_iszero(location.location.cpuset) == 0 && to < nodes; ++to) {
            hwloc_obj_t node =
                hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(to));
            const auto hops = static_cast<hwloc_uint64_t>(std::abs(from - to));
            hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_BANDWIDTH, node, &location, 0,
                                    100'000 / (1 + hops));
            hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_LATENCY, node, &location, 0,
                                    100 + 10 * hops);
        }
    }
}

bool has_values(hwloc_topology_t topology) {
    unsigned count = 0;
    return hwloc_memattr_get_targets(topology, HWLOC_MEMATTR_ID_BANDWIDTH, nullptr, 0, &count,
                                     nullptr, nullptr) == 0 &&
           count > 0;
}

// The image of hwloc's topology, by way of its XML; and how long hwloc takes to load that.
warren_topology* same_image(hwloc_topology_t topology, double* load_us) {
    char path[] = "/tmp/warren-topology-bench.XXXXXX";
    const int file = mkstemp(path);
    if (file < 0 || hwloc_topology_export_xml(topology, path, 0) != 0) {
        give_up("no XML in /tmp");
    }
    close(file);
    warren_topology* ours = nullptr;
    warren_topology_report report;
    if (warren_topology_open((std::string("xml:") + path).c_str(), &ours, &report) != 0) {
        give_up(report.problem);
    }
    if (load_us != nullptr) {
        std::vector<double> times;
        for (int run = 0; run < runs; ++run) {
            const double begin = now_ns();
            hwloc_topology_destroy(load(std::string("xml:") + path));
            times.push_back(now_ns() - begin);
        }
        *load_us = median(times) / 1e3;
    }
    unlink(path);
    return ours;
}

struct MapTimes {
    double open_us;
    double bare_us; // only mmap, and a look at each page
    double step_ns; // only computing: as long on each machine, as long as the processor is as quick
};

double bare_map_ns(int file, std::size_t bytes) {
    constexpr std::size_t page = 4096;
    const double begin = now_ns();
    void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        give_up("the image can't be mapped");
    }
    std::uintptr_t sum = 0;
    for (std::size_t at = 0; at < bytes; at += page) {
        sum += static_cast<const unsigned char*>(mapped)[at];
    }
    sink = sum;
    const double ns = now_ns() - begin;
    munmap(mapped, bytes);
    return ns;
}

// A step of 16384: of eight sums in registers that don't wait for each other.
double step_ns() {
    const double begin = now_ns();
    std::uintptr_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    for (std::size_t step = 0; step < questions; ++step) {
        a += step;
        b += step;
        c += step;
        d += step;
        e += step;
        f += step;
        g += step;
        h += step;
        __asm__("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
    }
    sink = a + b + c + d + e + f + g + h;
    return (now_ns() - begin) / questions;
}

MapTimes map_and_check(const warren_topology* topology) {
    std::size_t bytes = 0;
    const void* image = warren_topology_image(topology, &bytes);
    const int file = memfd_create("topology-bench", MFD_ALLOW_SEALING);
    if (file < 0 || write(file, image, bytes) != static_cast<ssize_t>(bytes) ||
        fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        give_up("no sealed memory file");
    }
    const std::string source = std::to_string(file);
    constexpr int mappings = 301;
    std::vector<double> times;
    std::vector<double> bare;
    std::vector<double> steps;
    const auto map_bare = [&] { bare.push_back(bare_map_ns(file, bytes)); };
    for (int run = 0; run < mappings; ++run) {
        const bool is_bare_first = run % 2 == 0; // neither always finds what the other leaves
        if (is_bare_first) {
            map_bare();
        }
        if (run % 10 == 0) {
            steps.push_back(step_ns());
        }
        warren_topology* own = nullptr;
        const double begin = now_ns();
        if (warren_topology_open(source.c_str(), &own, nullptr) != 0) {
            give_up("the image can't be mapped");
        }
        times.push_back(now_ns() - begin);
        warren_topology_close(own);
        if (!is_bare_first) {
            map_bare();
        }
    }
    close(file);
    return {median(times) / 1e3, median(bare) / 1e3, median(steps)};
}

struct Questions {
    std::vector<hwloc_obj_t> one, other, next, node;
    std::vector<warren_object> our_one, our_other, our_next;
    std::vector<unsigned> cpu, target;
    std::vector<hwloc_bitmap_t> pair;
    std::vector<warren_set> our_pair;
    std::vector<std::vector<std::uint64_t>> words;
};

Questions make_questions(hwloc_topology_t theirs, const warren_topology* ours) {
    Questions asked;
    std::mt19937 random(1); // NOLINT: the same questions each time
    const auto below = [&random](int limit) {
        return static_cast<unsigned>(random() % static_cast<unsigned>(limit));
    };
    const int cpus = hwloc_get_nbobjs_by_type(theirs, HWLOC_OBJ_PU);
    const auto limit = static_cast<unsigned>(cpus);
    const int nodes = hwloc_get_nbobjs_by_type(theirs, HWLOC_OBJ_NUMANODE);
    for (std::size_t question = 0; question < questions; ++question) {
        const unsigned first = below(cpus);
        const unsigned second = below(cpus);
        asked.one.push_back(hwloc_get_obj_by_type(theirs, HWLOC_OBJ_PU, first));
        asked.other.push_back(hwloc_get_obj_by_type(theirs, HWLOC_OBJ_PU, second));
        asked.next.push_back(hwloc_get_obj_by_type(theirs, HWLOC_OBJ_PU, (first + 1) % limit));
        asked.our_next.push_back(
            warren_topology_object(ours, WARREN_OBJECT_PU, (first + 1) % limit));
        asked.our_one.push_back(warren_topology_object(ours, WARREN_OBJECT_PU, first));
        asked.our_other.push_back(warren_topology_object(ours, WARREN_OBJECT_PU, second));
        asked.cpu.push_back(asked.one.back()->os_index);
        asked.node.push_back(hwloc_get_obj_by_type(theirs, HWLOC_OBJ_NUMANODE, below(nodes)));
        asked.target.push_back(asked.node.back()->os_index);
        asked.pair.push_back(hwloc_bitmap_dup(asked.one.back()->cpuset));
        hwloc_bitmap_or(asked.pair.back(), asked.pair.back(), asked.other.back()->cpuset);
        std::vector<std::uint64_t>& words = asked.words.emplace_back();
        for (int word = 0; word <= hwloc_bitmap_last(asked.pair.back()) / 64; ++word) {
            words.push_back(
                hwloc_bitmap_to_ith_ulong(asked.pair.back(), static_cast<unsigned>(word)));
        }
    }
    for (const std::vector<std::uint64_t>& words : asked.words) {
        asked.our_pair.push_back({words.data(), 0, static_cast<std::uint32_t>(words.size())});
    }
    return asked;
}

hwloc_location at(hwloc_obj_t object) {
    hwloc_location location{};
    location.type = HWLOC_LOCATION_TYPE_CPUSET;
    location.location.cpuset = object->cpuset;
    return location;
}

// The questions as arrays, captured by value below: the loops look at nothing but them.
struct Asked {
    explicit Asked(const Questions& made)
        : one(made.one.data()),
          other(made.other.data()),
          next(made.next.data()),
          node(made.node.data()),
          our_one(made.our_one.data()),
          our_other(made.our_other.data()),
          our_next(made.our_next.data()),
          cpu(made.cpu.data()),
          target(made.target.data()),
          pair(made.pair.data()),
          our_pair(made.our_pair.data()) {}

    const hwloc_obj_t *one, *other, *next, *node;
    const warren_object *our_one, *our_other, *our_next;
    const unsigned *cpu, *target;
    const hwloc_bitmap_t* pair;
    const warren_set* our_pair;
};

void compare_nearest(hwloc_topology_t theirs, const warren_topology* ours, Asked asked) {
    const auto nearest = [=](std::size_t q) {
        return warren_topology_nearest_memory(ours, asked.our_one[q]);
    };
    print(
        "nearest memory (hwloc_get_local_numanode_objs)",
        [=](std::size_t q) {
            unsigned count = 1;
            hwloc_obj_t node = nullptr;
            hwloc_location location = at(asked.one[q]);
            hwloc_get_local_numanode_objs(theirs, &location, &count, &node,
                                          HWLOC_LOCAL_NUMANODE_FLAG_LARGER_LOCALITY);
            return reinterpret_cast<std::uintptr_t>(node);
        },
        nearest);
    print(
        "  … (walking up by hand)",
        [=](std::size_t q) {
            hwloc_obj_t object = asked.one[q];
            while (object != nullptr && object->memory_arity == 0) {
                object = object->parent; // to nothing, where a node is beside the processors'
            }
            return reinterpret_cast<std::uintptr_t>(object != nullptr ? object->memory_first_child
                                                                      : nullptr);
        },
        nearest);
}

void compare_ancestors(hwloc_topology_t theirs, const warren_topology* ours, Asked asked) {
    print(
        "common ancestor of two processing units",
        [=](std::size_t q) {
            return reinterpret_cast<std::uintptr_t>(
                hwloc_get_common_ancestor_obj(theirs, asked.one[q], asked.other[q]));
        },
        [=](std::size_t q) {
            return warren_object_common_ancestor(ours, asked.our_one[q], asked.our_other[q]);
        });
    print(
        "  … (of one and the next)",
        [=](std::size_t q) {
            return reinterpret_cast<std::uintptr_t>(
                hwloc_get_common_ancestor_obj(theirs, asked.one[q], asked.next[q]));
        },
        [=](std::size_t q) {
            return warren_object_common_ancestor(ours, asked.our_one[q], asked.our_next[q]);
        });
    print(
        "object covering two processing units",
        [=](std::size_t q) {
            return reinterpret_cast<std::uintptr_t>(
                hwloc_get_obj_covering_cpuset(theirs, asked.pair[q]));
        },
        [=](std::size_t q) { return warren_topology_covering(ours, asked.our_pair[q]); });
}

void compare_attributes(hwloc_topology_t theirs, const warren_topology* ours, Asked asked) {
    print(
        "value of an attribute",
        [=](std::size_t q) {
            hwloc_location location = at(asked.one[q]);
            hwloc_uint64_t value = 0;
            hwloc_memattr_get_value(theirs, HWLOC_MEMATTR_ID_BANDWIDTH, asked.node[q], &location, 0,
                                    &value);
            return value;
        },
        [=](std::size_t q) {
            std::uint64_t value = 0;
            warren_topology_value(ours, WARREN_ATTRIBUTE_BANDWIDTH,
                                  warren_topology_initiator_of_cpu(ours, asked.cpu[q]),
                                  asked.target[q], &value, nullptr);
            return value;
        });
    print(
        "best target for an attribute",
        [=](std::size_t q) {
            hwloc_location location = at(asked.one[q]);
            hwloc_obj_t best = nullptr;
            hwloc_uint64_t value = 0;
            hwloc_memattr_get_best_target(theirs, HWLOC_MEMATTR_ID_BANDWIDTH, &location, 0, &best,
                                          &value);
            return reinterpret_cast<std::uintptr_t>(best);
        },
        [=](std::size_t q) {
            return warren_topology_best_target(ours, WARREN_ATTRIBUTE_BANDWIDTH,
                                               warren_topology_initiator_of_cpu(ours, asked.cpu[q]),
                                               0);
        });
}

void compare(hwloc_topology_t theirs, const warren_topology* ours) {
    const Questions made = make_questions(theirs, ours);
    const Asked asked(made);
    std::printf("  %-44s %9s %9s %8s\n", "ns per look-up", "hwloc", "image", "ratio");
    print(
        "processing unit by OS index",
        [=](std::size_t q) {
            return reinterpret_cast<std::uintptr_t>(
                hwloc_get_pu_obj_by_os_index(theirs, asked.cpu[q]));
        },
        [=](std::size_t q) {
            return warren_topology_by_os_index(ours, WARREN_OBJECT_PU, asked.cpu[q]);
        });
    compare_nearest(theirs, ours, asked);
    compare_ancestors(theirs, ours, asked);
    compare_attributes(theirs, ours, asked);
    for (hwloc_bitmap_t set : made.pair) {
        hwloc_bitmap_free(set);
    }
}

void run(const std::string& source) {
    hwloc_topology_t theirs = load(source);
    double load_us = 0;
    warren_topology* ours = same_image(theirs, &load_us);
    std::size_t bytes = 0;
    warren_topology_image(ours, &bytes);
    const std::uint32_t objects = warren_topology_objects(ours);
    const MapTimes times = map_and_check(ours);
    std::printf("%s\n  %u objects, image of %zu bytes (%.1f per object), mapped and checked in "
                "%.1f µs (bare mmap and look %.1f µs, step of the fixed loop %.2f ns; hwloc loads "
                "XML in %.0f µs)\n",
                source.c_str(), objects, bytes, static_cast<double>(bytes) / objects, times.open_us,
                times.bare_us, times.step_ns, load_us);
    if (!has_values(theirs)) {
        add_values(theirs);
        warren_topology_close(ours);
        ours = same_image(theirs, nullptr);
        warren_topology_image(ours, &bytes);
        std::printf("  look-ups of an image with values, of %zu bytes\n", bytes);
    }
    compare(theirs, ours);
    warren_topology_close(ours);
    hwloc_topology_destroy(theirs);
}

} // namespace

int main(int argument_count, char** arguments) {
    std::vector<std::string> sources(arguments + 1, arguments + argument_count);
    if (sources.empty()) {
        sources = {
            // A KNL: 64 cores of 4 threads in tiles of 2, four quarters with DDR and MCDRAM each.
            "synthetic:package:1 group:4 [numa(memory=24GB)] [numa(memory=4GB)] l2:8 core:2 l1d:1 "
            "pu:4",
            "synthetic:package:4 [numa] l3:1 l2:24 l1d:1 core:1 pu:1",
            "synthetic:package:2 group:4 [numa] l3:3 l2:8 l1d:1 core:1 pu:2", "native"};
    }
    for (const std::string& source : sources) {
        run(source);
    }
    return 0;
}
