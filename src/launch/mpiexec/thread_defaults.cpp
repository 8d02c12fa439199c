#include "launch/mpiexec/thread_defaults.hpp"

#include <algorithm>
#include <cstdlib>

namespace warren::launch {

namespace {

// The outermost number of OMP_NUM_THREADS, which may be a list; 0: the value is no number.
std::uint64_t outermost_threads(const char* text) {
    char* end = nullptr;
    const unsigned long long threads = std::strtoull(text, &end, 10);
    return end == text || *text == '-' ? 0 : threads;
}

} // namespace

std::vector<EnvironmentSetting> thread_defaults(const ThreadShare& share,
                                                const Variable& variable) {
    std::vector<EnvironmentSetting> made;
    const auto set = [&](const char* name, const std::string& value) {
        if (variable(name) == nullptr) {
            made.push_back({name, value});
        }
    };
    const std::uint32_t fair = std::max(1U, share.processors / std::max(1U, share.ranks));
    std::uint64_t threads = share.visible;
    if (const char* const text = variable("OMP_NUM_THREADS")) {
        if (const std::uint64_t wanted = outermost_threads(text)) {
            threads = wanted;
        }
    } else if (fair < share.visible && !share.makes_its_ranks) {
        threads = fair;
        set("OMP_NUM_THREADS", std::to_string(fair)); // OpenBLAS, BLIS and MKL follow it as well
    }
    // Ranks that have one processor or less each may still ask for more threads within the program.
    const bool has_no_more = share.ranks > 1 && share.ranks >= share.processors;
    if (has_no_more || threads > share.processors / std::max(1U, share.ranks)) {
        if (variable("OMP_WAIT_POLICY") == nullptr) {
            set("OMP_WAIT_POLICY", "passive");
            set("KMP_BLOCKTIME", "0"); // libomp and libiomp spin for 200 ms even so
        }
        set("OPENBLAS_THREAD_TIMEOUT", "4"); // log2 of the ticks to spin, the least it takes
    }
    return made;
}

std::string text_of(const std::vector<EnvironmentSetting>& settings) {
    std::string text;
    for (const EnvironmentSetting& setting : settings) {
        text.append(text.empty() ? "" : " ").append(setting.name).append("=").append(setting.value);
    }
    return text;
}

} // namespace warren::launch
