// Compares the cost of allocation by attribute with other allocators: pairs of allocate and free by
// size, on one and more threads. Every block is written to. Other allocators are loaded if they are
// installed, and named as missing otherwise: jemalloc, memkind, libnuma, hwloc, UMF (PyPI: umf).
//     allocation [--threads 1,2] [--seconds 0.05] [--only NAMES] [--json]
// Three patterns. `one`: a block is freed before the next is made. `many`: up to 64 blocks (at most
// 8 MiB) are made, then freed in the order of their making. `far`, for Warren only: 16 blocks
// alternate between two places more than 16 GiB apart, as those of two large heaps do. Figures are
// the best of 5 rounds, in ns per pair. Rounds of all allocators alternate, so that a disturbance
// of the machine affects all.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "warren/memory.h"

namespace {

using Allocate = void* (*)(std::size_t);
using Free = void (*)(void*, std::size_t);

struct Allocator {
    const char* name;
    Allocate allocate;
    Free free;
    bool slow; // a system call or several each time: fewer repetitions do
};

// Symbols of a library; prints what is missing.
class Library {
  public:
    Library(const char* name, std::initializer_list<const char*> files) : name_(name) {
        for (const char* file : files) {
            handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
            if (handle_ != nullptr) {
                return;
            }
        }
        std::fprintf(stderr, "missing: %s (%s)\n", name, dlerror());
    }
    template <typename Function>
    bool find(const char* symbol, Function& function) {
        if (handle_ == nullptr) {
            return false;
        }
        function = reinterpret_cast<Function>(dlsym(handle_, symbol));
        if (function == nullptr) {
            std::fprintf(stderr, "missing: %s has no %s\n", name_, symbol);
        }
        return function != nullptr;
    }

