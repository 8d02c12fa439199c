#include "runtime/process_ranks/page_moves.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <pthread.h>
#include <utility>

#include "base/futex.hpp"
#include "base/page.hpp"
#include "image/host.hpp"
#include "image/image.hpp"
#include "memory/heap/numa.hpp"
#include "runtime/process_ranks/process_ranks.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

namespace warren::process_ranks {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// Asked about at once, and moved at once: the kernel bothers all processors once per call, and
// who touches a page of a call's may wait for the others.
constexpr std::size_t pages_looked_at = 512;
constexpr std::size_t pages_moved = 4096;
// When an image was loading something.
constexpr timespec soon = {0, 10'000'000};

// The kernel refuses this node, and perhaps no others: it has no memory, or the cpuset grants none
// of it.
bool is_of_node(int error) {
    return error == ENODEV || error == EACCES;
}

// Pages that are to go to one node.
struct Batch {
    std::vector<void*> pages;

    // Moves them, and forgets them. False: outcome.error says why not.
    bool carry_out(int wanted, PageMoves::Outcome& outcome) {
        if (pages.empty()) {
            return true;
        }
        const std::vector<int> all(pages.size(), wanted);
        std::vector<int> nodes(pages.size());
        if (memory::move_listed_pages(pages.data(), pages.size(), all.data(), nodes.data())) {
            for (const int node : nodes) {
                outcome.moved += node == wanted ? 1 : 0;
                outcome.stayed += node >= 0 && node != wanted ? 1 : 0;
            }
        } else if (const int error = errno; is_of_node(error)) {
            outcome.refused.emplace(wanted, error);
            outcome.stayed += pages.size();
        } else {
            outcome.error = error;
            return false;
        }
        pages.clear();
        return true;
    }
};

} // namespace

std::vector<PageRange> whole_pages(std::vector<PageRange> ranges) {
    for (PageRange& range : ranges) {
        const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
        const std::uintptr_t first = begin / page_bytes * page_bytes;
        const std::uintptr_t end = (begin + range.bytes + page_bytes - 1) / page_bytes * page_bytes;
        range = {reinterpret_cast<std::byte*>(first), range.bytes == 0 ? 0 : end - first};
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const PageRange& one, const PageRange& other) { return one.begin < other.begin; });
    std::vector<PageRange> whole;
    for (const PageRange& range : ranges) {
        if (range.bytes == 0) {
            continue;
        }
        if (!whole.empty() && range.begin <= whole.back().begin + whole.back().bytes) {
            PageRange& last = whole.back();
            last.bytes = std::max(last.bytes,
                                  static_cast<std::size_t>(range.begin + range.bytes - last.begin));
        } else {
            whole.push_back(range);
        }
    }
    return whole;
}

PageMoves::PageMoves(PageMovesOptions options)
    : options_(std::move(options)), memories_(std::make_unique<Memory[]>(options_.ranks)) {}

void PageMoves::own_stack(std::uint32_t rank, void* begin, std::size_t bytes) {
    memories_[rank].stack = {static_cast<std::byte*>(begin), bytes};
}

void PageMoves::own_image(std::uint32_t rank, image::Image& image) {
    memories_[rank].image.store(&image, std::memory_order_release);
}

void PageMoves::follow(std::span<const std::uint32_t> before, std::span<const std::uint32_t> now) {
    bool news = false;
    for (std::uint32_t rank = 0; rank < now.size(); ++rank) {
        Memory& memory = memories_[rank];
        const int node = options_.nodes[now[rank]];
        if (memory.wanted.load(relaxed) == unknown) {
            memory.node.store(options_.nodes[before[rank]], relaxed);
            memory.wanted.store(memory.node.load(relaxed), relaxed);
        }
        if (node != unknown && memory.wanted.load(relaxed) != node) {
            memory.wanted.store(node, relaxed);
            news = true;
        }
    }
    if (news) {
        bell_.fetch_add(1, std::memory_order_release); // with what is wanted; pairs with run's
        kernel_wake(bell_, 1);
    }
}

std::vector<PageMoves::Move> PageMoves::due(bool* later) {
    std::vector<Move> moves;
    constexpr std::uint32_t none = UINT32_MAX;
    std::vector<std::uint32_t> place_of(options_.ranks, none); // among them
    {
        const std::lock_guard looking(looking_);
        for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
            Memory& memory = memories_[rank];
            const int wanted = memory.wanted.load(relaxed);
            if (wanted == unknown || wanted == memory.node.load(relaxed) ||
                refused_.contains(wanted)) {
                continue;
            }
            Move move{rank, wanted, {memory.stack}};
            image::Image* image = memory.image.load(std::memory_order_acquire);
            std::vector<image::Range> variables;
            if (image != nullptr && !image->variables(variables)) {
                *later = true;
                continue;
            }
            for (const image::Range& range : variables) {
                move.ranges.push_back({reinterpret_cast<std::byte*>(range.address), range.bytes});
            }
            memory.node.store(wanted, relaxed);
            place_of[rank] = static_cast<std::uint32_t>(moves.size());
            moves.push_back(std::move(move));
        }
    }
    if (!moves.empty()) {
        heap_.visit([&](std::byte* begin, std::size_t bytes, std::uint32_t rank) {
            if (place_of[rank] != none) {
                moves[place_of[rank]].ranges.push_back({begin, bytes});
            }
        });
    }
    for (Move& move : moves) {
        move.ranges = whole_pages(std::move(move.ranges));
    }
    return moves;
}

