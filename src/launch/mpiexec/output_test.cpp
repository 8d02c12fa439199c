#include "launch/mpiexec/output.hpp"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "launch/mpiexec/tuning.hpp"

namespace warren::launch {
namespace {

// A file to write to, read back as a whole.
class Collected {
  public:
    Collected() {
        char name[] = "/tmp/mpi-test-output-test-XXXXXX";
        descriptor_ = mkstemp(name);
        unlink(name);
    }
    ~Collected() { close(descriptor_); }
    int descriptor() const { return descriptor_; }
    std::string text() const {
        std::string all(static_cast<std::size_t>(lseek(descriptor_, 0, SEEK_END)), '\0');
        EXPECT_EQ(pread(descriptor_, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
        return all;
    }

  private:
    int descriptor_;
};

TEST(Output, PartialLinesOfTwoRanksDoNotMix) {
    const Collected file;
    Sink sink(file.descriptor());
    LineAssembler first;
    LineAssembler second;
    first.feed("one ", 0, sink);
    second.feed("two ", 1, sink);
    first.feed("line\nand", 0, sink);
    second.feed("lines\nhere\n", 1, sink);
    first.feed(" more\n", 0, sink);
    sink.flush();
    EXPECT_EQ(file.text(), "one line\ntwo lines\nhere\nand more\n");
}

TEST(Output, TheLastUnfinishedLineComesAtTheEndWithoutANewline) {
    const Collected file;
    Sink sink(file.descriptor());
    LineAssembler only;
    only.feed("a\nb", 0, sink);
    EXPECT_TRUE(only.unfinished());
    only.finish(0, sink);
    sink.flush();
    EXPECT_EQ(file.text(), "a\nb");
}

TEST(Output, AnotherWriterStartsOnItsOwnLine) {
    const Collected file;
    Sink sink(file.descriptor());
    LineAssembler first;
    LineAssembler second;
    first.feed("a", 0, sink);
    first.finish(0, sink);
    second.feed("b", 1, sink);
    second.finish(1, sink);
    sink.append("mpiexec: end\n", Sink::own_writer);
    sink.flush();
    EXPECT_EQ(file.text(), "a\nb\nmpiexec: end\n");
}

TEST(Output, TagsEachLineOnce) {
    const Collected file;
    Sink sink(file.descriptor());
    LineAssembler lines;
    lines.set_tag("[7] ");
    lines.feed("a\n\nb", 7, sink);
    lines.feed("c\n", 7, sink);
    lines.feed("end", 7, sink);
    lines.finish(7, sink);
    lines.feed(" of it\n", 7, sink);
    sink.flush();
    EXPECT_EQ(file.text(), "[7] a\n[7] \n[7] bc\n[7] end of it\n");
}

TEST(Output, ACarriageReturnEndsALine) {
    const Collected file;
    Sink sink(file.descriptor());
    LineAssembler first;
    LineAssembler second;
    first.feed("10%\r20%\r", 0, sink); // what follows the second is not known
    second.feed("a\r\n", 1, sink);
    first.feed("30%", 0, sink);
    EXPECT_FALSE(first.ends_in_return());
    first.finish(0, sink);
    sink.append("mpiexec: end\n", Sink::own_writer);
    second.feed("b\r", 1, sink);
    EXPECT_TRUE(second.ends_in_return());
    second.finish(1, sink);
    sink.append("mpiexec: end\n", Sink::own_writer);
    sink.flush();
    EXPECT_EQ(file.text(), "10%\ra\r\n20%\r30%\nmpiexec: end\nb\r\nmpiexec: end\n");
}

TEST(Output, TagsAfterCarriageReturns) {
    const Collected file;
    Sink sink(file.descriptor());
    LineAssembler lines;
    lines.set_tag("[7] ");
    lines.feed("10%\r20%\r\n30%\r", 7, sink);
    lines.finish(7, sink); // it was held long enough
    lines.feed("\n40%\r", 7, sink);
    lines.finish(7, sink);
    lines.feed("50%\n", 7, sink);
    sink.flush();
    EXPECT_EQ(file.text(), "[7] 10%\r[7] 20%\r\n[7] 30%\r\n[7] 40%\r[7] 50%\n");
}

TEST(Output, ALineWithoutEndIsPassedOnInPieces) {
    const Collected file;
    Sink sink(file.descriptor());
    LineAssembler lines;
    const std::string piece(line_limit_bytes / 2, 'x');
    for (int turn = 0; turn < 5; ++turn) {
        lines.feed(piece, 0, sink);
    }
    EXPECT_TRUE(lines.unfinished());
    sink.flush();
    EXPECT_EQ(file.text().size(), 2 * line_limit_bytes);
    lines.feed("\n", 0, sink);
    sink.flush();
    EXPECT_EQ(file.text().size(), 5 * piece.size() + 1); // nothing added in between
}

TEST(Output, ASlowReaderIsNotWaitedFor) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    Sink sink(ends[1]);
    ASSERT_TRUE(sink.pollable());
    std::string line(999, 'y');
    line += '\n';
    std::size_t appended = 0;
    while (!sink.full()) {
        sink.append(line, 0);
        appended += line.size();
    }
    std::size_t received = 0;
    char buffer[65536];
    while (received < appended) {
        const ssize_t got = read(ends[0], buffer, sizeof buffer);
        ASSERT_GT(got, 0);
        received += static_cast<std::size_t>(got);
        sink.flush();
    }
    EXPECT_TRUE(sink.empty());
    EXPECT_EQ(received, appended);
    close(ends[0]);
    close(ends[1]);
}

TEST(Output, AReaderThatWentAwayIsNoticed) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    signal(SIGPIPE, SIG_IGN);
    Sink sink(ends[1]);
    close(ends[0]);
    sink.append("text\n", 0);
    sink.flush();
    EXPECT_TRUE(sink.broken());
    EXPECT_TRUE(sink.empty());
    close(ends[1]);
}

} // namespace
} // namespace warren::launch
