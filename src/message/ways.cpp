#include "message/ways.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace warren::message {

namespace {

// The advice changes only for what is so much quicker.
constexpr float worthwhile = 0.95F;

// Of a row; what takes longest has met a disturbance.
float typical(std::span<float> row) {
    const auto undisturbed = static_cast<std::ptrdiff_t>(row.size() * 3 / 4);
    std::nth_element(row.begin(), row.begin() + undisturbed, row.end());
    return std::accumulate(row.begin(), row.begin() + undisturbed, 0.0F);
}

// A receiver that looks so much later than the sender began was busy with something else.
constexpr std::uint64_t late_ns = 20000;

} // namespace

Ways::Ways() {
    for (std::uint32_t i = 0; i < WayClass::count; ++i) {
        classes_[i] = {.left = WayClass::rhythm(i).first_rest, .own = WayClass::first_way(i)};
    }
}

void Ways::turn_phase(std::uint32_t way_class, Advice advice) {
    Class& now = classes_[way_class];
    const Rhythm& rhythm = WayClass::rhythm(way_class);
    const Way advised = WayClass::advised(way_class, advice);
    switch (now.phase) {
    case Phase::rest:
        if ((advice & no_fetching) != 0) {
            now.left = static_cast<std::uint16_t>(rhythm.shortest_rest << rhythm.slowest_pace);
            return;
        }
        now.pace = static_cast<std::uint8_t>(
            advised != now.own ? 0 : std::min<int>(now.pace + 1, rhythm.slowest_pace));
        now.own = advised;
        now.phase = Phase::own;
        now.left = rhythm.row();
        return;
    case Phase::own:
        now.phase = Phase::other;
        now.left = rhythm.row();
        return;
    case Phase::other:
        now.phase = Phase::rest;
        now.left = static_cast<std::uint16_t>(rhythm.shortest_rest << now.pace);
        return;
    }
}

WayJudge::WayJudge() {
    for (std::uint32_t i = 0; i < WayClass::count; ++i) {
        classes_[i].best = WayClass::first_way(i);
    }
}

std::uint64_t WayJudge::cost(std::uint32_t way_class, Way way, const Trial& trial) const {
    // Of messages that come one behind the other each has the time since the one before.
    const std::uint64_t since = std::max(trial.began, last_end_);
    if (!trial.unexpected && trial.looked <= since + late_ns) {
        return trial.ended > since ? trial.ended - since : 0;
    }
    // How late the receiver has come is no matter of the way. What counts are the copies: the one
    // that is fetched; or, of a block that was pushed, the one of which the receiver has seen the
    // second half, as the sender made the first before, and one more when the receive comes. What
    // follows the first block of a long message is pushed while the receiver looks.
    const std::uint64_t copy = trial.ended - std::max(trial.looked, last_end_);
    return way == Way::fetch || way_class >= WayClass::first_long
               ? copy
               : copy * (trial.unexpected ? 3 : 2);
}

bool WayJudge::add(std::uint32_t way_class, Way way, const Trial& trial, Way& best) {
    const std::uint64_t taken = cost(way_class, way, trial);
    last_end_ = trial.ended;
    Class& now = classes_[way_class];
    const Rhythm& rhythm = WayClass::rhythm(way_class);
    if (now.way != way) {
        now.way = way;
        now.seen = 0;
    }
    const auto index = static_cast<std::size_t>(way);
    if (now.full[index] || now.seen++ < rhythm.unmeasured) {
        return false;
    }
    const std::uint32_t place = now.seen - rhythm.unmeasured - 1;
    now.rows[index][place] = static_cast<float>(taken);
    now.full[index] = place + 1 == rhythm.measured;
    if (!now.full[0] || !now.full[1]) {
        return false;
    }
    const float push = typical(std::span(now.rows[0]).first(rhythm.measured));
    const float fetch = typical(std::span(now.rows[1]).first(rhythm.measured));
    if (now.best == Way::push ? fetch < push * worthwhile : push < fetch * worthwhile) {
        now.best = now.best == Way::push ? Way::fetch : Way::push;
    }
    best = now.best;
    now.full = {};
    now.seen = 0;
    return true;
}

} // namespace warren::message
