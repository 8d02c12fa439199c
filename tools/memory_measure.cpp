#include "memory_measure.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <linux/mempolicy.h>
#include <memory>
#include <random>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "memory/heap/numa.hpp"

namespace warren::tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t line_bytes = 64;
constexpr std::size_t small_page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr double mebibyte = 1024.0 * 1024.0;
constexpr int code = 1; // errors of a command have no classes

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Memory on one node, with all pages placed.
class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (mapped_ != nullptr) {
            munmap(mapped_, mapped_bytes_);
        }
    }

    Error get(std::size_t bytes, unsigned node, bool huge) {
        bytes_ = (bytes + huge_page - 1) / huge_page * huge_page;
        mapped_bytes_ = bytes_ + huge_page;
        void* mapped = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) {
            return fail(code, "no address space for a buffer of %zu bytes", bytes_);
        }
        mapped_ = static_cast<char*>(mapped);
        begin_ = mapped_ +
                 (huge_page - reinterpret_cast<std::uintptr_t>(mapped_) % huge_page) % huge_page;
        // A buffer has a single page size, else the figure means nothing.
        huge_ = madvise(begin_, bytes_, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0 && huge;
        std::array<std::uint64_t, memory::node_limit / 64> nodes{};
        nodes[node / 64] = std::uint64_t{1} << (node % 64);
        // Preferred, not bound: on a full node binding would call the out-of-memory killer.
        if (syscall(SYS_mbind, begin_, bytes_, MPOL_PREFERRED, nodes.data(), memory::node_limit + 1,
                    0) != 0 &&
            errno != ENOSYS) {
            return fail(code, "memory of node %u can't be had: mbind: %s", node,
                        std::strerror(errno));
        }
        for (std::size_t at = 0; at < bytes_; at += small_page) {
            begin_[at] = 1;
        }
        return check(node);
    }

    char* begin() const { return begin_; }
    std::size_t bytes() const { return bytes_; }
    bool huge() const { return huge_; }

  private:
    Error check(unsigned node) {
        const std::size_t pages = bytes_ / small_page;
        std::vector<int> nodes(pages);
        if (!memory::nodes_of_pages(begin_, pages, nodes.data())) {
            return {}; // a kernel without NUMA, with one node
        }
        const auto elsewhere = std::count_if(nodes.begin(), nodes.end(), [&](int of_page) {
            return of_page != static_cast<int>(node);
        });
        if (static_cast<std::size_t>(elsewhere) > pages / 100) {
            return fail(code,
                        "node %u has no room for a buffer of %zu MiB: %ld of its %zu pages are on "
                        "other nodes (--size says another)",
                        node, bytes_ >> 20, static_cast<long>(elsewhere), pages);
        }
        return {};
    }

    char* mapped_ = nullptr;
    std::size_t mapped_bytes_ = 0;
    char* begin_ = nullptr;
    std::size_t bytes_ = 0;
    bool huge_ = false;
};

bool run_on(unsigned cpu) {
    constexpr unsigned limit = 8192;
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(limit),
                                                         [](cpu_set_t* one) { CPU_FREE(one); });
    const std::size_t bytes = CPU_ALLOC_SIZE(limit);
    CPU_ZERO_S(bytes, set.get());
    CPU_SET_S(cpu, bytes, set.get());
    return sched_setaffinity(0, bytes, set.get()) == 0;
}

// Runs a function in a thread on a processor.
template <typename Function>
bool on_processor(unsigned cpu, Function function) {
    bool bound = false;
    std::thread([&] {
        bound = run_on(cpu);
        if (bound) {
            function();
        }
    }).join();
    return bound;
}

void summarise(std::vector<double>& samples, Figure& figure) {
    std::sort(samples.begin(), samples.end());
    figure.repetitions = static_cast<unsigned>(samples.size());
    figure.least = samples.front();
    figure.most = samples.back();
    figure.median = samples[samples.size() / 2];
}

// ---- Latency

void write_chain(const Buffer& buffer, std::size_t lines_per_page) {
    const std::size_t lines = buffer.bytes() / line_bytes;
    const std::vector<std::uint32_t> next = chain_order(lines, lines_per_page, 1);
    for (std::size_t line = 0; line < lines; ++line) {
        char* to = buffer.begin() + next[line] * line_bytes;
        std::memcpy(buffer.begin() + line * line_bytes, &to, sizeof to);
    }
}

// Returns the address reached, so that the compiler can't omit a step.
char* follow_reading(char* from, std::size_t steps) {
    for (std::size_t step = 0; step < steps; ++step) {
        from = *reinterpret_cast<char* volatile*>(from);
    }
    return from;
}

