// An unmodified program with everything that a heap has to bear: allocations before main, all
// functions of malloc's family, threads that free each other's blocks, children of fork, programs
// that it starts, libraries that it loads. Says what does not hold, and ends with 1.
//     heap_user            all of it
//     heap_user sites      200 blocks of 5000 bytes in each of three functions, nothing else large
//     heap_user strict     ends with 3 if a terabyte is refused with ENOMEM
//     heap_user strict_new ends with 3 if operator new refuses what the machine has
//     heap_user child      ends with 4 if something is preloaded, with 5 if not
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
    if (!condition) {
        std::printf("does not hold: %s\n", what);
        ++failures;
    }
}

struct Early {
    Early() : block(static_cast<char*>(std::malloc(3000))) { std::memset(block, 1, 3000); }
    char* block;
};
Early early;

bool is_aligned(const void* block, std::size_t alignment) {
    return block != nullptr && reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

// The compiler knows what malloc does, and would leave calls out.
void* volatile kept;

void check_family() {
    for (std::size_t bytes = 0; bytes < 20'000'000; bytes = bytes * 5 + 3) {
        auto* block = static_cast<unsigned char*>(std::malloc(bytes));
        expect(is_aligned(block, 16) && malloc_usable_size(block) >= bytes, "malloc");
        std::memset(block, 0xab, bytes);
        auto* grown = static_cast<unsigned char*>(std::realloc(block, bytes * 2 + 1));
        expect(grown != nullptr && (bytes == 0 || (grown[0] == 0xab && grown[bytes - 1] == 0xab)),
               "realloc grows");
        auto* shrunk = static_cast<unsigned char*>(std::realloc(grown, bytes / 3 + 1));
        expect(shrunk != nullptr && (bytes == 0 || shrunk[0] == 0xab), "realloc shrinks");
        std::free(shrunk);
        auto* zero = static_cast<unsigned char*>(std::calloc(bytes + 1, 1));
        bool is_zero = true;
        for (std::size_t i = 0; i <= bytes; ++i) {
            is_zero = is_zero && zero[i] == 0;
        }
        expect(is_zero, "calloc");
        std::free(zero);
    }
    for (std::size_t alignment = 8; alignment <= 1 << 22; alignment *= 2) {
        void* block = nullptr;
        expect(posix_memalign(&block, alignment, 100) == 0 && is_aligned(block, alignment),
               "posix_memalign");
        std::free(block);
        block = aligned_alloc(alignment, alignment * 3);
        expect(is_aligned(block, alignment), "aligned_alloc");
        std::free(block);
        block = memalign(alignment, 77);
        expect(is_aligned(block, alignment), "memalign");
        std::free(block);
    }
    void* block = nullptr;
    expect(posix_memalign(&block, 24, 100) == EINVAL, "posix_memalign refuses");
    expect(is_aligned(valloc(10), 4096) && is_aligned(pvalloc(10), 4096), "valloc, pvalloc");
    volatile std::size_t much = SIZE_MAX / 2;
    errno = 0;
    expect(std::malloc(much) == nullptr && errno == ENOMEM, "malloc refuses");
    expect(std::calloc(much, 4) == nullptr && reallocarray(nullptr, much, 4) == nullptr,
           "products that overflow are refused");
    errno = 7;
    kept = std::malloc(5'000'000);
    std::free(kept);
    expect(errno == 7, "free leaves errno");
    expect(std::realloc(std::malloc(10), 0) == nullptr, "realloc to nothing frees");
    bool thrown = false;
    try {
        kept = ::operator new(much);
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    expect(thrown, "operator new throws");
    expect(::operator new(much, std::nothrow) == nullptr, "operator new does not throw");
    void* over = ::operator new (100, std::align_val_t{256});
    expect(is_aligned(over, 256), "aligned operator new");
    ::operator delete (over, std::align_val_t{256});
    std::free(early.block);
}

void check_threads() {
    std::vector<std::vector<std::string>> made(4);
    for (int round = 0; round < 3; ++round) {
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < made.size(); ++t) {
            threads.emplace_back([&made, t] {
                std::vector<std::string> own;
                for (std::size_t i = 0; i < 3000; ++i) {
                    own.emplace_back(i % 500 + 20, static_cast<char>('a' + t));
                }
                made[t].swap(own); // and frees another thread's
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        std::swap(made[0], made[3]);
    }
    expect(made[1][2999].size() == 519 && made[1][2999][0] == 'b', "strings of threads");
}

int status_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void check_children() {
    std::vector<std::string> inherited(100, std::string(1000, 'x'));
    const pid_t child = fork();
    if (child == 0) {
        check_threads();
        inherited.clear();
        _exit(failures);
    }
    expect(status_of(child) == 0, "a child of fork");
}

void check_libraries() {
    // It allocates as it is loaded and used.
    for (int i = 0; i < 3; ++i) {
        void* library = dlopen("libm.so.6", RTLD_NOW);
        expect(library != nullptr && dlsym(library, "cbrt") != nullptr, "dlopen");
        dlclose(library);
        expect(dlopen("/no/such/library.so", RTLD_NOW) == nullptr && dlerror() != nullptr,
               "dlopen fails");
    }
    char* line = nullptr;
    expect(asprintf(&line, "%d", 42) == 2 && std::strcmp(line, "42") == 0, "asprintf");
    std::free(line);
}

} // namespace

namespace shop {
struct Shelf {
    __attribute__((noinline)) void fill(std::vector<void*>& blocks, std::size_t bytes) {
        for (int i = 0; i < 200; ++i) {
            blocks.push_back(std::malloc(bytes));
        }
        ++filled;
    }
    int filled = 0;
};
} // namespace shop

extern "C" __attribute__((noinline)) void fill_cellar(std::vector<void*>& blocks,
                                                      std::size_t bytes) {
    for (int i = 0; i < 200; ++i) {
        blocks.push_back(::operator new(bytes));
    }
}

constinit bool handled = false;

// As much as the machine has, of which some is in use: the system would promise it.
[[gnu::noinline]] bool is_refused_everything() {
    const auto bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * 4096 - (64U << 20);
    std::set_new_handler([] {
        handled = true;
        std::set_new_handler(nullptr);
    });
    try {
        kept = ::operator new(bytes);
    } catch (const std::bad_alloc&) {
        return handled && ::operator new(bytes, std::nothrow) == nullptr;
    }
    return false;
}

int main(int count, char** words) {
    const std::string mode = count > 1 ? words[1] : "";
    if (mode == "child") {
        return std::getenv("LD_PRELOAD") != nullptr ? 4 : 5;
    }
    if (mode == "strict") {
        volatile std::size_t terabyte = std::size_t{1} << 40;
        kept = std::malloc(terabyte);
        return kept == nullptr && errno == ENOMEM ? 3 : 0;
    }
    if (mode == "strict_new") {
        return is_refused_everything() ? 3 : 0;
    }
    if (mode == "sites") {
        std::vector<void*> blocks;
        blocks.reserve(400);
        shop::Shelf().fill(blocks, 5000);
        fill_cellar(blocks, 5000);
        for (int i = 0; i < 200; ++i) {
            kept = strndup(std::string(4999, 'x').c_str(), 4999); // the C library's malloc and ours
        }
        return blocks[0] != nullptr ? 0 : 1;
    }
    check_family();
    check_threads();
    check_children();
    check_libraries();
    const std::string own_child = std::string(words[0]) + " child";
    const int status = std::system(own_child.c_str());
    std::printf("%s, child %d\n", failures == 0 ? "good" : "bad", WEXITSTATUS(status));
    return failures == 0 ? 0 : 1;
}
