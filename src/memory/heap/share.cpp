#include "memory/heap/share.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/heap/memory_use.hpp"
#include "memory/heap/numa.hpp"
#include "memory/heap/system_file.hpp"

// The preloaded malloc's sums of shares taken by this process (preload/malloc.cpp); null where
// malloc is not preloaded.
extern "C" [[gnu::weak, gnu::visibility("default")]] std::atomic<std::int64_t>*
warren_malloc_shares_taken();

namespace warren::memory {

namespace {

constinit std::atomic<std::int64_t> own_taken[node_limit];

// The share is the process's, whichever copy of the allocator takes of it: all count in one place.
std::atomic<std::int64_t>& taken(int node) {
    return (warren_malloc_shares_taken != nullptr ? warren_malloc_shares_taken() : own_taken)[node];
}

// The process's share in bytes; 0: not asked for yet.
constinit std::atomic<std::size_t> shares[node_limit];

static_assert(node_limit == memory_use_limit);

struct Job {
    MemoryUse* use; // in the node segment, one for each NUMA node
    unsigned ranks;
    unsigned ranks_here;
};

// How many numbers a list as "0-3,8" has.
unsigned count_of_list(const char* list) {
    unsigned count = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    while (next_of_list(list, first, last)) {
        count += static_cast<unsigned>(last - first + 1);
    }
    return count;
}

unsigned processors_of(int node) {
    char path[64];
    std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    char text[4096];
    return read_start(path, text) ? count_of_list(text) : 0;
}

unsigned processors_of_machine() {
    char text[4096];
    return read_start("/sys/devices/system/cpu/online", text) ? count_of_list(text) : 0;
}

// The processors near a NUMA node: its own, or, where it has none, those of the nearest nodes that
// have some. 0: not known.
unsigned processors_near(int node) {
    if (const unsigned own = processors_of(node)) {
        return own;
    }
    // The line of distances is in the order of the nodes that there are.
    char path[64];
    std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", node);
    char text[4096];
    if (!read_start(path, text)) {
        return 0;
    }
    long nearest = LONG_MAX;
    unsigned processors = 0;
    char* at = text;
    for (int other = 0; other < node_limit; ++other) {
        std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d", other);
        if (access(path, F_OK) != 0) {
            continue;
        }
        char* end = nullptr;
        const long distance = std::strtol(at, &end, 10);
        if (end == at) {
            break;
        }
        at = end;
        const unsigned count = distance <= nearest ? processors_of(other) : 0;
        if (count != 0) {
            processors = distance == nearest ? processors + count : count;
            nearest = distance;
        }
    }
    return processors;
}

// The job's node segment behind the launcher's descriptor, of which one region is mapped.
bool find_job(Job& job) {
    const char* choice = std::getenv("WARREN_MEMORY_SHARE");
    const char* segment = std::getenv("WARREN_SEGMENT");
    if (segment == nullptr || (choice != nullptr && std::strcmp(choice, "first") == 0)) {
        return false;
    }
    const int descriptor = std::atoi(segment);
    // Only a memory file can be asked for seals: whatever else the number stands for in a child of
    // a rank, which inherits the variable but not the file, is left alone.
    node::Directory directory; // read without pread, where a thread may be cancelled
    if (fcntl(descriptor, F_GET_SEALS) < 0 ||
        syscall(SYS_pread64, descriptor, static_cast<void*>(&directory), sizeof directory, 0) !=
            static_cast<long>(sizeof directory) ||
        directory.magic != node::segment_magic || directory.version != node::segment_version) {
        return false;
    }
    constexpr std::size_t bytes = node_limit * sizeof(MemoryUse);
    void* mapped = MAP_FAILED;
    const auto offset = static_cast<off_t>(directory[memory_use].offset);
    if (syscall(SYS_fallocate, descriptor, 0, offset, bytes) == 0) {
        mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset);
    }
    if (mapped == MAP_FAILED) {
        return false;
    }
    const char* here = std::getenv("WARREN_RANKS_HERE");
    const long ranks_here = here != nullptr ? std::strtol(here, nullptr, 10) : 1;
    job = {static_cast<MemoryUse*>(mapped), directory.ranks,
           static_cast<unsigned>(std::clamp<long>(ranks_here, 1, directory.ranks))};
    return job.ranks_here < job.ranks;
}

constinit Job own_job{};
constinit bool in_job = false;
constinit pthread_once_t job_looked_for = PTHREAD_ONCE_INIT;

void look_for_job() {
    const int saved = errno;
    in_job = find_job(own_job);
    errno = saved;
}

// Null: shares are not counted.
const Job* job() {
    pthread_once(&job_looked_for, look_for_job);
    return in_job ? &own_job : nullptr;
}

std::size_t share_of(const Job& own, int node) {
    std::size_t share = shares[node].load(std::memory_order_relaxed);
    if (share != 0) {
        return share;
    }
    // The first process of the job that comes here says what is free, for all.
    std::atomic<std::uint64_t>& free = own.use[node].free_bytes;
    std::uint64_t known = free.load(std::memory_order_relaxed);
    if (known == 0) {
        // Placement finds room in free and droppable bytes; the kernel keeps the last ones back.
        const std::int64_t now = droppable_bytes(node);
        const std::int64_t had = std::max<std::int64_t>(now - kept_back_bytes(node), 0);
        // An unknown amount is not divided.
        const std::uint64_t mine = now < 0 ? UINT64_MAX : static_cast<std::uint64_t>(had) | 1;
        known = free.compare_exchange_strong(known, mine, std::memory_order_relaxed) ? mine : known;
    }
    share = known == UINT64_MAX
                ? SIZE_MAX
                : std::max(fair_bytes(known, own.ranks_here, own.ranks, processors_near(node),
                                      processors_of_machine()),
                           std::size_t{1});
    shares[node].store(share, std::memory_order_relaxed);
    return share;
}

} // namespace