  private:
    const char* name_;
    void* handle_ = nullptr;
};

// ---- Warren

warren_mem_criteria* criteria = nullptr;

void* warren_allocate(std::size_t bytes) {
    return warren_mem_alloc(bytes, criteria);
}
void warren_free(void* block, std::size_t) {
    warren_mem_free(block);
}

// ---- The system: a mapping and a policy each time

void* mapping_allocate(std::size_t bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long node_0 = 1;
    syscall(SYS_mbind, mapped, bytes, MPOL_PREFERRED, &node_0, 64UL, 0U);
    return mapped;
}
void mapping_free(void* block, std::size_t bytes) {
    munmap(block, bytes);
}

// ---- The others; state in variables, as their functions want it

void* (*jemalloc_malloc)(std::size_t);
void (*jemalloc_free)(void*);
void* (*memkind_malloc)(void*, std::size_t);
void (*memkind_free)(void*, void*);
void** memkind_kind;
void* (*numa_alloc)(std::size_t, int);
void (*numa_release)(void*, std::size_t);
void* (*hwloc_alloc)(void*, std::size_t, void*, int, int);
int (*hwloc_release)(void*, void*, std::size_t);
void* hwloc_machine;
void* hwloc_nodes;
void* (*umf_malloc)(void*, std::size_t);
int (*umf_release)(void*, void*);
void* umf_disjoint;
void* umf_scalable;

bool find_jemalloc() {
    Library library("jemalloc", {"libjemalloc.so.2"});
    return library.find("malloc", jemalloc_malloc) && library.find("free", jemalloc_free);
}

bool find_memkind() {
    Library library("memkind", {"libmemkind.so.0"});
    return library.find("memkind_malloc", memkind_malloc) &&
           library.find("memkind_free", memkind_free) &&
           library.find("MEMKIND_REGULAR", memkind_kind);
}

bool find_libnuma() {
    Library library("libnuma", {"libnuma.so.1"});
    int (*available)() = nullptr;
    return library.find("numa_alloc_onnode", numa_alloc) &&
           library.find("numa_free", numa_release) && library.find("numa_available", available) &&
           available() >= 0;
}

bool find_hwloc() {
    Library library("hwloc", {"libhwloc.so.15"});
    int (*init)(void**) = nullptr;
    int (*load)(void*) = nullptr;
    void* (*nodes)(void*) = nullptr;
    if (!library.find("hwloc_topology_init", init) || !library.find("hwloc_topology_load", load) ||
        !library.find("hwloc_topology_get_topology_nodeset", nodes) ||
        !library.find("hwloc_alloc_membind", hwloc_alloc) ||
        !library.find("hwloc_free", hwloc_release) || init(&hwloc_machine) != 0 ||
        load(hwloc_machine) != 0) {
        return false;
    }
    hwloc_nodes = nodes(hwloc_machine);
    return hwloc_nodes != nullptr;
}

// UMF has a pool of its own, "disjoint", and one of Intel's allocator of TBB, "scalable" (where
// libtbbmalloc.so.2 is). The first is set up to keep what is freed, the best that it can do here:
// by default it keeps four pieces per size.
enum class UmfPool { disjoint, scalable };

bool find_umf(UmfPool wanted, void*& pool) {
    const char* file = std::getenv("UMF_LIBRARY");
    Library library("UMF, as UMF_LIBRARY names it", {file != nullptr ? file : "libumf.so.1"});
    int (*make_params)(void**) = nullptr;
    int (*set_nodes)(void*, unsigned*, unsigned) = nullptr;
    int (*set_mode)(void*, int) = nullptr;
    const void* (*provider_ops)() = nullptr;
    int (*make_provider)(const void*, const void*, void**) = nullptr;
    int (*make_pool_params)(void**) = nullptr;
    int (*set_largest)(void*, std::size_t) = nullptr;
    int (*set_capacity)(void*, std::size_t) = nullptr;
    const void* (*pool_ops)() = nullptr;
    int (*make_pool)(const void*, void*, const void*, int, void**) = nullptr;
    const bool is_disjoint = wanted == UmfPool::disjoint;
    if (!library.find("umfOsMemoryProviderParamsCreate", make_params) ||
        !library.find("umfOsMemoryProviderParamsSetNumaList", set_nodes) ||
        !library.find("umfOsMemoryProviderParamsSetNumaMode", set_mode) ||
        !library.find("umfOsMemoryProviderOps", provider_ops) ||
        !library.find("umfMemoryProviderCreate", make_provider) ||
        !library.find(is_disjoint ? "umfDisjointPoolParamsCreate" : "umfScalablePoolParamsCreate",
                      make_pool_params) ||
        !library.find("umfDisjointPoolParamsSetMaxPoolableSize", set_largest) ||
        !library.find("umfDisjointPoolParamsSetCapacity", set_capacity) ||
        !library.find(is_disjoint ? "umfDisjointPoolOps" : "umfScalablePoolOps", pool_ops) ||
        !library.find("umfPoolCreate", make_pool) || !library.find("umfPoolMalloc", umf_malloc) ||
        !library.find("umfPoolFree", umf_release)) {
        return false;
    }
    void* params = nullptr;
    void* provider = nullptr;
    void* pool_params = nullptr;
    unsigned node = 0;
    constexpr int bind_mode = 1;
    constexpr std::size_t capacity = 256; // pieces that are kept, of each size
    const bool made = make_params(&params) == 0 && set_nodes(params, &node, 1) == 0 &&
                      set_mode(params, bind_mode) == 0 &&
                      make_provider(provider_ops(), params, &provider) == 0 &&
                      make_pool_params(&pool_params) == 0 &&
                      (!is_disjoint || (set_largest(pool_params, std::size_t{2} << 20) == 0 &&
                                        set_capacity(pool_params, capacity) == 0)) &&
                      make_pool(pool_ops(), provider, pool_params, 0, &pool) == 0;
    if (!made) {
        std::fprintf(stderr, "missing: UMF's %s pool can't be made\n",
                     is_disjoint ? "disjoint" : "scalable");
    }
    return made;
}

std::vector<Allocator> find_allocators() {
    std::vector<Allocator> found = {{"warren", warren_allocate, warren_free, false},
                                    {"mmap_mbind", mapping_allocate, mapping_free, true},
                                    {"malloc", [](std::size_t bytes) { return std::malloc(bytes); },
                                     [](void* block, std::size_t) { std::free(block); }, false}};
    if (find_jemalloc()) {
        found.push_back({"jemalloc", [](std::size_t bytes) { return jemalloc_malloc(bytes); },
                         [](void* block, std::size_t) { jemalloc_free(block); }, false});
    }
    if (find_memkind()) {
        found.push_back(
            {"memkind", [](std::size_t bytes) { return memkind_malloc(*memkind_kind, bytes); },
             [](void* block, std::size_t) { memkind_free(*memkind_kind, block); }, false});
    }
    if (find_umf(UmfPool::disjoint, umf_disjoint)) {
        found.push_back({"umf", [](std::size_t bytes) { return umf_malloc(umf_disjoint, bytes); },
                         [](void* block, std::size_t) { umf_release(umf_disjoint, block); },
                         false});
    }
    if (find_umf(UmfPool::scalable, umf_scalable)) {
        found.push_back(
            {"umf_tbb", [](std::size_t bytes) { return umf_malloc(umf_scalable, bytes); },
             [](void* block, std::size_t) { umf_release(umf_scalable, block); }, false});
    }
    if (find_libnuma()) {
        found.push_back({"libnuma", [](std::size_t bytes) { return numa_alloc(bytes, 0); },
                         [](void* block, std::size_t bytes) { numa_release(block, bytes); }, true});
    }
    if (find_hwloc()) {
        constexpr int bind = 2;        // HWLOC_MEMBIND_BIND
        constexpr int by_nodeset = 32; // HWLOC_MEMBIND_BYNODESET
        found.push_back(
            {"hwloc",
             [](std::size_t bytes) {
                 return hwloc_alloc(hwloc_machine, bytes, hwloc_nodes, bind, by_nodeset);
             },
             [](void* block, std::size_t bytes) { hwloc_release(hwloc_machine, block, bytes); },
             true});
    }
    return found;
}

double now_ns() {
    using namespace std::chrono;
    return duration<double, std::nano>(steady_clock::now().time_since_epoch()).count();
}

constexpr std::size_t most_blocks = 64;
constexpr std::size_t most_bytes = 8 << 20;

// Makes and frees `pairs` blocks, `together` at once.
void work(const Allocator& allocator, std::size_t bytes, std::size_t together, std::size_t pairs) {
    void* blocks[most_blocks];
    for (std::size_t done = 0; done < pairs; done += together) {
        for (std::size_t i = 0; i < together; ++i) {
            blocks[i] = allocator.allocate(bytes);
            if (blocks[i] == nullptr) {
                std::fprintf(stderr, "%s: no memory for %zu bytes\n", allocator.name, bytes);
                std::exit(1);
            }
            *static_cast<volatile char*>(blocks[i]) = 1;
        }
        for (std::size_t i = 0; i < together; ++i) {
            allocator.free(blocks[i], bytes);
        }
    }
}

// The caller has the number-th of the process's processors to itself, as far as that goes: two
// threads on one take turns, and seem half as fast.
void bind_to(unsigned number) {
    static const std::vector<int> own = [] {
        std::vector<int> made;
        cpu_set_t set;
        if (sched_getaffinity(getpid(), sizeof set, &set) == 0) {
            for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
                if (CPU_ISSET(cpu, &set)) {
                    made.push_back(cpu);
                }
            }
        }
        return made;
    }();
    if (!own.empty()) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(own[number % own.size()], &set);
        sched_setaffinity(0, sizeof set, &set);
    }
}