PageMoves::Outcome PageMoves::carry_out(std::span<const Move> moves) {
    Outcome outcome;
    std::map<int, Batch> batches; // by node
    for (const Move& move : moves) {
        Batch& batch = batches[move.node];
        for (const PageRange& range : move.ranges) {
            for (std::size_t done = 0; done < range.bytes; done += pages_looked_at * page_bytes) {
                std::byte* begin = range.begin + done;
                const std::size_t pages =
                    std::min(pages_looked_at, (range.bytes - done) / page_bytes);
                int nodes[pages_looked_at];
                if (!memory::nodes_of_pages(begin, pages, nodes)) {
                    outcome.error = errno;
                    return outcome;
                }
                for (std::size_t page = 0; page < pages; ++page) {
                    if (nodes[page] >= 0 && nodes[page] != move.node) { // else there is none yet
                        batch.pages.push_back(begin + page * page_bytes);
                    }
                }
                if (batch.pages.size() >= pages_moved && !batch.carry_out(move.node, outcome)) {
                    return outcome;
                }
            }
        }
    }
    for (auto& [node, batch] : batches) {
        if (!batch.carry_out(node, outcome)) {
            break;
        }
    }
    return outcome;
}

// False: there is no use in going on.
bool PageMoves::move_all() {
    bool later = true;
    while (std::exchange(later, false)) {
        const Outcome outcome = carry_out(due(&later));
        if (options_.loads) {
            balance::add(options_.loads.job->pages_moved, outcome.moved);
            balance::add(options_.loads.job->pages_stayed, outcome.stayed);
        }
        for (const auto& [node, error] : outcome.refused) {
            refuse(node);
            if (options_.refused != nullptr) {
                options_.refused(node, error);
            }
        }
        if (outcome.error != 0) {
            if (options_.refused != nullptr) {
                options_.refused(unknown, outcome.error);
            }
            return false;
        }
        if (later) {
            nanosleep(&soon, nullptr);
        }
    }
    return true;
}

void* PageMoves::run(void* moves) {
    pthread_setname_np(pthread_self(), "warren-pages");
    auto& self = *static_cast<PageMoves*>(moves);
    std::uint32_t seen = 0;
    while (true) {
        std::uint32_t now = self.bell_.load(std::memory_order_acquire);
        while (now == seen) {
            kernel_wait(self.bell_, seen, nullptr);
            now = self.bell_.load(std::memory_order_acquire);
        }
        seen = now;
        if (!self.move_all()) {
            return nullptr;
        }
    }
}

int PageMoves::start() {
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, run, this);
    if (error == 0) {
        pthread_detach(thread);
        static PageMoves* only = this; // of the process
        pthread_atfork([] { only->looking_.lock(); }, [] { only->looking_.unlock(); },
                       [] { only->looking_.unlock(); });
    }
    return error;
}

} // namespace warren::process_ranks

namespace {

using warren::process_ranks::PageMoves;

PageMoves* page_moves = nullptr; // of the process, for ever; set while there is one thread

} // namespace

WARREN_API int warren_page_moves_start(const warren::process_ranks::HostPageMoves* options) {
    page_moves = new PageMoves({.ranks = options->ranks,
                                .nodes = {options->nodes, options->nodes + options->workers},
                                .refused = options->refused,
                                .loads = options->loads});
    return page_moves->start();
}

WARREN_API void warren_page_moves_stack(std::uint32_t rank, void* begin, std::size_t bytes) {
    page_moves->own_stack(rank, begin, bytes);
}

WARREN_API void warren_page_moves_image(std::uint32_t rank) {
    page_moves->own_image(rank, *warren::image::current_image());
}

WARREN_API void warren_page_moves_claim(std::uintptr_t block, std::size_t bytes) {
    if (const warren::process_ranks::ProcessRank* member = warren_member_current()) {
        page_moves->heap().claim(reinterpret_cast<void*>(block), bytes, member->number);
    }
}

WARREN_API void warren_page_moves_release(const void* block, std::size_t bytes) {
    page_moves->heap().release(block, bytes);
}

WARREN_API void warren_page_moves_follow(const std::uint32_t* before, const std::uint32_t* now,
                                         std::uint32_t ranks) {
    page_moves->follow({before, ranks}, {now, ranks});
}
