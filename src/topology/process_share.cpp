#include "topology/process_share.hpp"

#include <cerrno>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "topology/format.hpp"

namespace warren::topology {

namespace {

constexpr std::size_t most_mask_words = (max_os_index + 1) / 64;
constexpr std::size_t first_words = 16; // 1024 processors; the kernel says when that isn't enough

} // namespace

ProcessShare find_process_share() {
    ProcessShare share;
    for (std::size_t words = first_words; words <= most_mask_words; words *= 2) {
        share.cpus.assign(words, 0);
        if (sched_getaffinity(0, words * sizeof(std::uint64_t),
                              reinterpret_cast<cpu_set_t*>(share.cpus.data())) == 0) {
            break;
        }
        share.cpus.clear();
        if (errno != EINVAL) {
            break;
        }
    }
    constexpr unsigned long of_allowed = 4; // MPOL_F_MEMS_ALLOWED
    for (std::size_t words = first_words; words <= most_mask_words; words *= 2) {
        share.nodes.assign(words, 0);
        if (syscall(SYS_get_mempolicy, nullptr, share.nodes.data(), words * 64, nullptr,
                    of_allowed) == 0) {
            break;
        }
        share.nodes.clear();
        if (errno != EINVAL) {
            break;
        }
    }
    return share;
}

std::vector<std::uint64_t> words_of(const warren_set& set) {
    std::vector<std::uint64_t> words(std::size_t{set.first} + set.count);
    for (std::uint32_t word = 0; word < set.count; ++word) {
        words[set.first + word] = set.words[word];
    }
    return words;
}

std::vector<std::uint64_t> intersection(const std::vector<std::uint64_t>& words,
                                        const warren_set& set) {
    std::vector<std::uint64_t> both = words_of(set);
    for (std::size_t word = 0; word < both.size(); ++word) {
        both[word] &= word < words.size() ? words[word] : 0;
    }
    return both;
}

} // namespace warren::topology
