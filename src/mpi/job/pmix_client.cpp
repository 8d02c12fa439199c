#include "mpi/job/pmix_client.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <utility>

#include "base/blocked_signals.hpp"
#include "mpi.h"

namespace warren::node {

namespace {

// --- What libpmix takes and gives

constexpr int pmix_success = 0;
constexpr std::uint32_t pmix_all_ranks = UINT32_MAX - 1; // PMIX_RANK_WILDCARD
constexpr std::uint8_t pmix_global_scope = 3;

namespace pmix_type {
constexpr std::uint16_t boolean = 1;
constexpr std::uint16_t string = 3;
constexpr std::uint16_t number = 14;
constexpr std::uint16_t byte_object = 27;
} // namespace pmix_type

struct PmixProcess {
    char name_space[256];
    std::uint32_t rank;
};

struct PmixBytes {
    char* bytes;
    std::size_t size;
};

struct PmixValue {
    std::uint16_t type;
    union {
        bool flag;
        std::uint32_t number;
        char* text;
        PmixBytes object;
        void* largest[3];
    };
};
static_assert(sizeof(PmixValue) == 32);

struct PmixInfo {
    char key[512];
    std::uint32_t flags;
    PmixValue value;
};
static_assert(sizeof(PmixInfo) == 552);

using PmixInit = int (*)(PmixProcess*, PmixInfo*, std::size_t);
using PmixFinalize = int (*)(const PmixInfo*, std::size_t);
using PmixPut = int (*)(std::uint8_t, const char*, PmixValue*);
using PmixCommit = int (*)();
using PmixFence = int (*)(const PmixProcess*, std::size_t, const PmixInfo*, std::size_t);
using PmixGet = int (*)(const PmixProcess*, const char*, const PmixInfo*, std::size_t, PmixValue**);
using PmixAbort = int (*)(int, const char*, PmixProcess*, std::size_t);
using PmixErrorString = const char* (*)(int);

template <typename Function>
bool look_up(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

// The library has allocated the value's contents.
void free_value(PmixValue* value) {
    if (value->type == pmix_type::string) {
        std::free(value->text);
    } else if (value->type == pmix_type::byte_object) {
        std::free(value->object.bytes);
    }
    std::free(value);
}

} // namespace

struct PmixClient::Library {
    PmixInit init;
    PmixFinalize finalize;
    PmixPut put;
    PmixCommit commit;
    PmixFence fence;
    PmixGet get;
    PmixAbort abort;
    PmixErrorString error_string;
    PmixProcess self = {};
    bool connected = false;

