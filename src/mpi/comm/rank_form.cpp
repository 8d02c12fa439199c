#include "mpi/comm/rank_form.hpp"

#include <algorithm>
#include <utility>

namespace warren::comm {

namespace {

constexpr std::int64_t magnitude(std::int64_t value) {
    return value < 0 ? -value : value;
}

constexpr std::int64_t floor_divide(std::int64_t dividend, std::int64_t divisor) {
    const std::int64_t quotient = dividend / divisor;
    return quotient * divisor > dividend ? quotient - 1 : quotient;
}

// A few digits, by insertion.
template <typename Digit, typename Before>
void sort_digits(Digit digit[], int count, Before before) {
    for (int end = 1; end < count; ++end) {
        for (int k = end; k > 0 && before(digit[k], digit[k - 1]); --k) {
            std::swap(digit[k], digit[k - 1]);
        }
    }
}

} // namespace

RankForm RankForm::affine(Process offset, std::int64_t stride, int size) {
    RankForm made;
    if (size > 0) {
        made.offset = offset;
        made.stride = size > 1 ? stride : 1;
        made.size = size;
    }
    return made;
}

Process RankForm::operator[](int rank) const {
    std::int64_t sum = stride * rank;
    for (int k = 0; k < levels; ++k) {
        sum += level[k].jump * (static_cast<std::uint32_t>(rank) / level[k].unit);
    }
    return offset + static_cast<std::uint64_t>(sum);
}

int RankForm::digits(Digit digit[]) const {
    digit[0] = {1, stride, size};
    for (int k = 0; k < levels; ++k) {
        const std::int64_t unit = level[k].unit;
        Digit& below = digit[k];
        below.count = unit / below.unit;
        digit[k + 1] = {unit, level[k].jump + below.count * below.stride, (size + unit - 1) / unit};
    }
    return levels + 1;
}

bool RankForm::of_digits(Process offset, int size, const Digit digit[], int count, RankForm& made) {
    made = affine(offset, digit[0].stride, size);
    if (size < 2) {
        return true;
    }
    for (int k = 1; k < count; ++k) {
        const std::int64_t jump =
            digit[k].stride - digit[k].unit / digit[k - 1].unit * digit[k - 1].stride;
        if (jump != 0 && digit[k].unit < size) {
            if (made.levels == level_limit) {
                return false;
            }
            made.level[made.levels++] = {static_cast<std::uint32_t>(digit[k].unit), jump};
        }
    }
    return made.normalise();
}

bool RankForm::normalise() {
    if (size < 2) {
        *this = affine(offset, 1, size);
        return true;
    }
    int kept = 0;
    for (int k = 0; k < levels; ++k) {
        if (level[k].unit == 1) {
            stride += level[k].jump;
        } else if (level[k].jump != 0 && level[k].unit < static_cast<std::uint32_t>(size)) {
            level[kept++] = level[k];
        }
    }
    std::fill(level + kept, level + levels, Level{});
    levels = kept;

    // Whether greater digits outweigh all smaller ones.
    Digit digit[digit_limit];
    const int count = digits(digit);
    sort_digits(digit, count, [](const Digit& a, const Digit& b) {
        return magnitude(a.stride) < magnitude(b.stride);
    });
    std::int64_t span = 0;
    for (int k = 0; k < count; ++k) {
        if (magnitude(digit[k].stride) <= span) {
            return false;
        }
        span += magnitude(digit[k].stride) * (digit[k].count - 1);
    }
    return true;
}

RankForm RankForm::first(int count) const {
    RankForm made = *this;
    made.size = count;
    if (count == 0) {
        return {};
    }
    made.normalise();
    return made;
}

int RankForm::rank_of(Process process) const {
    std::int64_t distance = static_cast<std::int64_t>(process - offset);
    if (levels == 0) {
        const std::int64_t rank = stride == 1 ? distance : distance / stride;
        return rank * stride == distance && rank >= 0 && rank < size ? static_cast<int>(rank) : -1;
    }
    Digit digit[digit_limit];
    const int count = digits(digit);
    // Negative strides count from their last digit.
    for (int k = 0; k < count; ++k) {
        if (digit[k].stride < 0) {
            distance -= digit[k].stride * (digit[k].count - 1);
        }
    }
    if (distance < 0) {
        return -1;
    }
    sort_digits(digit, count, [](const Digit& a, const Digit& b) {
        return magnitude(a.stride) > magnitude(b.stride);
    });
    std::int64_t rank = 0;
    for (int k = 0; k < count; ++k) {
        const std::int64_t step = magnitude(digit[k].stride);
        const std::int64_t value = distance / step;
        if (value >= digit[k].count) {
            return -1;
        }
        distance -= value * step;
        rank += digit[k].unit * (digit[k].stride < 0 ? digit[k].count - 1 - value : value);
    }
    // Beyond the size: the last block is not full.
    return distance == 0 && rank < size ? static_cast<int>(rank) : -1;
}

// Cuts the digits that carry past a block of the parent's `unit` ranks into one within the block
// and one that counts blocks. False: there are too many.
bool RankForm::split(Digit digit[], int& count, std::int64_t unit) {
    for (int k = 0; k < count; ++k) {
        const std::int64_t step = magnitude(digit[k].stride);
        if (step >= unit || unit % step != 0) {
            continue;
        }
        const std::int64_t within = unit / step;
        const bool outermost = k + 1 == count;
        if (within >= digit[k].count || (!outermost && digit[k].count % within != 0)) {
            continue;
        }
        if (count == digit_limit) {
            return false;
        }
        std::copy_backward(digit + k + 1, digit + count, digit + count + 1);
        ++count;
        digit[k + 1] = {digit[k].unit * within, digit[k].stride * within,
                        (digit[k].count + within - 1) / within};
        digit[k].count = within;
    }
    return true;
}

bool RankForm::compose(const RankForm& parent, const RankForm& child, RankForm& made) {
    if (child.size < 2) {
        made = affine(child.size == 1 ? parent[static_cast<int>(child.offset)] : 0, 1, child.size);
        return true;
    }
    Digit digit[digit_limit];
    int count = child.digits(digit);
    const auto start = static_cast<std::int64_t>(child.offset);
    // Whether what remains beside whole blocks stays within one block: no carry.
    const auto fits = [&](std::int64_t unit) {
        std::int64_t low = start % unit;
        std::int64_t high = low;
        for (int k = 0; k < count; ++k) {
            if (digit[k].stride % unit != 0) {
                (digit[k].stride < 0 ? low : high) += digit[k].stride * (digit[k].count - 1);
            }
        }
        return low >= 0 && high < unit;
    };
    for (int k = 0; k < parent.levels; ++k) {
        const std::int64_t unit = parent.level[k].unit;
        if (!fits(unit) && !(split(digit, count, unit) && fits(unit))) {
            return false;
        }
    }
    Process offset = parent[static_cast<int>(start)];
    for (int i = 0; i < count; ++i) {
        const std::int64_t step = digit[i].stride;
        std::int64_t sum = parent.stride * step;
        for (int k = 0; k < parent.levels; ++k) {
            const std::int64_t unit = parent.level[k].unit;
            // Below a block: within it. Counted are whole blocks.
            sum += step % unit == 0 ? parent.level[k].jump * floor_divide(step, unit) : 0;
        }
        digit[i].stride = sum;
    }
    return of_digits(offset, child.size, digit, count, made);
}

bool RankForm::sorted(RankForm& set) const {
    Digit digit[digit_limit];
    const int count = digits(digit);
    std::int64_t ranks = 1;
    Process lowest = offset;
    for (int k = 0; k < count; ++k) {
        ranks *= digit[k].count;
        if (digit[k].stride < 0) {
            lowest += static_cast<std::uint64_t>(digit[k].stride * (digit[k].count - 1));
            digit[k].stride = -digit[k].stride;
        }
    }
    if (ranks != size) {
        return false;
    }
    sort_digits(digit, count, [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
    std::int64_t unit = 1;
    for (int k = 0; k < count; ++k) {
        digit[k].unit = unit;
        unit *= digit[k].count;
    }
    return of_digits(lowest, size, digit, count, set);
}

bool RankForm::operator==(const RankForm& other) const {
    return size == other.size && offset == other.offset && stride == other.stride &&
           levels == other.levels && std::equal(level, level + levels, other.level);
}

} // namespace warren::comm
