#include "mpi/job/soft_numbers.hpp"

#include <algorithm>
#include <charconv>

namespace warren::node {

namespace {

// Larger numbers don't differ from it, and sums of these don't overflow.
constexpr std::int64_t most = 1'000'000'000'000;

std::string_view without_blanks(std::string_view text) {
    constexpr const char* blank = " \t\n";
    const std::size_t begin = text.find_first_not_of(blank);
    return begin == std::string_view::npos
               ? std::string_view()
               : text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

bool read_number(std::string_view text, std::int64_t& number) {
    text = without_blanks(text);
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, number);
    if (last != end || text.empty() || error == std::errc::invalid_argument) {
        return false;
    }
    if (error == std::errc::result_out_of_range) {
        number = text.front() == '-' ? -most : most;
    }
    number = std::clamp(number, -most, most);
    return true;
}

// The part of a text before the next `mark`, which is taken off it.
std::string_view take(std::string_view& text, char mark, bool& more) {
    const std::size_t end = text.find(mark);
    more = end != std::string_view::npos;
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(more ? end + 1 : text.size());
    return part;
}

struct Triplet {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t step = 1;
};

bool read_triplet(std::string_view text, Triplet& made) {
    bool more = false;
    if (!read_number(take(text, ':', more), made.first)) {
        return false;
    }
    made.last = made.first;
    if (more && !read_number(take(text, ':', more), made.last)) {
        return false;
    }
    if (more && !read_number(take(text, ':', more), made.step)) {
        return false;
    }
    return !more && made.step != 0;
}

// -1: it has none from 0 to the limit.
std::int64_t largest_of(const Triplet& its, std::int64_t limit) {
    std::int64_t found = its.first;
    if (its.step > 0) {
        const std::int64_t last = std::min(its.last, limit);
        if (its.first > last) {
            return -1;
        }
        found += (last - its.first) / its.step * its.step;
    } else {
        if (its.first > limit) {
            found += (its.first - limit - its.step - 1) / -its.step * its.step;
        }
        if (found < its.last) {
            return -1;
        }
    }
    return std::max<std::int64_t>(found, -1);
}

} // namespace

bool largest_soft_number(std::string_view text, std::uint32_t limit,
                         std::optional<std::uint32_t>& largest) {
    largest.reset();
    std::int64_t found = -1;
    for (bool more = true; more;) {
        Triplet triplet;
        if (!read_triplet(take(text, ',', more), triplet)) {
            return false;
        }
        found = std::max(found, largest_of(triplet, limit));
    }
    if (found >= 0) {
        largest = static_cast<std::uint32_t>(found);
    }
    return true;
}

} // namespace warren::node