    Error load();
    Error failed(const char* what, int status) const {
        return fail(MPI_ERR_OTHER, "the launcher's PMIx: %s: %s", what, error_string(status));
    }
    // Null: there is no such value.
    PmixValue* find(std::uint32_t rank, const char* key) const {
        PmixProcess process = self;
        process.rank = rank;
        PmixValue* value = nullptr;
        return get(&process, key, nullptr, 0, &value) == pmix_success ? value : nullptr;
    }
    bool find_text(std::uint32_t rank, const char* key, std::string& found) const {
        PmixValue* const value = find(rank, key);
        if (value == nullptr) {
            return false;
        }
        const bool is_text = value->type == pmix_type::string && value->text != nullptr;
        found = is_text ? value->text : "";
        free_value(value);
        return is_text;
    }
    bool find_number(std::uint32_t rank, const char* key, std::uint32_t& found) const {
        PmixValue* const value = find(rank, key);
        if (value == nullptr) {
            return false;
        }
        const bool is_number = value->type == pmix_type::number;
        found = is_number ? value->number : 0;
        free_value(value);
        return is_number;
    }
};

Error PmixClient::Library::load() {
    void* const library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
        return fail(MPI_ERR_OTHER,
                    "this program was started by a PMIx launcher (PMIX_RANK=%s), and libpmix can't "
                    "be loaded: %s (install libpmix2, or name the folder of the launcher's "
                    "libpmix.so.2 in LD_LIBRARY_PATH; or start it with Warren's mpiexec or, in "
                    "Slurm, srun --mpi=pmi2)",
                    std::getenv("PMIX_RANK"), dlerror());
    }
    if (!look_up(library, "PMIx_Init", init) || !look_up(library, "PMIx_Finalize", finalize) ||
        !look_up(library, "PMIx_Put", put) || !look_up(library, "PMIx_Commit", commit) ||
        !look_up(library, "PMIx_Fence", fence) || !look_up(library, "PMIx_Get", get) ||
        !look_up(library, "PMIx_Abort", abort) ||
        !look_up(library, "PMIx_Error_string", error_string)) {
        return fail(MPI_ERR_OTHER, "libpmix.so.2 lacks a function: %s", dlerror());
    }
    return {};
}

PmixClient::PmixClient() : library_(std::make_unique<Library>()) {}

PmixClient::~PmixClient() = default;

bool PmixClient::has_launcher() {
    return std::getenv("PMIX_NAMESPACE") != nullptr && std::getenv("PMIX_RANK") != nullptr;
}

std::uint32_t PmixClient::rank() const {
    return library_->self.rank;
}

Error PmixClient::connect() {
    if (Error error = library_->load()) {
        return error;
    }
    int status = pmix_success;
    {
        const BlockedSignals blocked; // signals are the program's, and not for libpmix's thread
        status = library_->init(&library_->self, nullptr, 0);
    }
    if (status != pmix_success) {
        return fail(MPI_ERR_OTHER,
                    "the launcher's PMIx (PMIX_RANK=%s) can't be reached: PMIx_Init: %s; start the "
                    "program with Warren's mpiexec, or unset PMIX_RANK and the other variables "
                    "PMIX_ to run one rank",
                    std::getenv("PMIX_RANK"), library_->error_string(status));
    }
    library_->connected = true;
    if (!library_->find_number(pmix_all_ranks, "pmix.job.size", size_) || rank() >= size_) {
        return fail(MPI_ERR_OTHER,
                    "the launcher's PMIx does not say how many ranks the job has, or less than "
                    "this one's number, %u",
                    rank());
    }
    return {};
}

Error PmixClient::nodes(std::vector<std::uint32_t>& node_of_rank) {
    node_of_rank.assign(size_, 0);
    bool has_numbers = true;
    for (std::uint32_t at = 0; at < size_ && has_numbers; ++at) {
        has_numbers = library_->find_number(at, "pmix.nodeid", node_of_rank[at]);
    }
    // By names else, of all ranks: their places in a list have nothing to do with the numbers.
    std::vector<std::string> names;
    for (std::uint32_t at = 0; at < size_ && !has_numbers; ++at) {
        std::string name;
        if (!library_->find_text(at, "pmix.hname", name)) {
            return fail(MPI_ERR_OTHER, "the launcher's PMIx does not say on which node rank %u is",
                        at);
        }
        const auto known = std::find(names.begin(), names.end(), name);
        node_of_rank[at] = static_cast<std::uint32_t>(known - names.begin());
        if (known == names.end()) {
            names.push_back(std::move(name));
        }
    }
    return {};
}

Error PmixClient::put(const std::string& key, std::string_view bytes) {
    std::string copy(bytes);
    PmixValue value = {};
    value.type = pmix_type::byte_object;
    value.object = {.bytes = copy.data(), .size = copy.size()};
    const int status = library_->put(pmix_global_scope, key.c_str(), &value);
    return status == pmix_success ? Error{} : library_->failed("PMIx_Put", status);
}

Error PmixClient::get(std::uint32_t rank, const std::string& key, std::string& bytes) {
    PmixValue* const value = library_->find(rank, key.c_str());
    if (value == nullptr) {
        return fail(MPI_ERR_OTHER, "the launcher has nothing of rank %u under '%s'", rank,
                    key.c_str());
    }
    const bool is_ours = value->type == pmix_type::byte_object;
    if (is_ours) {
        bytes.assign(value->object.bytes, value->object.size);
    }
    free_value(value);
    return is_ours
               ? Error{}
               : fail(MPI_ERR_OTHER, "the launcher has a strange value under '%s'", key.c_str());
}

Error PmixClient::barrier() {
    int status = library_->commit();
    if (status == pmix_success) {
        // All nodes get what has been put, so that nobody has to ask for it later.
        PmixInfo collect = {};
        std::strcpy(collect.key, "pmix.collect");
        collect.value.type = pmix_type::boolean;
        collect.value.flag = true;
        status = library_->fence(nullptr, 0, &collect, 1);
    }
    return status == pmix_success ? Error{} : library_->failed("PMIx_Fence", status);
}

void PmixClient::abort(int code, const char* text) {
    library_->abort(code, text, nullptr, 0);
}

void PmixClient::finalize() {
    if (library_->connected) {
        library_->connected = false;
        library_->finalize(nullptr, 0);
    }
}

} // namespace warren::node
