// Files of measured values, as discovery merges them.
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "topology/discovery/describe.hpp"
#include "topology/values_file.hpp"

namespace warren::discovery {
namespace {

using topology::Description;
using topology::ValuesFile;

const Source two{SourceKind::synthetic, "package:2 [numa(memory=1GB)] core:2 pu:1"};

class File {
  public:
    explicit File(const std::string& text) {
        const int descriptor = mkstemp(path_);
        EXPECT_EQ(write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(descriptor);
        setenv("WARREN_MEMORY_VALUES", path_, 1);
    }
    ~File() {
        unsetenv("WARREN_MEMORY_VALUES");
        unlink(path_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

  private:
    char path_[40] = "/tmp/mpi-test-measured.XXXXXX";
};

TEST(MeasuredValues, StandForOthers) {
    Description plain;
    ASSERT_FALSE(discover(two, plain));
    ValuesFile file;
    file.machine = identity_of(plain);
    // From the first package, its own memory is the slower one.
    file.values = {{WARREN_ATTRIBUTE_LATENCY, {3}, 0, 400}, {WARREN_ATTRIBUTE_LATENCY, {3}, 1, 80}};
    const File kept(text_of(file));
    std::string note;
    Source source = two;
    source.note = &note;
    Description measured;
    ASSERT_FALSE(discover(source, measured));
    EXPECT_EQ(note, "");
    const topology::AttributeMatrix& matrix = measured.matrices[WARREN_ATTRIBUTE_LATENCY];
    ASSERT_EQ(matrix.cells.size(), 4U);
    EXPECT_EQ(matrix.cells[0].value, 400U);
    EXPECT_EQ(matrix.cells[1].value, 80U);
    EXPECT_EQ(matrix.cells[0].origin, std::uint32_t{WARREN_ORIGIN_MEASURED});
    EXPECT_EQ(matrix.cells[3].origin, std::uint32_t{WARREN_ORIGIN_GUESSED});
    EXPECT_EQ(matrix.order[0], 1U);
}

TEST(MeasuredValues, OfAnotherMachineAreRefusedWithTheReason) {
    Description other;
    ASSERT_FALSE(
        discover({SourceKind::synthetic, "package:2 [numa(memory=1GB)] core:4 pu:1"}, other));
    ValuesFile file;
    file.machine = identity_of(other);
    file.values = {{WARREN_ATTRIBUTE_LATENCY, {3}, 0, 400}};
    const File kept(text_of(file));
    std::string note;
    Source source = two;
    source.note = &note;
    Description description;
    ASSERT_FALSE(discover(source, description));
    EXPECT_NE(note.find("of another machine"), std::string::npos) << note;
    EXPECT_NE(note.find("local to processors 0-3, here to 0-1"), std::string::npos) << note;
    EXPECT_EQ(description.matrices[WARREN_ATTRIBUTE_LATENCY].cells[0].origin,
              std::uint32_t{WARREN_ORIGIN_GUESSED});
}

TEST(MeasuredValues, OfProcessorsThatAreNotThereAreRefused) {
    Description plain;
    ASSERT_FALSE(discover(two, plain));
    ValuesFile file;
    file.machine = identity_of(plain);
    file.values = {{WARREN_ATTRIBUTE_LATENCY, {0x30}, 0, 400}};
    const File kept(text_of(file));
    std::string note;
    Source source = two;
    source.note = &note;
    Description description;
    ASSERT_FALSE(discover(source, description));
    EXPECT_NE(note.find("processors 4-5"), std::string::npos) << note;
}

TEST(MeasuredValues, DamagedFilesAreRefused) {
    const File kept("warren memory values 1\n");
    std::string note;
    Source source = two;
    source.note = &note;
    Description description;
    ASSERT_FALSE(discover(source, description));
    EXPECT_NE(note.find("line 2"), std::string::npos) << note;
}

} // namespace
} // namespace warren::discovery
