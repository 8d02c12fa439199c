#include "runtime/fibres/balancing.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>

#include "runtime/fibres/scheduler.hpp"
#include "runtime/fibres/tuning.hpp"

namespace warren::fibre {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

std::uint32_t number_of(std::uint64_t window) {
    return static_cast<std::uint32_t>(window >> 32);
}

} // namespace

Balancing::Balancing(Scheduler& scheduler, BalancingOptions options)
    : scheduler_(scheduler),
      options_(std::move(options)),
      accounts_(scheduler.options().fibres),
      home_workers_(scheduler.options().fibres),
      idled_(scheduler.options().processors.size()) {
    for (std::uint32_t number = 0; number < home_workers_.size(); ++number) {
        home_workers_[number] = scheduler.first_worker(number);
    }
    first_homes_ = home_workers_;
}

void Balancing::begin() {
    balanced_ticks_ = ticks();
}

void Balancing::point(Fibre& self) {
    if (options_.period_ns == 0) {
        arrive(self);
    }
}

void Balancing::arrive(Fibre& self) {
    Account& account = accounts_[self.number];
    const std::uint32_t window = number_of(window_.load(std::memory_order_acquire));
    if (account.window != window) { // else it is here again, before others were
        account.window = window;
        const std::uint64_t now = Scheduler::run_so_far(self);
        account.load = account.steady.after(now - std::exchange(account.mark, now));
        window_.fetch_add(1, std::memory_order_acq_rel);
    }
    // The last one sees what all have counted: each has released it by its addition.
    const auto complete = [&] {
        const std::uint64_t now = window_.load(std::memory_order_acquire);
        return number_of(now) == window &&
               (now & UINT32_MAX) + ended_.load(relaxed) >= accounts_.size();
    };
    if (complete() && !busy_.exchange(true, std::memory_order_acquire)) {
        if (complete()) {
            balance();
            // Pairs with the acquire of each fibre's next point.
            window_.store(std::uint64_t{window + 1} << 32, std::memory_order_release);
        }
        busy_.store(false, std::memory_order_release);
    }
}

void Balancing::ended(const Fibre& fibre) {
    std::uint64_t now = window_.load(std::memory_order_acquire);
    while (number_of(now) == accounts_[fibre.number].window &&
           !window_.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
    } // it counts as ended instead
    ended_.fetch_add(1, relaxed);
}

void Balancing::collective(Fibre& self) {
    if (++accounts_[self.number].collectives >= options_.collectives) {
        accounts_[self.number].collectives = 0;
        point(self);
    }
}

void Balancing::tick(std::uint64_t now_ns) {
    if (options_.period_ns == 0 || now_ns < due_ns_ ||
        busy_.exchange(true, std::memory_order_acquire)) {
        return;
    }
    if (due_ns_ != 0) {
        std::vector<std::uint64_t> ran(accounts_.size());
        for (std::uint32_t number = 0; number < accounts_.size(); ++number) {
            ran[number] = scheduler_.fibre(number).ran.load(relaxed);
        }
        for (std::uint32_t number = 0; number < scheduler_.workers(); ++number) {
            std::uint64_t its = 0;
            if (const Fibre* fibre = scheduler_.running(number, ticks(), its)) {
                ran[fibre->number] = its;
            }
        }
        for (std::uint32_t number = 0; number < accounts_.size(); ++number) {
            // (The stretch may have been guessed too long.)
            const std::uint64_t before = std::exchange(accounts_[number].mark, ran[number]);
            accounts_[number].load = ran[number] - std::min(before, ran[number]);
        }
        balance();
    }
    const std::uint64_t end_ns = monotonic_ns();
    due_ns_ = end_ns + std::max(options_.period_ns, rest_of_balancing * (end_ns - now_ns));
    busy_.store(false, std::memory_order_release);
}

void Balancing::add_exchanges(std::uint32_t fibre, balance::Matrix& matrix) {
    const balance::LoadTable& loads = scheduler_.options().loads;
    if (!loads) {
        return;
    }
    Account& account = accounts_[fibre];
    for (std::uint32_t place = 0; place < balance::peers_kept; ++place) {
        const balance::PeerTraffic& traffic = loads.ranks[fibre].peers[place];
        const std::uint32_t peer = traffic.peer.load(relaxed);
        if (peer == 0 || peer > accounts_.size()) {
            continue;
        }
        const std::uint64_t bytes = traffic.bytes.load(relaxed);
        const std::uint64_t messages = traffic.messages.load(relaxed);
        const std::uint64_t more_bytes = bytes - std::exchange(account.bytes[place], bytes);
        const std::uint64_t more = messages - std::exchange(account.messages[place], messages);
        if (more != 0) {
            matrix.exchanges.push_back({fibre, peer - 1, more, more_bytes});
        }
    }
}

