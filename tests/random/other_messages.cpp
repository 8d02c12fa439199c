// Point-to-point steps of other shapes: receives of anything from anybody, combined sends and
// receives along a permutation, packing.
#include "messages.hpp"

#include <algorithm>

namespace programs {

namespace {

struct Sent {
    int side, from, to;
    Message message;
    bool arrived;
};

std::vector<Sent> draw_messages(Program& program, Draw& draw, const Communicator& comm,
                                const Unit& unit) {
    std::vector<Sent> all;
    for (int n = draw.between(1, 20); n > 0; --n) {
        Sent sent;
        sent.side = comm.inter ? draw.below(2) : 0;
        const int other = comm.inter ? 1 - sent.side : 0;
        sent.from = draw.below(static_cast<long>(comm.groups[sent.side].size()));
        sent.to = draw.below(static_cast<long>(comm.groups[other].size()));
        sent.message.source = sent.from;
        sent.message.tag = program.next_tag();
        sent.message.unit = unit;
        sent.message.units = std::min(draw_units(draw, unit, program.options().bytes / 4), 20000);
        sent.message.key = hash(program.key(), sent.message.tag);
        sent.arrived = false;
        all.push_back(sent);
    }
    return all;
}

void receive_anything(Draw& own, const End& end, MPI_Comm comm, MPI_Status& status) {
    MPI_Message matched;
    const MPI_Datatype type = end.type->handle;
    switch (own.below(3)) {
    case 0:
        MUST(MPI_Recv(end.address, end.count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        break;
    case 1:
        MUST(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        MUST(MPI_Recv(end.address, end.count, type, status.MPI_SOURCE, status.MPI_TAG, comm,
                      &status));
        break;
    default:
        MUST(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &matched, &status));
        MUST(MPI_Mrecv(end.address, end.count, type, &matched, &status));
    }
}

// Finds the message among all those of the step, and its data in the buffer.
void check_anything(const View& view, int other, const Unit& unit, const End& end,
                    const MPI_Status& status, std::vector<Sent>& all, std::vector<int>& last) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Sent& sent) {
        return sent.side == other && sent.to == view.me && !sent.arrived &&
               sent.from == status.MPI_SOURCE && sent.message.tag == status.MPI_TAG;
    });
    if (found == all.end()) {
        fail("a message from %d with tag %d, which nobody sent", status.MPI_SOURCE, status.MPI_TAG);
    }
    found->arrived = true;
    const int place = static_cast<int>(found - all.begin());
    int& before = last[static_cast<std::size_t>(found->from)];
    if (place < before) {
        fail("the message with tag %d from %d overtook an earlier one", status.MPI_TAG,
             status.MPI_SOURCE);
    }
    before = place;
    const Message& m = found->message;
    check_status(status,
                 {m.source, m.tag, end.block.type, m.units * static_cast<long>(unit.basics.size())},
                 "a receive of anything");
    // The buffer's expectation follows from what has come.
    end.buffer->expect_gaps();
    end.buffer->put(Buffer::expected, end.block, hash(m.key, 0),
                    m.units * static_cast<long>(unit.basics.size()));
    end.buffer->check("a receive of anything");
}

} // namespace

// Receives of any source and any tag: each takes some message of the step, which its status names.
// A barrier ends the step, so that they meet no later one.
void exchange_wildly(Program& program, Draw& draw) {
    const CommPtr comm = program.any_communicator(draw);
    if (comm->busy_until >= program.step()) {
        return; // messages are under way that others are to receive
    }
    program.at("messages to receives of anything", comm.get());
    const Unit unit = draw_unit(draw);
    std::vector<Sent> all = draw_messages(program, draw, *comm, unit);
    if (!program.executes() || comm->handle == MPI_COMM_NULL) {
        return;
    }
    const View view(*comm, program.rank());
    Draw& own = program.own();
    const int other = comm->inter ? 1 - view.side : 0;
    std::vector<ActivityPtr> sends;
    int expected = 0;
    for (const Sent& sent : all) {
        expected += sent.side == other && sent.to == view.me ? 1 : 0;
        if (sent.side == view.side && sent.from == view.me) {
            const auto end = std::make_shared<End>(make_send(program, sent.message));
            const ActivityPtr activity = watch(program, comm, sent.message, end, true);
            MUST((own.one_in(2) ? MPI_Isend
                                : MPI_Issend)(end->address, end->count, end->type->handle, sent.to,
                                              sent.message.tag, comm->handle, &activity->request));
            program.pend(activity);
            sends.push_back(activity);
        }
    }
    std::vector<int> last(comm->groups[other].size(), -1); // of each source, the place in the list
    const bool posted = own.one_in(2);
    std::vector<End> ends(static_cast<std::size_t>(expected));
    std::vector<MPI_Request> requests(ends.size(), MPI_REQUEST_NULL);
    Message largest;
    largest.unit = unit;
    largest.units = 0;
    for (const Sent& sent : all) {
        largest.units = std::max(largest.units, sent.message.units);
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
        ends[i] = make_receive(program, largest);
        if (posted) {
            MUST(MPI_Irecv(ends[i].address, ends[i].count, ends[i].type->handle, MPI_ANY_SOURCE,
                           MPI_ANY_TAG, comm->handle, &requests[i]));
        }
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const End& end = ends[i];
        MPI_Status status;
        if (posted) {
            MUST(MPI_Wait(&requests[i], &status));
        } else {
            receive_anything(own, end, comm->handle, status);
        }
        check_anything(view, other, unit, end, status, all, last);
    }
    for (const ActivityPtr& activity : sends) {
        program.finish(activity);
    }
    MUST(MPI_Barrier(comm->handle));
}