// Blocks of Warren's, in use: each other one more than 16 GiB from the others. Empty where they
// can't be had.
constexpr std::size_t far_blocks = 16;
std::vector<void*> make_far(std::size_t bytes, unsigned threads) {
    constexpr std::size_t distance = std::size_t{16} << 30;
    constexpr std::size_t most_filled_bytes = 64 << 20; // of what is free nearby
    const std::size_t half = far_blocks / 2 * threads;
    std::vector<void*> near(half);
    for (void*& block : near) {
        block = warren_allocate(bytes);
    }
    mmap(nullptr, distance, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    std::vector<void*> made;
    for (std::size_t filled = 0; made.size() < 2 * half && filled < most_filled_bytes;
         filled += bytes) {
        void* block = warren_allocate(bytes);
        const auto from = reinterpret_cast<std::uintptr_t>(near[0]);
        const auto at = reinterpret_cast<std::uintptr_t>(block);
        if (block == nullptr) {
            break;
        }
        if ((from > at ? from - at : at - from) > distance) {
            made.push_back(near[made.size() / 2]);
            made.push_back(block);
        }
    }
    if (made.size() < 2 * half) {
        std::fprintf(stderr, "missing: blocks far from each other\n");
        made.clear();
    }
    return made;
}

// ns per pair of one thread, while all do the same. What a thread is given of `far` it frees first,
// so that it gets it again, and has it at the end.
double measure(const Allocator& allocator, std::size_t bytes, std::size_t together,
               unsigned threads, double seconds, std::vector<void*>& far) {
    std::size_t pairs = (allocator.slow ? 64 : 1024) / together * together;
    for (;;) {
        std::atomic<unsigned> ready{0};
        std::vector<std::thread> running;
        std::vector<double> times(threads);
        for (unsigned t = 0; t < threads; ++t) {
            running.emplace_back([&, t] {
                bind_to(t);
                work(allocator, bytes, together, together * 4);
                void** own = far.empty() ? nullptr : &far[t * far_blocks];
                for (std::size_t i = 0; own != nullptr && i < far_blocks; ++i) {
                    allocator.free(own[i], bytes);
                }
                ready.fetch_add(1);
                while (ready.load() < threads) {
                }
                const double begin = now_ns();
                work(allocator, bytes, together, pairs);
                times[t] = now_ns() - begin;
                for (std::size_t i = 0; own != nullptr && i < far_blocks; ++i) {
                    own[i] = allocator.allocate(bytes);
                }
            });
        }
        for (std::thread& thread : running) {
            thread.join();
        }
        const double longest = *std::max_element(times.begin(), times.end());
        if (longest > seconds * 1e9 / 2 || pairs > (std::size_t{1} << 40)) {
            return longest / static_cast<double>(pairs);
        }
        const double factor = std::clamp(seconds * 1e9 / longest, 2.0, 64.0);
        pairs = static_cast<std::size_t>(static_cast<double>(pairs) * factor) / together * together;
    }
}

std::vector<unsigned> numbers_of(const char* list) {
    std::vector<unsigned> numbers;
    for (const char* at = list; *at != '\0';) {
        char* end = nullptr;
        numbers.push_back(static_cast<unsigned>(std::strtoul(at, &end, 10)));
        if (end == at || numbers.back() == 0 || numbers.back() > 1024) {
            std::fprintf(stderr, "allocation: \"%s\" is no list of numbers of threads\n", list);
            std::exit(2);
        }
        at = *end == ',' ? end + 1 : end;
    }
    return numbers;
}

// jemalloc's thread-local data does not fit what the loader keeps for libraries that come late. It
// keeps more when it is asked to at the start.
void begin_again_with_room(char** argv) {
    if (std::getenv("GLIBC_TUNABLES") == nullptr) {
        setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=32768", 1);
        execv("/proc/self/exe", argv);
    }
}

struct Asked {
    std::vector<unsigned> threads = {1, 2};
    double seconds = 0.05;
    bool json = false;
    const char* only = nullptr;
};

// False: what was asked for can't be understood.
bool read_options(int argc, char** argv, Asked& asked) {
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--json") == 0) {
            asked.json = true;
        } else if (i + 1 < argc && std::strcmp(argv[i], "--threads") == 0) {
            asked.threads = numbers_of(argv[++i]);
        } else if (i + 1 < argc && std::strcmp(argv[i], "--seconds") == 0) {
            asked.seconds = std::strtod(argv[++i], nullptr);
        } else if (i + 1 < argc && std::strcmp(argv[i], "--only") == 0) {
            asked.only = argv[++i];
        } else {
            std::fprintf(
                stderr,
                "usage: allocation [--threads 1,2] [--seconds 0.05] [--only NAMES] [--json]\n");
            return false;
        }
    }
    return true;
}

