#include "launch/mpiexec/cpu_set.hpp"

#include <algorithm>
#include <bit>
#include <sys/syscall.h>
#include <unistd.h>

namespace warren::launch {

std::uint32_t CpuSet::count() const {
    int sum = 0;
    for (const std::uint64_t word : words_) {
        sum += std::popcount(word);
    }
    return static_cast<std::uint32_t>(sum);
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
    for (std::size_t index = 0; index < words_.size(); ++index) {
        words_[index] &= other.words_[index];
    }
    return *this;
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
    for (std::size_t index = 0; index < words_.size(); ++index) {
        words_[index] |= other.words_[index];
    }
    return *this;
}

std::string CpuSet::text() const {
    std::string made;
    for (std::size_t first = 0; first < limit; ++first) {
        if (!has(first)) {
            continue;
        }
        std::size_t last = first;
        while (has(last + 1)) {
            ++last;
        }
        if (!made.empty()) {
            made += ',';
        }
        made += std::to_string(first);
        if (last > first) {
            made += last == first + 1 ? ',' : '-';
            made += std::to_string(last);
        }
        first = last;
    }
    return made;
}

std::span<const std::uint64_t> CpuSet::words() const {
    std::size_t count = words_.size();
    while (count > 0 && words_[count - 1] == 0) {
        --count;
    }
    return {words_.data(), count};
}

bool CpuSet::assign(std::span<const std::uint64_t> words) {
    words_.fill(0);
    if (words.size() > words_.size()) {
        return false;
    }
    std::copy(words.begin(), words.end(), words_.begin());
    return true;
}

CpuSet CpuSet::allowed() {
    CpuSet set;
    // The C library's wrapper stops at 1024 processors unless told otherwise; the call itself
    // doesn't.
    if (syscall(SYS_sched_getaffinity, 0, bytes(), set.words_.data()) < 0) {
        set = {};
    }
    return set;
}

} // namespace warren::launch
