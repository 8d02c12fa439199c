// Ranks that wait by futexes of their own: what C++ has for waiting, and the system's call. As
// fibres they let other ranks run meanwhile.
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <future>
#include <latch>
#include <linux/futex.h>
#include <mpi.h>
#include <mutex>
#include <semaphore>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

int rank_number = 0;
std::atomic<int> wrong{0};

#define CHECK(holds)                                                                               \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            ++wrong;                                                                               \
            std::fprintf(stderr, "rank %d, line %d: %s\n", rank_number, __LINE__, #holds);         \
        }                                                                                          \
    } while (0)

constexpr auto keep = std::chrono::milliseconds(30);

void rest() {
    std::this_thread::sleep_for(keep);
}

void atomics() {
    std::atomic<int> value{0};
    std::atomic<std::uint64_t> wide{0};
    std::thread other([&] {
        rest();
        value = 1;
        value.notify_one();
        rest();
        wide = 2;
        wide.notify_all();
        for (int turn = 1; turn < 400; turn += 2) {
            value.wait(turn);
            ++value;
            value.notify_one();
        }
    });
    value.wait(0);
    CHECK(value == 1);
    wide.wait(0);
    CHECK(wide == 2);
    for (int turn = 1; turn < 401; turn += 2) {
        ++value;
        value.notify_one();
        value.wait(turn + 1);
    }
    other.join();
}

void others() {
    std::latch latch(2);
    std::barrier<> barrier(2);
    std::counting_semaphore<8> semaphore(0);
    std::promise<int> promise;
    std::thread other([&] {
        rest();
        latch.count_down();
        rest();
        barrier.arrive_and_wait();
        rest();
        semaphore.release(2);
        rest();
        promise.set_value(7);
    });
    latch.arrive_and_wait();
    barrier.arrive_and_wait();
    semaphore.acquire();
    semaphore.acquire();
    CHECK(!semaphore.try_acquire_for(std::chrono::milliseconds(20)));
    CHECK(promise.get_future().get() == 7);
    other.join();
}

// Who makes it gives way meanwhile, who comes later waits.
struct Slow {
    int value;
    Slow() {
        rest();
        value = 5;
    }
};

int slow_value() {
    static const Slow slow;
    return slow.value;
}

void once() {
    static std::once_flag flag;
    std::atomic<int> calls{0};
    const auto call = [&] {
        std::call_once(flag, [&] {
            rest();
            ++calls;
        });
        CHECK(calls == 1);
        CHECK(slow_value() == 5);
    };
    std::thread other(call);
    call();
    other.join();
    // Who fails lets another one try.
    static std::once_flag failing;
    int tries = 0;
    try {
        std::call_once(failing, [&] {
            ++tries;
            throw 1;
        });
    } catch (int thrown) {
        tries += 10 * thrown;
    }
    std::call_once(failing, [&] { tries += 100; });
    CHECK(tries == 111);
}

long futex(std::atomic<std::uint32_t>& word, int command, std::uint32_t value,
           const timespec* time) {
    return syscall(SYS_futex, &word, command, value, time, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void calls() {
    std::atomic<std::uint32_t> word{0};
    errno = 0;
    CHECK(futex(word, FUTEX_WAIT_PRIVATE, 1, nullptr) == -1 && errno == EAGAIN);
    timespec time = {0, 20'000'000};
    errno = 0;
    const auto begin = std::chrono::steady_clock::now();
    CHECK(futex(word, FUTEX_WAIT, 0, &time) == -1 && errno == ETIMEDOUT);
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 20'000'000;
    time.tv_sec += time.tv_nsec / 1'000'000'000;
    time.tv_nsec %= 1'000'000'000;
    errno = 0;
    CHECK(futex(word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &time) == -1 &&
          errno == ETIMEDOUT);
    CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(39));
    time = {0, -1};
    CHECK(futex(word, FUTEX_WAIT, 0, &time) == -1 && errno == EINVAL);
    CHECK(futex(word, FUTEX_WAKE, 1, nullptr) == 0);
    // A wake for which nothing has changed is one, and is counted.
    std::atomic<long> woken{0};
    std::thread other([&] {
        rest();
        while ((woken = futex(word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr)) == 0) {
            rest();
        }
    });
    CHECK(futex(word, FUTEX_WAIT_PRIVATE, 0, nullptr) == 0);
    other.join();
    CHECK(woken == 1 && word == 0);
    CHECK(syscall(SYS_getpid) == getpid());
    // What can't be read is refused.
    void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (void* address : {page, static_cast<void*>(nullptr)}) {
        errno = 0;
        CHECK(syscall(SYS_futex, address, FUTEX_WAIT_PRIVATE, 0, nullptr) == -1 && errno == EFAULT);
    }
    munmap(page, 4096);
}

} // namespace

int main(int argc, char** argv) {
    int given = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_number);
    atomics();
    others();
    once();
    calls();
    int mine = wrong;
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0 ? 1 : 0;
}
