// Allocations in all the ways of C and C++; "names X" says which name the analysis has to find.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <sys/mman.h>

constexpr std::size_t many = 100000;
double static_table[many];
static volatile double hidden_table[many];

template <typename T>
struct Own {
    using value_type = T;
    Own() = default;
    template <typename U>
    Own(const Own<U>&) {}
    T* allocate(std::size_t count) {
        void* block = std::malloc(count * sizeof(T));
        return static_cast<T*>(block);
    }
    void deallocate(T* block, std::size_t) { std::free(block); }
    bool operator==(const Own&) const { return true; }
};

struct Mesh {
    std::vector<double> nodes_;
    double* cells_;
    std::unique_ptr<double[]> edges_;
    explicit Mesh(std::size_t n)
        : nodes_(n),            // names nodes_
          cells_(new double[n]) // names cells_
    {
        edges_ = std::make_unique<double[]>(n); // names edges_
    }
};

__attribute__((noinline)) double* handed_on(std::size_t n) {
    return static_cast<double*>(std::malloc(n * sizeof(double)));
}
inline double* inlined(std::size_t n) {
    double* block = static_cast<double*>(std::calloc(n, sizeof(double)));
    return block;
}

int main() {
    std::vector<double> u_buffer;
    u_buffer.resize(many);                             // names u_buffer
    std::vector<double> first(many), second(many + 1); // names first second
    std::vector<double, Own<double>> own(many);        // names own
    Mesh mesh(many);
    double* helped = handed_on(many);                              // names helped
    double* short_one = inlined(many);                             // names short_one
    double *pair_a = new double[many], *pair_b = new double[many]; // names pair_a pair_b
    void* aligned = nullptr;
    if (posix_memalign(&aligned, 64, many * 8) != 0) { // names aligned
        return 1;
    }
    void* mapped = mmap(nullptr, many * 8, PROT_READ | PROT_WRITE, // names mapped
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    helped = static_cast<double*>(std::realloc(helped, many * 80)); // names helped
    double* table[2];
    table[1] = new double[many];                               // names table[1]
    auto shared = std::make_shared<std::vector<double>>(many); // names shared
    std::memset(mapped, 1, 8);
    static_table[0] = hidden_table[1] = short_one[0] + table[1][0] + (*shared)[0] + pair_a[0];
    return static_table[0] > 1e300 || pair_b[0] > 1e300 || own[0] + first[0] + second[0] > 1e300;
}
