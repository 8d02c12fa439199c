// Where the pages of allocations are, asked of the kernel, on whatever machine this runs. With one
// memory it checks what one can show; with several also orders, spilling, strict refusals, turns
// and migration. Prints a line per check; fails with the first that does not hold. It fills
// memories, so it wants a machine of its own (a virtual one); a memory of more than --limit MiB
// (1024) is not filled. --reserved: pages of the reserve are set apart, and must be there.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/page.hpp"
#include "memory/heap/allocator.hpp"
#include "memory/heap/heaps.hpp"
#include "memory/heap/numa.hpp"
#include "memory/heap/reserve.hpp"

using namespace warren::memory;
using warren::page_bytes;

namespace {

constexpr std::size_t MiB = 1024 * 1024;

[[noreturn, gnu::format(printf, 1, 2)]] void wrong(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    std::printf("FAILED: ");
    std::vprintf(format, arguments);
    std::printf("\n");
    va_end(arguments);
    std::fflush(stdout);
    std::exit(1);
}

Kind kind_of(Policy policy, std::initializer_list<int> targets, std::uint16_t equals = 1,
             PageSize page_size = PageSize::any) {
    Kind kind;
    kind.policy = policy;
    kind.page_size = page_size;
    kind.equals = equals;
    for (const int target : targets) {
        kind.targets[kind.count++] = static_cast<std::int16_t>(target);
    }
    return kind;
}

Heap& heap_of(const Kind& kind) {
    Heap* heap = heap_of_kind(kind);
    if (heap == nullptr) {
        wrong("no heap: %s", std::strerror(errno));
    }
    return *heap;
}

// Pages per node of a range.
std::map<int, std::size_t> pages_of(const void* block, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block) / page_bytes;
    const auto end =
        (reinterpret_cast<std::uintptr_t>(block) + bytes + page_bytes - 1) / page_bytes;
    std::vector<int> nodes(end - begin, -1);
    if (!await_nodes_of_pages(reinterpret_cast<void*>(begin * page_bytes), nodes.size(),
                              nodes.data())) {
        wrong("the kernel does not say where pages are: %s", std::strerror(errno));
    }
    std::map<int, std::size_t> counts;
    for (const int node : nodes) {
        ++counts[node];
    }
    return counts;
}

std::string text_of(const std::map<int, std::size_t>& counts) {
    std::string text;
    for (const auto& [node, pages] : counts) {
        text += " node " + std::to_string(node) + ": " + std::to_string(pages);
    }
    return text;
}

void expect_only(const void* block, std::size_t bytes, int node, const char* what) {
    const auto counts = pages_of(block, bytes);
    if (counts.size() != 1 || counts.begin()->first != node) {
        wrong("%s: pages that belong on node %d are on%s", what, node, text_of(counts).c_str());
    }
}

struct Memory {
    int node;
    std::size_t free;
};

std::vector<Memory> memories() {
    std::vector<Memory> found;
    const NodeSet allowed = allowed_nodes();
    for (int node = 0; node < node_limit; ++node) {
        if (allowed.has(node)) {
            const std::int64_t free = free_bytes(node);
            if (free > 0) {
                found.push_back({node, static_cast<std::size_t>(free)});
            }
        }
    }
    return found;
}

std::size_t free_of(int node) {
    return static_cast<std::size_t>(free_bytes(node));
}

