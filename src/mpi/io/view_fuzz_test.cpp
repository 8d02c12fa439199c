// Views of random filetypes, against their type maps; and infos of random text. With a number of
// seconds as argument the test goes on that long with other numbers.
#include "mpi/io/view.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "mpi/datatype/test_random_types.hpp"
#include "mpi/io/hints.hpp"
#include "mpi/io/tuning.hpp"

namespace warren::io {
namespace {

using datatype::Generator;
using datatype::Pair;
using datatype::TypeMap;

int seconds_more = 0;

__extension__ typedef __int128 Wide;

// Bytes of the file in the order of the data, of some tiles.
std::vector<std::uint64_t> offsets_of(const TypeMap& map, std::uint64_t displacement, int tiles) {
    std::vector<std::uint64_t> offsets;
    for (int tile = 0; tile < tiles; ++tile) {
        for (const TypeMap::Entry& entry : map.entries) {
            for (MPI_Count byte = 0; byte < entry.size; ++byte) {
                offsets.push_back(displacement + static_cast<std::uint64_t>(tile * map.extent() +
                                                                            entry.offset + byte));
            }
        }
    }
    return offsets;
}

// Whether a view may have the type.
bool is_legal(const TypeMap& map, bool writable) {
    if (map.entries.empty()) {
        return true;
    }
    MPI_Count last = 0;
    MPI_Count last_end = 0;
    for (const TypeMap::Entry& entry : map.entries) {
        if (entry.offset < last || (writable && entry.offset < last_end)) {
            return false;
        }
        last = entry.offset;
        last_end = entry.offset + entry.size;
    }
    return map.extent() > 0;
}

// The offsets that a view hands on before an end.
std::vector<std::uint64_t> walked(const View& view, MPI_Count first, MPI_Count bytes,
                                  std::uint64_t end) {
    std::vector<std::uint64_t> found;
    const auto note = [&](std::uint64_t offset, MPI_Count stride, MPI_Count at, MPI_Count count,
                          MPI_Count length) {
        ASSERT_EQ(static_cast<std::size_t>(at), found.size());
        for (MPI_Count i = 0; i < count; ++i) {
            for (MPI_Count byte = 0; byte < length; ++byte) {
                found.push_back(offset + static_cast<std::uint64_t>(i * stride + byte));
            }
        }
    };
    BlocksBefore action(end, note);
    view.walk(first, bytes, action);
    EXPECT_EQ(static_cast<std::size_t>(action.covered()), found.size());
    if (!found.empty()) {
        EXPECT_EQ(action.reached(), found.back() + 1);
    }
    return found;
}

// A view of a type, or null; the type is the caller's.
std::shared_ptr<const View> view_of(Pair& pair, std::uint64_t displacement,
                                    const Representation& representation, bool writable) {
    static RankLock lock;
    pair.draft.type.references = 1; // it is in no table that frees it
    std::shared_ptr<const View> made;
    Error error = View::make(displacement, datatype::basic(MPI_BYTE), pair.draft.type,
                             representation, writable, lock, made);
    EXPECT_EQ(made == nullptr, static_cast<bool>(error));
    error.drop();
    return made;
}

void follow(const View& view, const std::vector<std::uint64_t>& offsets, Generator& generator) {
    const auto bytes = static_cast<MPI_Count>(offsets.size());
    for (int trial = 0; trial < 20; ++trial) {
        const MPI_Count first = generator.number(0, bytes - 1);
        const MPI_Count last = generator.number(first, bytes - 1);
        ASSERT_EQ(view.place(first), offsets[static_cast<std::size_t>(first)]);
        if (!view.ordered()) {
            continue;
        }
        const std::uint64_t end = static_cast<std::uint64_t>(generator.number(0, 40)) +
                                  offsets[static_cast<std::size_t>(generator.number(first, last))];
        std::vector<std::uint64_t> expected;
        for (MPI_Count i = first; i <= last && offsets[static_cast<std::size_t>(i)] < end; ++i) {
            expected.push_back(offsets[static_cast<std::size_t>(i)]);
        }
        ASSERT_EQ(walked(view, first, last - first + 1, end), expected);
        if (end <= offsets.back()) {
            ASSERT_EQ(view.bytes_before(end),
                      std::count_if(offsets.begin(), offsets.end(),
                                    [&](std::uint64_t offset) { return offset < end; }));
        }
        ASSERT_TRUE(view.holds(bytes));
    }
}

void follow_random_view(unsigned seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    static const Representation native{.name = "native"};
    Generator generator(seed);
    Pair pair = generator.make(static_cast<int>(generator.number(0, 4)));
    const auto displacement = static_cast<std::uint64_t>(generator.number(0, 10000));
    const bool writable = generator.number(0, 1) == 0;
    const auto view = view_of(pair, displacement, native, writable);
    // (Of types that name bytes twice, adjacent entries are one block, which may hide a step back.)
    ASSERT_TRUE(view != nullptr || !is_legal(pair.map, writable));
    ASSERT_TRUE(view == nullptr || !writable || is_legal(pair.map, writable));
    constexpr int tiles = 4;
    if (view != nullptr && !view->empty()) {
        follow(*view, offsets_of(pair.map, displacement, tiles), generator);
    }
}

TEST(ViewFuzz, random_filetypes_name_the_bytes_of_their_type_maps) {
    for (unsigned seed = 0; seed < 3000 && !testing::Test::HasFatalFailure(); ++seed) {
        follow_random_view(seed);
    }
}

TEST(ViewFuzz, offsets_beyond_the_largest_file_are_known) {
    const Representation native{.name = "native"};
    Generator generator(1);
    for (int trial = 0; trial < 2000; ++trial) {
        Pair pair = generator.make(2);
        constexpr MPI_Count largest = std::numeric_limits<MPI_Count>::max();
        const auto displacement = static_cast<std::uint64_t>(
            generator.number(0, 1) == 0 ? 0 : generator.number(0, largest));
        const auto view = view_of(pair, displacement, native, false);
        if (view == nullptr || view->empty()) {
            continue;
        }
        const MPI_Count bytes = generator.number(1, largest);
        const Wide tiles = bytes / pair.map.size();
        const Wide last = tiles * pair.map.extent() + displacement;
        if (last > largest_offset) {
            ASSERT_FALSE(view->holds(bytes));
        } else if (view->holds(bytes)) {
            ASSERT_LE(view->place(bytes - 1), std::uint64_t{largest_offset});
        }
    }
}

// Whatever was taken: limits are kept, and what is reported says the same.
void check_hints(const Hints& hints) {
    ASSERT_TRUE(hints.staging_half >= block_bytes && hints.staging_half <= largest_staging_half &&
                hints.staging_half % block_bytes == 0);
    ASSERT_GE(hints.writers, 0);
    comm::Info reported;
    hints.report(reported, 5);
    Hints again;
    again.take(reported);
    ASSERT_EQ(again.staging_half, hints.staging_half);
    ASSERT_EQ(again.sieved_reads, hints.sieved_reads);
    ASSERT_EQ(again.sieved_writes, hints.sieved_writes);
    ASSERT_EQ(again.staged_reads, hints.staged_reads);
    ASSERT_EQ(again.staged_writes, hints.staged_writes);
    ASSERT_TRUE(hints.read_sieve > 0 && hints.read_sieve <= largest_sieve);
    ASSERT_EQ(again.read_sieve, hints.read_sieve);
    ASSERT_TRUE(hints.write_sieve > 0 && hints.write_sieve <= largest_sieve);
    ASSERT_EQ(again.write_sieve, hints.write_sieve);
    ASSERT_EQ(again.only_collective, hints.only_collective);
}

TEST(ViewFuzz, hints_of_random_text_keep_their_limits) {
    Generator generator(7);
    const char* const keys[] = {
        "cb_buffer_size",    "cb_nodes",       "romio_cb_read",      "romio_cb_write",
        "romio_ds_read",     "romio_ds_write", "ind_rd_buffer_size", "ind_wr_buffer_size",
        "romio_no_indep_rw", "nothing"};
    const char* const texts[] = {"enable", "disable", "automatic",
                                 "true",   "false",   "-1",
                                 "0",      "4096",    "99999999999999999999999",
                                 "1e3",    "",        " 7"};
    for (int trial = 0; trial < 20000; ++trial) {
        comm::Info info;
        for (const char* key : keys) {
            std::string text = texts[generator.number(0, std::size(texts) - 1)];
            for (MPI_Count i = generator.number(0, 3); i > 0; --i) {
                text.insert(text.begin() + generator.number(0, static_cast<MPI_Count>(text.size())),
                            static_cast<char>(generator.number(1, 255)));
            }
            info.set(key, text);
        }
        Hints hints;
        hints.take(info);
        check_hints(hints);
    }
}

TEST(ViewFuzz, hints_of_random_files_keep_their_limits) {
    Generator generator(8);
    const std::string path = testing::TempDir() + "hints_" + std::to_string(getpid());
    const char* const words[] = {"cb_buffer_size",
                                 "romio_cb_write",
                                 "ind_rd_buffer_size",
                                 "romio_no_indep_rw",
                                 "enable",
                                 "true",
                                 "4096",
                                 "#",
                                 "\n",
                                 "\n",
                                 " ",
                                 "\t"};
    for (int trial = 0; trial < 2000; ++trial) {
        std::string text;
        for (MPI_Count i = generator.number(0, trial % 50 == 0 ? 3000 : 30); i > 0; --i) {
            text += words[generator.number(0, std::size(words) - 1)];
            text += generator.number(0, 9) == 0 ? static_cast<char>(generator.number(0, 255)) : ' ';
        }
        std::ofstream(path) << text;
        Hints hints;
        hints.take_file(path.c_str());
        check_hints(hints);
    }
    std::remove(path.c_str());
    Hints hints;
    hints.take_file(path.c_str());
    EXPECT_EQ(hints.staging_half, Hints().staging_half);
}

TEST(ViewFuzz, more_if_asked_for) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_more);
    for (unsigned seed = 100000;
         std::chrono::steady_clock::now() < end && !testing::Test::HasFatalFailure(); ++seed) {
        follow_random_view(seed);
    }
}

} // namespace
} // namespace warren::io

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    warren::io::seconds_more = argc > 1 ? std::atoi(argv[1]) : 0;
    return RUN_ALL_TESTS();
}