namespace {

struct Shift {
    Program& program;
    CommPtr comm;
    int tag;
    Message out, in;
    int from;      // who sends to this rank, perhaps
    bool receives; // it does
    int dest;      // MPI_PROC_NULL: to nobody
    int source;    // MPI_PROC_NULL: from nobody
    bool immediate;
    std::shared_ptr<End> sent;
    long leaves; // that are received

    void replace() const;
    void into_another() const;
};

void Shift::replace() const {
    MPI_Status status;
    const ActivityPtr activity = program.begin("sendrecv_replace", comm);
    Buffer& buffer = *sent->buffer;
    activity->kept = {sent};
    activity->buffers = {{"buffer", sent->buffer}};
    buffer.put(Buffer::both, sent->block, out.key);
    if (receives) {
        buffer.put(Buffer::expected, sent->block, in.key);
        const Expected expected = {from, tag, sent->block.type, leaves};
        activity->check = [expected](const MPI_Status& got) {
            check_status(got, expected, "sendrecv_replace");
        };
    }
    if (immediate) {
        MUST(MPI_Isendrecv_replace(sent->address, sent->count, sent->type->handle, dest, tag,
                                   source, tag, comm->handle, &activity->request));
        program.pend(activity);
    } else {
        MUST(MPI_Sendrecv_replace(sent->address, sent->count, sent->type->handle, dest, tag, source,
                                  tag, comm->handle, &status));
        program.check(*activity, status);
    }
}

void Shift::into_another() const {
    MPI_Status status;
    auto received = std::make_shared<End>(make_receive(program, in));
    const ActivityPtr activity = program.begin("sendrecv", comm);
    activity->kept = {sent, received};
    activity->buffers = {{"send buffer", sent->buffer}, {"receive buffer", received->buffer}};
    sent->fill(true, out);
    if (receives) {
        received->fill(false, in);
        const Expected expected = {from, tag, received->block.type, leaves};
        activity->check = [expected](const MPI_Status& got) {
            check_status(got, expected, "sendrecv");
        };
    }
    if (immediate) {
        MUST(MPI_Isendrecv(sent->address, sent->count, sent->type->handle, dest, tag,
                           received->address, received->count, received->type->handle, source, tag,
                           comm->handle, &activity->request));
        program.pend(activity);
    } else {
        MUST(MPI_Sendrecv(sent->address, sent->count, sent->type->handle, dest, tag,
                          received->address, received->count, received->type->handle, source, tag,
                          comm->handle, &status));
        program.check(*activity, status);
    }
}

} // namespace

