#include "analyser/counts/sites.hpp"

#include <cstddef>
#include <cstring>
#include <unordered_map>

namespace warren::locality::counts {
namespace {

void* lock; // of both
std::unordered_multimap<std::uint64_t, Site*>* sites;
std::unordered_multimap<app_pc, Loop*>* loops;

bool equal(const Site& left, const Site& right) {
    bool same = left.accesses == right.accesses;
    for (unsigned index = 0; same && index < left.accesses; ++index) {
        const Access& one = left.access[index];
        const Access& other = right.access[index];
        same = one.instruction == other.instruction && one.offset == other.offset &&
               one.bytes == other.bytes && one.write == other.write;
    }
    return same;
}

bool equal(const Loop& left, const Loop& right) {
    bool same = left.sites == right.sites && left.instructions == right.instructions;
    for (unsigned index = 0; same && index < left.sites; ++index) {
        const MovingSite& one = left.site[index];
        const MovingSite& other = right.site[index];
        same = one.site == other.site && one.extent == other.extent && one.step == other.step;
    }
    return same;
}

} // namespace

void start_sites() {
    lock = dr_mutex_create();
    sites = new std::unordered_multimap<std::uint64_t, Site*>;
    loops = new std::unordered_multimap<app_pc, Loop*>;
}

const Site* site_of(const Group& group) {
    Site site{};
    for (Access access : group.accesses) {
        access.offset -= static_cast<std::int32_t>(group.low - group.origin);
        site.constants[access.write ? writing : reading] += constant_of(1, access.bytes);
        site.access[site.accesses++] = access;
    }
    const std::uint64_t key = site.access[0].instruction;
    dr_mutex_lock(lock);
    Site* result = nullptr;
    const auto known = sites->equal_range(key);
    for (auto entry = known.first; entry != known.second && result == nullptr; ++entry) {
        result = equal(*entry->second, site) ? entry->second : nullptr;
    }
    if (result == nullptr) {
        // There are many sites, so each is only as long as its accesses.
        const std::size_t bytes = offsetof(Site, access) + site.accesses * sizeof(Access);
        result = static_cast<Site*>(dr_global_alloc(bytes));
        std::memcpy(static_cast<void*>(result), &site, bytes);
        sites->emplace(key, result);
    }
    dr_mutex_unlock(lock);
    return result;
}

Loop* known_loop(app_pc begin, const Loop& wanted) {
    dr_mutex_lock(lock);
    Loop* result = nullptr;
    const auto known = loops->equal_range(begin);
    for (auto entry = known.first; entry != known.second && result == nullptr; ++entry) {
        result = equal(*entry->second, wanted) ? entry->second : nullptr;
    }
    if (result == nullptr) {
        result = static_cast<Loop*>(dr_global_alloc(sizeof(Loop)));
        std::memcpy(static_cast<void*>(result), &wanted, sizeof wanted);
        loops->emplace(begin, result);
    }
    dr_mutex_unlock(lock);
    return result;
}

} // namespace warren::locality::counts
