#include "analyser/tracker/real.hpp"

#include <cstdint>
#include <dlfcn.h>

namespace warren::locality::tracker {

namespace {

Real functions;
// 0: not requested; 1: a thread looks them up; 2: found. The release pairs with the acquire of
// threads that then use `functions`.
int progress = 0;

alignas(64) char early_array[64 << 10];
std::size_t early_used = 0;

template <typename Function>
void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void find_all() {
    find(functions.malloc, "malloc");
    find(functions.calloc, "calloc");
    find(functions.realloc, "realloc");
    find(functions.free, "free");
    find(functions.posix_memalign, "posix_memalign");
    find(functions.aligned_alloc, "aligned_alloc");
    find(functions.memalign, "memalign");
    find(functions.valloc, "valloc");
    find(functions.pvalloc, "pvalloc");
    find(functions.malloc_usable_size, "malloc_usable_size");
    find(functions.mmap, "mmap");
    find(functions.munmap, "munmap");
    find(functions.mremap, "mremap");
    find(functions.madvise, "madvise");
    find(functions.mlock, "mlock");
    find(functions.brk, "brk");
    find(functions.sbrk, "sbrk");
    find(functions.shmat, "shmat");
    find(functions.shmdt, "shmdt");
    find(functions.pthread_create, "pthread_create");
    find(functions.read, "read");
    find(functions.pread, "pread");
    find(functions.readv, "readv");
    find(functions.preadv, "preadv");
    find(functions.recv, "recv");
    find(functions.recvfrom, "recvfrom");
    find(functions.recvmsg, "recvmsg");
    find(functions.fread, "fread");
    find(functions.process_vm_readv, "process_vm_readv");
}

} // namespace

const Real* real() {
    if (__atomic_load_n(&progress, __ATOMIC_ACQUIRE) == 2) [[likely]] {
        return &functions;
    }
    int nobody = 0;
    if (!__atomic_compare_exchange_n(&progress, &nobody, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_ACQUIRE)) {
        return nobody == 2 ? &functions : nullptr; // 1: this thread is looking, and has come here
    }
    find_all();
    __atomic_store_n(&progress, 2, __ATOMIC_RELEASE);
    return &functions;
}

void* early_allocation(std::size_t bytes, std::size_t alignment) {
    const std::size_t at = (early_used + alignment - 1) / alignment * alignment;
    if (at + bytes > sizeof early_array) {
        return nullptr;
    }
    early_used = at + bytes;
    return early_array + at;
}

bool is_early(const void* pointer) {
    const auto* at = static_cast<const char*>(pointer);
    return at >= early_array && at < early_array + sizeof early_array;
}

std::size_t early_bytes_from(const void* pointer) {
    return static_cast<std::size_t>(early_array + early_used - static_cast<const char*>(pointer));
}

} // namespace warren::locality::tracker