// Follows the chain by steps that write what they read.
char* follow_writing(char* from, std::size_t steps) {
    std::uintptr_t nothing = 0;
    asm volatile("" : "+r"(nothing)); // the compiler must not know, or it would only read
    for (std::size_t step = 0; step < steps; ++step) {
        from = reinterpret_cast<char*>(std::atomic_ref(*reinterpret_cast<std::uintptr_t*>(from))
                                           .fetch_add(nothing, std::memory_order_relaxed));
    }
    return from;
}

void chase(const Buffer& buffer, const Effort& effort, Figure& figure) {
    constexpr std::size_t few = 2000;
    const auto follow =
        figure.quantity == Quantity::latency_write ? follow_writing : follow_reading;
    char* at = follow(buffer.begin(), few); // the TLB and the clock of the processor warm up
    std::vector<double> samples;
    const Clock::time_point begin = Clock::now();
    const double share = effort.seconds_per_figure / effort.repetitions;
    while (samples.empty() || (samples.size() < effort.repetitions &&
                               seconds_since(begin) < effort.seconds_per_figure)) {
        const Clock::time_point start = Clock::now();
        std::size_t steps = 0;
        double seconds = 0;
        do {
            at = follow(at, few);
            steps += few;
            seconds = seconds_since(start);
        } while (seconds < share);
        samples.push_back(seconds * 1e9 / static_cast<double>(steps));
    }
    summarise(samples, figure);
}

// ---- Bandwidth

using Vector = std::uint64_t __attribute__((vector_size(32), aligned(8), may_alias));
using Doubles = double __attribute__((vector_size(32), aligned(8), may_alias));

// One pass over a part of the arrays. Returns a value, so that the compiler can't omit the pass.
[[gnu::noinline]] std::uint64_t pass(Quantity quantity, char* a, char* b, char* c,
                                     std::size_t bytes) {
    auto* va = reinterpret_cast<Vector*>(a);
    auto* vb = reinterpret_cast<Vector*>(b);
    auto* da = reinterpret_cast<Doubles*>(a);
    auto* db = reinterpret_cast<Doubles*>(b);
    auto* dc = reinterpret_cast<Doubles*>(c);
    const std::size_t count = bytes / sizeof(Vector);
    Vector sum[4] = {};
    switch (quantity) {
    case Quantity::read:
        for (std::size_t i = 0; i + 4 <= count; i += 4) {
            sum[0] ^= va[i];
            sum[1] ^= va[i + 1];
            sum[2] ^= va[i + 2];
            sum[3] ^= va[i + 3];
        }
        break;
    case Quantity::write:
        std::memset(a, static_cast<int>(reinterpret_cast<std::uintptr_t>(b) >> 12 & 0xff), bytes);
        break;
    case Quantity::copy:
        for (std::size_t i = 0; i < count; ++i) {
            va[i] = vb[i];
        }
        break;
    default:
        for (std::size_t i = 0; i < count; ++i) {
            da[i] = db[i] + 3.0 * dc[i];
        }
        break;
    }
    const Vector all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
    return all[0] ^ all[1] ^ all[2] ^ all[3];
}

// Number of the three arrays that a pass reads or writes.
std::size_t arrays_of(Quantity quantity) {
    return quantity == Quantity::triad ? 3 : quantity == Quantity::copy ? 2 : 1;
}

// Measures one figure with a number of threads. The threads meet before and after each repetition,
// so that the time is that of all.
bool stream(const Buffer& buffer, Quantity quantity, const std::vector<unsigned>& cores,
            unsigned threads, const Effort& effort, Figure& figure) {
    const std::size_t part = buffer.bytes() / 3 / threads / small_page * small_page;
    std::atomic<bool> bound{true};
    std::atomic<bool> more{true};
    std::atomic<std::uint64_t> kept{0};
    std::vector<double> samples;
    std::barrier meeting(static_cast<std::ptrdiff_t>(threads));
    const auto work = [&](unsigned thread) {
        if (!run_on(cores[thread])) {
            bound = false;
        }
        char* first = buffer.begin() + part * 3 * thread;
        const Clock::time_point begin = Clock::now();
        // Repetition -1 is one pass to warm up.
        for (int repetition = -1;; ++repetition) {
            meeting.arrive_and_wait();
            if (!more || !bound) {
                return;
            }
            const Clock::time_point start = Clock::now();
            kept += pass(quantity, first, first + part, first + 2 * part, part);
            meeting.arrive_and_wait();
            if (thread == 0) {
                const double seconds = std::max(seconds_since(start), 1e-9);
                const double bytes = static_cast<double>(part * arrays_of(quantity)) * threads;
                if (repetition >= 0) {
                    samples.push_back(bytes / mebibyte / seconds);
                }
                // Makes as many passes as fit the time, at least the number of repetitions or one.
                more = samples.empty() || (seconds_since(begin) < effort.seconds_per_figure &&
                                           samples.size() < effort.repetitions * 4UL);
            }
        }
    };
    std::vector<std::thread> team;
    for (unsigned thread = 1; thread < threads; ++thread) {
        team.emplace_back(work, thread);
    }
    std::thread(work, 0).join();
    for (std::thread& member : team) {
        member.join();
    }
    if (bound) {
        summarise(samples, figure);
        figure.threads = threads;
    }
    return bound;
}

