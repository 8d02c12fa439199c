#include "memory/placement.hpp"

#include <atomic>
#include <cerrno>

#include "base/futex.hpp"
#include "memory/numa.hpp"

namespace warren::memory {

namespace {

constexpr std::size_t batch_bytes = 2 * 1024 * 1024;
constexpr std::size_t batch_pages = batch_bytes / page_bytes;

// A node that was found full is not tried again for so long, or until this process gives some of it
// back: each try costs the pages that went elsewhere.
constexpr std::uint64_t full_for_ns = 50'000'000;

// Until when (monotonic clock) a node counts as full. A hint: relaxed.
constinit std::atomic<std::uint64_t> full_until_ns[node_limit];

bool counts_as_full(int node) {
    const std::uint64_t until = full_until_ns[node].load(std::memory_order_relaxed);
    return until != 0 && monotonic_ns() < until;
}

// One target, or several that take turns.
struct Stage {
    NodeSet nodes;
    int only = -1; // -1: several
};

std::size_t stage_count(const Kind& kind) {
    switch (kind.policy) {
    case Policy::next:
        return kind.count;
    case Policy::strict:
        return kind.equals;
    case Policy::interleave:
        return 1U + kind.count; // alternating, then in order
    }
    return 0;
}

Stage stage_of(const Kind& kind, std::size_t number) {
    Stage stage;
    if (kind.policy == Policy::interleave && number == 0) {
        for (std::size_t i = 0; i < kind.equals; ++i) {
            stage.nodes.add(kind.targets[i]);
        }
        return stage;
    }
    stage.only = kind.targets[number - (kind.policy == Policy::interleave)];
    stage.nodes.add(stage.only);
    return stage;
}

bool set_policy(const Stage& stage, void* begin, std::size_t bytes) {
    return stage.only >= 0 ? prefer_node(begin, bytes, stage.only)
                           : interleave_nodes(begin, bytes, stage.nodes);
}

enum class Placed {
    all,
    not_all,   // the stage's nodes are full, or can't be used
    forbidden, // the system does not let us place
    no_memory  // nowhere
};

// How many pages from the first are on the stage's nodes.
std::size_t well_placed(const Stage& stage, const int* nodes, std::size_t pages) {
    std::size_t page = 0;
    while (page < pages && stage.nodes.has(nodes[page])) {
        ++page;
    }
    return page;
}

// Places what it can of [at, end) on the stage's nodes, from the start; moves `at` behind it.
Placed place_stage(const Stage& stage, char*& at, char* end) {
    if (!set_policy(stage, at, static_cast<std::size_t>(end - at))) {
        return errno == EINVAL   ? Placed::not_all
               : errno == ENOMEM ? Placed::no_memory
                                 : Placed::forbidden;
    }
    int nodes[batch_pages];
    while (at != end) {
        const std::size_t bytes = std::min(batch_bytes, static_cast<std::size_t>(end - at));
        const std::size_t pages = bytes / page_bytes;
        if (!populate(at, bytes)) {
            discard(at, bytes);
            return Placed::no_memory;
        }
        if (!nodes_of_pages(at, pages, nodes)) {
            at += bytes; // the kernel does not tell: the policy is what we have
            continue;
        }
        std::size_t good = well_placed(stage, nodes, pages);
        if (good < pages && stage.only >= 0) {
            int wanted[batch_pages];
            std::fill_n(wanted, pages, stage.only);
            if (move_pages(at, pages, wanted, nodes)) {
                good = well_placed(stage, nodes, pages);
            }
        }
        if (good < pages) {
            discard(at + good * page_bytes, bytes - good * page_bytes);
            at += good * page_bytes;
            if (stage.only >= 0) {
                full_until_ns[stage.only].store(monotonic_ns() + full_for_ns,
                                                std::memory_order_relaxed);
            }
            return Placed::not_all;
        }
        at += bytes;
    }
    return Placed::all;
}

// One way through the stages. `hurried`: without the nodes that count as full.
Placed place_all(const Kind& kind, char*& at, char* end, bool hurried) {
    const std::size_t stages = stage_count(kind);
    for (std::size_t number = 0; number < stages; ++number) {
        const Stage stage = stage_of(kind, number);
        if (hurried && stage.only >= 0 && counts_as_full(stage.only)) {
            continue;
        }
        const Placed placed = place_stage(stage, at, end);
        if (placed != Placed::not_all) {
            return placed;
        }
    }
    return Placed::not_all;
}

} // namespace

bool place(const Kind& kind, void* begin, std::size_t bytes) {
    char* at = static_cast<char*>(begin);
    char* const end = at + bytes;
    Placed placed = Placed::not_all;
    if (kind.policy != Policy::strict) {
        placed = place_all(kind, at, end, true);
    }
    if (placed == Placed::not_all) {
        placed = place_all(kind, at, end, false);
    }
    if (placed == Placed::all) {
        return true;
    }
    if (placed == Placed::forbidden && kind.policy == Policy::next) {
        // Better memory somewhere than none: the order was a wish.
        if (populate(at, static_cast<std::size_t>(end - at))) {
            return true;
        }
        placed = Placed::no_memory;
    }
    discard(begin, bytes);
    errno = placed == Placed::forbidden ? EPERM : ENOMEM;
    return false;
}

void displace(void* begin, std::size_t bytes) {
    // Of which nodes the pages were is not worth asking: what they counted as is forgotten.
    for (auto& until : full_until_ns) {
        if (until.load(std::memory_order_relaxed) != 0) {
            until.store(0, std::memory_order_relaxed);
        }
    }
    discard(begin, bytes);
}

namespace {

// Moves one batch; true when all pages are where the kind says.
bool migrate_batch(const Kind& to, char* begin, std::size_t pages) {
    int nodes[batch_pages];
    int wanted[batch_pages];
    if (!nodes_of_pages(begin, pages, nodes)) {
        return false;
    }
    NodeSet settled; // where a page may stay
    const std::size_t stages = stage_count(to);
    for (std::size_t number = 0; number < stages; ++number) {
        const Stage stage = stage_of(to, number);
        if (stage.only >= 0) {
            settled.add(stage.only);
        }
        for (std::size_t i = 0; i < pages; ++i) {
            // Pages take turns by their addresses, as the kernel has them do.
            wanted[i] =
                stage.only < 0
                    ? to.targets[(reinterpret_cast<std::uintptr_t>(begin) / page_bytes + i) %
                                 to.equals]
                : settled.has(nodes[i]) ? -1
                                        : stage.only;
        }
        if (!move_pages(begin, pages, wanted, nodes)) {
            return false;
        }
        if (stage.only < 0) {
            settled = stage.nodes;
        }
        if (std::all_of(nodes, nodes + pages, [&](int node) { return settled.has(node); })) {
            return true;
        }
    }
    errno = ENOMEM;
    return false;
}

bool migrate_range(const Kind& to, char* begin, std::size_t bytes) {
    bool all = true;
    for (std::size_t done = 0; done < bytes && all; done += batch_bytes) {
        all = migrate_batch(to, begin + done, std::min(batch_bytes, bytes - done) / page_bytes);
    }
    return all;
}

} // namespace

bool migrate(const Kind& from, const Kind& to, void* begin, std::size_t bytes) {
    if (migrate_range(to, static_cast<char*>(begin), bytes)) {
        // Pages that come later (copies after a fork) follow.
        set_policy(stage_of(to, 0), begin, bytes);
        return true;
    }
    const int cause = errno;
    migrate_range(from, static_cast<char*>(begin), bytes);
    errno = cause;
    return false;
}

} // namespace warren::memory
