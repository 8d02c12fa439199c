#include "mpi/message/foreign_cells.hpp"

#include <random>

#include "mpi/message/test_node.hpp"

namespace warren::message {
namespace {

constexpr std::uint32_t other_node = 1;

// A cell as a transport between nodes hands it over: all of its fixed part can be read.
struct Cell {
    alignas(8) std::byte data[transport::inline_bytes] = {};
    transport::Extra extra = {};
    transport::CellKind kind = kind::eager;
    std::uint32_t bytes = transport::inline_bytes;

    template <typename Data>
    static Cell of(transport::CellKind kind, const Data& payload) {
        Cell cell;
        cell.kind = kind;
        std::memcpy(cell.data, &payload, sizeof payload);
        return cell;
    }
    static Cell with_head(transport::CellKind kind, const StreamHead& head, std::uint32_t bytes) {
        Cell cell;
        cell.kind = kind;
        cell.bytes = bytes;
        std::memcpy(cell.extra, &head, sizeof head);
        return cell;
    }
    transport::Arrival arrival() const {
        return {.header = {.kind = kind, .context = 3, .source = 0, .tag = 0},
                .sender = other_node,
                .bytes = bytes,
                .block_bytes = bytes,
                .data = data,
                .extra = extra};
    }
};

class ForeignCells : public testing::Test {
  protected:
    ForeignCells() {
        node::Segment segment;
        Error error = node::Segment::create({.ranks = 2, .cores = 2}, segment);
        EXPECT_FALSE(error);
        rank = std::make_unique<Rank>(std::move(segment), 0);
        core = std::make_unique<Core>(*rank);
    }
    bool takes(const Cell& cell) { return may_cross_nodes(*core, cell.arrival()); }
    Request& make(Operation operation, std::uint64_t bytes) {
        Request* request = core->requests.make();
        request->operation = operation;
        request->bytes = bytes;
        request->peer = other_node;
        request->complete = false;
        if (request->is_send()) {
            request->sending.start();
            request->sending.packed = nullptr;
        } else {
            request->receiving.start();
            request->receiving.matched = true;
        }
        made.push_back(request);
        return *request;
    }

    ~ForeignCells() override {
        for (Request* request : made) {
            request->complete = true;
        }
    }