// Blocks of one size.
void compare(const Asked& asked, const std::vector<Allocator>& measured, const char* pattern,
             unsigned count, std::size_t bytes) {
    const bool is_far = std::strcmp(pattern, "far") == 0;
    const std::size_t together = std::strcmp(pattern, "one") == 0 ? 1
                                 : is_far
                                     ? far_blocks
                                     : std::clamp<std::size_t>(most_bytes / bytes, 1, most_blocks);
    std::vector<void*> far;
    if (is_far && (far = make_far(bytes, count)).empty()) {
        return;
    }
    std::vector<double> best(measured.size(), 1e300);
    for (int round = 0; round < 5; ++round) {
        for (std::size_t i = 0; i < measured.size(); ++i) {
            best[i] = std::min(
                best[i], measure(measured[i], bytes, together, count, asked.seconds / 5, far));
        }
    }
    if (!asked.json) {
        std::printf("%9zu", bytes);
    }
    for (std::size_t i = 0; i < measured.size(); ++i) {
        if (asked.json) {
            std::printf("{\"benchmark\": \"allocation\", \"allocator\": \"%s\", "
                        "\"pattern\": \"%s\", \"threads\": %u, \"bytes\": %zu, "
                        "\"best_ns\": %.2f}\n",
                        measured[i].name, pattern, count, bytes, best[i]);
        } else {
            std::printf(" %11.1f", best[i]);
        }
    }
    if (!asked.json) {
        std::printf("\n");
    }
    std::fflush(stdout);
}

