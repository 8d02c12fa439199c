#include "runtime/process_ranks/process_ranks.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unistd.h>

#include "image/host.hpp"
#include "image/image.hpp"
#include "image/libc/functions.hpp"
#include "image/program.hpp"
#include "runtime/fibres/api.hpp"
#include "warren/ranks.h"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

namespace {

using warren::image::Image;
using warren::process_ranks::ProcessRank;

// As many as a node holds (mpi/job/segment.hpp): what is beyond is a mistake in the environment.
constexpr long member_limit = 16384;

struct ProcessRanks {
    ProcessRanks() {
        const char* text = std::getenv(warren::process_ranks::count_variable);
        if (text == nullptr) {
            return;
        }
        char* end = nullptr;
        const long number = std::strtol(text, &end, 10);
        if (end == text || *end != '\0' || number < 1 || number > member_limit) {
            count = 0;
            return;
        }
        count = static_cast<int>(number);
        list = std::make_unique<ProcessRank[]>(static_cast<std::size_t>(count));
        for (int index = 0; index < count; ++index) {
            list[static_cast<std::size_t>(index)].number = static_cast<std::uint32_t>(index);
        }
    }

    int count = 1; // 0: the environment makes no sense
    std::unique_ptr<ProcessRank[]> list;
};

// Made at first use, and for ever: threads may call MPI while the process exits.
ProcessRanks& members() {
    static ProcessRanks& made = *new ProcessRanks;
    return made;
}

thread_local ProcessRank* own_member = nullptr;

} // namespace

WARREN_API ProcessRank* warren_member_current(void) {
    if (own_member == nullptr) {
        if (const Image* image = warren::image::current_image()) {
            own_member = static_cast<ProcessRank*>(image->owner.load(std::memory_order_acquire));
        }
    }
    return own_member;
}

WARREN_API char** warren_member_arguments(void) {
    const Image* image = warren::image::current_image();
    return image != nullptr ? image->arguments : nullptr;
}

WARREN_API const char* warren_member_environment(const char* name) {
    return warren::image::current_image() != nullptr ? warren::image::libc::getenv(name)
                                                     : std::getenv(name);
}

WARREN_API void warren_member_flush(void) {
    if (Image* image = warren::image::current_image()) {
        image->libc_state().flush_at_end(); // and no stream of another rank, which may be in use
    } else {
        std::fflush(nullptr);
    }
}

WARREN_API void warren_member_exit(int status) {
    if (warren::image::current_image() != nullptr) {
        warren::image::end_program({status & 0xff, 0}, warren::image::Farewell::none);
    }
    _exit(status);
}

WARREN_API int warren_rank_count(void) {
    return members().count;
}

WARREN_API int warren_rank_bind(int number) {
    ProcessRanks& all = members();
    if (all.count == 0) {
        return WARREN_RANK_ERR_JOB;
    }
    if (number < 0 || number >= all.count) {
        return WARREN_RANK_ERR_ARG;
    }
    if (all.list == nullptr) {
        return WARREN_RANK_SUCCESS; // the process is the rank
    }
    ProcessRank* member = &all.list[static_cast<std::size_t>(number)];
    if (own_member != nullptr && own_member != member) {
        return WARREN_RANK_ERR_USE;
    }
    own_member = member;
    if (Image* image = warren::image::current_image()) {
        image->owner.store(member, std::memory_order_release); // for the threads that it makes
    }
    return WARREN_RANK_SUCCESS;
}

WARREN_API int warren_rank_migrate(void) {
    warren_fibre_point();
    return members().count == 0 ? WARREN_RANK_ERR_JOB : WARREN_RANK_SUCCESS;
}

WARREN_API const char* warren_rank_error(int error) {
    switch (error) {
    case WARREN_RANK_SUCCESS:
        return "no error";
    case WARREN_RANK_ERR_ARG:
        return "no rank of this process has this number: they are 0 to warren_rank_count() - 1";
    case WARREN_RANK_ERR_USE:
        return "the calling thread is bound to another rank already";
    case WARREN_RANK_ERR_JOB:
        return "WARREN_RANKS_HERE is not a number of ranks: start the program with Warren's "
               "mpiexec "
               "--ranks-per-process T";
    default:
        return "not an error of warren/ranks.h";
    }
}
