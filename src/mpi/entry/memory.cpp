// Memory that MPI allocates (MPI 5.0, 9.2 and 12.2.3): ordinary, or by attribute when an info key
// asks for it, which libwarren.so does.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <linux/mempolicy.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpi/comm/info.hpp"
#include "mpi/entry/environment.hpp"
#include "warren/memory.h"

namespace warren::mpi {

namespace {

// A cache line at least: neighbours in it would slow down what one allocates memory here for.
constexpr std::size_t default_alignment = 64;

// The functions of libwarren.so.
struct Functions {
    decltype(&warren_mem_criteria_parse) parse;
    decltype(&warren_mem_criteria_free) free_criteria;
    decltype(&warren_mem_alloc_aligned) allocate;
    decltype(&warren_mem_free) free;
    decltype(&warren_mem_usable_size) usable_size;
    decltype(&warren_mem_error) error;
    decltype(&warren_mem_get_ordering) ordering;
    decltype(&warren_mem_criteria_text) text;
};

// The process's functions; null until a rank asks for memory by attribute.
constinit std::atomic<const Functions*> loaded{nullptr};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

bool find_all(void* library, Functions& functions) {
    return find(library, "warren_mem_criteria_parse", functions.parse) &&
           find(library, "warren_mem_criteria_free", functions.free_criteria) &&
           find(library, "warren_mem_alloc_aligned", functions.allocate) &&
           find(library, "warren_mem_free", functions.free) &&
           find(library, "warren_mem_usable_size", functions.usable_size) &&
           find(library, "warren_mem_error", functions.error) &&
           find(library, "warren_mem_get_ordering", functions.ordering) &&
           find(library, "warren_mem_criteria_text", functions.text);
}

// The library that the program has, else the one beside this library, which is not linked to it: a
// program that never asks does without.
Error load(const Functions*& functions) {
    functions = loaded.load(std::memory_order_acquire);
    if (functions != nullptr) {
        return {};
    }
    static Functions found;
    static const std::string problem = []() -> std::string {
        if (find_all(RTLD_DEFAULT, found)) {
            return "";
        }
        Dl_info own;
        if (dladdr(reinterpret_cast<void*>(&load), &own) == 0 || own.dli_fname == nullptr) {
            return "the MPI library does not know where it is";
        }
        // (The file itself: mpiexec may have put a link to it first.) A name without a folder is
        // looked up like the MPI library.
        const bool has_folder = std::strchr(own.dli_fname, '/') != nullptr;
        char* const file = has_folder ? realpath(own.dli_fname, nullptr) : nullptr;
        std::string path = file != nullptr ? file : own.dli_fname;
        std::free(file);
        path.resize(path.rfind('/') + 1);
        path += "libwarren.so.1";
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            return dlerror();
        }
        return find_all(library, found) ? "" : path + " is of another version";
    }();
    if (!problem.empty()) {
        return fail(MPI_ERR_OTHER, "memory by attribute (info key %s) needs libwarren.so: %s",
                    memory_criteria_key, problem.c_str());
    }
    loaded.store(&found, std::memory_order_release);
    functions = &found;
    return {};
}

// The criteria that an info key's text names, and the library that knows them.
class Criteria {
  public:
    Criteria() = default;
    Criteria(const Criteria&) = delete;
    Criteria& operator=(const Criteria&) = delete;
    ~Criteria() {
        if (criteria_ != nullptr) {
            functions_->free_criteria(criteria_);
        }
    }

    Error read(const char* text) {
        if (Error error = load(functions_)) {
            return error;
        }
        if (functions_->parse(text, &criteria_) != WARREN_MEM_SUCCESS) {
            return fail(MPI_ERR_INFO_VALUE, "info key %s: %s", memory_criteria_key,
                        functions_->error());
        }
        return {};
    }

    const Functions& functions() const { return *functions_; }
    const warren_mem_criteria* get() const { return criteria_; }

  private:
    const Functions* functions_ = nullptr;
    warren_mem_criteria* criteria_ = nullptr;
};

Error allocate_by_attribute(const char* text, std::size_t bytes, std::size_t alignment,
                            void*& memory) {
    Criteria criteria;
    if (Error error = criteria.read(text)) {
        return error;
    }
    memory = criteria.functions().allocate(alignment, bytes, criteria.get());
    if (memory == nullptr) {
        return fail(errno == EINVAL ? MPI_ERR_INFO_VALUE : MPI_ERR_NO_MEM,
                    "info key %s = \"%s\": %s", memory_criteria_key, text,
                    criteria.functions().error());
    }
    return {};
}

// NUMA nodes, as the kernel takes them.
struct NodeMask {
    static constexpr unsigned bits = 1024;
    unsigned long words[bits / 64] = {};

