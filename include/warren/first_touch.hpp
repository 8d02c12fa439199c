// First touch: memory of which each page is near the thread that uses it.
//
//     std::vector<double, warren::FirstTouchAllocator<double>> u(n); // in a loop of 64 threads
//     u.resize(2 * n);                                               // so is what is new
//
// The system places a page of memory near the thread that writes to it first. A
// std::vector of the usual kind is written by the thread that makes it, so all of it is near that
// thread, and the others' loops go far (Diener et al. 2017: 30 % of the pages wrong, 1.7 times as
// slow as it could be). A FirstTouchAllocator touches the pages in parallel, by a partition that
// says which thread will use which elements, and then elements are made without being written: a
// vector's constructor and resize() leave new elements of trivial types as they are. In memory that
// comes fresh from the system they are zero; where a vector grows into memory that it had before,
// they are what was there.
//
// A partition is a class with
//     std::size_t operator()(std::size_t element, std::size_t count, int threads) const
// that tells the thread, 0 to threads - 1, which uses element `element` of `count`. A page is
// touched by the thread of the first element that begins in it. `count` is what is allocated, a
// vector's capacity: make vectors with their size, or reserve() it, rather than have them grow.
//
// Where the system gives transparent huge pages, a grain of 2 MiB, they are used if the partition
// is as coarse. Needs OpenMP (-fopenmp) and no library. Thread rule: that of the container;
// allocating runs a parallel region. Source: Diener et al., "Improving the memory access locality
// of hybrid MPI applications" (2017).
#ifndef WARREN_FIRST_TOUCH_HPP
#define WARREN_FIRST_TOUCH_HPP

#include <cstddef>
#include <limits>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <sys/mman.h>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace warren {

// As `#pragma omp for schedule(static)` deals out: one block a thread, the first ones longer by one
// if there is a remainder.
struct StaticPartition {
    std::size_t operator()(std::size_t element, std::size_t count, int threads) const {
        const std::size_t workers = static_cast<std::size_t>(threads);
        const std::size_t block = count / workers;
        const std::size_t longer = count % workers; // threads with one more
        const std::size_t first_short = longer * (block + 1);
        return element < first_short ? element / (block + 1)
                                     : longer + (element - first_short) / block;
    }
};

// As `#pragma omp for schedule(static, chunk)`: chunks go round.
class BlockPartition {
  public:
    explicit BlockPartition(std::size_t chunk) : chunk_(chunk) {
        if (chunk == 0) {
            throw std::invalid_argument("BlockPartition: a chunk has one element at least");
        }
    }
    std::size_t operator()(std::size_t element, std::size_t, int threads) const {
        return element / chunk_ % static_cast<std::size_t>(threads);
    }

  private:
    std::size_t chunk_;
};

// Boxes of a three-dimensional array, element (i, j, k) at (i · rows + j) · columns + k, the last
// index running fastest: thread (a · parts_j + b) · parts_k + c has the a-th, b-th, c-th part of
// the planes, rows and columns, dealt out as StaticPartition does. Threads beyond the boxes have
// none; if there are fewer threads than boxes, the boxes go round.
class BoxPartition {
  public:
    BoxPartition(std::size_t planes, std::size_t rows, std::size_t columns, int parts_i,
                 int parts_j, int parts_k)
        : planes_(planes), rows_(rows), columns_(columns), parts_{parts_i, parts_j, parts_k} {
        if (planes == 0 || rows == 0 || columns == 0 || parts_i < 1 || parts_j < 1 || parts_k < 1) {
            throw std::invalid_argument("BoxPartition: sizes and parts are 1 at least");
        }
    }
    std::size_t operator()(std::size_t element, std::size_t, int threads) const {
        const StaticPartition deal;
        const std::size_t i = element / (rows_ * columns_);
        const std::size_t a = i < planes_ ? deal(i, planes_, parts_[0]) : 0; // what is behind
        const std::size_t b = deal(element / columns_ % rows_, rows_, parts_[1]);
        const std::size_t c = deal(element % columns_, columns_, parts_[2]);
        const auto part = [&](int index) { return static_cast<std::size_t>(parts_[index]); };
        return ((a * part(1) + b) * part(2) + c) % static_cast<std::size_t>(threads);
    }

  private:
    std::size_t planes_, rows_, columns_;
    int parts_[3];
};