// Every rank sends to one and receives from one, or from and to nobody.
void shift_data(Program& program, Draw& draw) {
    const CommPtr comm = program.any_intracommunicator(draw);
    program.at("sendrecv", comm.get());
    const int size = static_cast<int>(comm->groups[0].size());
    const std::vector<int> to = draw.permutation(size);
    std::vector<bool> nobody(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
        nobody[static_cast<std::size_t>(rank)] = draw.one_in(6);
    }
    const bool replace = draw.one_in(3);
    const int tag = program.next_tag();
    const Unit unit = draw_unit(draw);
    const int common = std::min(draw_units(draw, unit, program.options().bytes), 20000);
    const bool equal = replace || draw.one_in(2);
    if (!program.executes() || comm->handle == MPI_COMM_NULL) {
        return;
    }
    const View view(*comm, program.rank());
    Draw& own = program.own();
    const int from = static_cast<int>(std::find(to.begin(), to.end(), view.me) - to.begin());
    const auto message = [&](int sender) {
        Message m;
        m.source = sender;
        m.tag = tag;
        m.unit = unit;
        m.key = hash(program.key(), sender);
        m.units = equal ? common : static_cast<int>(m.key % static_cast<Bits>(common + 1));
        return m;
    };
    const Message out = message(view.me), in = message(from);
    const bool sends = !nobody[static_cast<std::size_t>(view.me)];
    const bool receives = !nobody[static_cast<std::size_t>(from)];
    const int dest = sends ? to[static_cast<std::size_t>(view.me)] : MPI_PROC_NULL;
    const int source = !receives ? MPI_PROC_NULL : own.one_in(4) ? MPI_ANY_SOURCE : from;
    const bool immediate = own.one_in(2) && !program.without("isendrecv");
    const auto sent = std::make_shared<End>(make_send(program, out));
    const auto leaves = static_cast<long>(unit.basics.size()) * in.units;
    const Shift shift{program,  comm, tag,    out,       in,   from,
                      receives, dest, source, immediate, sent, leaves};
    if (replace) {
        shift.replace();
    } else {
        shift.into_another();
    }
}

namespace {

// What packing and unpacking need beside the data; external32 or the library's own form.
struct Packing {
    bool external;
    MPI_Comm comm;

    MPI_Count size(const Type& type, int count) const {
        if (external) {
            MPI_Aint bytes = 0;
            MUST(MPI_Pack_external_size("external32", count, type.handle, &bytes));
            return bytes;
        }
        int bytes = 0;
        MUST(MPI_Pack_size(count, type.handle, comm, &bytes));
        return bytes;
    }
};

} // namespace

// Data packed with one datatype, in parts, and unpacked with another one.
void pack_data(Program& program, Draw& draw) {
    const CommPtr comm = program.any_communicator(draw);
    program.at("pack", comm.get());
    if (!program.executes() || comm->handle == MPI_COMM_NULL) {
        return;
    }
    Draw& own = program.own();
    Message m;
    bool exact = true;
    const Packing how = {own.one_in(3), comm->handle};
    do {
        m.unit = draw_unit(own);
        exact = true;
        for (const Basic* basic : m.unit.basics) { // which have other formats in external32
            exact = exact &&
                    (!how.external || (basic->type != MPI_LONG_DOUBLE && basic->type != MPI_LONG));
        }
    } while (!exact);
    m.units = std::min(draw_units(own, m.unit, 30000), 5000);
    m.key = own.bits();
    End from = make_send(program, m), to = make_receive(program, m);
    from.fill(true, m);
    to.fill(false, m);
    std::vector<unsigned char> packed(
        static_cast<std::size_t>(how.size(*from.type, from.count)) + 64, 0xA5);
    const int room = static_cast<int>(packed.size());
    MPI_Aint far = 0;
    int position_in = 0;
    // In two parts; at once what has absolute addresses.
    const int first = from.address == MPI_BOTTOM ? from.count : own.below(from.count + 1);
    auto* address = static_cast<unsigned char*>(from.address);
    for (int part = 0; part < 2; ++part) {
        const int count = part == 0 ? first : from.count - first;
        const unsigned char* at =
            part == 0 || count == 0 ? address : address + first * from.type->extent();
        if (how.external) {
            MUST(MPI_Pack_external("external32", at, count, from.type->handle, packed.data(), room,
                                   &far));
        } else {
            MUST(MPI_Pack(at, count, from.type->handle, packed.data(), room, &position_in,
                          comm->handle));
        }
    }
    // Unpack as many whole elements as there are.
    const Block& block = to.block;
    const long whole = m.units / block.type->units;
    to.buffer->expect_gaps();
    const long leaves = whole * static_cast<long>(block.type->leaves.size());
    to.buffer->put(Buffer::expected, block, hash(m.key, 0), leaves);
    int place = 0;
    MPI_Aint far_place = 0;
    const int count = static_cast<int>(whole);
    if (how.external) {
        MUST(MPI_Unpack_external("external32", packed.data(), far, &far_place, to.buffer->base(),
                                 count, block.type->handle));
    } else {
        MUST(MPI_Unpack(packed.data(), position_in, &place, to.buffer->base(), count,
                        block.type->handle, comm->handle));
    }
    from.buffer->check("what is packed");
    to.buffer->check("what is unpacked");
}

} // namespace programs
