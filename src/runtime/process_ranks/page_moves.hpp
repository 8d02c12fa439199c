// Page moves: the memory of ranks that are fibres goes where a balancer has put them, if that is
// another NUMA node (mpiexec --migrate-pages).
//
// A rank's memory is its stack, with the thread-local variables above it; the variables of its
// image's program and libraries; and the pages of the heap in which it was the last to allocate
// something. (The host gives each rank an arena of the heap, as far as mappings go;
// memory/heap/page_owners.hpp.) What other threads of a rank have as stacks, what programs map
// themselves, and what warren/memory.h has placed, stay.
//
// Who balances only notes where ranks go. A kernel thread of its own asks the kernel to move the
// pages, some thousand at a time, while the ranks run: who touches a page that is under way waits
// for it. Of a rank that goes on to a third node meanwhile, the last one counts. A rank's memory is
// believed to be on the node of the worker where it began; it is not moved before the rank is. New
// pages come where the rank runs when it touches them, as ever.
//
// Nodes without memory for the process get no pages: those of ranks that are there stay where they
// are. The host says which it knows of (no node); what else the kernel refuses is left out from
// then on.
//
// Thread rule: own_stack before the rank runs, own_image by its thread; follow by one thread at a
// time; due, refuse and carry_out by one, which is that of start(); the heap by any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "memory/heap/page_owners.hpp"
#include "runtime/balance/load_table.hpp"

namespace warren::image {
class Image;
}

namespace warren::process_ranks {

struct PageRange {
    std::byte* begin;
    std::size_t bytes;
    bool operator==(const PageRange&) const = default;
};

// All pages with a byte of one of the ranges, by address, each once.
std::vector<PageRange> whole_pages(std::vector<PageRange> ranges);

struct PageMovesOptions {
    std::uint32_t ranks = 0;
    std::vector<int> nodes; // of workers; -1: one to which no pages go
    // The kernel refuses to move pages to this node, or (-1) at all, for this reason (an errno);
    // once of each. May be null.
    void (*refused)(int node, int error) = nullptr;
    balance::LoadTable loads = {}; // where moved pages are counted; empty: nowhere
};

class PageMoves {
  public:
    explicit PageMoves(PageMovesOptions options);
    PageMoves(const PageMoves&) = delete;
    PageMoves& operator=(const PageMoves&) = delete;
    ~PageMoves() = default; // without start() only

    // Makes the thread, which is there as long as the process. Returns an errno.
    int start();

    void own_stack(std::uint32_t rank, void* begin, std::size_t bytes);
    void own_image(std::uint32_t rank, image::Image& image);
    memory::PageOwners& heap() { return heap_; }

    // Ranks were at state on the workers `before`, and are on `now`.
    void follow(std::span<const std::uint32_t> before, std::span<const std::uint32_t> now);

    // The next task: the ranks whose memory is to go elsewhere, with all of it. They count as
    // moved from then on; but those whose images are just loading something come next time, and
    // *later is set.
    struct Move {
        std::uint32_t rank;
        int node;
        std::vector<PageRange> ranges;
    };
    std::vector<Move> due(bool* later);
    struct Outcome {
        std::uint64_t moved = 0;
        std::uint64_t stayed = 0;        // there was no room, or others use the page, too
        int error = 0;                   // nothing can be moved at all, for this reason
        std::map<int, int> refused = {}; // nodes that take no pages, and the reasons
    };
    static Outcome carry_out(std::span<const Move> moves);
    // From now on nothing is due there.
    void refuse(int node) { refused_.insert(node); }

  private:
    static constexpr int unknown = -1; // also: where no pages go

    struct Memory {
        PageRange stack = {nullptr, 0};
        std::atomic<image::Image*> image{nullptr};
        std::atomic<int> node{unknown};   // where its memory is believed to be
        std::atomic<int> wanted{unknown}; // where it should be
    };

    static void* run(void* moves);
    bool move_all();

    const PageMovesOptions options_;
    std::unique_ptr<Memory[]> memories_;
    memory::PageOwners heap_;
    std::set<int> refused_; // nodes
    std::atomic<std::uint32_t> bell_{0};
    // Held while images are looked at, and around fork: in the child nobody would let go of them.
    std::mutex looking_;
};

// As the host process says them.
struct HostPageMoves {
    const int* nodes; // of workers; -1: one to which no pages go
    std::uint32_t workers;
    std::uint32_t ranks;
    void (*refused)(int node, int error); // node -1: at all
    balance::LoadTable loads;
};

} // namespace warren::process_ranks

// For the host process (launch/host): one PageMoves, of the process.
extern "C" {
// Once, before all others, while there is one thread. Returns an errno.
int warren_page_moves_start(const warren::process_ranks::HostPageMoves* options);
void warren_page_moves_stack(std::uint32_t rank, void* begin, std::size_t bytes);
// The image that the calling thread has entered is this rank's.
void warren_page_moves_image(std::uint32_t rank);
// The calling thread's rank, if it is of one, has allocated a block of the heap.
void warren_page_moves_claim(std::uintptr_t block, std::size_t bytes);
// A block of whole pages is about to be freed.
void warren_page_moves_release(const void* block, std::size_t bytes);
void warren_page_moves_follow(const std::uint32_t* before, const std::uint32_t* now,
                              std::uint32_t ranks);
}
