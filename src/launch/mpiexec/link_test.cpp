#include "launch/mpiexec/link.hpp"

#include <fcntl.h>
#include <memory>
#include <unistd.h>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

// Both ends of a link, and a descriptor that writes to the second as the first does.
class LinkTest : public testing::Test {
  protected:
    void SetUp() override {
        int there[2];
        int back[2];
        ASSERT_EQ(pipe(there), 0);
        ASSERT_EQ(pipe(back), 0);
        raw_ = dup(there[1]);
        one_ = std::make_unique<Link>(back[0], there[1]);
        other_ = std::make_unique<Link>(there[0], back[1]);
    }
    void TearDown() override { close(raw_); }
    void write_raw(std::string_view text) {
        ASSERT_EQ(write(raw_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }

    int raw_ = -1;
    std::unique_ptr<Link> one_;
    std::unique_ptr<Link> other_;
};

TEST_F(LinkTest, FramesArriveWholeAndInOrder) {
    const std::string large(3'000'000, 'x');
    one_->send(FrameKind::output, 1, "text");
    one_->send(FrameKind::ended, 7);
    one_->send(FrameKind::errors, 2, large);
    Frame frame;
    ASSERT_TRUE(other_->await(frame, 1000));
    EXPECT_EQ(frame.kind, FrameKind::output);
    EXPECT_EQ(frame.payload, "text");
    ASSERT_TRUE(other_->await(frame, 1000));
    EXPECT_EQ(frame.number, 7U);
    EXPECT_GT(one_->backlog(), 0U); // a pipe holds less
    while (!other_->next(frame)) {
        ASSERT_TRUE(one_->flush());
        ASSERT_TRUE(other_->receive());
    }
    EXPECT_EQ(frame.payload, large);
    EXPECT_FALSE(other_->await(frame, 0));
}

TEST_F(LinkTest, WhatAShellPrintsBeforeIsNoFrame) {
    other_->expect_greeting();
    write_raw("Welcome to node b!\n\1warr");
    one_->greet();
    one_->send(FrameKind::ended, 3);
    Frame frame;
    ASSERT_TRUE(other_->await(frame, 1000));
    EXPECT_EQ(frame.number, 3U);
    EXPECT_EQ(other_->take_before(), "Welcome to node b!\n\1warr");
}

TEST_F(LinkTest, TextWithoutEndBeforeAGreetingIsRefused) {
    other_->expect_greeting();
    const std::string text(4096, 'y');
    int pages = 0;
    while (pages < 1000 && !other_->is_foreign()) {
        write_raw(text);
        other_->receive();
        ++pages;
    }
    EXPECT_GT(pages, 10);
    EXPECT_LT(pages, 100);
}

TEST_F(LinkTest, OtherBytesAreRefused) {
    write_raw(std::string(64, 'z'));
    Frame frame;
    EXPECT_TRUE(other_->receive());
    EXPECT_FALSE(other_->next(frame));
    EXPECT_TRUE(other_->is_foreign());
}

TEST_F(LinkTest, TheEndIsSeen) {
    close(raw_);
    raw_ = -1;
    one_.reset();
    EXPECT_FALSE(other_->receive());
}

} // namespace
} // namespace warren::launch