Error not_bound(const Pair& pair) {
    return fail(code, "processor %u can't be used: %s", pair.cores.front(), std::strerror(errno));
}

} // namespace

const char* name_of(Quantity quantity) {
    constexpr const char* names[] = {"random latency",
                                     "page-local latency",
                                     "huge-page latency",
                                     "write latency",
                                     "read",
                                     "write",
                                     "copy",
                                     "triad"};
    return names[static_cast<std::size_t>(quantity)];
}

bool is_latency(Quantity quantity) {
    return quantity <= Quantity::latency_write;
}

std::vector<std::uint32_t> chain_order(std::size_t lines, std::size_t lines_per_page,
                                       std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::size_t step = lines_per_page == 0 ? 1 : lines_per_page;
    const std::size_t pages = (lines + step - 1) / step;
    std::vector<std::uint32_t> page_order(pages);
    for (std::size_t page = 0; page < pages; ++page) {
        page_order[page] = static_cast<std::uint32_t>(page);
    }
    std::shuffle(page_order.begin(), page_order.end(), random);
    std::vector<std::uint32_t> visits;
    visits.reserve(lines);
    for (const std::uint32_t page : page_order) {
        const std::size_t first = page * step;
        const std::size_t end = std::min(first + step, lines);
        for (std::size_t line = first; line < end; ++line) {
            visits.push_back(static_cast<std::uint32_t>(line));
        }
        std::shuffle(visits.end() - static_cast<std::ptrdiff_t>(end - first), visits.end(), random);
    }
    std::vector<std::uint32_t> next(lines);
    for (std::size_t visit = 0; visit < lines; ++visit) {
        next[visits[visit]] = visits[(visit + 1) % lines];
    }
    return next;
}

Error measure(const Pair& pair, const Effort& effort, const std::function<bool()>& done,
              std::vector<Figure>& figures) {
    figures.clear();
    for (const bool huge : {false, true}) {
        Buffer buffer;
        Error error;
        // The buffer is touched from there, too, so that the cost of placing pages is not measured.
        if (!on_processor(pair.cores.front(),
                          [&] { error = buffer.get(pair.bytes, pair.node, huge); })) {
            return not_bound(pair);
        }
        if (error) {
            return error;
        }
        for (const Quantity quantity : quantities) {
            // Bandwidths use huge pages, as tuned programs do.
            if (huge != (quantity >= Quantity::latency_huge)) {
                continue;
            }
            Figure figure;
            figure.quantity = quantity;
            figure.huge_pages = buffer.huge();
            if (is_latency(quantity)) {
                const bool by_page = quantity == Quantity::latency_pages;
                if (!on_processor(pair.cores.front(), [&] {
                        write_chain(buffer, by_page ? small_page / line_bytes : 0);
                        chase(buffer, effort, figure);
                    })) {
                    return not_bound(pair);
                }
            } else {
                const auto all = static_cast<unsigned>(pair.cores.size());
                unsigned tries = 1;
                while (1U << tries < 2 * all) {
                    ++tries;
                }
                Effort share = effort;
                share.seconds_per_figure /= tries;
                for (unsigned threads = 1;; threads = std::min(threads * 2, all)) {
                    Figure with;
                    with.quantity = quantity;
                    with.huge_pages = buffer.huge();
                    if (!stream(buffer, quantity, pair.cores, threads, share, with)) {
                        return not_bound(pair);
                    }
                    if (with.median > figure.median) {
                        figure = with;
                    }
                    if (threads == all) {
                        break;
                    }
                }
            }
            figures.push_back(figure);
            if (!done()) {
                return {};
            }
        }
    }
    return {};
}

} // namespace warren::tools
