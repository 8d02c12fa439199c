#include "runtime/fibres/api.hpp"

#include "runtime/fibres/scheduler.hpp"

#define WARREN_API extern "C" [[gnu::visibility("default")]]

using namespace warren;
using namespace warren::fibre;

WARREN_API void warren_fibre_prepare(const HostOptions* options) {
    BalancingOptions balancing;
    if (options->balancer != nullptr) {
        balancing = {.balancer = balance::find_balancer(options->balancer),
                     .period_ns = options->balance_period_ns,
                     .collectives = options->balance_collectives,
                     .distances = {},
                     .record = options->balance_record != nullptr ? options->balance_record : "",
                     .record_failed = options->balance_record_failed,
                     .placed = options->placed};
        if (options->distances != nullptr) {
            balancing.distances.assign(options->distances,
                                       options->distances +
                                           std::size_t{options->workers} * options->workers);
        }
    }
    register_sleeper_fence(); // for interruptions
    new Scheduler({.processors = {options->processors, options->processors + options->workers},
                   .fibres = options->fibres,
                   .stuck = options->stuck,
                   .expects_signals = options->expects_signals,
                   .begin_worker = options->begin_worker,
                   .interrupted = options->interrupted,
                   .stays = options->stays,
                   .blocked = options->blocked,
                   .loads = options->loads,
                   .steals = options->steals,
                   .balancing = balancing});
    fibre_functions.store(warren_fibre_functions(), std::memory_order_release);
}

WARREN_API int warren_fibre_make(void* stack, std::size_t bytes, void (*function)(void*),
                                 void* argument) {
    return scheduler()->make(stack, bytes, function, argument);
}

WARREN_API int warren_fibre_start(void) {
    return scheduler()->start();
}

WARREN_API const FibreFunctions* warren_fibre_functions(void) {
    const bool points = scheduler() != nullptr && scheduler()->options().balancing.collectives != 0;
    static const FibreFunctions functions = {
        .wait = [](std::atomic<std::uint32_t>& word, std::uint32_t expected,
                   const timespec* timeout,
                   WaitNote* note) { scheduler()->wait(word, expected, timeout, note); },
        .wake = [](std::atomic<std::uint32_t>& word, int count) { scheduler()->wake(word, count); },
        .give_way = [] { scheduler()->give_way(); },
        .found_nothing =
            [](std::uint64_t looks_ticks) { return scheduler()->found_nothing(looks_ticks); },
        .may_wait_for_event = [] { return scheduler()->may_wait_for_event(); },
        .wait_for_event =
            [](const void* event, bool (*happened)(void*), void* condition,
               std::atomic<std::uint32_t>& bell, std::uint32_t expected, WaitNote* note) {
                scheduler()->wait_for_event(event, happened, condition, bell, expected, note);
            },
        .release = [](const void* event) { scheduler()->release(event); },
        .at_collective = points ? +[] { scheduler()->at_collective(); } : nullptr,
    };
    return scheduler() != nullptr ? &functions : nullptr;
}

WARREN_API void warren_fibre_point(void) {
    if (scheduler() != nullptr) {
        scheduler()->at_point();
    }
}

WARREN_API void warren_fibre_last_load(void) {
    scheduler()->write_last_load();
}

WARREN_API void warren_fibre_end(void) {
    scheduler()->end();
}

WARREN_API bool warren_fibre_is_one(void) {
    return Scheduler::current() != nullptr;
}

WARREN_API bool warren_fibre_sleep_until(std::uint64_t time_ns) {
    return Scheduler::current() != nullptr && scheduler()->sleep_until(time_ns);
}

namespace {

// Its changes are told. The looks are for those that are told while no worker looks.
constexpr Looks looks_at_word{
    .may_be_free =
        [](const void* object, std::uint32_t expected) {
            return static_cast<const std::atomic<std::uint32_t>*>(object)->load(
                       std::memory_order_seq_cst) != expected;
        },
    .shortest_ns = 1'000'000,
    .longest_ns = 1'000'000'000,
    .by_handlers = Looks::ByHandlers::if_free};

} // namespace

WARREN_API void warren_fibre_wait_told(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                                       std::uint64_t time_ns) {
    ObjectWait wait(&word, looks_at_word, expected);
    if (word.load(std::memory_order_seq_cst) == expected) {
        wait.park(time_ns);
    }
}

WARREN_API void warren_fibre_tell(std::atomic<std::uint32_t>& word) {
    scheduler()->object_waits().tell_soon(&word);
}

WARREN_API int warren_fibre_thread(std::uint32_t fibre) {
    return scheduler()->thread_of(fibre);
}

WARREN_API int warren_fibre_interrupt(std::uint32_t fibre) {
    return scheduler()->interrupt(fibre);
}

WARREN_API bool warren_fibre_is_switching(void) {
    return Inside::has_caller() || Inside::is_postponed();
}

WARREN_API void warren_fibre_stay(void) {
    Scheduler::stay();
}

WARREN_API void warren_fibre_note_handler(bool restarts) {
    Inside::note_handler(restarts);
}
