#include "program.hpp"

#include <algorithm>
#include <cstdio>

namespace programs {

namespace {

// The copy of an attribute is one more.
int copy_attribute(MPI_Comm, int, void*, void* value, void* copy, int* flag) {
    *static_cast<void**>(copy) = reinterpret_cast<void*>(reinterpret_cast<long>(value) + 1);
    *flag = 1;
    return MPI_SUCCESS;
}

struct Kind {
    const char* name;
    void (*execute)(Program&, Draw&);
    int weight;
};
const Kind kinds[] = {
    {"make", make_communicator, 10},
    {"free", free_communicator, 7},
    {"inspect", inspect_communicators, 5},
    {"groups", calculate_with_groups, 4},
    {"move", move_data, 26},
    {"reduce", reduce_data, 18},
    {"persistent", use_persistents, 6},
    {"persistent-messages", make_persistent_messages, 3},
    {"messages", exchange_messages, 14},
    {"wild", exchange_wildly, 5},
    {"sendrecv", shift_data, 5},
    {"cancel", cancel_receive, 2},
    {"cancel-send", cancel_send, 2},
    {"pack", pack_data, 3},
    {"reduce-local", reduce_here, 2},
};
constexpr int longest_delay = 16;
// Tags return after 400 steps: until then all must be complete.
constexpr int steps_between_completions = 100, tags_of_a_step = 64, first_persistent_tag = 29000;

} // namespace

Program::Program(const Options& options, unsigned long seed, int thread, MPI_Comm base,
                 MPI_Comm shared_handle)
    : options_(options) {
    position_.seed = seed;
    position_.thread = thread;
    position_.threads = options.threads;
    MUST(MPI_Comm_rank(MPI_COMM_WORLD, &position_.rank));
    rank_ = position_.rank;
    MUST(MPI_Comm_size(base, &size_));
    auto first = std::make_shared<Communicator>();
    first->handle = base;
    first->text = "base";
    for (int rank = 0; rank < size_; ++rank) {
        first->groups[0].push_back(rank);
    }
    live.push_back(first);
    if (shared_handle != MPI_COMM_NULL) {
        shared = std::make_shared<Communicator>(*first);
        shared->handle = shared_handle;
        shared->text = "shared by threads";
    }
}

void Program::at(const std::string& what, const Communicator* where) {
    operand_exists_ = where == nullptr || where->exists;
    position_.at(what, where == nullptr ? "" : where->describe());
    if (options_.verbose && rank_ == 0) {
        std::fprintf(stderr, "%d.%d %s on %s\n", position_.thread, step(), what.c_str(),
                     position_.communicator);
    }
}

int Program::next_tag() {
    if (tags_ >= tags_of_a_step) {
        fail("a step needs more than %d tags", tags_of_a_step);
    }
    return (step() * tags_of_a_step + tags_++) %
           (first_persistent_tag / tags_of_a_step * tags_of_a_step);
}

int Program::own_tag(int tag) {
    const int each = first_persistent_tag / options_.threads;
    return position_.thread * each + tag % each;
}

int Program::persistent_tag() {
    return first_persistent_tag + persistent_tags_++ % 3000;
}

const CommPtr& Program::any_intracommunicator(Draw& draw) {
    while (true) {
        const CommPtr& comm = draw.of(live);
        if (!comm->inter) {
            return comm;
        }
    }
}

void Program::arrive() {
    const auto due_now = [&](const auto& one) { return one.due <= step(); };
    at("delayed receives");
    for (bool found = true; found;) {
        found = false;
        for (std::size_t i = 0; i < delayed.size(); ++i) {
            if (due_now(delayed[i])) {
                const auto receive = delayed[i].receive;
                delayed.erase(delayed.begin() + static_cast<std::ptrdiff_t>(i));
                receive();
                found = true;
                break;
            }
        }
    }
    at("arrival of communicators");
    for (std::size_t i = 0; i < arriving.size();) {
        if (due_now(arriving[i])) {
            const Arriving one = arriving[i];
            arriving.erase(arriving.begin() + static_cast<std::ptrdiff_t>(i));
            if (one.request != nullptr) {
                finish(one.request);
            }
            arrived(*this, one.made);
        } else {
            ++i;
        }
    }
}

void Program::execute(int step) {
    position_.step = step;
    step_key_ = hash(position_.seed, 1, static_cast<Bits>(step));
    own_ = Draw(hash(step_key_, 2, static_cast<Bits>(rank_)));
    tags_ = 0;
    executes_ = options_.only.empty();
    for (const auto& [first, last] : options_.only) {
        executes_ = executes_ || (step >= first && step <= last);
    }
    arrive();
    Draw draw(hash(step_key_, 3));
    int total = 0;
    for (const Kind& kind : kinds) {
        total += kind.weight;
    }
    int drawn = draw.below(total);
    const Kind* chosen = kinds;
    while (drawn >= chosen->weight) {
        drawn -= chosen->weight;
        ++chosen;
    }
    executes_ = executes_ && !without(chosen->name);
    chosen->execute(*this, draw);
    steps_run_ += executes_ ? 1 : 0;
    at("completion");
    for (int n = own_.below(4); n > 0; --n) {
        finish_some(own_.one_in(3));
    }
    if (step % steps_between_completions == 0 || own_.one_in(30)) {
        finish_all();
    }
}

void Program::run() {
    position = &position_;
    own_ = Draw(hash(position_.seed, 4, static_cast<Bits>(rank_)));
    at("begin");
    MUST(MPI_Comm_group(base().handle, &base_group_));
    MUST(MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &attribute_key, nullptr));
    if (!without("sessions")) {
        MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    }
    for (int step = 0; step < options_.steps; ++step) {
        execute(step);
    }
    executes_ = true;
    for (int step = options_.steps; step < options_.steps + longest_delay; ++step) {
        position_.step = step;
        arrive();
    }
    at("end");
    finish_all();
    if (!pending_.empty()) {
        fail("%zu operations are left at the end", pending_.size());
    }
    while (!persistents.empty()) {
        drop_persistent(
            static_cast<std::size_t>(own_.below(static_cast<long>(persistents.size()))));
    }
    while (live.size() > 1) {
        if (live.back()->handle != MPI_COMM_NULL) {
            MUST(MPI_Comm_free(&live.back()->handle));
        }
        live.pop_back();
    }
    MUST(MPI_Group_free(&base_group_));
    MUST(MPI_Comm_free_keyval(&attribute_key));
    if (session != MPI_SESSION_NULL) {
        MUST(MPI_Session_finalize(&session));
    }
    position = nullptr;
}

} // namespace programs