    void add(unsigned node) {
        if (node < bits) {
            words[node / 64] |= 1UL << (node % 64);
        }
    }
};

// How the kernel is to place pages: the nodes that are the criteria's first choice, and what is
// done when they are full.
struct PagePolicy {
    int mode = MPOL_PREFERRED;
    NodeMask nodes;
};

Error policy_of(const Criteria& criteria, PagePolicy& policy) {
    const Functions& functions = criteria.functions();
    constexpr std::size_t node_limit = 64;
    unsigned nodes[node_limit];
    unsigned tiers[node_limit];
    std::size_t count = 0;
    if (functions.ordering(nullptr, criteria.get(), node_limit, nodes, tiers, &count) !=
        WARREN_MEM_SUCCESS) {
        return fail(MPI_ERR_INFO_VALUE, "info key %s: %s", memory_criteria_key, functions.error());
    }
    char text[1024];
    functions.text(criteria.get(), text, sizeof text, nullptr);
    policy.mode = std::strstr(text, "full=strict") != nullptr       ? MPOL_BIND
                  : std::strstr(text, "full=interleave") != nullptr ? MPOL_INTERLEAVE
                                                                    : MPOL_PREFERRED;
    // The kernel prefers one node, and takes those near it next.
    const std::size_t equals = policy.mode == MPOL_PREFERRED ? 1 : std::min(count, node_limit);
    for (std::size_t i = 0; i < equals && tiers[i] == 0; ++i) {
        policy.nodes.add(nodes[i]);
    }
    return {};
}

} // namespace

Error memory_alignment(const comm::Info* info, std::size_t& alignment) {
    alignment = default_alignment;
    const std::string* text = info != nullptr ? info->find(memory_alignment_key) : nullptr;
    if (text == nullptr) {
        return {};
    }
    std::size_t wanted = 0;
    const char* end = text->data() + text->size();
    const auto [rest, error] = std::from_chars(text->data(), end, wanted);
    if (error != std::errc() || rest != end || wanted == 0 || (wanted & (wanted - 1)) != 0) {
        return fail(MPI_ERR_INFO_VALUE, "info key %s: \"%s\" is no power of two",
                    memory_alignment_key, text->c_str());
    }
    alignment = wanted > alignment ? wanted : alignment;
    return {};
}

const char* memory_criteria(const comm::Info* info) {
    const std::string* criteria = info != nullptr ? info->find(memory_criteria_key) : nullptr;
    return criteria != nullptr ? criteria->c_str() : nullptr;
}

Error place_pages(const char* text, void* pages, std::size_t bytes) {
    Criteria criteria;
    if (Error error = criteria.read(text)) {
        return error;
    }
    PagePolicy policy;
    if (Error error = policy_of(criteria, policy); error || bytes == 0) {
        return error;
    }
    if (syscall(SYS_mbind, pages, bytes, policy.mode, policy.nodes.words, NodeMask::bits, 0U) !=
            0 &&
        policy.mode != MPOL_PREFERRED) {
        return fail(MPI_ERR_OTHER, "info key %s = \"%s\": the system does not place memory: %s",
                    memory_criteria_key, text, std::strerror(errno));
    }
    return {};
}

void unplace_pages(void* pages, std::size_t bytes) {
    if (bytes > 0) {
        static_cast<void>(
            syscall(SYS_mbind, pages, bytes, MPOL_DEFAULT, nullptr, 0UL, 0U)); // a hint's end
    }
}

Error alloc_mem(Context&, MPI_Aint size, comm::Info* info, void* baseptr) {
    if (size < 0) {
        return fail(MPI_ERR_ARG, "size = %lld is negative", static_cast<long long>(size));
    }
    std::size_t alignment = 0;
    if (Error error = memory_alignment(info, alignment)) {
        return error;
    }
    const auto bytes = static_cast<std::size_t>(size);
    void* memory = nullptr;
    if (const char* criteria = memory_criteria(info)) {
        if (Error error = allocate_by_attribute(criteria, bytes, alignment, memory)) {
            return error;
        }
    } else if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) {
        return fail(MPI_ERR_NO_MEM, "%lld bytes are not to be had", static_cast<long long>(size));
    }
    // baseptr is declared void* for the caller's comfort, and is a void**.
    std::memcpy(baseptr, &memory, sizeof memory);
    return {};
}

Error free_mem(Context&, void* base) {
    const Functions* functions = loaded.load(std::memory_order_acquire);
    if (functions != nullptr && functions->usable_size(base) != 0) {
        functions->free(base);
    } else {
        std::free(base);
    }
    return {};
}

} // namespace warren::mpi