void check_each_node(const std::vector<Memory>& all) {
    for (const Memory& memory : all) {
        for (const PageSize page_size : {PageSize::any, PageSize::small, PageSize::huge}) {
            Heap& heap = heap_of(kind_of(Policy::strict, {memory.node}, 1, page_size));
            std::vector<void*> blocks;
            for (const std::size_t bytes :
                 {std::size_t{64}, std::size_t{5000}, std::size_t{100'000}, 3 * MiB}) {
                for (int i = 0; i < 3; ++i) {
                    void* block = allocate(heap, bytes);
                    if (block == nullptr) {
                        wrong("%zu bytes on node %d: %s", bytes, memory.node, std::strerror(errno));
                    }
                    std::memset(block, 1, bytes);
                    expect_only(block, bytes, memory.node, "strict");
                    blocks.push_back(block);
                }
            }
            for (void* block : blocks) {
                deallocate(block);
            }
        }
    }
    trim();
    std::printf("ok: each of %zu memories by name\n", all.size());
}

void check_spilling(int first, int second, std::size_t free) {
    Heap& heap = heap_of(kind_of(Policy::next, {first, second}));
    std::vector<char*> blocks;
    constexpr std::size_t bytes = 5 * MiB;
    std::size_t on_first = 0;
    std::size_t on_second = 0;
    bool spilled = false;
    while (on_second < 16 * MiB / page_bytes) {
        auto* block = static_cast<char*>(allocate(heap, bytes));
        if (block == nullptr) {
            wrong("spilling: %s", std::strerror(errno));
        }
        blocks.push_back(block);
        const auto counts = pages_of(block, bytes);
        for (const auto& [node, pages] : counts) {
            if (node != first && node != second) {
                wrong("spilling from %d to %d: pages on%s", first, second, text_of(counts).c_str());
            }
            (node == first ? on_first : on_second) += pages;
        }
        spilled = spilled || on_second != 0;
    }
    if (on_first * page_bytes < free * 7 / 10) {
        wrong("spilling: only %zu of %zu MiB of node %d were used before node %d",
              on_first * page_bytes / MiB, free / MiB, first, second);
    }
    for (char* block : blocks) {
        deallocate(block);
    }
    trim();
    void* again = allocate(heap, bytes);
    expect_only(again, bytes, first, "after what spilled was freed");
    deallocate(again);
    std::printf("ok: node %d gave %zu of %zu MiB, then node %d\n", first,
                on_first * page_bytes / MiB, free / MiB, second);
}

void check_strict_refusal(int node, std::size_t free) {
    Heap& heap = heap_of(kind_of(Policy::strict, {node}));
    errno = 0;
    if (allocate(heap, free + 64 * MiB) != nullptr || errno != ENOMEM) {
        wrong("strict: more than node %d has was granted, or errno is %d", node, errno);
    }
    if (free_of(node) < free * 8 / 10) {
        wrong("strict: a refusal kept memory");
    }
    for (const std::size_t bytes : {5 * MiB, std::size_t{3000}}) {
        std::vector<void*> blocks;
        void* block = nullptr;
        while ((block = allocate(heap, bytes)) != nullptr) {
            std::memset(block, 2, bytes);
            blocks.push_back(block);
        }
        if (errno != ENOMEM) {
            wrong("strict: errno is %d", errno);
        }
        if (blocks.size() * bytes < free * 7 / 10) {
            wrong("strict: node %d refused after %zu of %zu MiB", node, blocks.size() * bytes / MiB,
                  free / MiB);
        }
        for (std::size_t i = 0; i < blocks.size(); i += blocks.size() / 50 + 1) {
            expect_only(blocks[i], bytes, node, "strict, node nearly full");
        }
        for (void* each : blocks) {
            deallocate(each);
        }
        trim();
    }
    std::printf("ok: a strict heap of node %d refuses, and nobody dies\n", node);
}

void check_turns(int first, int second) {
    for (const std::size_t bytes : {std::size_t{8 * MiB}, std::size_t{640 * 1024}}) {
        Heap& heap = heap_of(kind_of(Policy::interleave, {first, second}, 2, PageSize::small));
        void* block = allocate(heap, bytes);
        auto counts = pages_of(block, bytes);
        if (counts.size() != 2 || counts[first] + 1 < counts[second] ||
            counts[second] + 1 < counts[first]) {
            wrong("turns among %d and %d: pages on%s", first, second, text_of(counts).c_str());
        }
        deallocate(block);
    }
    trim();
    std::printf("ok: pages take turns on nodes %d and %d\n", first, second);
}

void check_moving(int from, int to) {
    Heap& old_heap = heap_of(kind_of(Policy::strict, {from}));
    Heap& new_heap = heap_of(kind_of(Policy::strict, {to}));
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{200'000}, 9 * MiB}) {
        auto* block = static_cast<char*>(allocate(old_heap, bytes));
        for (std::size_t i = 0; i < bytes; ++i) {
            block[i] = static_cast<char>(i * 13);
        }
        auto* moved = static_cast<char*>(move(block, new_heap));
        if (moved == nullptr) {
            wrong("moving %zu bytes from %d to %d: %s", bytes, from, to, std::strerror(errno));
        }
        if (bytes > MiB && moved != block) {
            wrong("moving changed the address of a large block");
        }
        expect_only(moved, bytes, to, "moved");
        for (std::size_t i = 0; i < bytes; ++i) {
            if (moved[i] != static_cast<char>(i * 13)) {
                wrong("moving lost contents");
            }
        }
        deallocate(moved);
    }
    trim();
    std::printf("ok: moved from node %d to node %d\n", from, to);
}

void check_moving_to_full(int from, int to, std::size_t free) {
    Heap& old_heap = heap_of(kind_of(Policy::strict, {from}));
    Heap& new_heap = heap_of(kind_of(Policy::strict, {to}));
    std::vector<void*> blocks;
    void* filler = nullptr;
    while (blocks.size() < free / MiB && (filler = allocate(new_heap, 4 * MiB)) != nullptr) {
        blocks.push_back(filler);
    }
    auto* block = static_cast<char*>(allocate(old_heap, 32 * MiB));
    std::memset(block, 5, 32 * MiB);
    errno = 0;
    if (move(block, new_heap) != nullptr || errno != ENOMEM) {
        wrong("moving to the full node %d: errno %d", to, errno);
    }
    expect_only(block, 32 * MiB, from, "after a refused move");
    if (block[0] != 5 || block[32 * MiB - 1] != 5) {
        wrong("a refused move lost contents");
    }
    deallocate(block);
    for (void* each : blocks) {
        deallocate(each);
    }
    trim();
    std::printf("ok: a move to node %d, which is full, changes nothing\n", to);
}

// Pages of the system's reserve, where somebody has set some apart on both nodes.
void check_reserved(int node, int other, bool set_apart) {
    constexpr std::size_t page = 2 * MiB;
    const auto left = [=](int of) { return free_reserved_pages("", of, 21); };
    const std::int64_t pages = left(node);
    const std::int64_t others = left(other);
    if (pages < 4 || others < 1) {
        if (set_apart) {
            wrong("nodes %d and %d have %lld and %lld pages in reserve", node, other,
                  static_cast<long long>(pages), static_cast<long long>(others));
        }
        std::printf("skipped: nodes %d and %d have %lld and %lld pages in reserve\n", node, other,
                    static_cast<long long>(pages), static_cast<long long>(others));
        return;
    }
    Kind kind = kind_of(Policy::strict, {node});
    kind.reserved_shift = 21;
    Heap& strict = heap_of(kind);
    kind = kind_of(Policy::next, {node, other});
    kind.reserved_shift = 21;
    Heap& next = heap_of(kind);
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{300'000}, 3 * MiB}) {
        auto* block = static_cast<char*>(allocate(strict, bytes));
        if (block == nullptr) {
            wrong("%zu bytes of reserved pages on node %d: %s", bytes, node, std::strerror(errno));
        }
        std::memset(block, 7, bytes);
        expect_only(block, bytes, node, "reserved pages");
        const auto used = static_cast<std::int64_t>((bytes + page - 1) / page);
        if (left(node) != pages - used) {
            wrong("%zu bytes took %lld reserved pages", bytes,
                  static_cast<long long>(pages - left(node)));
        }
        auto* moved = static_cast<char*>(move(block, heap_of(kind_of(Policy::strict, {other}))));
        if (moved == nullptr || moved[0] != 7 || moved[bytes - 1] != 7) {
            wrong("moving out of reserved pages");
        }
        expect_only(moved, bytes, other, "moved out of reserved pages");
        moved = static_cast<char*>(move(moved, strict));
        if (moved == nullptr || moved[bytes - 1] != 7) {
            wrong("moving into reserved pages");
        }
        expect_only(moved, bytes, node, "moved into reserved pages");
        deallocate(moved);
        trim();
        if (left(node) != pages) {
            wrong("reserved pages are kept");
        }
    }
    const auto all = static_cast<std::size_t>(pages) * page;
    errno = 0;
    if (allocate(strict, all + page) != nullptr || errno != ENOMEM || left(node) != pages) {
        wrong("more reserved pages than node %d has: errno %d", node, errno);
    }
    void* whole = allocate(strict, all);
    if (whole == nullptr || left(node) != 0 || allocate(strict, 10) != nullptr) {
        wrong("all reserved pages of node %d", node);
    }
    deallocate(whole);
    void* spilled = allocate(next, all + page);
    const auto counts =
        spilled != nullptr ? pages_of(spilled, all + page) : std::map<int, std::size_t>{};
    if (counts.size() != 2 || counts.at(node) != all / page_bytes ||
        counts.at(other) != page / page_bytes) {
        wrong("reserved pages spill: pages on%s", text_of(counts).c_str());
    }
    deallocate(spilled);
    trim();
    if (left(node) != pages || left(other) != others) {
        wrong("reserved pages are kept after spilling");
    }
    kind = kind_of(Policy::interleave, {node, other}, 2);
    kind.reserved_shift = 21;
    void* turns = allocate(heap_of(kind), 2 * page);
    if (turns == nullptr || pages_of(turns, 2 * page).size() != 2) {
        wrong("reserved pages take no turns: %s", std::strerror(errno));
    }
    deallocate(turns);
    std::printf("ok: %lld pages of the reserve of node %d, then node %d\n",
                static_cast<long long>(pages), node, other);
}

// All memories of the process, to their ends.
void check_exhaustion(const std::vector<Memory>& all) {
    Kind kind = kind_of(Policy::next, {});
    std::size_t free = 0;
    for (const Memory& memory : all) {
        kind.targets[kind.count++] = static_cast<std::int16_t>(memory.node);
        free += free_of(memory.node);
    }
    Heap& heap = heap_of(kind);
    std::vector<void*> blocks;
    void* block = nullptr;
    while ((block = allocate(heap, 7 * MiB)) != nullptr) {
        blocks.push_back(block);
    }
    if (errno != ENOMEM || blocks.size() * 7 * MiB < free / 2) {
        wrong("exhaustion: %zu of %zu MiB, %s", blocks.size() * 7, free / MiB,
              std::strerror(errno));
    }
    for (void* each : blocks) {
        deallocate(each);
    }
    trim();
    std::printf("ok: %zu of %zu MiB of all memories, then a refusal\n", blocks.size() * 7,
                free / MiB);
}

// Processes at once want more of the first memory than there is.
void check_crowd(int first, int second, std::size_t free) {
    constexpr int processes = 4;
    const std::size_t each = free / processes + 8 * MiB;
    std::fflush(stdout);
    pid_t children[processes];
    for (pid_t& child : children) {
        child = fork();
        if (child == 0) {
            Heap& heap = heap_of(kind_of(Policy::next, {first, second}));
            for (std::size_t taken = 0; taken < each; taken += 3 * MiB) {
                void* block = allocate(heap, 3 * MiB);
                if (block == nullptr) {
                    wrong("one of %d processes: %s", processes, std::strerror(errno));
                }
                for (const auto& [node, pages] : pages_of(block, 3 * MiB)) {
                    if (node != first && node != second) {
                        wrong("one of %d processes has %zu pages on node %d", processes, pages,
                              node);
                    }
                }
            }
            _exit(0);
        }
    }
    for (const pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) {
            wrong("one of %d processes ended with status %d", processes, status);
        }
    }
    std::printf("ok: %d processes fill node %d and go on to node %d\n", processes, first, second);
}

// What another process leaves of a memory that was found full is used again.
void check_return(int first, int second) {
    int ready[2];
    int done[2];
    if (pipe(ready) != 0 || pipe(done) != 0) {
        wrong("pipe: %s", std::strerror(errno));
    }
    std::fflush(stdout);
    const pid_t other = fork();
    char word = 0;
    if (other == 0) {
        close(done[1]);
        Heap& heap = heap_of(kind_of(Policy::strict, {first}));
        while (allocate(heap, 3 * MiB) != nullptr) {
        }
        _exit(write(ready[1], "f", 1) == 1 && read(done[0], &word, 1) == 0 ? 0 : 1);
    }
    close(done[0]);
    if (read(ready[0], &word, 1) != 1) {
        wrong("another process can't fill node %d", first);
    }
    Heap& heap = heap_of(kind_of(Policy::next, {first, second}));
    std::vector<void*> blocks;
    const auto is_on_first = [&] {
        constexpr std::size_t bytes = MiB + page_bytes;
        blocks.push_back(allocate(heap, bytes));
        return blocks.back() != nullptr && pages_of(blocks.back(), bytes).count(second) == 0;
    };
    // What was left to it may be found, but little.
    for (int i = 0; i < 16 && is_on_first(); ++i) {
    }
    if (is_on_first()) {
        wrong("node %d is not full after another process filled it", first);
    }
    close(done[1]);
    waitpid(other, nullptr, 0);
    // (Nothing is freed meanwhile, which would be a reason to try again.)
    for (int tries = 0; !is_on_first(); ++tries) {
        if (tries == 40) {
            wrong("what another process has left of node %d is not used", first);
        }
        usleep(60'000);
    }
    for (void* block : blocks) {
        deallocate(block);
    }
    close(ready[0]);
    close(ready[1]);
    std::printf("ok: node %d is used again when another process has left it\n", first);
}

// While the kernel moves a page it tells that there is none: who waits is told where it went.
void check_pages_on_their_way(int first, int second) {
    constexpr std::size_t pages = 256;
    char* block = static_cast<char*>(
        allocate(heap_of(kind_of(Policy::next, {first}, 1, PageSize::small)), pages * page_bytes));
    std::vector<void*> addresses(pages);
    for (std::size_t i = 0; i < pages; ++i) {
        addresses[i] = block + i * page_bytes;
    }
    std::atomic<bool> ends = false;
    std::thread mover([&] {
        std::vector<int> nodes(pages);
        for (bool there = true; !ends.load(); there = !there) {
            const std::vector<int> wanted(pages, there ? second : first);
            move_listed_pages(addresses.data(), pages, wanted.data(), nodes.data());
        }
    });
    std::size_t missed = 0;
    std::vector<int> nodes(pages);
    for (int tries = 0; tries < 4000 && missed < 100; ++tries) {
        if (!nodes_of_pages(block, pages, nodes.data())) {
            wrong("the kernel does not say where pages are: %s", std::strerror(errno));
        }
        missed += static_cast<std::size_t>(std::count(nodes.begin(), nodes.end(), -1));
        const auto counts = pages_of(block, pages * page_bytes);
        if (counts.count(-1) != 0) {
            wrong("of pages on their way some are nowhere:%s", text_of(counts).c_str());
        }
    }
    ends.store(true);
    mover.join();
    deallocate(block);
    std::printf("ok: pages on their way are found (%zu were missed at the first look)\n", missed);
}

} // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    std::size_t limit = 1024 * MiB;
    const bool set_apart = argc == 2 && std::strcmp(argv[1], "--reserved") == 0;
    if (argc == 3 && std::strcmp(argv[1], "--limit") == 0) {
        limit = std::strtoul(argv[2], nullptr, 10) * MiB;
    } else if (argc != 1 && !set_apart) {
        std::fprintf(stderr, "usage: %s [--limit MIB | --reserved]\n", argv[0]);
        return 2;
    }
    const std::vector<Memory> all = memories();
    if (all.empty()) {
        std::printf("skipped: the system tells nothing of its memories\n");
        return 77;
    }
    check_each_node(all);
    // The last memory, on the machines of the tests, has no processors: nothing else lives there.
    const int last = all.back().node;
    const int first = all.front().node;
    if (free_of(last) < limit) {
        check_strict_refusal(last, free_of(last));
    }
    if (all.size() > 1) {
        check_reserved(last, first, set_apart);
        check_turns(last, first);
        check_pages_on_their_way(first, last);
        check_moving(first, last);
        check_moving(last, first);
        if (free_of(last) < limit && free_of(first) > 64 * MiB) {
            check_moving_to_full(first, last, free_of(last));
        }
        if (free_of(last) < limit && free_of(first) > 64 * MiB) {
            check_spilling(last, first, free_of(last));
            check_crowd(last, first, free_of(last));
            check_return(last, first);
        }
        if (limit != 0) {
            check_exhaustion(all);
        }
    }
    return 0;
}
