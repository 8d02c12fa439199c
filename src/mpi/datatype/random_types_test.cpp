// Derived types against a naive interpreter of the standard's type maps (MPI 5.0, 5.1), on random
// nested types.
#include "mpi/datatype/test_random_types.hpp"

#include <algorithm>
#include <cstring>
#include <sys/uio.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "mpi/datatype/buffer.hpp"

namespace warren::datatype {
namespace {

class RandomTypes : public testing::TestWithParam<unsigned> {};

// Elements of a random type with random bytes, and what they are packed.
struct Sample {
    Sample(Generator& its_generator, const Pair& made)
        : generator(its_generator),
          map(made.map),
          type(made.draft.type),
          count(generator.number(1, 6)),
          arena(map, count) {
        for (std::byte& byte : arena.bytes) {
            byte = static_cast<std::byte>(generator.number(0, 255));
        }
        for (MPI_Count i = 0; i < count; ++i) {
            for (const TypeMap::Entry& entry : map.entries) {
                const std::byte* from = arena.base() + i * map.extent() + entry.offset;
                expected.insert(expected.end(), from, from + entry.size);
                ends.push_back(static_cast<MPI_Count>(expected.size()));
            }
        }
        bytes = static_cast<MPI_Count>(expected.size());
    }

    void packs_as_one();
    void packs_in_parts();
    void lists_pieces();
    void unpacks_in_parts();
    void counts_elements();

