// Places memory in known ways, by threads with known numbers, and prints what is so: for each piece
//     piece NAME ADDRESS BYTES THREAD…    one per page; thread n is the n-th made, from 0; "-":
//     nobody,
//                                         "?": whoever
// record_test.py compares this with the recording. The first argument chooses the pattern.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <functional>
#include <malloc.h>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "warren/locality.h"

extern "C" int MPI_Pcontrol(int level, ...) __attribute__((weak));

namespace {

constexpr std::size_t page = 4096;
constexpr int nobody = -1;
constexpr int whoever = -2;
int threads_made = 0;

// Runs `work` in a new thread, whose number it returns, and waits for its end.
int in_thread(const std::function<void()>& work) {
    pthread_t thread;
    auto run = [](void* argument) -> void* {
        (*static_cast<const std::function<void()>*>(argument))();
        return nullptr;
    };
    if (pthread_create(&thread, nullptr, run, const_cast<std::function<void()>*>(&work)) != 0) {
        std::abort();
    }
    pthread_join(thread, nullptr);
    return ++threads_made;
}

void write_pages(char* memory, std::size_t first, std::size_t count) {
    for (std::size_t index = first; index < first + count; ++index) {
        reinterpret_cast<volatile char*>(memory)[index * page] = 1;
    }
}

void read_pages(const char* memory, std::size_t first, std::size_t count) {
    for (std::size_t index = first; index < first + count; ++index) {
        (void)reinterpret_cast<const volatile char*>(memory)[index * page];
    }
}

void told(const char* name, const void* memory, const std::vector<int>& owners) {
    std::printf("piece %s %p %zu", name, memory, owners.size() * page);
    for (const int owner : owners) {
        if (owner < 0) {
            std::printf(owner == nobody ? " -" : " ?");
        } else {
            std::printf(" %d", owner);
        }
    }
    std::printf("\n");
    std::fflush(stdout);
}

std::vector<int> repeated(std::initializer_list<std::pair<int, std::size_t>> runs) {
    std::vector<int> owners;
    for (const auto& [owner, count] : runs) {
        owners.insert(owners.end(), count, owner);
    }
    return owners;
}

char* aligned(std::size_t pages) {
    return static_cast<char*>(std::aligned_alloc(page, pages * page));
}

char* anonymous(std::size_t bytes, int more = 0) {
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
    return static_cast<char*>(memory);
}

alignas(page) char statics[8 * page];

void heap() {
    char* serial = aligned(40);
    write_pages(serial, 0, 40);
    told("serial", serial, repeated({{0, 40}}));

    char* parallel = aligned(40);
    std::vector<int> owners;
    for (std::size_t part = 0; part < 4; ++part) {
        const int one = in_thread([&] { write_pages(parallel, part * 10, 10); });
        owners.insert(owners.end(), 10, one);
    }
    write_pages(parallel, 0, 40); // placed by now
    told("parallel", parallel, owners);

    char* zeros = static_cast<char*>(std::calloc(40, page));
    char* whole = zeros + (page - reinterpret_cast<std::uintptr_t>(zeros) % page) % page;
    const int other = in_thread([&] { write_pages(whole, 5, 30); });
    told("calloc", whole + 5 * page, repeated({{other, 30}}));

    // The first reads get the kernel's page of zeros. Only writes place pages.
    char* late = aligned(40);
    read_pages(late, 0, 40);
    const int writer = in_thread([&] { write_pages(late, 0, 20); });
    told("read-then-written", late, repeated({{writer, 20}, {nobody, 20}}));
}

void other_kinds() {
    const int first = in_thread([] { write_pages(statics, 0, 4); });
    write_pages(statics, 4, 4);
    told("statics", statics, repeated({{first, 4}, {0, 4}}));

    char* mapping = anonymous(20 * page);
    const int second = in_thread([&] { write_pages(mapping, 10, 10); });
    told("mapping", mapping, repeated({{nobody, 10}, {second, 10}}));

    char* shared = static_cast<char*>(
        mmap(nullptr, 20 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const int third = in_thread([&] { write_pages(shared, 0, 20); });
    told("shared", shared, repeated({{third, 20}}));

    // Shared memory has no page of zeros: reading places it.
    char* read_first = static_cast<char*>(
        mmap(nullptr, 10 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const int reader = in_thread([&] { read_pages(read_first, 0, 10); });
    write_pages(read_first, 0, 10);
    told("shared-read", read_first, repeated({{reader, 10}}));

    char* locked = anonymous(10 * page);
    const int locker = in_thread([&] {
        if (mlock(locked, 10 * page) != 0) {
            write_pages(locked, 0, 10); // where no memory may be locked
        }
    });
    write_pages(locked, 0, 10);
    told("locked", locked, repeated({{locker, 10}}));

    char* populated = anonymous(20 * page, MAP_POPULATE);
    in_thread([&] { write_pages(populated, 0, 20); });
    told("populated", populated, repeated({{0, 20}}));

    char* discarded = anonymous(20 * page);
    write_pages(discarded, 0, 20);
    madvise(discarded, 10 * page, MADV_DONTNEED);
    const int fourth = in_thread([&] { write_pages(discarded, 0, 20); });
    told("discarded", discarded, repeated({{fourth, 10}, {0, 10}}));

    // A thread's own stack, some pages below its current end.
    in_thread([] {
        char deep[20 * page];
        char* base = deep + (page - reinterpret_cast<std::uintptr_t>(deep) % page) % page;
        write_pages(base, 0, 16);
        told("stack", base, repeated({{threads_made + 1, 16}}));
    });
}

void moves() {
    // realloc of a large block moves its pages without touching them.
    char* block = static_cast<char*>(std::malloc(400 * page));
    const int first = in_thread([&] { std::memset(block, 1, 400 * page); });
    char* larger = static_cast<char*>(std::realloc(block, 4000 * page));
    const int second = in_thread([&] { std::memset(larger + 400 * page, 1, 3600 * page); });
    char* base = larger + (page - reinterpret_cast<std::uintptr_t>(larger) % page) % page;
    told("realloc", base, repeated({{first, 399}, {whoever, 1}, {second, 3598}}));

    // The next block gets a freed block's pages, which its former user has placed. Earlier blocks
    // may have used the first pages.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    constexpr std::size_t pages = 400;
    char* keep = static_cast<char*>(std::malloc(pages * page));
    const int third = in_thread([&] { std::memset(keep, 1, pages * page); });
    const char* const kept_at = keep;
    std::free(keep);
    char* again = static_cast<char*>(std::malloc(pages * page));
    const bool reused = again == kept_at;
    in_thread([&] { std::memset(again, 2, pages * page); });
    if (reused) {
        char* inside = again + (page - reinterpret_cast<std::uintptr_t>(again) % page) % page;
        told("reused", inside, repeated({{whoever, pages / 2}, {third, pages / 2 - 1}}));
    }

    // The second mapping has the same address but new pages.
    char* first_map = anonymous(20 * page);
    write_pages(first_map, 0, 20);
    munmap(first_map, 20 * page);
    char* second_map =
        static_cast<char*>(mmap(first_map, 20 * page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    const int fourth = in_thread([&] { write_pages(second_map, 0, 20); });
    told("mapped-again", second_map, repeated({{fourth, 20}}));
}

void huge() {
    constexpr std::size_t bytes = std::size_t{2} << 20;
    char* memory = anonymous(3 * bytes);
    char* base = memory + (bytes - reinterpret_cast<std::uintptr_t>(memory) % bytes) % bytes;
    if (madvise(base, 2 * bytes, MADV_HUGEPAGE) != 0) {
        return;
    }
    base[0] = 1;
    const int other = in_thread([&] { base[bytes + 12345] = 1; });
    told("huge", base, repeated({{0, bytes / page}, {other, bytes / page}}));
}

void calls() {
    char* memory = aligned(40);
    const int zeros = open("/dev/zero", O_RDONLY);
    const int first = in_thread([&] {
        if (read(zeros, memory, 20 * page) != 20 * page) {
            std::abort();
        }
    });
    FILE* file = std::fopen("/dev/zero", "r");
    if (std::fread(memory + 20 * page, page, 20, file) != 20) {
        std::abort();
    }
    std::fclose(file);
    told("read", memory, repeated({{first, 20}, {0, 20}}));
}

void marks() {
    char* memory = aligned(10);
    warren_locality_name(memory, 10 * page, "field");
    warren_locality_begin("set up");
    write_pages(memory, 0, 5);
    warren_locality_end("set up");
    if (MPI_Pcontrol != nullptr) {
        MPI_Pcontrol(2);
    }
    std::printf("recording %d\n", warren_locality_recording());
    told("marked", memory, repeated({{0, 5}, {nobody, 5}}));
}

std::uint64_t own_processor_time_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

// Five simultaneous threads use 50, 100, ... 250 ms of a processor each, and print how much it was.
void loads() {
    constexpr int count = 5;
    pthread_t threads[count];
    static pthread_barrier_t all_are_done;
    pthread_barrier_init(&all_are_done, nullptr, count + 1);
    static std::uint64_t used[count];
    auto run = [](void* argument) -> void* {
        const auto number = reinterpret_cast<std::uintptr_t>(argument);
        while ((used[number] = own_processor_time_ns()) < 50'000'000 * (number + 1)) {
        }
        pthread_barrier_wait(&all_are_done);
        pthread_barrier_wait(&all_are_done);
        return nullptr;
    };
    for (std::uintptr_t number = 0; number < count; ++number) {
        pthread_create(&threads[number], nullptr, run, reinterpret_cast<void*>(number));
    }
    pthread_barrier_wait(&all_are_done);
    usleep(400'000); // the recorder looks 20 times a second
    for (int number = 0; number < count; ++number) {
        std::printf("load %d %llu\n", number + 1, static_cast<unsigned long long>(used[number]));
    }
    pthread_barrier_wait(&all_are_done);
    for (const pthread_t thread : threads) {
        pthread_join(thread, nullptr);
    }
}

void children(const char* self) {
    char* before = aligned(10);
    write_pages(before, 0, 10);
    told("parents", before, repeated({{0, 10}}));
    const pid_t child = fork();
    if (child == 0) {
        threads_made = 0;
        std::printf("process %d\n", getpid());
        char* own = aligned(20);
        const int other = in_thread([&] { write_pages(own, 0, 10); });
        told("childs", own, repeated({{other, 10}, {nobody, 10}}));
        execl(self, self, "heap", nullptr);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
        std::exit(1);
    }
}

} // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    std::printf("process %d\n", getpid());
    if (what == "heap") {
        heap();
    } else if (what == "other") {
        other_kinds();
    } else if (what == "moves") {
        moves();
    } else if (what == "huge") {
        huge();
    } else if (what == "calls") {
        calls();
    } else if (what == "marks") {
        marks();
    } else if (what == "children") {
        children(argv[0]);
    } else if (what == "loads") {
        loads();
    } else if (what == "threads") {
        for (int count = std::atoi(argv[2]); count > 0; --count) {
            in_thread([] {});
        }
        char* memory = aligned(4);
        const int last = in_thread([&] { write_pages(memory, 0, 4); });
        told("last", memory, repeated({{last, 4}}));
    } else if (what == "wait") {
        char* memory = aligned(10);
        const int other = in_thread([&] { write_pages(memory, 0, 10); });
        told("kept", memory, repeated({{other, 10}}));
        std::printf("ready\n");
        std::fflush(stdout);
        while (getppid() != 1 || argc > 2) {
            char* more = aligned(64); // goes on with both kinds of records
            write_pages(more, 0, 64);
            std::free(more);
            usleep(2000);
            if (argc > 2 && access(argv[2], F_OK) == 0) {
                std::printf("went on\n");
                return 0;
            }
        }
    } else if (what == "abort") {
        char* memory = aligned(10);
        write_pages(memory, 0, 10);
        told("kept", memory, repeated({{0, 10}}));
        std::abort();
    } else if (what == "much") {
        const std::size_t pages = static_cast<std::size_t>(std::atoi(argv[2]));
        char* memory = anonymous(pages * page);
        if (argc > 3) { // when it is told to
            std::printf("ready\n");
            (void)std::getchar();
        }
        write_pages(memory, 0, pages);
        std::printf("done\n");
    } else {
        return 2;
    }
    return 0;
}