balance::Matrix Balancing::matrix() {
    balance::Matrix made;
    made.workers = static_cast<std::uint32_t>(scheduler_.options().processors.size());
    made.distances = options_.distances;
    if (made.distances.size() != std::size_t{made.workers} * made.workers) { // nobody has asked
        made.distances.assign(std::size_t{made.workers} * made.workers, 1);
        for (std::uint32_t worker = 0; worker < made.workers; ++worker) {
            made.distances[std::size_t{worker} * (made.workers + 1)] = 0;
        }
    }
    made.placement = home_workers_;
    made.memory = options_.placed != nullptr ? home_workers_ : first_homes_;
    const double seconds = scheduler_.ns_per_tick() * 1e-9;
    for (std::uint32_t number = 0; number < accounts_.size(); ++number) {
        made.loads.push_back(static_cast<double>(accounts_[number].load) * seconds);
        if (options_.balancer->uses_distances || !options_.record.empty()) {
            add_exchanges(number, made);
        }
    }
    return made;
}

// How unequally the workers were busy since the last time: what balancing should mend.
void Balancing::note_imbalance() {
    const std::uint64_t now = ticks();
    const std::uint64_t passed = now - std::exchange(balanced_ticks_, now);
    std::vector<double> busy;
    double sum = 0;
    for (std::uint32_t number = 0; number < idled_.size(); ++number) {
        const std::uint64_t idled = scheduler_.idled(number, now);
        const std::uint64_t more = std::min(passed, idled - std::min(idled, idled_[number]));
        idled_[number] = idled;
        busy.push_back(static_cast<double>(passed - more));
        sum += busy.back();
    }
    const balance::LoadTable& loads = scheduler_.options().loads;
    if (!loads || sum <= 0) {
        return;
    }
    balance::JobLoad& job = *loads.job;
    const double imbalance = balance::imbalance(busy);
    const std::uint32_t before = job.balancings.load(relaxed);
    if (before == 0) {
        job.first_imbalance.store(imbalance, relaxed);
    } else {
        const double weight = sum * scheduler_.ns_per_tick() * 1e-9;
        job.later_imbalance.store(job.later_imbalance.load(relaxed) + imbalance * weight, relaxed);
        job.later_weight.store(job.later_weight.load(relaxed) + weight, relaxed);
    }
    job.balancings.store(before + 1, relaxed);
}

void Balancing::record(const balance::Matrix& matrix) {
    // Whole or not at all, for those who read it meanwhile.
    const std::string name = options_.record + ".new";
    const std::string text = balance::text_of(matrix);
    std::FILE* file = std::fopen(name.c_str(), "we");
    bool done = false;
    if (file != nullptr) {
        done = std::fwrite(text.data(), 1, text.size(), file) == text.size();
        done = std::fclose(file) == 0 && done;
        done = done && std::rename(name.c_str(), options_.record.c_str()) == 0;
    }
    if (done) {
        return;
    }
    const int error = errno;
    if (file != nullptr) {
        unlink(name.c_str());
    }
    if (!std::exchange(record_failed_, true) && options_.record_failed != nullptr) {
        options_.record_failed(error);
    }
}

void Balancing::balance() {
    note_imbalance();
    const balance::Matrix now = matrix();
    if (!options_.record.empty()) {
        record(now);
    }
    const balance::Placement placement = options_.balancer->place(now);
    if (options_.placed != nullptr && gives_homes()) {
        options_.placed(home_workers_.data(), placement.data(),
                        static_cast<std::uint32_t>(placement.size()));
    }
    const balance::LoadTable& loads = scheduler_.options().loads;
    for (std::uint32_t number = 0; number < placement.size(); ++number) {
        if (gives_homes()) {
            scheduler_.set_home(number, placement[number]);
        }
        if (placement[number] != home_workers_[number]) {
            home_workers_[number] = placement[number];
            if (loads) {
                std::atomic<std::uint32_t>& moves = loads.ranks[number].moves;
                moves.store(moves.load(relaxed) + 1, relaxed);
            }
        }
    }
}

} // namespace warren::fibre
