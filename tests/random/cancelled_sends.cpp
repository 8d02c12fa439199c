// Sends that are cancelled, perhaps before they are received.
#include "messages.hpp"

namespace programs {

namespace {

// A send that is cancelled, perhaps in time.
struct Cancelled {
    Program& program;
    const Plan& plan;
    int word_tag;
    bool early, synchronous; // the receive is posted before; the send is
    int stride;
    int bytes = plan.message.units;
    std::size_t size = static_cast<std::size_t>(bytes);
    MPI_Comm comm = plan.comm->handle;
    int word = -1; // whether it was cancelled, as the sender tells
    std::vector<unsigned char> received = std::vector<unsigned char>(size + 1, 7);
    MPI_Request receive = MPI_REQUEST_NULL, hears = MPI_REQUEST_NULL;

    unsigned char byte_at(std::size_t i) const {
        return static_cast<unsigned char>(hash(plan.message.key, i));
    }
    void post() {
        MUST(MPI_Irecv(received.data(), bytes + 1, MPI_BYTE, plan.from, plan.message.tag, comm,
                       &receive));
    }
    void send();
    void check();
};

void Cancelled::send() {
    MPI_Status status;
    int cancelled = 0;
    std::vector<unsigned char> sent(size * static_cast<std::size_t>(stride) + 1);
    for (std::size_t i = 0; i < size; ++i) {
        sent[i * static_cast<std::size_t>(stride)] = byte_at(i);
    }
    MPI_Datatype type;
    MUST(MPI_Type_create_resized(MPI_BYTE, 0, stride, &type));
    MUST(MPI_Type_commit(&type));
    MPI_Request request;
    MUST((synchronous ? MPI_Issend : MPI_Isend)(sent.data(), bytes, type, plan.to, plan.message.tag,
                                                comm, &request));
    MUST(MPI_Type_free(&type));
    if (program.own().one_in(2)) {
        program.finish_some(false);
    }
    MUST(MPI_Cancel(&request));
    MUST(MPI_Wait(&request, &status));
    MUST(MPI_Test_cancelled(&status, &cancelled));
    sent.assign(sent.size(), 0xee);
    MPI_Request tells;
    MUST(MPI_Isend(&cancelled, 1, MPI_INT, plan.to, word_tag, comm, &tells));
    if (hears != MPI_REQUEST_NULL) { // from itself
        MUST(MPI_Wait(&hears, MPI_STATUS_IGNORE));
    }
    MUST(MPI_Wait(&tells, MPI_STATUS_IGNORE));
}

void Cancelled::check() {
    MPI_Status status;
    int flag = 0;
    MUST(MPI_Wait(&hears, MPI_STATUS_IGNORE));
    if (word == 0) {
        if (!early) {
            post();
        }
        MUST(MPI_Wait(&receive, &status));
        for (std::size_t i = 0; i < size; ++i) {
            if (received[i] != byte_at(i)) {
                fail("byte %zu of a send that was not cancelled is %d, expected %d", i, received[i],
                     byte_at(i));
            }
        }
    } else if (early) {
        MUST(MPI_Cancel(&receive));
        MUST(MPI_Wait(&receive, &status));
        MUST(MPI_Test_cancelled(&status, &flag));
        if (flag == 0 || received[0] != 7) {
            fail("a send was cancelled, and has arrived");
        }
    } else {
        MUST(MPI_Iprobe(plan.from, plan.message.tag, comm, &flag, MPI_STATUS_IGNORE));
        if (flag != 0) {
            fail("a send was cancelled, and is there");
        }
    }
}

} // namespace

// Whether a send is cancelled or received is for MPI to say, but it must be one of them: the sender
// tells its receiver which.
void cancel_send(Program& program, Draw& draw) {
    const CommPtr comm = program.any_communicator(draw);
    const Plan plan = draw_plan(program, draw, comm);
    const int word_tag = program.next_tag();
    const bool early = draw.one_in(2), synchronous = draw.one_in(2);
    const int stride = draw.between(1, 2);
    program.at("cancelling a send", comm.get());
    if (!program.executes()) {
        return;
    }
    Cancelled step{program, plan, word_tag, early, synchronous, stride};
    if (receives(program, plan)) {
        MUST(MPI_Irecv(&step.word, 1, MPI_INT, plan.from, word_tag, step.comm, &step.hears));
        if (early) {
            step.post();
        }
    }
    if (sends(program, plan)) {
        step.send();
    }
    if (receives(program, plan)) {
        step.check();
    }
}

} // namespace programs