// Blocks of all sizes.
void compare(const Asked& asked, const std::vector<Allocator>& allocators, const char* pattern,
             unsigned count) {
    const bool is_far = std::strcmp(pattern, "far") == 0;
    std::vector<Allocator> measured = allocators;
    if (is_far) {
        std::erase_if(measured,
                      [](const Allocator& each) { return std::strcmp(each.name, "warren") != 0; });
    }
    if (measured.empty()) {
        return;
    }
    if (!asked.json) {
        std::printf("%u thread%s, %s at once: ns per allocation and free\n%9s", count,
                    count == 1 ? "" : "s", pattern, "bytes");
        for (const Allocator& allocator : measured) {
            std::printf(" %11s", allocator.name);
        }
        std::printf("\n");
    }
    for (std::size_t bytes = 64; bytes <= (is_far ? 1 << 10 : 1 << 20); bytes *= 4) {
        compare(asked, measured, pattern, count, bytes);
    }
}

} // namespace

int main(int argc, char** argv) {
    begin_again_with_room(argv);
    Asked asked;
    if (!read_options(argc, argv, asked)) {
        return 2;
    }
    if (warren_mem_criteria_parse("bandwidth,capacity", &criteria) != WARREN_MEM_SUCCESS) {
        std::fprintf(stderr, "%s\n", warren_mem_error());
        return 1;
    }
    std::vector<Allocator> allocators = find_allocators();
    if (asked.only != nullptr) {
        const std::string chosen = std::string(",") + asked.only + ",";
        std::erase_if(allocators, [&](const Allocator& each) {
            return chosen.find(std::string(",") + each.name + ",") == std::string::npos;
        });
    }
    for (const unsigned count : asked.threads) {
        for (const char* pattern : {"one", "many", "far"}) {
            compare(asked, allocators, pattern, count);
        }
    }
    warren_mem_criteria_free(criteria);
    return 0;
}