    std::unique_ptr<Rank> rank;
    std::unique_ptr<Core> core;
    std::vector<Request*> made;
};

TEST_F(ForeignCells, WithAddressesAreRefused) {
    EXPECT_FALSE(takes(Cell::of(kind::direct, DirectData{.send = 16, .bytes = 8, .began = 0})));
    EXPECT_FALSE(takes(Cell::of(kind::rendezvous_list, RendezvousListData{})));
    RendezvousData offered = {};
    EXPECT_TRUE(takes(Cell::of(kind::rendezvous, offered)));
    offered.memory.address = 4096;
    EXPECT_FALSE(takes(Cell::of(kind::rendezvous, offered)));
}

TEST_F(ForeignCells, OfOtherWorldsAreOfMessagesAndPortsOnly) {
    const auto crosses = [&](const Cell& cell) { return may_cross_worlds(*core, cell.arrival()); };
    for (std::uint32_t kind = 0; kind < 100; ++kind) {
        Cell cell;
        cell.kind = static_cast<transport::CellKind>(kind);
        const bool port = kind == kind::port_request || kind == kind::port_answer;
        const bool window = kind == kind::window_request || kind == kind::window_notice;
        EXPECT_EQ(crosses(cell), port || (takes(cell) && !window && kind != kind::farewell))
            << kind;
    }
    const Cell head = Cell::with_head(kind::stream_head, {.total = 40, .token = 1, .began = 0}, 40);
    EXPECT_TRUE(crosses(head));
    transport::Arrival bare = head.arrival();
    bare.extra = nullptr;
    EXPECT_FALSE(may_cross_worlds(*core, bare));
    EXPECT_FALSE(may_cross_nodes(*core, bare));
}

TEST_F(ForeignCells, OfUnknownKindsAreRefused) {
    for (const int kind : {0, 15, 16, 22, int{kind::limit}, 0xffff}) {
        Cell cell;
        cell.kind = static_cast<transport::CellKind>(kind);
        EXPECT_FALSE(takes(cell)) << kind;
    }
}

TEST_F(ForeignCells, ThatAskForMoreThanASendHasAreRefused) {
    const Request& send = make(Operation::send, 100'000);
    WantedData wanted = {.sender = RequestTable::token_of(send),
                         .receiver = 1,
                         .from = 10,
                         .to = 100'000,
                         .passes = 0};
    EXPECT_TRUE(takes(Cell::of(kind::wanted, wanted)));
    wanted.to = 100'001;
    EXPECT_FALSE(takes(Cell::of(kind::wanted, wanted)));
    wanted.to = 9;
    EXPECT_FALSE(takes(Cell::of(kind::wanted, wanted)));
}

TEST_F(ForeignCells, ThatTakeASendForAReceiveAreRefused) {
    const Token send = RequestTable::token_of(make(Operation::send, 8));
    const Token receive = RequestTable::token_of(make(Operation::receive, 8));
    for (const auto& [token, sends] : {std::pair{send, true}, std::pair{receive, false}}) {
        EXPECT_EQ(takes(Cell::of(kind::done, DoneData{.sender = token, .withdrawn = 0})), sends);
        EXPECT_EQ(takes(Cell::of(kind::given_up, GivenUpData{.receiver = token})), !sends);
        EXPECT_EQ(takes(Cell::with_head(kind::answer_head,
                                        {.total = 100, .token = token, .began = 0}, 100)),
                  !sends);
    }
}

TEST_F(ForeignCells, ThatNameARequestWithAnotherRankAreRefused) {
    Request& send = make(Operation::send, 8);
    Request& receive = make(Operation::receive, 8);
    const Cell cells[] = {
        Cell::of(kind::done, DoneData{.sender = RequestTable::token_of(send), .withdrawn = 0}),
        Cell::of(kind::wanted, WantedData{.sender = RequestTable::token_of(send),
                                          .receiver = 1,
                                          .from = 0,
                                          .to = 8,
                                          .passes = 0}),
        Cell::of(kind::given_up, GivenUpData{.receiver = RequestTable::token_of(receive)}),
        Cell::with_head(kind::answer_head,
                        {.total = 8, .token = RequestTable::token_of(receive), .began = 0}, 8)};
    for (const Cell& cell : cells) {
        EXPECT_TRUE(takes(cell)) << cell.kind;
    }
    send.peer = receive.peer = 0;
    for (const Cell& cell : cells) {
        EXPECT_FALSE(takes(cell)) << cell.kind;
    }
}

TEST_F(ForeignCells, ThatComeTwiceOrTooEarlyAreRefused) {
    Request& send = make(Operation::send, 8);
    const Token token = RequestTable::token_of(send);
    const Cell wanted = Cell::of(
        kind::wanted, WantedData{.sender = token, .receiver = 1, .from = 0, .to = 8, .passes = 0});
    const Cell withdrawn = Cell::of(kind::done, DoneData{.sender = token, .withdrawn = 1});
    EXPECT_FALSE(takes(withdrawn)); // which nobody has asked for
    send.sending.withdrawal = Withdrawal::asked;
    EXPECT_TRUE(takes(withdrawn));
    core->outbox.enqueue(core->peers.of(other_node), send); // has not left yet
    EXPECT_FALSE(takes(wanted));
    EXPECT_FALSE(takes(withdrawn));
    EXPECT_TRUE(core->outbox.take_back(core->peers.of(other_node), send));
    EXPECT_TRUE(takes(wanted));
    send.sending.answer_token = 1;
    EXPECT_FALSE(takes(wanted));

    Request& receive = make(Operation::receive, 80);
    const Cell given_up =
        Cell::of(kind::given_up, GivenUpData{.receiver = RequestTable::token_of(receive)});
    receive.receiving.matched = false;
    EXPECT_FALSE(takes(given_up));
    receive.receiving.matched = true;
    EXPECT_TRUE(takes(given_up));
    core->peers.of(other_node).inbound() = {.receive = &receive, .left = 40};
    EXPECT_FALSE(takes(given_up)); // its data arrives
    EXPECT_FALSE(
        takes(Cell::with_head(kind::stream_head, {.total = 40, .token = 0, .began = 0}, 40)));
    core->peers.of(other_node).inbound() = {};
}

TEST_F(ForeignCells, OfStreamsWithoutEndAreRefused) {
    EXPECT_TRUE(
        takes(Cell::with_head(kind::stream_head, {.total = 40, .token = 0, .began = 0}, 40)));
    EXPECT_FALSE(
        takes(Cell::with_head(kind::stream_head, {.total = 39, .token = 0, .began = 0}, 40)));
    EXPECT_FALSE(
        takes(Cell::with_head(kind::answer_head, {.total = 39, .token = 0, .began = 0}, 40)));
    Cell part;
    part.kind = kind::stream_part;
    EXPECT_FALSE(takes(part)); // of nothing that has begun
    core->peers.of(other_node).inbound().left = 40;
    EXPECT_TRUE(takes(part));
}

} // namespace
} // namespace warren::message
