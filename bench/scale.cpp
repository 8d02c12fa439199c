// Measures a rank's and a node's data about the other ranks of a large machine: the address vector
// and the communicators of 1 K to 1 M ranks, 16 on a node, made in one process with no network.
//
//     scale              memory and time of programs' patterns, 1 K to 1 M ranks
//     scale --issue      messages per second into a transport that drops them, by kind of map
//     scale --nodes N    one size: N nodes
//
// The library's own code makes everything: the communicator tables of sixteen ranks, on the node in
// the middle, on one shelf of tables and one address vector. Bytes of a rank are the growth of the
// heap, divided by sixteen. Bytes of a node are the address vector and the shelf. Times are of one
// rank and one communicator: listing its members, as a split does, and making the communicator;
// beside it the same with a plain table of 4 bytes per rank. The exit code is 1 when memory at 768
// K ranks exceeds the limits that the table names.
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mpi/comm/address_vector.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/transport/null/null_transport.hpp"

using namespace warren::comm;
namespace transport = warren::transport;

namespace {

constexpr int per_node = 16;
constexpr std::size_t shelf_bytes = std::size_t{1} << 30; // of address space

double seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::size_t heap_bytes() {
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

// The ranks of a communicator, as ranks of another.
using Members = std::vector<int>;

// A node's sixteen ranks and what they share.
class Node {
  public:
    explicit Node(int nodes) : nodes_(nodes), ranks_(nodes * per_node) {
        memory_ = static_cast<std::byte*>(mmap(nullptr, shelf_bytes, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (memory_ == MAP_FAILED) {
            std::perror("mmap");
            std::exit(1);
        }
        shelf_ = TableShelf(memory_, shelf_bytes);
        entries_.resize(static_cast<std::size_t>(nodes));
        const auto count = static_cast<std::uint32_t>(nodes);
        addresses = AddressVector(entries_.data(), AddressVector::slot_bits_for(per_node),
                                  AddressVector::filled(count, per_node));
        for (std::uint32_t node = 0; node < count; ++node) {
            addresses.address(node).words[0] = 0x0a000000 + node;
        }
        const std::size_t before = heap_bytes();
        for (int slot = 0; slot < per_node; ++slot) {
            const auto rank = static_cast<std::uint32_t>(first() + slot);
            ranks.push_back(std::make_unique<Communicators>(World(0, rank, addresses), shelf_));
        }
        heap_ = before;
    }
    ~Node() {
        ranks.clear();
        munmap(memory_, shelf_bytes);
    }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    int nodes() const { return nodes_; }
    int world() const { return ranks_; }
    int first() const { return nodes_ / 2 * per_node; } // world rank of the first of them
    double bytes_per_rank() const { return static_cast<double>(heap_bytes() - heap_) / per_node; }
    double bytes_per_node() {
        return static_cast<double>(AddressVector::bytes_for(static_cast<std::uint32_t>(nodes_)) +
                                   (shelf_used_ ? shelf_.used_bytes() : 0));
    }
    Communicator& make(int slot, const Communicator& parent, const Members& members) {
        return insert(slot, parent.map().select(members.data(), static_cast<int>(members.size())));
    }
    Communicator& duplicate(int slot, const Communicator& parent) {
        return insert(slot, parent.map());
    }

    AddressVector addresses;
    std::vector<std::unique_ptr<Communicators>> ranks;

  private:
    Communicator& insert(int slot, const RankMap& map) {
        next_context_ += 2;
        shelf_used_ = true;
        Communicator* made = ranks[static_cast<std::size_t>(slot)]->insert(next_context_, map);
        if (made == nullptr) {
            std::fputs("no memory\n", stderr);
            std::exit(1);
        }
        return *made;
    }

    int nodes_;
    int ranks_;
    std::byte* memory_ = nullptr;
    TableShelf shelf_;
    bool shelf_used_ = false;
    std::size_t heap_ = 0;
    std::uint32_t next_context_ = 16;
    std::vector<NodeAddress> entries_;
};

Members every(int start, int step, int size) {
    Members members;
    members.reserve(static_cast<std::size_t>((size - start + step - 1) / step));
    for (int rank = start; rank < size; rank += step) {
        members.push_back(rank);
    }
    return members;
}

Members shuffled(int size, std::uint32_t seed) {
    Members members(static_cast<std::size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    std::shuffle(members.begin(), members.end(), std::mt19937(seed));
    return members;
}

// A pattern makes the communicators of one rank after the other. `list` gives the members of the
// communicator that is timed.
struct Pattern {
    const char* name;
    std::function<int(Node&)> make; // all of them, by all ranks; the number per rank
    std::function<Members(const Node&)> list;
    double rank_limit; // at 768 K ranks; 0: none
    double node_limit;
};

int duplicates(Node& node, int count) {
    for (int slot = 0; slot < per_node; ++slot) {
        for (int i = 0; i < count; ++i) {
            node.duplicate(slot, node.ranks[static_cast<std::size_t>(slot)]->world());
        }
    }
    return count;
}

Communicator& world_of(Node& node, int slot) {
    return node.ranks[static_cast<std::size_t>(slot)]->world();
}

// The width of a grid of all ranks.
int columns_of(const Node& node) {
    int width = 1;
    while (width * width < node.world()) {
        width *= 2;
    }
    return width;
}

// The ranks that BT and SP of the NAS Parallel Benchmarks use: the largest square.
Members largest_square(const Node& node) {
    int side = 1;
    while ((side + 1) * (side + 1) <= node.world()) {
        ++side;
    }
    return every(0, 1, side * side);
}

int rows_and_columns(Node& node) {
    const int width = columns_of(node);
    for (int slot = 0; slot < per_node; ++slot) {
        const int rank = node.first() + slot;
        Members row(static_cast<std::size_t>(width));
        std::iota(row.begin(), row.end(), rank / width * width);
        node.make(slot, world_of(node, slot), row);
        node.make(slot, world_of(node, slot), every(rank % width, width, node.world()));
    }
    return 2;
}

std::vector<Pattern> patterns() {
    const auto world = [](const Node& node) { return every(0, 1, node.world()); };
    const auto odd = [](const Node& node) { return every(1, 2, node.world()); };
    return {
        {"24 duplicates", [](Node& node) { return duplicates(node, 24); }, world, 0, 1e6},
        {"86 duplicates", [](Node& node) { return duplicates(node, 86); }, world, 20e3, 1e6},
        {"rows and columns (NPB FT)", rows_and_columns,
         [](const Node& node) { return every(3, columns_of(node), node.world()); }, 64e3, 1e6},
        {"a square, 2 duplicates (BT, SP)",
         [](Node& node) {
             const Members square = largest_square(node);
             for (int slot = 0; slot < per_node; ++slot) {
                 const Communicator& made = node.make(slot, world_of(node, slot), square);
                 node.duplicate(slot, made);
                 node.duplicate(slot, made);
             }
             return 3;
         },
         largest_square, 64e3, 1e6},
        {"odd and even, 100",
         [](Node& node) {
             const Members halves[] = {every(0, 2, node.world()), every(1, 2, node.world())};
             for (int slot = 0; slot < per_node; ++slot) {
                 for (int i = 0; i < 100; ++i) {
                     node.make(slot, world_of(node, slot), halves[slot % 2]);
                 }
             }
             return 100;
         },
         odd, 64e3, 1e6},
        {"four generations of splits",
         [](Node& node) {
             for (int slot = 0; slot < per_node; ++slot) {
                 Communicator* parent = &world_of(node, slot);
                 for (int generation = 0; generation < 4; ++generation) {
                     parent =
                         &node.make(slot, *parent, every(parent->rank() % 2, 2, parent->size()));
                 }
             }
             return 4;
         },
         odd, 64e3, 1e6},
        {"a random shuffle",
         [](Node& node) {
             const Members members = shuffled(node.world(), 1);
             for (int slot = 0; slot < per_node; ++slot) {
                 node.make(slot, world_of(node, slot), members);
             }
             return 1;
         },
         [](const Node& node) { return shuffled(node.world(), 1); }, 10e3, 0},
        {"its odd and even, 100",
         [](Node& node) {
             const Members members = shuffled(node.world(), 1);
             const Members halves[] = {every(0, 2, node.world()), every(1, 2, node.world())};
             for (int slot = 0; slot < per_node; ++slot) {
                 const Communicator& parent = node.make(slot, world_of(node, slot), members);
                 for (int i = 0; i < 100; ++i) {
                     node.make(slot, parent, halves[slot % 2]);
                 }
             }
             return 101;
         },
         odd, 64e3, 0},
    };
}

// Best of a few, with the list of members and without.
struct Times {
    double warren_us;
    double plain_us;
};

Times time(Node& node, const Pattern& pattern) {
    Times best = {1e12, 1e12};
    const Communicator& world = world_of(node, 0);
    const int turns = node.world() > 100000 ? 7 : 25;
    for (int turn = 0; turn < turns; ++turn) {
        {
            const double start = seconds();
            const Members members = pattern.list(node);
            Communicator& made = node.make(0, world, members);
            best.warren_us = std::min(best.warren_us, 1e6 * (seconds() - start));
            node.ranks[0]->destroy(made);
        }
        const double start = seconds();
        const Members members = pattern.list(node);
        auto table = std::make_unique<std::uint32_t[]>(members.size());
        std::uint32_t own = 0;
        for (std::size_t i = 0; i < members.size(); ++i) {
            table[i] = static_cast<std::uint32_t>(members[i]);
            own = table[i] == world.endpoint(world.rank()) ? static_cast<std::uint32_t>(i) : own;
        }
        asm volatile("" : : "r"(table.get()), "r"(own) : "memory");
        best.plain_us = std::min(best.plain_us, 1e6 * (seconds() - start));
    }
    return best;
}

bool measure(int nodes) {
    const int ranks = nodes * per_node;
    std::printf("\n%d nodes, %d ranks\n", nodes, ranks);
    std::printf("  %-32s %12s %12s %16s %12s %12s\n", "", "bytes/rank", "bytes/node",
                "tables' bytes/rank", "us each", "as table");
    bool good = true;
    {
        const double start = seconds();
        Node node(nodes);
        std::printf("  %-32s %12.0f %12.0f %16s %12.1f\n", "world and address vector",
                    node.bytes_per_rank(), node.bytes_per_node(), "", 1e6 * (seconds() - start));
    }
    for (const Pattern& pattern : patterns()) {
        Node node(nodes);
        const int count = pattern.make(node);
        const double per_rank = node.bytes_per_rank();
        const double shared = node.bytes_per_node();
        const double entries = static_cast<double>(pattern.list(node).size());
        const Times times = time(node, pattern);
        bool within = true;
        if (ranks == 768 * 1024) {
            // Irregular: 2.5 MB for the tables beside the address vector.
            const double addresses =
                static_cast<double>(AddressVector::bytes_for(static_cast<std::uint32_t>(nodes)));
            const double node_limit =
                pattern.node_limit != 0 ? pattern.node_limit : 2.5e6 + addresses;
            within =
                (pattern.rank_limit == 0 || per_rank <= pattern.rank_limit) && shared <= node_limit;
        }
        good &= within;
        std::printf("  %-32s %12.0f %12.0f %16.0f %12.1f %12.1f%s\n", pattern.name, per_rank,
                    shared, 4 * entries * count, times.warren_us, times.plain_us,
                    within ? "" : "  ABOVE THE LIMIT");
        std::fflush(stdout);
    }
    return good;
}

// --- Messages into nothing

// A network's transport gets a node's address and a cell.
struct Wire {
    transport::NullTransport transport;
    std::uint64_t local = 0; // messages that would have stayed on the node
};

template <typename Map>
struct Sender {
    Map map;
    int size;
    std::uint32_t context;
    std::int32_t rank;
    std::uint32_t own_node;
    const AddressVector& addresses;
    Wire& wire;
};

struct PlainMap {
    const std::uint32_t* table;
    std::uint32_t operator[](int rank) const { return table[rank]; }
};
struct PlainWideMap {
    const std::uint64_t* table;
    std::uint32_t operator[](int rank) const { return static_cast<std::uint32_t>(table[rank]); }
};

// One message of 8 bytes, as a program's call: nothing is known from the call before.
template <typename Map>
[[gnu::noinline]] int send(Sender<Map>& sender, const void* data, int destination, int tag) {
    if (destination < 0 || destination >= sender.size || tag < 0) {
        return 1;
    }
    const AddressVector::Location location = sender.addresses.location(sender.map[destination]);
    if (location.node == sender.own_node) {
        ++sender.wire.local;
        return 0;
    }
    const transport::NullTransport::Channel channel = {
        .address = sender.addresses.address(location.node), .slot = location.slot};
    sender.wire.transport.send_inline(
        channel, {.kind = 0, .context = sender.context, .source = sender.rank, .tag = tag}, data,
        8);
    return 0;
}

// Messages to ranks [first, first + count), so many times; million per second.
template <typename Map>
double pass(Sender<Map>& sender, int first, int count, int rounds) {
    std::uint64_t data = 1;
    const double start = seconds();
    for (int round = 0; round < rounds; ++round) {
        for (int rank = first; rank < first + count; ++rank) {
            if (send(sender, &data, rank, 5) != 0) {
                std::exit(1);
            }
        }
    }
    return 1e-6 * rounds * count / (seconds() - start);
}

// Sorts them.
double median_of(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Subject {
    std::string name;
    RankMap map;
    std::vector<double> rates[3];
    std::vector<double> ratios; // to the 4-byte table, of passes that followed each other
};

// Maps of so many ranks of a world twice as large, as in the source: halves, odd ranks, shuffled
// ranks.
std::vector<Subject> subjects_of(const RankMap& world, int size) {
    const Members members = shuffled(world.size(), 2);
    RankForm blocks = RankForm::affine(0, 1, size);
    blocks.levels = 1;
    blocks.level[0] = {4, 4};
    blocks.normalise();
    RankForm planes = RankForm::affine(0, 1, size);
    planes.levels = 2;
    planes.level[0] = {2, 1};
    planes.level[1] = {8, 3};
    planes.normalise();
    std::vector<Subject> subjects;
    const auto add = [&](const char* name, const RankMap& map) {
        subjects.push_back({name, map, {}, {}});
    };
    add("direct", world.select_range(0, 1, size));
    add("offset", world.select_range(size, 1, size));
    add("strided", world.select_range(1, 2, size));
    add("strided, downwards", world.select_range(2 * size - 1, -2, size));
    add("block-strided", RankMap::of(blocks));
    add("nested, 3 dimensions", RankMap::of(planes));
    add("table", world.select(members.data(), size));
    RankMap generation = world;
    for (int k = 1; k <= 4 && generation.size() >= 8; ++k) {
        generation = generation.select_range(1, 2, generation.size() / 2);
        add(("generation " + std::to_string(k) + " of splits").c_str(), generation);
    }
    return subjects;
}

// Short passes of the three in turn, since the machine's speed changes by the millisecond.
void measure(Subject& subject, int turn, int part, std::uint32_t own, const Node& node,
             Wire& wire) {
    const int count = subject.map.size();
    std::vector<std::uint32_t> four;
    std::vector<std::uint64_t> eight;
    for (int rank = 0; rank < count; ++rank) {
        four.push_back(subject.map[rank]);
        eight.push_back(subject.map[rank]);
    }
    Sender<RankMap> compressed{subject.map, count, 18, 0, own, node.addresses, wire};
    Sender<PlainMap> plain{{four.data()}, count, 18, 0, own, node.addresses, wire};
    Sender<PlainWideMap> wide{{eight.data()}, count, 18, 0, own, node.addresses, wire};
    for (int first = 0; first < count; first += part) {
        const int ranks = std::min(part, count - first);
        const int rounds = part / ranks;
        double rates[3] = {};
        for (int k = 0; k < 3; ++k) {
            switch ((k + turn) % 3) {
            case 0:
                rates[0] = pass(compressed, first, ranks, rounds);
                break;
            case 1:
                rates[1] = pass(plain, first, ranks, rounds);
                break;
            default:
                rates[2] = pass(wide, first, ranks, rounds);
            }
        }
        for (int k = 0; k < 3; ++k) {
            subject.rates[k].push_back(rates[k]);
        }
        subject.ratios.push_back(rates[0] / rates[1]);
    }
}

void issue(int size) {
    Node node(std::max(2, 2 * size / per_node));
    const RankMap world = RankMap::affine(0, 1, node.world());
    std::vector<Subject> subjects = subjects_of(world, size);
    Wire wire;
    const auto own = static_cast<std::uint32_t>(node.nodes() / 2);
    constexpr int part = 1 << 15;
    const int turns = size > part ? 8 : 200;
    for (int turn = 0; turn < turns; ++turn) {
        for (Subject& subject : subjects) {
            measure(subject, turn, part, own, node, wire);
        }
    }
    std::printf(
        "\n%d ranks: million messages per second and the ratio to the 4-byte table, median\n"
        "  %-32s %10s %12s %12s %8s\n",
        size, "", "rank map", "4-byte table", "8-byte table", "ratio");
    for (Subject& subject : subjects) {
        std::printf("  %-32s %10.1f %12.1f %12.1f %8.2f\n", subject.name.c_str(),
                    median_of(subject.rates[0]), median_of(subject.rates[1]),
                    median_of(subject.rates[2]), median_of(subject.ratios));
    }
}

} // namespace

int main(int count, char* arguments[]) {
    const std::string mode = count > 1 ? arguments[1] : "";
    if (mode == "--issue") {
        issue(16);
        issue(768 * 1024);
        return 0;
    }
    if (mode == "--nodes" && count > 2) {
        return measure(std::max(1, std::atoi(arguments[2]))) ? 0 : 1;
    }
    bool good = true;
    for (int nodes : {64, 1024, 8192, 49152, 65536}) {
        good &= measure(nodes);
    }
    return good ? 0 : 1;
}
