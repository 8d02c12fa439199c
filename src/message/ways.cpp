#include "message/ways.hpp"

#include <algorithm>
#include <numeric>

namespace warren::message {

namespace {

// The advice changes only for what is so much quicker.
constexpr float worthwhile = 0.95F;

// Of a row, what takes longest has met a disturbance.
constexpr std::size_t undisturbed = measured_in_row * 3 / 4;

} // namespace

void Ways::turn_phase(Class& now, Way advised, Advice advice) {
    constexpr std::uint16_t row = unmeasured_in_row + measured_in_row;
    switch (now.phase) {
    case Phase::rest:
        if ((advice & no_fetching) != 0) {
            now.left = shortest_rest << slowest_pace;
            return;
        }
        now.pace = static_cast<std::uint8_t>(
            advised != now.own ? 0 : std::min<int>(now.pace + 1, slowest_pace));
        now.own = advised;
        now.phase = Phase::own;
        now.left = row;
        return;
    case Phase::own:
        now.phase = Phase::other;
        now.left = row;
        return;
    case Phase::other:
        now.phase = Phase::rest;
        now.left = static_cast<std::uint16_t>(shortest_rest << now.pace);
        return;
    }
}

bool WayJudge::add(std::uint32_t way_class, Way way, std::uint64_t began, std::uint64_t ended,
                   Way& best) {
    // Of messages that come one behind the other each has the time since the one before.
    const std::uint64_t since = std::max(began, last_end_);
    last_end_ = ended;
    Class& now = classes_[way_class];
    if (now.way != way) {
        now.way = way;
        now.seen = 0;
    }
    const auto index = static_cast<std::size_t>(way);
    if (now.full[index] || now.seen++ < unmeasured_in_row) {
        return false;
    }
    const std::uint32_t place = now.seen - unmeasured_in_row - 1;
    now.rows[index][place] = static_cast<float>(ended > since ? ended - since : 0);
    now.full[index] = place + 1 == measured_in_row;
    if (!now.full[0] || !now.full[1]) {
        return false;
    }
    const float push = typical(now.rows[0]);
    const float fetch = typical(now.rows[1]);
    if (now.best == Way::push ? fetch < push * worthwhile : push < fetch * worthwhile) {
        now.best = now.best == Way::push ? Way::fetch : Way::push;
    }
    best = now.best;
    now.full = {};
    now.seen = 0;
    return true;
}

float WayJudge::typical(Row& row) {
    std::nth_element(row.begin(), row.begin() + undisturbed, row.end());
    return std::accumulate(row.begin(), row.begin() + undisturbed, 0.0F);
}

} // namespace warren::message
