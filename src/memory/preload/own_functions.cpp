#include "memory/preload/own_functions.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <elf.h>
#include <iterator>
#include <link.h>

namespace warren::memory {

namespace {

constexpr const char* operators[] = {"_Znwm",
                                     "_Znam",
                                     "_ZnwmRKSt9nothrow_t",
                                     "_ZnamRKSt9nothrow_t",
                                     "_ZnwmSt11align_val_t",
                                     "_ZnamSt11align_val_t",
                                     "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                     "_ZnamSt11align_val_tRKSt9nothrow_t",
                                     "_ZdlPv",
                                     "_ZdaPv",
                                     "_ZdlPvm",
                                     "_ZdaPvm",
                                     "_ZdlPvRKSt9nothrow_t",
                                     "_ZdaPvRKSt9nothrow_t",
                                     "_ZdlPvSt11align_val_t",
                                     "_ZdaPvSt11align_val_t",
                                     "_ZdlPvmSt11align_val_t",
                                     "_ZdaPvmSt11align_val_t",
                                     "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                                     "_ZdaPvSt11align_val_tRKSt9nothrow_t"};

// Whether the process's function of this name is ours, and not one that the program defines, which
// comes before what is preloaded.
bool is_ours(const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    Dl_info its{};
    Dl_info own{};
    void* entry = nullptr;
    if (found == nullptr || dladdr(static_cast<const void*>(operators), &own) == 0 ||
        dladdr1(found, &its, &entry, RTLD_DL_SYMENT) == 0) {
        return true;
    }
    const auto* symbol = static_cast<const ElfW(Sym)*>(entry);
    // A program that isn't position-independent has addresses for functions that it only uses.
    return its.dli_fbase == own.dli_fbase || symbol == nullptr || symbol->st_shndx == SHN_UNDEF;
}

} // namespace

bool has_own_malloc() {
    return !is_ours("malloc") || !is_ours("free");
}

bool has_own_operators() {
    return !std::all_of(std::begin(operators), std::end(operators), is_ours);
}

} // namespace warren::memory
