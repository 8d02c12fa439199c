#include "analyser/counts/turns.hpp"

#include <initializer_list>

#include "analyser/counts/counters.hpp"

namespace warren::locality::counts {
namespace {

std::uint32_t& word_of(ThreadCounters& thread, std::uint64_t address, Direction direction) {
    const Layout& layout = thread.process->layout;
    return thread.words[(layout.index(address) << layout.word_bits) + direction];
}

void count(ThreadCounters& thread, std::uint64_t address, const Site& site, Direction direction,
           std::uint32_t turns) {
    const std::uint32_t constant = site.constants[direction] * turns;
    std::uint32_t& word = word_of(thread, address, direction);
    const std::uint32_t before = word;
    word = before - constant;
    if (before < constant) {
        borrowed(thread, address, constant, direction, instruction_of(site, direction));
    }
}

void note(Loop& loop, std::uint32_t turns) {
    __atomic_store_n(&loop.times, __atomic_load_n(&loop.times, __ATOMIC_RELAXED) + 1,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&loop.turns, __atomic_load_n(&loop.turns, __ATOMIC_RELAXED) + turns,
                     __ATOMIC_RELAXED);
}

} // namespace

void begin_turns(ThreadCounters& thread, Loop& loop) {
    settle_turns(thread); // they are used up
    Turns& turns = thread.turns;
    const std::uint64_t unit_bytes = std::uint64_t{1} << thread.process->layout.unit_shift;
    std::uint64_t further = loop.most - 1; // turns after the first
    turns.crosses = turns.once[reading] = turns.once[writing] = 0;
    for (unsigned index = 0; index < loop.sites; ++index) {
        const MovingSite& moving = loop.site[index];
        const Site& site = *moving.site;
        const std::uint64_t low = turns.address[index] = turns.next[index];
        const std::uint64_t before = low & (unit_bytes - 1);
        const std::uint64_t behind = unit_bytes - before;
        if (behind < moving.extent) {
            further = 0;
            turns.crosses |= 1U << index;
            count_accesses(thread, low, site);
            continue;
        }
        const auto step = static_cast<std::uint32_t>(moving.step < 0 ? -moving.step : moving.step);
        const std::uint64_t room = moving.step < 0 ? before : behind - moving.extent;
        if (room < further * step) {
            further = static_cast<std::uint32_t>(room) / step;
        }
        const Direction first = site.first();
        for (const Direction direction : {first, first == reading ? writing : reading}) {
            if (site.constants[direction] != 0 && word_of(thread, low, direction) == 0) {
                count(thread, low, site, direction, 1);
                turns.once[direction] |= 1U << index;
            }
        }
    }
    turns.planned = static_cast<std::uint32_t>(further) + 1;
    turns.done = 0;
    *turns.left = static_cast<std::int64_t>(further);
    turns.loop = &loop;
}

void settle_turns(ThreadCounters& thread) {
    Turns& turns = thread.turns;
    if (turns.loop == nullptr) {
        return;
    }
    Loop& loop = *turns.loop;
    const std::int64_t left = *turns.left;
    const auto begun = left < 0 ? turns.planned : turns.planned - static_cast<std::uint32_t>(left);
    const std::uint32_t more = begun - turns.done;
    if (more == 0) {
        return;
    }
    turns.done = begun;
    note(loop, more);
    *turns.instructions += std::uint64_t{more} * loop.instructions;
    for (unsigned index = 0; index < loop.sites; ++index) {
        const std::uint32_t bit = 1U << index;
        if ((turns.crosses & bit) != 0) {
            continue;
        }
        const Site& site = *loop.site[index].site;
        for (const Direction direction : {reading, writing}) {
            const std::uint32_t uncounted = more - ((turns.once[direction] & bit) != 0 ? 1 : 0);
            if (site.constants[direction] != 0 && uncounted != 0) {
                count(thread, turns.address[index], site, direction, uncounted);
            }
        }
    }
    turns.once[reading] = turns.once[writing] = 0;
}

void end_turns(ThreadCounters& thread) {
    settle_turns(thread);
    thread.turns.loop = nullptr;
}

} // namespace warren::locality::counts
