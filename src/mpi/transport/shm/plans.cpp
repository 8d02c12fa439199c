#include "mpi/transport/shm/plans.hpp"

#include <new>

namespace warren::transport {

CopyMethod Plans::method(const Channel& channel, std::uint64_t bytes) {
    const Advice advice = channel.pair_ring.advice();
    const std::uint32_t size_class = CopyMethodClass::of(bytes);
    const LargeData* large = channel.large_if_any();
    return large != nullptr && large->methods != nullptr
               ? large->methods->next(size_class, advice)
               : CopyMethodClass::advised(size_class, advice);
}

bool Plans::has_choice(const Channel& channel, const Outline& outline) const {
    return channel.pair_ring && (!channel.same_space || is_streamed(channel)) && !outline.gaps &&
           !outline.without_blocks && !outline.meets && !outline.leaves &&
           CopyMethodClass::has(outline.bytes) &&
           (outline.awaited || !CopyMethodClass::is_long(outline.bytes));
}

bool Plans::is_fetched(const Channel& channel, const Outline& outline, const CopyMethod* chosen) {
    if (chosen != nullptr) {
        return *chosen == CopyMethod::fetch;
    }
    return channel.pair_ring && !channel.same_space && !outline.gaps && !outline.leaves &&
           CopyMethodClass::is_long(outline.bytes) &&
           (channel.pair_ring.advice() & no_fetching) == 0;
}

bool Plans::streams_gaps(const Channel& channel, bool small_pieces) const {
    // A rank that reads small pieces of another's memory takes whole lines out of its caches, which
    // the owner soon needs for the data beside them. Then the owner should pack the data.
    return !channel.same_space || (is_streamed(channel) && small_pieces);
}

bool Plans::goes_direct(const Channel& channel, const Outline& outline,
                        const CopyMethod* chosen) const {
    if (!channel.same_space) {
        return false;
    }
    if (outline.meets || outline.without_blocks) {
        return true;
    }
    if (outline.bytes <= transport_.limits.direct) {
        return false;
    }
    if (outline.gaps) {
        // (Data that doesn't fit a block would need its sender again, which may be computing.)
        return !streams_gaps(channel, outline.small_pieces) ||
               (outline.bytes > transport_.block_limit(channel) && !outline.awaited);
    }
    return chosen != nullptr ? *chosen == CopyMethod::fetch
                             : !is_streamed(channel) || CopyMethodClass::has(outline.bytes);
}

Plan Plans::plan_by_choice(const Channel& channel, const Outline& outline) const {
    if (channel.remote) {
        // An offer without memory: the receiver asks for the data.
        return {.move = outline.meets ? Move::get : Move::push};
    }
    // Read once: the receiver may change its advice at any time.
    const bool chooses = has_choice(channel, outline);
    const CopyMethod chosen_method = chooses ? method(channel, outline.bytes) : CopyMethod::push;
    const CopyMethod* const chosen = chooses ? &chosen_method : nullptr;
    Plan plan = {.counts = chooses, .measured = chooses};
    if (goes_direct(channel, outline, chosen)) {
        plan.move = Move::direct;
        return plan;
    }
    // (A buffered send should leave the program's buffer, whoever is late.)
    if (outline.meets || outline.without_blocks || is_fetched(channel, outline, chosen)) {
        plan.move = Move::get;
        plan.open = !chooses && is_streamed(channel) && !outline.gaps && !outline.without_blocks &&
                    CopyMethodClass::is_long(outline.bytes);
        return plan;
    }
    if (outline.bytes > transport_.block_limit(channel) && !is_streamed(channel)) {
        return {.move = Move::get};
    }
    plan.passes = chosen_method == CopyMethod::pass;
    return plan;
}

Plan Plans::plan_block(const Channel& channel, std::uint64_t bytes, bool choosable) {
    if (!choosable || !CopyMethodClass::has(bytes)) {
        return {};
    }
    const CopyMethod chosen = method(channel, bytes);
    return {.passes = chosen == CopyMethod::pass,
            .counts = true,
            .measured = chosen != CopyMethod::fetch};
}

std::uint64_t Plans::time_stamp(Channel& channel, const Plan& plan, std::uint64_t bytes) {
    std::unique_ptr<CopyMethods>& methods = channel.large().methods;
    if (methods == nullptr) [[unlikely]] {
        // Without memory nothing is measured.
        methods.reset(new (std::nothrow) CopyMethods);
    }
    const CopyMethod chosen = plan.move != Move::push ? CopyMethod::fetch
                              : plan.passes           ? CopyMethod::pass
                                                      : CopyMethod::push;
    return methods != nullptr ? methods->stamp(CopyMethodClass::of(bytes), chosen) : 0;
}

void Plans::count(Channel& channel, std::uint64_t bytes) {
    const LargeData* large = channel.large_if_any();
    if (large != nullptr && large->methods != nullptr) {
        large->methods->sent(CopyMethodClass::of(bytes), channel.pair_ring.advice());
    }
}

Trial Plans::trial(std::uint64_t stamp, bool unexpected) {
    Trial trial = {};
    if (Stamp::time(stamp) != 0) [[unlikely]] {
        trial.began = Stamp::time(stamp);
        trial.looked = node_time_ns();
        trial.unexpected = unexpected;
        trial.resting = Stamp::resting(stamp);
        trial.method = Stamp::method(stamp);
    }
    return trial;
}

Trial Plans::trial_of_taken(std::uint64_t stamp, bool unexpected) {
    Trial its = trial(stamp, unexpected);
    its.method = CopyMethod::fetch;
    return its;
}

void Plans::arrived(Channel& channel, std::uint64_t bytes, Trial trial) {
    if (trial.began == 0) [[likely]] {
        return;
    }
    trial.ended = node_time_ns();
    LargeData& large = channel.large();
    if (trial.asked) {
        large.asking->end(bytes, trial);
        return;
    }
    if (large.judge == nullptr) {
        large.judge = std::make_unique<CopyMethodJudge>();
    }
    const std::uint32_t size_class = CopyMethodClass::of(bytes);
    if (trial.resting) {
        Advice again;
        if (large.judge->drifts(size_class, trial, bytes, again)) {
            transport_.advise(channel.peer, CopyMethodClass::again(size_class), again);
        }
        return;
    }
    CopyMethod best;
    const bool may_fetch = channel.same_space || !memory_.refused();
    if (large.judge->add(size_class, trial, bytes, may_fetch, best, channel.same_space)) {
        transport_.advise(channel.peer, CopyMethodClass::mask(size_class),
                          CopyMethodClass::advice(size_class, best));
    }
}

void Plans::given_up(Channel& channel, Trial trial) {
    if (trial.asked) {
        trial.ignored = true;
        channel.large().asking->end(0, trial);
    }
}

bool Plans::asks_for_push(Channel& channel, std::uint64_t bytes, Trial& trial) {
    if (!transport_.awaits(channel.peer)) {
        return false;
    }
    LargeData& large = channel.large();
    if (large.asking == nullptr) {
        large.asking.reset(new (std::nothrow) Asking);
    }
    return large.asking != nullptr && large.asking->next(bytes, trial, !memory_.refused(),
                                                         large.offers > 0) != CopyMethod::fetch;
}

OwnCopyMethods* Plans::writing_for(Channel& channel) {
    LargeData& large = channel.large();
    if (large.writing == nullptr) {
        large.writing.reset(new (std::nothrow) OwnCopyMethods(false));
    }
    return large.writing.get();
}

} // namespace warren::transport