    Generator& generator;
    const TypeMap& map;
    const Datatype& type;
    MPI_Count count;
    Arena arena;
    std::vector<std::byte> expected;
    std::vector<MPI_Count> ends; // of basic elements
    MPI_Count bytes = 0;
};

void has_bounds_of(const Datatype& type, const TypeMap& map) {
    ASSERT_EQ(type.size, map.size());
    ASSERT_EQ(type.lower_bound, map.lower());
    ASSERT_EQ(type.extent, map.extent());
    if (!map.entries.empty()) {
        TypeMap plain;
        plain.entries = map.entries;
        ASSERT_EQ(type.true_lower_bound, plain.lower());
        ASSERT_EQ(type.true_extent, plain.extent());
    }
}

void Sample::packs_as_one() {
    std::vector<std::byte> packed(expected.size());
    type.pack(arena.base(), count, packed.data());
    ASSERT_EQ(packed, expected);

    if (void* piece = type.one_piece(arena.base(), count); piece != nullptr && bytes != 0) {
        ASSERT_EQ(std::memcmp(piece, expected.data(), expected.size()), 0);
    }
}

// Parts begin and end anywhere.
void Sample::packs_in_parts() {
    std::vector<std::byte> packed(expected.size());
    for (MPI_Count at = 0; at < bytes;) {
        const MPI_Count now = std::min(bytes - at, generator.number(1, bytes));
        type.pack_part(arena.base(), count, at, now, packed.data() + at);
        at += now;
    }
    ASSERT_EQ(packed, expected);
}

// The list is begun anew wherever it was full.
void Sample::lists_pieces() {
    std::vector<std::byte> packed;
    for (MPI_Count at = 0; at < bytes;) {
        std::vector<iovec> pieces(static_cast<std::size_t>(generator.number(1, 20)));
        MPI_Count covered = 0;
        const std::size_t listed =
            type.pieces(arena.base(), count, at, std::min(bytes - at, generator.number(1, bytes)),
                        pieces.data(), pieces.size(), covered);
        ASSERT_GT(covered, 0);
        for (std::size_t i = 0; i < listed; ++i) {
            const auto* from = static_cast<const std::byte*>(pieces[i].iov_base);
            packed.insert(packed.end(), from, from + pieces[i].iov_len);
            ASSERT_TRUE(i == 0 || from != static_cast<std::byte*>(pieces[i - 1].iov_base) +
                                              pieces[i - 1].iov_len);
        }
        at += covered;
        ASSERT_EQ(static_cast<MPI_Count>(packed.size()), at);
    }
    ASSERT_EQ(packed, expected);
}

// A beginning of the data is unpacked, and all of the memory compared.
void Sample::unpacks_in_parts() {
    const MPI_Count some = generator.number(0, bytes);
    Arena model(map, count);
    Arena target(map, count);
    std::fill(model.bytes.begin(), model.bytes.end(), std::byte{0xee});
    target.bytes = model.bytes;
    // A place that occurs twice would depend on the order: give every place one value.
    MPI_Count at = 0;
    for (MPI_Count i = 0; i < count; ++i) {
        for (const TypeMap::Entry& entry : map.entries) {
            for (MPI_Count k = 0; k < entry.size && at < some; ++k, ++at) {
                model.base()[i * map.extent() + entry.offset + k] =
                    expected[static_cast<std::size_t>(at)];
            }
        }
    }
    const MPI_Count cut = generator.number(0, some);
    type.unpack_part(expected.data() + cut, cut, some - cut, target.base(), count);
    type.unpack_part(expected.data(), 0, cut, target.base(), count);
    ASSERT_EQ(target.bytes, model.bytes);
}

// In any number of bytes.
void Sample::counts_elements() {
    for (int sample = 0; sample < 20 && bytes > 0; ++sample) {
        const MPI_Count length = sample < 10 ? generator.number(0, bytes)
                                             : ends[static_cast<std::size_t>(generator.number(
                                                   0, static_cast<MPI_Count>(ends.size()) - 1))];
        const auto end = std::lower_bound(ends.begin(), ends.end(), length);
        const bool whole = length == 0 || (end != ends.end() && *end == length);
        const MPI_Count elements = length == 0 ? 0 : end - ends.begin() + 1;
        ASSERT_EQ(type.elements_in(length), whole ? elements : MPI_UNDEFINED) << length;
    }
}

#ifdef __SANITIZE_ADDRESS__ // which makes them slow
constexpr int rounds = 40;
#else
constexpr int rounds = 150;
#endif

TEST_P(RandomTypes, PackAsTheirTypeMapsSay) {
    Generator generator(GetParam());
    for (int round = 0; round < rounds; ++round) {
        const Pair made = generator.make(static_cast<int>(generator.number(1, 4)));
        SCOPED_TRACE(testing::Message() << "round " << round);
        ASSERT_NO_FATAL_FAILURE(has_bounds_of(made.draft.type, made.map));
        Sample sample(generator, made);
        ASSERT_NO_FATAL_FAILURE(sample.packs_as_one());
        ASSERT_NO_FATAL_FAILURE(sample.packs_in_parts());
        ASSERT_NO_FATAL_FAILURE(sample.lists_pieces());
        ASSERT_NO_FATAL_FAILURE(sample.unpacks_in_parts());
        ASSERT_NO_FATAL_FAILURE(sample.counts_elements());
    }
}

// Whether no byte belongs to two entries of `count` elements.
bool disjoint(const TypeMap& map, MPI_Count count) {
    std::vector<std::pair<MPI_Count, MPI_Count>> places;
    for (MPI_Count i = 0; i < count; ++i) {
        for (const TypeMap::Entry& entry : map.entries) {
            const MPI_Count at = i * map.extent() + entry.offset;
            places.emplace_back(at, at + entry.size);
        }
    }
    std::sort(places.begin(), places.end());
    return std::adjacent_find(places.begin(), places.end(), [](const auto& a, const auto& b) {
               return b.first < a.second;
           }) == places.end();
}

TEST_P(RandomTypes, CopyIntoEachOther) {
    Generator generator(GetParam() + 100);
    for (int round = 0; round < 40; ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        const Pair source = generator.make(static_cast<int>(generator.number(1, 3)));
        const Pair target = generator.make(static_cast<int>(generator.number(1, 3)));
        const MPI_Count out_count = generator.number(1, 200);
        const MPI_Count in_count = generator.number(1, 200);
        if (!disjoint(target.map, in_count)) {
            continue;
        }
        Arena out(source.map, out_count);
        Arena in(target.map, in_count);
        Arena expected(target.map, in_count);
        for (std::byte& byte : out.bytes) {
            byte = static_cast<std::byte>(generator.number(0, 255));
        }
        const Buffer from{out.base(), out_count, &source.draft.type};
        const Buffer to{in.base(), in_count, &target.draft.type};
        const MPI_Count bytes = generator.number(0, std::min(from.bytes(), to.bytes()));
        std::vector<std::byte> packed(static_cast<std::size_t>(from.bytes()));
        from.type->pack(from.base, from.count, packed.data());
        to.type->unpack(packed.data(), bytes, expected.base(), in_count);
        copy_data(from, to, 0, bytes);
        ASSERT_EQ(in.bytes, expected.bytes) << bytes << " of " << from.bytes();

        // In parts that begin and end anywhere, the last first.
        Arena parts(target.map, in_count);
        for (MPI_Count end = bytes; end > 0;) {
            const MPI_Count now = std::min(end, generator.number(1, bytes));
            end -= now;
            copy_data(from, {parts.base(), in_count, &target.draft.type}, end, now);
        }
        ASSERT_EQ(parts.bytes, expected.bytes) << bytes << " of " << from.bytes();
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTypes, testing::Range(0U, 8U));

} // namespace
} // namespace warren::datatype