std::size_t fair_bytes(std::size_t free, unsigned ranks_here, unsigned ranks, unsigned near,
                       unsigned processors) {
    std::uint64_t sharers = ranks;
    if (near != 0 && near < processors) {
        sharers = (std::uint64_t{ranks} * near + processors - 1) / processors;
    }
    sharers = std::max<std::uint64_t>(sharers, 1);
    return ranks_here >= sharers ? free : free / sharers * ranks_here;
}

std::atomic<std::int64_t>* shares_taken_here() {
    return own_taken;
}

bool shares_count() {
    return job() != nullptr;
}

std::size_t take_share(int node, std::size_t bytes) {
    const Job* own = job();
    if (own == nullptr) {
        return bytes;
    }
    const auto share = static_cast<std::int64_t>(
        std::min<std::size_t>(share_of(*own, node), std::size_t{INT64_MAX}));
    std::atomic<std::int64_t>& sum = taken(node);
    std::int64_t before = sum.load(std::memory_order_relaxed);
    std::int64_t got = 0;
    do {
        const std::int64_t left = std::max<std::int64_t>(share - before, 0);
        got = std::min(left / static_cast<std::int64_t>(page_bytes) *
                           static_cast<std::int64_t>(page_bytes),
                       static_cast<std::int64_t>(bytes));
    } while (got > 0 &&
             !sum.compare_exchange_weak(before, before + got, std::memory_order_relaxed));
    return static_cast<std::size_t>(got);
}

void return_share(int node, std::size_t bytes) {
    change_share(node, -static_cast<std::int64_t>(bytes));
}

void change_share(int node, std::int64_t bytes) {
    if (bytes != 0 && job() != nullptr && node >= 0 && node < node_limit) {
        taken(node).fetch_add(bytes, std::memory_order_relaxed);
    }
}

} // namespace warren::memory
