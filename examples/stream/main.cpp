// STREAM: the bandwidth of memory as simple loops see it, by the public description of McCalpin's
// benchmark. Three arrays of doubles, much larger than the caches, in memory by attribute; four
// loops, each repeated; the best time of all but the first counts. The arrays' contents are checked
// at the end against what one element goes through.
//     stream [--elements N] [--repetitions N] [--memory CRITERIA] [--where] [--least PERCENT]
//
//     loop    does                    bytes per element
//     copy    c[i] = a[i]             16
//     scale   b[i] = q c[i]           16
//     add     c[i] = a[i] + b[i]      24
//     triad   a[i] = b[i] + q c[i]    24
//
// --where says what share of each array's pages is on the node that the criteria want, asked of the
// kernel; with --least the program fails when one has less.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "support/buffer.hpp"

namespace {

struct Options {
    std::size_t elements = 10'000'000;
    unsigned repetitions = 10;
    std::string memory; // the nearest
    bool where = false;
    double least = -1;
};

constexpr double factor = 3;

[[noreturn]] void usage() {
    std::fputs("usage: stream [--elements N] [--repetitions N] [--memory CRITERIA] [--where]\n"
               "              [--least PERCENT]\n",
               stderr);
    std::exit(2);
}

double number_of(const char* text, double least, double most) {
    char* end = nullptr;
    const double value = text != nullptr ? std::strtod(text, &end) : 0;
    if (text == nullptr || end == text || *end != '\0' || !(value >= least && value <= most)) {
        usage();
    }
    return value;
}

Options read(int count, char** words) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const char* value = i + 1 < count ? words[i + 1] : nullptr;
        if (word == "--where") {
            options.where = true;
            continue;
        }
        if (word == "--elements") {
            options.elements = static_cast<std::size_t>(number_of(value, 1, 1e11));
        } else if (word == "--repetitions") {
            options.repetitions = static_cast<unsigned>(number_of(value, 2, 1e6));
        } else if (word == "--least") {
            options.least = number_of(value, 0, 100);
        } else if (word == "--memory" && value != nullptr) {
            options.memory = value;
        } else {
            usage();
        }
        ++i;
    }
    return options;
}

using Array = examples::Buffer<double>;

template <typename Body>
void loop(std::size_t elements, const Body& body) {
    const auto count = static_cast<std::ptrdiff_t>(elements);
#pragma omp parallel for schedule(static)
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        body(i);
    }
}

struct Loop {
    const char* name;
    double bytes; // per element
    double best_s = INFINITY;
    double sum_s = 0;
    double worst_s = 0;
};

template <typename Body>
void measure(Loop& timed, bool counts, const Body& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (counts) {
        timed.best_s = std::min(timed.best_s, taken.count());
        timed.worst_s = std::max(timed.worst_s, taken.count());
        timed.sum_s += taken.count();
    }
}

// The mean relative error of an array all of whose elements should be `expected`.
double error_of(const Array& array, double expected) {
    double sum = 0;
    for (const double value : array) {
        sum += std::abs(value - expected);
    }
    return sum / static_cast<double>(array.size()) / std::abs(expected);
}

void print_times(const Options& options, std::span<const Loop> loops) {
    std::printf("%zu elements, %.1f MiB per array, memory \"%s\"\n", options.elements,
                static_cast<double>(options.elements * sizeof(double)) / 1048576,
                options.memory.c_str());
    std::printf("loop    best MB/s   mean s    least s   most s\n");
    for (const Loop& timed : loops) {
        std::printf("%-6s %10.1f  %.6f  %.6f  %.6f\n", timed.name,
                    timed.bytes * static_cast<double>(options.elements) / timed.best_s * 1e-6,
                    timed.sum_s / (options.repetitions - 1), timed.best_s, timed.worst_s);
    }
}

bool check_contents(const Array* const (&arrays)[3], const double (&expected)[3]) {
    bool good = true;
    for (int i = 0; i < 3; ++i) {
        constexpr double tolerance = 1e-13;
        const double error = error_of(*arrays[i], expected[i]);
        if (!(error <= tolerance)) {
            std::printf("WRONG: array %c differs from %g by %g on average\n", 'a' + i, expected[i],
                        error);
            good = false;
        }
    }
    std::printf(good ? "the contents are right\n" : "the contents are WRONG\n");
    return good;
}

bool check_placement(const Options& options, const Array* const (&arrays)[3]) {
    bool good = true;
    for (int i = 0; i < 3 && (options.where || options.least >= 0); ++i) {
        const examples::Placement placement = arrays[i]->placement();
        std::printf("array %c: %.2f %% of %zu pages on node", 'a' + i, placement.percent(),
                    placement.pages);
        for (const unsigned node : placement.wanted) {
            std::printf(" %u", node);
        }
        const bool enough = placement.percent() >= options.least;
        std::printf(", which %s wanted%s\n", placement.wanted.size() == 1 ? "is" : "are",
                    enough ? "" : ": TOO FEW");
        good = good && enough;
    }
    return good;
}

int run(const Options& options) {
    const examples::Criteria criteria(options.memory);
    Array a(options.elements, criteria);
    Array b(options.elements, criteria);
    Array c(options.elements, criteria);
    double* const one = a.begin();
    double* const two = b.begin();
    double* const three = c.begin();
    Loop loops[] = {{"copy", 16}, {"scale", 16}, {"add", 24}, {"triad", 24}};
    double expected[3]; // what an element of each goes through
    for (unsigned repetition = 0; repetition < options.repetitions; ++repetition) {
        const bool counts = repetition != 0;
        if (repetition % 200 == 0) { // before the numbers, which grow by 15, become infinite
            loop(options.elements, [=](std::ptrdiff_t i) {
                one[i] = 1;
                two[i] = 2;
                three[i] = 0;
            });
            expected[0] = 1;
        }
        measure(loops[0], counts,
                [&] { loop(options.elements, [=](std::ptrdiff_t i) { three[i] = one[i]; }); });
        measure(loops[1], counts, [&] {
            loop(options.elements, [=](std::ptrdiff_t i) { two[i] = factor * three[i]; });
        });
        measure(loops[2], counts, [&] {
            loop(options.elements, [=](std::ptrdiff_t i) { three[i] = one[i] + two[i]; });
        });
        measure(loops[3], counts, [&] {
            loop(options.elements, [=](std::ptrdiff_t i) { one[i] = two[i] + factor * three[i]; });
        });
        expected[2] = expected[0];
        expected[1] = factor * expected[2];
        expected[2] = expected[0] + expected[1];
        expected[0] = expected[1] + factor * expected[2];
    }
    print_times(options, loops);
    const Array* const arrays[] = {&a, &b, &c};
    const bool right = check_contents(arrays, expected);
    const bool placed = check_placement(options, arrays);
    return right && placed ? 0 : 1;
}

} // namespace

int main(int count, char** words) {
    try {
        return run(read(count, words));
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "stream: %s\n", problem.what());
        return 1;
    }
}
