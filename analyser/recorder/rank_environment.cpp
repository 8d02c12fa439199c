#include "analyser/recorder/rank_environment.hpp"

namespace warren::locality {

namespace {

struct Launcher {
    const char* source;
    const char* rank;
    const char* size; // null: it doesn't tell
};

// Some launchers also set the variables of another library. So a launcher's own variables come
// first here, and those that several set last.
constexpr Launcher launchers[] = {
    {"Warren", "WARREN_RANK", "WARREN_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE"}, // MPICH, Intel MPI, Slurm's pmi2
    {"PMI", "PMI_ID", "PMI_SIZE"},
    {"PMIx", "PMIX_RANK", nullptr},
};

// A number of at least 0, else -1.
std::int32_t number_in(const char* text) {
    if (text == nullptr || *text == 0) {
        return -1;
    }
    std::int64_t value = 0;
    for (; *text != 0; ++text) {
        if (*text < '0' || *text > '9') {
            return -1;
        }
        value = value * 10 + (*text - '0');
        if (value > INT32_MAX) {
            return -1;
        }
    }
    return static_cast<std::int32_t>(value);
}

} // namespace

RankEnvironment rank_in(const char* (*variable)(const char* name)) {
    if (variable("WARREN_RANKS_HERE") != nullptr) {
        return {}; // several ranks in one process, which is none of them
    }
    for (const Launcher& launcher : launchers) {
        const std::int32_t rank = number_in(variable(launcher.rank));
        if (rank >= 0) {
            const std::int32_t size =
                launcher.size == nullptr ? -1 : number_in(variable(launcher.size));
            return {rank, size, launcher.source};
        }
    }
    return {};
}

} // namespace warren::locality
