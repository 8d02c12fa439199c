// Disk quota: the bytes that a process's folder may take (`--limit`), where its recorder and its
// tracker run in the same process. Each owns a quarter, and either may take from the common half,
// first come first served. So neither can use up the other's quarter, and no quota stays unusable.
// Plain data. Thread rule: `own` one thread at a time, `common` any.
#pragma once

#include <cstdint>

namespace warren::locality {

struct DiskQuota {
    std::uint64_t own;
    std::uint64_t* common; // null: there is none

    // False: less than `bytes` is left, and nothing is taken.
    bool take(std::uint64_t bytes) {
        const std::uint64_t more = bytes > own ? bytes - own : 0;
        if (more != 0) {
            if (common == nullptr) {
                return false;
            }
            std::uint64_t left = __atomic_load_n(common, __ATOMIC_RELAXED);
            do {
                if (left < more) {
                    return false;
                }
            } while (!__atomic_compare_exchange_n(common, &left, left - more, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        }
        own -= bytes - more;
        return true;
    }
    void give_back(std::uint64_t bytes) { own += bytes; }
    std::uint64_t left() const {
        return own + (common == nullptr ? 0 : __atomic_load_n(common, __ATOMIC_RELAXED));
    }
};

} // namespace warren::locality
