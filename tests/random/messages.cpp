// Point-to-point steps: lists of messages in all modes and forms, with derived datatypes on both
// sides, received early, late, or some steps later; persistent pairs; receives and sends that are
// cancelled.
#include "messages.hpp"

#include <algorithm>
#include <cstdlib>

namespace programs {

bool count_elements = true;

void check_status(const MPI_Status& got, const Expected& expected, const char* what) {
    int cancelled = 1;
    MUST(MPI_Test_cancelled(&got, &cancelled));
    if (got.MPI_SOURCE != expected.source || got.MPI_TAG != expected.tag || cancelled != 0) {
        fail("%s: expected source %d and tag %d, got %d and %d%s", what, expected.source,
             expected.tag, got.MPI_SOURCE, got.MPI_TAG, cancelled != 0 ? ", cancelled" : "");
    }
    const Type& type = *expected.type;
    const long leaves = expected.leaves, per_element = static_cast<long>(type.leaves.size());
    int count = -1, elements = -1;
    MPI_Count large_count = -1, large_elements = -1;
    MUST(MPI_Get_count(&got, type.handle, &count));
    if (!count_elements) {
        return;
    }
    MUST(MPI_Get_elements(&got, type.handle, &elements));
    MUST(MPI_Get_count_c(&got, type.handle, &large_count));
    MUST(MPI_Get_elements_c(&got, type.handle, &large_elements));
    const long whole = leaves % per_element == 0 ? leaves / per_element : MPI_UNDEFINED;
    if (count != whole || large_count != whole || elements != leaves || large_elements != leaves) {
        fail("%s: expected count %ld and %ld elements of %s, got %d and %d, large %lld and %lld",
             what, whole, leaves, type.text.c_str(), count, elements,
             static_cast<long long>(large_count), static_cast<long long>(large_elements));
    }
}

// --- One end of a message

End make_send(Program& program, const Message& m) {
    Draw& own = program.own();
    End end;
    end.buffer = std::make_shared<Buffer>();
    int per_element = 0;
    do {
        per_element = own.divisor(std::max(1, m.units));
    } while (per_element > 20000);
    const long count = m.units / per_element;
    end.block = {make_type(own, m.unit, per_element, std::max(1L, count)), count, 0};
    end.place(own);
    return end;
}

End make_receive(Program& program, const Message& m) {
    Draw& own = program.own();
    End end;
    end.buffer = std::make_shared<Buffer>();
    // Any number of units in an element: the last one may come in part.
    const bool exact = m.units > 0 && m.units < 20000 && own.one_in(2);
    const int per_element =
        exact ? own.divisor(m.units) : own.between(1, std::min(m.units + 2, 40));
    const long count = (m.units + per_element - 1) / per_element + (own.one_in(4) ? 1 : 0);
    end.block = {make_type(own, m.unit, per_element, std::max(1L, count)), count, 0};
    end.place(own);
    return end;
}

void End::place(Draw& own) {
    buffer->reserve({block});
    address = buffer->base();
    count = static_cast<int>(block.count);
    type = block.type;
    if (own.one_in(12) && block.count > 0) { // by its absolute address
        type = at_address(*block.type, block.count, address);
        address = MPI_BOTTOM;
        count = 1;
    }
}

void End::fill(bool sending, const Message& m, Bits round) const {
    buffer->reset();
    const long leaves = m.units * static_cast<long>(m.unit.basics.size());
    buffer->put(sending ? Buffer::both : Buffer::expected, block, hash(m.key, round), leaves);
}

ActivityPtr watch(Program& program, const CommPtr& comm, const Message& m,
                  const std::shared_ptr<End>& end, bool sending) {
    const ActivityPtr activity = program.begin(
        std::string(sending ? "send" : "receive") + " of message " + std::to_string(m.tag), comm);
    activity->kept = {end};
    activity->buffers = {{"buffer", end->buffer}};
    const End* raw = end.get();
    activity->refill = [raw, m, sending](Bits round) { raw->fill(sending, m, round); };
    activity->refill(0);
    if (!sending) {
        // The datatype must live: its elements are counted.
        const Expected expected = {m.source, m.tag, end->block.type,
                                   m.units * static_cast<long>(m.unit.basics.size())};
        const std::string what = activity->what + " of step " + std::to_string(program.step());
        activity->check = [expected, what](const MPI_Status& status) {
            check_status(status, expected, what.c_str());
        };
    } else if (program.own().one_in(2)) {
        activity->kept.push_back(end->block.type);
    }
    return activity;
}

// --- A list of messages

namespace {
template <typename Send, typename Isend, typename Init>
void send_with(Program& program, const Plan& plan, const ActivityPtr& activity, const End& end,
               int to, Send send, Isend isend, Init init) {
    const MPI_Comm comm = plan.comm->handle;
    const MPI_Datatype type = end.type->handle;
    const int tag = plan.message.tag;
    switch (plan.how) {
    case How::blocking:
        MUST(send(end.address, end.count, type, to, tag, comm));
        program.check(*activity, {});
        break;
    case How::nonblocking:
        MUST(isend(end.address, end.count, type, to, tag, comm, &activity->request));
        program.pend(activity);
        break;
    case How::persistent:
        MUST(init(end.address, end.count, type, to, tag, comm, &activity->request));
        activity->persistent = true;
        if (!plan.persistent) {
            activity->once = true;
            MUST(MPI_Start(&activity->request));
            program.pend(activity);
        }
    }
}

ActivityPtr send(Program& program, const Plan& plan) {
    const auto end = std::make_shared<End>(make_send(program, plan.message));
    const ActivityPtr activity = watch(program, plan.comm, plan.message, end, true);
    activity->not_before = program.step() + (plan.delay > 0 ? plan.delay + 1 : 0);
    const bool large = program.own().one_in(4);
#define MODE(Name, name)                                                                           \
    if (large) {                                                                                   \
        send_with(program, plan, activity, *end, plan.to, MPI_##Name##_c, MPI_I##name##_c,         \
                  MPI_##Name##_init_c);                                                            \
    } else {                                                                                       \
        send_with(program, plan, activity, *end, plan.to, MPI_##Name, MPI_I##name,                 \
                  MPI_##Name##_init);                                                              \
    }                                                                                              \
    break
    switch (plan.mode) {
    case Mode::standard:
        MODE(Send, send);
    case Mode::synchronous:
        MODE(Ssend, ssend);
    case Mode::buffered:
        MODE(Bsend, bsend);
    case Mode::ready:
        MODE(Rsend, rsend);
    }
#undef MODE
    if (program.own().one_in(4)) {
        end->block.type->release(); // MPI keeps what it needs
        if (end->type != end->block.type) {
            end->type->release();
        }
    }
    return activity;
}

// Receives when it may; later, if the receive is persistent.
void receive_later(Program& program, const Plan& plan, const ActivityPtr& activity,
                   const End& end) {
    const MPI_Comm comm = plan.comm->handle;
    const Message& m = plan.message;
    const int source = plan.any_source ? MPI_ANY_SOURCE : m.source;
    const MPI_Datatype type = end.type->handle;
    if (plan.persistent || program.own().one_in(3)) {
        activity->persistent = true;
        MUST(MPI_Recv_init(end.address, end.count, type, source, m.tag, comm, &activity->request));
        if (plan.persistent) {
            return;
        }
        activity->once = true;
        MUST(MPI_Start(&activity->request));
    } else if (program.own().one_in(4)) {
        MUST(MPI_Irecv_c(end.address, end.count, type, source, m.tag, comm, &activity->request));
    } else {
        MUST(MPI_Irecv(end.address, end.count, type, source, m.tag, comm, &activity->request));
    }
    program.pend(activity);
}

ActivityPtr receive(Program& program, const Plan& plan, bool blocking) {
    const Message& m = plan.message;
    const auto end = std::make_shared<End>(make_receive(program, m));
    const ActivityPtr activity = watch(program, plan.comm, m, end, false);
    const MPI_Comm comm = plan.comm->handle;
    const int source = plan.any_source ? MPI_ANY_SOURCE : m.source;
    const MPI_Datatype type = end->type->handle;
    MPI_Status status;
    MPI_Status probed;
    MPI_Message matched = MPI_MESSAGE_NULL;
    int flag = 0;
    if (!blocking || plan.persistent) {
        receive_later(program, plan, activity, *end);
        return activity;
    }
    // What a probe says is compared as elements of the receive's datatype too.
    const auto probe_agrees = [&] { activity->check(probed); };
    switch (program.own().below(6)) {
    case 0:
        MUST(MPI_Recv(end->address, end->count, type, source, m.tag, comm, &status));
        break;
    case 1:
        MUST(MPI_Recv_c(end->address, end->count, type, source, m.tag, comm, &status));
        break;
    case 2:
        MUST(MPI_Probe(source, m.tag, comm, &probed));
        probe_agrees();
        MUST(MPI_Recv(end->address, end->count, type, probed.MPI_SOURCE, m.tag, comm, &status));
        break;
    case 3:
        while (flag == 0) {
            MUST(MPI_Iprobe(source, m.tag, comm, &flag, &probed));
        }
        probe_agrees();
        MUST(MPI_Recv(end->address, end->count, type, source, m.tag, comm, &status));
        break;
    case 4:
        MUST(MPI_Mprobe(source, m.tag, comm, &matched, &probed));
        probe_agrees();
        MUST(MPI_Mrecv(end->address, end->count, type, &matched, &status));
        break;
    default:
        while (flag == 0) {
            MUST(MPI_Improbe(source, m.tag, comm, &flag, &matched, &probed));
        }
        probe_agrees();
        MUST(MPI_Imrecv(end->address, end->count, type, &matched, &activity->request));
        if (program.own().one_in(2)) {
            program.pend(activity);
            return activity;
        }
        MUST(MPI_Wait(&activity->request, &status));
    }
    if (matched != MPI_MESSAGE_NULL) {
        fail("the handle of a received message is not MPI_MESSAGE_NULL");
    }
    program.check(*activity, status);
    return activity;
}

} // namespace

Plan draw_plan(Program& program, Draw& draw, const CommPtr& comm) {
    Plan plan;
    plan.comm = comm;
    plan.from_side = comm->inter ? draw.below(2) : 0;
    plan.from = draw.below(static_cast<long>(comm->groups[plan.from_side].size()));
    plan.to =
        draw.below(static_cast<long>(comm->groups[comm->inter ? 1 - plan.from_side : 0].size()));
    Message& m = plan.message;
    m.tag = comm == program.shared ? program.own_tag(program.next_tag()) : program.next_tag();
    m.source = plan.from;
    m.unit = draw_unit(draw);
    m.units = std::min(draw_units(draw, m.unit, program.options().bytes), 100000);
    m.key = hash(program.key(), m.tag);
    plan.any_source = draw.one_in(3);
    return plan;
}

bool sends(Program& program, const Plan& plan) {
    return plan.comm->handle != MPI_COMM_NULL &&
           plan.comm->groups[plan.from_side][static_cast<std::size_t>(plan.from)] == program.rank();
}
bool receives(Program& program, const Plan& plan) {
    const Ranks& group = plan.comm->groups[plan.comm->inter ? 1 - plan.from_side : 0];
    return plan.comm->handle != MPI_COMM_NULL &&
           group[static_cast<std::size_t>(plan.to)] == program.rank();
}

namespace {

// Memory for the buffered sends of a step.
class SendBuffer {
  public:
    SendBuffer(Program& program, const std::vector<Plan>& plans) : program_(program) {
        std::map<CommPtr, long> bytes;
        for (const Plan& plan : plans) {
            if (plan.mode == Mode::buffered && sends(program, plan)) {
                bytes[plan.comm] +=
                    16L * plan.message.units * static_cast<long>(plan.message.unit.basics.size()) +
                    MPI_BSEND_OVERHEAD + 64;
            }
        }
        // One for all that the process sends belongs to one thread.
        const bool each = program.options().threads > 1 || program.own().one_in(2);
        if (!each) {
            long sum = 0;
            for (const auto& [comm, needed] : bytes) {
                sum += needed;
            }
            bytes.clear();
            if (sum > 0) {
                bytes[nullptr] = sum;
            }
        }
        for (const auto& [comm, needed] : bytes) {
            memory_.push_back(std::make_unique<unsigned char[]>(static_cast<std::size_t>(needed)));
            if (comm == nullptr) {
                MUST(MPI_Buffer_attach(memory_.back().get(), static_cast<int>(needed)));
            } else {
                MUST(MPI_Comm_attach_buffer(comm->handle, memory_.back().get(),
                                            static_cast<int>(needed)));
            }
            attached_.push_back(comm);
        }
    }
    // Returns when all that it holds has been sent.
    void detach() {
        for (std::size_t i = 0; i < attached_.size(); ++i) {
            void* address = nullptr;
            int size = 0;
            if (program_.own().one_in(4)) {
                MUST(attached_[i] == nullptr ? MPI_Buffer_flush()
                                             : MPI_Comm_flush_buffer(attached_[i]->handle));
            }
            if (attached_[i] == nullptr) {
                MUST(MPI_Buffer_detach(static_cast<void*>(&address), &size));
            } else {
                MUST(MPI_Comm_detach_buffer(attached_[i]->handle, static_cast<void*>(&address),
                                            &size));
            }
            if (address != memory_[i].get()) {
                fail("detaching a buffer returned another one");
            }
        }
    }

  private:
    Program& program_;
    std::vector<CommPtr> attached_;
    std::vector<std::unique_ptr<unsigned char[]>> memory_;
};

std::vector<Plan> draw_plans(Program& program, Draw& draw, bool synchronised) {
    std::vector<Plan> plans;
    std::vector<CommPtr> comms;
    for (int n = draw.between(1, 3); n > 0; --n) {
        comms.push_back(program.any_communicator(draw));
    }
    if (program.shared != nullptr && !synchronised && draw.one_in(2)) {
        comms.push_back(program.shared);
    }
    const int count = draw.between(1, std::min(40, 3 * program.size()));
    for (int i = 0; i < count; ++i) {
        Plan plan = draw_plan(program, draw, draw.of(comms));
        plan.mode = static_cast<Mode>(draw.below(4));
        plan.how = static_cast<How>(draw.below(3));
        if (plan.comm == program.shared && plan.mode == Mode::buffered) {
            plan.mode = Mode::standard; // its buffer would be all threads'
        }
        plan.early = draw.one_in(2);
        if (!synchronised || !plan.early) { // its receive need not be there
            plan.mode = plan.mode == Mode::ready ? Mode::standard : plan.mode;
            plan.how = plan.how == How::blocking && plan.mode != Mode::buffered ? How::nonblocking
                                                                                : plan.how;
            plan.delay = plan.mode != Mode::buffered && draw.one_in(4) ? draw.between(1, 6) : 0;
        }
        plans.push_back(plan);
        if (plan.delay > 0) {
            plan.comm->busy_until =
                std::max(plan.comm->busy_until, program.step() + plan.delay + 1);
        }
    }
    return plans;
}

} // namespace

void exchange_messages(Program& program, Draw& draw) {
    const bool synchronised = draw.one_in(2);
    const std::vector<Plan> plans = draw_plans(program, draw, synchronised);
    program.at(std::to_string(plans.size()) + " messages", plans[0].comm.get());
    if (!program.executes()) {
        return;
    }
    std::vector<ActivityPtr> begun;
    Draw& own = program.own();
    const std::vector<int> order = own.permutation(static_cast<int>(plans.size()));
    const auto each = [&](auto f) {
        for (int place : order) {
            f(plans[static_cast<std::size_t>(place)]);
        }
    };
    each([&](const Plan& plan) {
        if (plan.early && plan.delay == 0 && receives(program, plan)) {
            begun.push_back(receive(program, plan, false));
        }
    });
    if (synchronised) {
        std::vector<CommPtr> done; // in the order in which all have them
        for (const Plan& plan : plans) {
            if (plan.comm->handle != MPI_COMM_NULL &&
                std::find(done.begin(), done.end(), plan.comm) == done.end()) {
                MUST(MPI_Barrier(plan.comm->handle));
                done.push_back(plan.comm);
            }
        }
    }
    SendBuffer memory(program, plans);
    each([&](const Plan& plan) {
        if (sends(program, plan)) {
            begun.push_back(send(program, plan));
        }
    });
    each([&](const Plan& plan) {
        if (receives(program, plan) && plan.delay > 0) {
            program.delayed.push_back({program.step() + plan.delay, [&program, plan] {
                                           receive(program, plan, program.own().one_in(2));
                                       }});
        } else if (receives(program, plan) && !plan.early) {
            begun.push_back(receive(program, plan, own.one_in(2)));
        }
    });
    own.shuffle(begun);
    const int part = own.below(3); // all, some or none are complete before the next step
    for (const ActivityPtr& activity : begun) {
        if (activity->not_before <= program.step() && (part == 0 || (part == 1 && own.one_in(2)))) {
            program.finish(activity);
        }
    }
    memory.detach();
}

void make_persistent_messages(Program& program, Draw& draw) {
    if (program.persistents.size() > 8) {
        return;
    }
    const CommPtr comm = program.any_communicator(draw);
    Plan plan = draw_plan(program, draw, comm);
    // A tag that no step's messages have.
    plan.message.tag = program.persistent_tag();
    plan.mode = draw.one_in(2) ? Mode::standard : Mode::synchronous;
    plan.how = How::persistent;
    plan.persistent = true;
    program.at("a persistent message", comm.get());
    ActivityPtr sent, received;
    if (program.executes()) {
        if (sends(program, plan)) {
            sent = send(program, plan);
        }
        if (receives(program, plan)) {
            received = receive(program, plan, false);
        }
    }
    program.persistents.push_back({comm, sent, received});
}

void cancel_receive(Program& program, Draw& draw) {
    const CommPtr comm = program.any_communicator(draw);
    program.at("cancelling a receive", comm.get());
    const int tag = program.next_tag();
    if (!program.executes() || comm->handle == MPI_COMM_NULL) {
        return;
    }
    Draw& own = program.own();
    int memory[4] = {7, 7, 7, 7};
    MPI_Request request;
    MPI_Status status;
    const bool persistent = own.one_in(2);
    if (persistent) {
        MUST(MPI_Recv_init(memory, 4, MPI_INT, MPI_ANY_SOURCE, tag, comm->handle, &request));
        MUST(MPI_Start(&request));
    } else {
        MUST(MPI_Irecv(memory, 4, MPI_INT, MPI_ANY_SOURCE, tag, comm->handle, &request));
    }
    if (own.one_in(2)) {
        program.finish_some(false);
    }
    int flag = 1;
    MUST(MPI_Request_get_status(request, &flag, &status));
    if (flag != 0) {
        fail("a receive of what nobody sends is complete");
    }
    MUST(MPI_Cancel(&request));
    MUST(MPI_Wait(&request, &status));
    MUST(MPI_Test_cancelled(&status, &flag));
    if (flag == 0 || memory[0] != 7) {
        fail("a receive of what nobody sent was not cancelled");
    }
    if (persistent) {
        MUST(MPI_Request_free(&request));
    }
}

} // namespace programs
