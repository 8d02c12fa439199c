#include "runtime/balance/matrix.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/decimal.hpp"
#include "mpi.h"

namespace warren::balance {

namespace {

constexpr std::uint32_t worker_limit = 1 << 16;

// The words of a line.
std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    line = line.substr(0, line.find('#'));
    while (true) {
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos) {
            return words;
        }
        const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
        words.push_back(line.substr(begin, end - begin));
        line.remove_prefix(end);
    }
}

bool read(std::string_view word, double& number) {
    return read_decimal(word, number);
}

template <typename Number>
bool read(std::string_view word, Number& number) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size();
}

struct Lines {
    Matrix matrix = {};
    bool begun = false;

    // Null, or what is wrong with it.
    const char* take(const std::vector<std::string_view>& words);
    const char* distance(const std::vector<std::string_view>& words);
    const char* rank(const std::vector<std::string_view>& words);
    const char* exchange(const std::vector<std::string_view>& words);
};

const char* Lines::take(const std::vector<std::string_view>& words) {
    const std::string_view what = words[0];
    if (!begun) {
        begun = words.size() == 2 && what == "warren-balance" && words[1] == "1";
        return begun ? nullptr : "a matrix begins with 'warren-balance 1'";
    }
    if (what == "workers") {
        return words.size() == 2 && matrix.workers == 0 && read(words[1], matrix.workers) &&
                       matrix.workers > 0 && matrix.workers <= worker_limit
                   ? nullptr
                   : "'workers' needs a number from 1 to 65536, once";
    }
    if (what == "distance") {
        return distance(words);
    }
    if (what == "rank") {
        return rank(words);
    }
    return what == "exchange" ? exchange(words) : "neither workers, distance, rank nor exchange";
}

const char* Lines::distance(const std::vector<std::string_view>& words) {
    if (words.size() != matrix.workers + std::size_t{1} ||
        matrix.distances.size() == std::size_t{matrix.workers} * matrix.workers) {
        return "each of the workers has one line of distances to all of them";
    }
    for (const std::string_view word : std::vector(words.begin() + 1, words.end())) {
        if (!read(word, matrix.distances.emplace_back())) {
            return "a distance is a number";
        }
    }
    return nullptr;
}

const char* Lines::rank(const std::vector<std::string_view>& words) {
    if (words.size() != 4 || !read(words[1], matrix.loads.emplace_back()) ||
        !read(words[2], matrix.placement.emplace_back()) ||
        !read(words[3], matrix.memory.emplace_back()) || !std::isfinite(matrix.loads.back()) ||
        matrix.loads.back() < 0 ||
        std::max(matrix.placement.back(), matrix.memory.back()) >= matrix.workers) {
        return "a rank has a load in seconds, its worker, and that near its memory";
    }
    return nullptr;
}

const char* Lines::exchange(const std::vector<std::string_view>& words) {
    Exchange& made = matrix.exchanges.emplace_back();
    if (words.size() != 5 || !read(words[1], made.from) || !read(words[2], made.to) ||
        !read(words[3], made.messages) || !read(words[4], made.bytes) ||
        std::max(made.from, made.to) >= matrix.ranks()) {
        return "an exchange has two ranks, a number of messages and one of bytes";
    }
    return nullptr;
}

} // namespace

Error parse(std::string_view text, Matrix& matrix) {
    Lines lines;
    for (int number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::vector<std::string_view> words = words_of(text.substr(0, end));
        if (const char* wrong = words.empty() ? nullptr : lines.take(words)) {
            return fail(MPI_ERR_ARG, "line %d: %s", number, wrong);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    Matrix& made = lines.matrix;
    if (made.loads.empty() || made.distances.size() != std::size_t{made.workers} * made.workers) {
        return fail(MPI_ERR_ARG, "a matrix has workers, the distances of each, and ranks");
    }
    // The factor of imbalance().
    const double most = std::max(static_cast<double>(made.ranks()), made.workers * 1.0);
    if (!std::isfinite(std::accumulate(made.loads.begin(), made.loads.end(), 0.0) * most)) {
        return fail(MPI_ERR_ARG, "the loads are too large to be added");
    }
    matrix = std::move(made);
    return {};
}

std::string text_of(const Matrix& matrix) {
    std::string text = "warren-balance 1\nworkers " + std::to_string(matrix.workers) + "\n";
    for (std::uint32_t from = 0; from < matrix.workers; ++from) {
        text += "distance";
        for (std::uint32_t to = 0; to < matrix.workers; ++to) {
            text += " " + std::to_string(matrix.distance(from, to));
        }
        text += "\n";
    }
    for (std::uint32_t rank = 0; rank < matrix.ranks(); ++rank) {
        char load[32];
        std::snprintf(load, sizeof load, "%.9f", matrix.loads[rank]);
        text += std::string("rank ") + load + " " + std::to_string(matrix.placement[rank]) + " " +
                std::to_string(matrix.memory[rank]) + "\n";
    }
    for (const Exchange& exchange : matrix.exchanges) {
        text += "exchange " + std::to_string(exchange.from) + " " + std::to_string(exchange.to) +
                " " + std::to_string(exchange.messages) + " " + std::to_string(exchange.bytes) +
                "\n";
    }
    return text;
}

double imbalance(const std::vector<double>& loads) {
    const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
    return sum <= 0 ? 0.0
                    : *std::max_element(loads.begin(), loads.end()) *
                              static_cast<double>(loads.size()) / sum -
                          1;
}

std::vector<double> worker_loads(const Matrix& matrix, const Placement& placement) {
    std::vector<double> loads(matrix.workers);
    for (std::uint32_t rank = 0; rank < matrix.ranks(); ++rank) {
        loads[placement[rank]] += matrix.loads[rank];
    }
    return loads;
}

double traffic(const Matrix& matrix, const Placement& placement) {
    double sum = 0;
    for (const Exchange& exchange : matrix.exchanges) {
        sum += static_cast<double>(exchange.bytes) *
               matrix.distance(placement[exchange.from], placement[exchange.to]);
    }
    return sum;
}

std::uint32_t moves(const Matrix& matrix, const Placement& placement) {
    std::uint32_t count = 0;
    for (std::uint32_t rank = 0; rank < matrix.ranks(); ++rank) {
        count += placement[rank] != matrix.placement[rank];
    }
    return count;
}

} // namespace warren::balance
