#include "memory/attributes/targets.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "memory/heap/reserve.hpp"

namespace warren::memory {

namespace {

constexpr std::size_t huge_page_bytes = 2 * 1024 * 1024;

const Criteria& nearest() {
    static const Criteria criteria; // revision 0, which no other has
    return criteria;
}

std::string text_of_size(std::size_t bytes) {
    const unsigned shift = bytes % (1U << 30) == 0 ? 30 : bytes % (1U << 20) == 0 ? 20 : 10;
    return std::to_string(bytes >> shift) + (shift == 30 ? "G" : shift == 20 ? "M" : "k");
}

Error page_size_of(const Criteria& criteria, PageSize& page_size) {
    switch (criteria.page_bytes) {
    case 0:
        page_size = PageSize::any;
        return {};
    case page_bytes:
        page_size = PageSize::small;
        return {};
    case huge_page_bytes:
        page_size = PageSize::huge;
        return {};
    default:
        return fail(WARREN_MEM_ERR_ARG,
                    "page=%s: pages are of the default size, 4k, 2M where the system finds such, "
                    "or, as page=hugetlb:%s, from the system's reserve",
                    text_of_size(criteria.page_bytes).c_str(),
                    text_of_size(criteria.page_bytes).c_str());
    }
}

// Whether the ordering is another one a moment later.
bool changes(const Criteria& criteria) {
    return std::any_of(criteria.terms.begin(), criteria.terms.end(), [](const Term& term) {
        return term.attribute == WARREN_MEM_AVAILABLE || term.name == "available";
    });
}

Error heap_of_ordering(const Machine& machine, const Criteria& criteria, Heap*& heap) {
    Kind kind;
    if (Error error = kind_of(machine, criteria, kind)) {
        return error;
    }
    if (Error error = check_reserve(criteria)) {
        return error;
    }
    heap = heap_of_kind(kind);
    if (heap != nullptr) {
        return {};
    }
    switch (errno) {
    case EINVAL:
        return fail(WARREN_MEM_ERR_NO_TARGET,
                    "the process may use none of the targets of \"%s\" (cpuset of its cgroup)",
                    criteria.text().c_str());
    case EAGAIN:
        return fail(WARREN_MEM_ERR_SYSTEM,
                    "more than %u kinds of memory are in use (orderings, policies and page sizes "
                    "that differ): ask for fewer",
                    heap_limit);
    default:
        return fail(WARREN_MEM_ERR_FULL, "no memory for the description of a heap");
    }
}

} // namespace

Error check_reserve(const Criteria& criteria) {
    if (!criteria.reserved) {
        return {};
    }
    const std::size_t bytes = criteria.page_bytes;
    const std::string size = text_of_size(bytes);
    switch (look_at_reserve("", static_cast<unsigned>(std::countr_zero(bytes)))) {
    case Reserve::there:
        return {};
    case Reserve::none:
        return fail(WARREN_MEM_ERR_FULL,
                    "page=hugetlb:%s: the system has no such pages in reserve; its administrator "
                    "sets them apart, for a NUMA node in /sys/devices/system/node/nodeN/hugepages/"
                    "hugepages-%zukB/nr_hugepages",
                    size.c_str(), bytes / 1024);
    case Reserve::no_size:
        return fail(WARREN_MEM_ERR_ARG, "page=hugetlb:%s: this machine has no pages of that size",
                    size.c_str());
    case Reserve::old_system:
        break;
    }
    return fail(WARREN_MEM_ERR_SYSTEM, "page=hugetlb:%s needs Linux 5.16 or later", size.c_str());
}

Error kind_of(const Machine& machine, const Criteria& criteria, Kind& kind) {
    if (criteria.reserved) {
        kind.reserved_shift = static_cast<std::uint8_t>(std::countr_zero(criteria.page_bytes));
    } else if (Error error = page_size_of(criteria, kind.page_size)) {
        return error;
    }
    std::vector<Target> targets;
    if (Error error = machine.ordering(criteria, targets)) {
        return error;
    }
    kind.policy = criteria.policy == WARREN_MEM_STRICT       ? Policy::strict
                  : criteria.policy == WARREN_MEM_INTERLEAVE ? Policy::interleave
                                                             : Policy::next;
    kind.equals = 0;
    for (const Target& target : targets) {
        if (kind.count == target_limit || target.node >= node_limit) {
            break; // the worst of very many
        }
        kind.targets[kind.count++] = static_cast<std::int16_t>(target.node);
        kind.equals = static_cast<std::uint16_t>(kind.equals + (target.tier == 0));
    }
    if (kind.policy == Policy::strict) {
        kind.count = kind.equals; // so that orderings which differ behind that share a heap
    }
    return {};
}

Error find_heap(const warren_mem_criteria* wanted, Heap*& heap) {
    const Criteria& criteria = wanted != nullptr ? of(wanted) : nearest();
    Machine* machine = nullptr;
    if (Error error = Machine::here(machine)) {
        return error;
    }
    if (!machine->is_this_node()) {
        return fail(WARREN_MEM_ERR_MACHINE,
                    "the topology that this process was given describes another machine than the "
                    "one it runs on: its memory can be asked about, but not be had");
    }
    const bool by_processor =
        criteria.initiator.kind == Initiator::Kind::here && machine->nodes().size() > 1;
    const std::uint64_t machine_revision = Machine::revision();
    const int processor = by_processor ? sched_getcpu() : -1;
    if (Error error = heap_of_ordering(*machine, criteria, heap)) {
        return error;
    }
    // The initiator may have been another processor than the one asked about before.
    const bool moved = by_processor && sched_getcpu() != processor;
    ThreadCaches* own = moved || changes(criteria) ? nullptr : make_caches();
    if (own != nullptr) {
        ThreadCache* cache = make_cache(*heap);
        const std::uint64_t revision = cache != nullptr ? criteria.revision : no_criteria;
        own->known[criteria.revision % known_heaps] = {
            heap,     cache, revision, by_processor ? no_criteria : revision, machine_revision,
            processor};
    }
    return {};
}

} // namespace warren::memory
