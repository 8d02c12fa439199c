#include "memory/heap/placement.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sys/mman.h>

#include "base/futex.hpp"
#include "memory/heap/control_group.hpp"
#include "memory/heap/numa.hpp"
#include "memory/heap/reserve.hpp"
#include "memory/heap/share.hpp"
#include "memory/heap/tuning.hpp"

namespace warren::memory {

namespace {

constexpr std::size_t batch_pages = batch_bytes / page_bytes;

// Hints, by the monotonic clock: relaxed.
struct Fullness {
    std::atomic<std::uint64_t> until_ns; // 0: it is not full
    std::atomic<std::uint64_t> look_ns;
    std::atomic<std::int64_t> free_bytes; // when it was found full
};
constinit Fullness fullness[node_limit];

bool counts_as_full(int node, std::size_t wanted) {
    Fullness& full = fullness[node];
    const std::uint64_t until = full.until_ns.load(std::memory_order_relaxed);
    if (until == 0) {
        return false;
    }
    const std::uint64_t now = monotonic_ns();
    if (now >= until || now < full.look_ns.load(std::memory_order_relaxed)) {
        return now < until;
    }
    full.look_ns.store(now + full_looked_at_ns, std::memory_order_relaxed);
    return free_bytes(node) < full.free_bytes.load(std::memory_order_relaxed) +
                                  static_cast<std::int64_t>(std::min(wanted, batch_bytes));
}

void found_full(int node) {
    Fullness& full = fullness[node];
    const std::uint64_t now = monotonic_ns();
    full.free_bytes.store(free_bytes(node), std::memory_order_relaxed);
    full.look_ns.store(now + full_looked_at_ns, std::memory_order_relaxed);
    full.until_ns.store(now + full_for_ns, std::memory_order_relaxed);
}

constinit std::atomic<std::int64_t> machine_left{0};
constinit std::atomic<std::uint64_t> machine_read_ns{0};

// Bytes that all nodes of the process can give, within its control group's limit.
std::int64_t machine_bytes() {
    const NodeSet allowed = allowed_nodes();
    std::int64_t sum = 0;
    bool known = false;
    for (int node = 0; node < node_limit; ++node) {
        if (allowed.has(node)) {
            const std::int64_t bytes = droppable_bytes(node);
            known = known || bytes >= 0;
            sum += std::max<std::int64_t>(bytes, 0);
        }
    }
    const std::int64_t available = available_bytes();
    if (available >= 0) {
        sum = known ? std::min(sum, available) : available;
    }
    const std::int64_t left = known || available >= 0 ? sum - left_to_others : INT64_MAX;
    return std::min(left, group_bytes());
}

bool machine_has(std::size_t bytes) {
    const auto wanted = static_cast<std::int64_t>(bytes);
    const std::uint64_t now = monotonic_ns();
    if (machine_left.fetch_sub(wanted, std::memory_order_relaxed) / large_part >= wanted &&
        now < machine_read_ns.load(std::memory_order_relaxed) + reading_for_ns) {
        return true;
    }
    const std::int64_t left = machine_bytes();
    machine_left.store(left - wanted, std::memory_order_relaxed);
    machine_read_ns.store(now, std::memory_order_relaxed);
    return left >= wanted;
}

// Whether a large strict request has a chance, before its pages are brought in for nothing.
bool targets_have(const Kind& kind, std::size_t bytes) {
    if (bytes < batch_bytes) {
        return true;
    }
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < kind.equals; ++i) {
        const std::int64_t had = droppable_bytes(kind.targets[i]);
        if (had < 0) {
            return true; // not known
        }
        sum += had;
    }
    return sum >= static_cast<std::int64_t>(bytes);
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

// Gives pages back, to the system and to the process's shares.
void release(char* begin, std::size_t bytes) {
    if (shares_count()) {
        int nodes[batch_pages];
        for (std::size_t done = 0; done < bytes; done += batch_bytes) {
            const std::size_t pages = std::min(batch_bytes, bytes - done) / page_bytes;
            if (await_nodes_of_pages(begin + done, pages, nodes)) {
                for (std::size_t i = 0; i < pages; ++i) {
                    return_share(nodes[i], page_bytes); // -1, no page, is nobody's share
                }
            }
        }
    }
    discard(begin, bytes);
}

// Counts pages that took turns among several nodes; false, and nothing is counted, when one of the
// shares is used up.
bool turns_within_shares(const int* nodes, std::size_t pages) {
    for (std::size_t i = 0; i < pages; ++i) {
        if (take_share(nodes[i], page_bytes) == 0) {
            while (i-- > 0) {
                return_share(nodes[i], page_bytes);
            }
            return false;
        }
    }
    return true;
}

// Places [at, at + bytes), a batch at most, on the stage's nodes; returns how many pages from its
// start are there, the others are not present. -1: there is no memory anywhere.
std::ptrdiff_t place_batch(const Stage& stage, char* at, std::size_t bytes) {
    const std::size_t pages = bytes / page_bytes;
    if (!populate(at, bytes)) {
        discard(at, bytes);
        return -1;
    }
    int nodes[batch_pages];
    if (!await_nodes_of_pages(at, pages, nodes)) {
        // It does not tell: the policy is what we have. And release() won't find whose share it
        // was.
        if (stage.only >= 0) {
            return_share(stage.only, bytes);
        }
        return static_cast<std::ptrdiff_t>(pages);
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
    }
    if (stage.only < 0 && shares_count() && !turns_within_shares(nodes, good)) {
        discard(at, good * page_bytes);
        good = 0;
    }
    return static_cast<std::ptrdiff_t>(good);
}

// Huge pages reach beyond the batch with which they came, by less than one of them; the next batch
// would be two away. Behind what has been placed there is to be nothing: neither pages that nobody
// counts, nor such as are half another stage's, which the kernel moves whole.
void clear_behind(char* at, const char* end) {
    discard(at, std::min(2 * batch_bytes, static_cast<std::size_t>(end - at)));
}

// Places what it can of [at, end) on the stage's nodes, from the start; moves `at` behind it.
Placed place_on_stage(const Stage& stage, char*& at, char* end) {
    if (!set_policy(stage, at, static_cast<std::size_t>(end - at))) {
        return errno == EINVAL   ? Placed::not_all
               : errno == ENOMEM ? Placed::no_memory
                                 : Placed::forbidden;
    }
    while (at != end) {
        const std::size_t wanted = std::min(batch_bytes, static_cast<std::size_t>(end - at));
        const std::size_t bytes = stage.only >= 0 ? take_share(stage.only, wanted) : wanted;
        if (bytes == 0) {
            return Placed::not_all;
        }
        const std::ptrdiff_t pages = place_batch(stage, at, bytes);
        const std::size_t placed =
            static_cast<std::size_t>(std::max<std::ptrdiff_t>(pages, 0)) * page_bytes;
        at += placed;
        if (placed < bytes) {
            if (stage.only >= 0) {
                return_share(stage.only, bytes - placed);
                found_full(stage.only);
            }
            return pages < 0 ? Placed::no_memory : Placed::not_all;
        }
        if (bytes < wanted) {
            return Placed::not_all; // the rest of the share is too small
        }
    }
    return Placed::all;
}

Placed place_stage(const Stage& stage, char*& at, char* end) {
    const Placed placed = place_on_stage(stage, at, end);
    if (placed != Placed::all) {
        clear_behind(at, end);
    }
    return placed;
}

// One way through the stages. `hurried`: without the nodes that count as full.
Placed place_all(const Kind& kind, char*& at, char* end, bool hurried) {
    const std::size_t stages = stage_count(kind);
    for (std::size_t number = 0; number < stages; ++number) {
        const Stage stage = stage_of(kind, number);
        if (hurried && stage.only >= 0 &&
            counts_as_full(stage.only, static_cast<std::size_t>(end - at))) {
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

void advise_page_size(const Kind& kind, void* begin, std::size_t bytes, bool large) {
    if (kind.reserved_shift != 0) {
        return;
    }
    const int saved = errno;
    if (kind.page_size == PageSize::huge) {
        madvise(begin, bytes, MADV_HUGEPAGE);
    } else if (kind.page_size == PageSize::small || !large) {
        // A unit is to be a unit, also where the system gives everybody huge pages.
        madvise(begin, bytes, MADV_NOHUGEPAGE);
    }
    errno = saved;
}

bool place(const Kind& kind, void* begin, std::size_t bytes) {
    if (kind.reserved_shift != 0) {
        return place_reserved(kind, begin, bytes);
    }
    if (!machine_has(bytes) || (kind.policy == Policy::strict && !targets_have(kind, bytes))) {
        errno = ENOMEM;
        return false;
    }
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
    release(static_cast<char*>(begin), static_cast<std::size_t>(at - static_cast<char*>(begin)));
    discard(at, static_cast<std::size_t>(end - at)); // what came of it counts as nobody's
    errno = placed == Placed::forbidden ? EPERM : ENOMEM;
    return false;
}

void displace(const Kind& kind, void* begin, std::size_t bytes) {
    if (kind.reserved_shift != 0) {
        displace_reserved(begin, bytes);
        return;
    }
    // Which of them the pages were on is not worth asking: nodes that counted as full are tried
    // anew.
    for (Fullness& full : fullness) {
        if (full.until_ns.load(std::memory_order_relaxed) != 0) {
            full.until_ns.store(0, std::memory_order_relaxed);
        }
    }
    release(static_cast<char*>(begin), bytes);
}

namespace {

// Shares follow pages that move: what was there at the beginning, and what is at the end.
struct Recount {
    Recount(const int* its_nodes, std::size_t its_pages) : nodes(its_nodes), pages(its_pages) {
        count(-1);
    }
    ~Recount() { count(1); }
    Recount(const Recount&) = delete;
    Recount& operator=(const Recount&) = delete;

    void count(int sign) const {
        for (std::size_t i = 0; i < pages && shares_count(); ++i) {
            change_share(nodes[i], sign * static_cast<std::int64_t>(page_bytes));
        }
    }

    const int* nodes;
    std::size_t pages;
};

// Moves the pages through the stages, as far as there is room; nodes[i], at the call each page's
// node, is that afterwards. True when all are where the kind says.
bool move_to_stages(const Kind& to, char* begin, std::size_t pages, int* nodes) {
    int wanted[batch_pages];
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

// Moves one batch; true when all pages are where the kind says.
bool migrate_batch(const Kind& to, char* begin, std::size_t pages) {
    int nodes[batch_pages];
    if (!await_nodes_of_pages(begin, pages, nodes)) {
        return false;
    }
    const Recount recount{nodes, pages};
    if (move_to_stages(to, begin, pages, nodes)) {
        return true;
    }
    // Pages that the other side of a fork has, too, don't move. Ours become copies of them, where
    // the policy says, and those do.
    const std::size_t bytes = pages * page_bytes;
    return errno == ENOMEM && machine_has(bytes) && set_policy(stage_of(to, 0), begin, bytes) &&
           populate(begin, bytes) && await_nodes_of_pages(begin, pages, nodes) &&
           move_to_stages(to, begin, pages, nodes);
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
    set_policy(stage_of(from, 0), begin, bytes);
    migrate_range(from, static_cast<char*>(begin), bytes);
    errno = cause;
    return false;
}

} // namespace warren::memory