// Whether huge pages of 2 MiB would bring much to the wrong threads: whether of eight places in a
// huge page more than one in eight, on average, has another thread than the first one.
template <typename Partition>
bool is_too_fine_for_huge_pages(std::size_t count, std::size_t element_bytes,
                                const Partition& partition, int threads) {
    constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
    std::size_t places = 0;
    std::size_t wrong = 0;
    for (std::size_t page = 0; page < count * element_bytes; page += huge_page_bytes) {
        const std::size_t owner = partition(page / element_bytes, count, threads);
        for (std::size_t part = 1; part < 8; ++part) {
            const std::size_t element = (page + part * huge_page_bytes / 8) / element_bytes;
            if (element < count) {
                ++places;
                wrong += partition(element, count, threads) != owner;
            }
        }
    }
    return wrong * 8 > places;
}

// Touches the pages of `count` elements at `begin` (a page's start, memory that nobody has written)
// by the partition, with the threads that the next parallel region will have. Without OpenMP
// nothing is touched: then the program's own first use decides.
template <typename Partition>
void touch_first(void* begin, std::size_t count, std::size_t element_bytes,
                 const Partition& partition) {
#ifdef _OPENMP
    constexpr std::size_t page_bytes = 4096;
    char* const bytes = static_cast<char*>(begin);
    const std::size_t pages = (count * element_bytes + page_bytes - 1) / page_bytes;
    if (is_too_fine_for_huge_pages(count, element_bytes, partition, omp_get_max_threads())) {
        madvise(begin, pages * page_bytes, MADV_NOHUGEPAGE);
    }
#pragma omp parallel
    {
        const std::size_t own = static_cast<std::size_t>(omp_get_thread_num());
        const int threads = omp_get_num_threads();
        for (std::size_t page = 0; page < pages; ++page) {
            std::size_t element = (page * page_bytes + element_bytes - 1) / element_bytes;
            element = element < count ? element : count - 1;
            if (partition(element, count, threads) == own) {
                static_cast<volatile char*>(bytes)[page * page_bytes] = 0;
            }
        }
    }
#else
    (void)begin, (void)count, (void)element_bytes, (void)partition;
#endif
}

template <typename Element, typename Partition = StaticPartition>
class FirstTouchAllocator {
  public:
    using value_type = Element;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::true_type;

    template <typename Other>
    struct rebind {
        using other = FirstTouchAllocator<Other, Partition>;
    };

    FirstTouchAllocator() = default;
    FirstTouchAllocator(Partition partition) : partition_(std::move(partition)) {}
    template <typename Other>
    FirstTouchAllocator(const FirstTouchAllocator<Other, Partition>& other)
        : partition_(other.partition()) {}

    Element* allocate(std::size_t count) {
        if (count > (std::numeric_limits<std::size_t>::max() - small_bytes) / sizeof(Element)) {
            throw std::bad_array_new_length();
        }
        const std::size_t bytes = count * sizeof(Element);
        if (bytes < small_bytes) {
            return static_cast<Element*>(::operator new(bytes, alignment));
        }
        void* mapped =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) {
            throw std::bad_alloc();
        }
        touch_first(mapped, count, sizeof(Element), partition_);
        return static_cast<Element*>(mapped);
    }
    void deallocate(Element* block, std::size_t count) noexcept {
        if (count * sizeof(Element) < small_bytes) {
            ::operator delete(block, alignment);
        } else {
            munmap(block, count * sizeof(Element));
        }
    }

    // Elements that are given no value get none: that is what keeps resize() from writing.
    template <typename Other>
    void construct(Other* element) noexcept(std::is_nothrow_default_constructible_v<Other>) {
        ::new (static_cast<void*>(element)) Other;
    }
    template <typename Other, typename... Arguments>
    void construct(Other* element, Arguments&&... arguments) {
        ::new (static_cast<void*>(element)) Other(std::forward<Arguments>(arguments)...);
    }

    const Partition& partition() const { return partition_; }

  private:
    // Less is on few pages, which some thread has touched before.
    static constexpr std::size_t small_bytes = 64 * 1024;
    static constexpr std::align_val_t alignment{alignof(Element) > 64 ? alignof(Element) : 64};
    static_assert(alignof(Element) <= 4096, "pages are aligned to 4096 bytes");

    Partition partition_;
};

template <typename One, typename Other, typename Partition>
bool operator==(const FirstTouchAllocator<One, Partition>&,
                const FirstTouchAllocator<Other, Partition>&) noexcept {
    return true;
}

} // namespace warren

#endif
