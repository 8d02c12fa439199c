#include "analyser/recorder/recording.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace warren::locality {
namespace {

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class Recording : public testing::Test {
  protected:
    Recording() {
        char name[] = "/tmp/warren-recording-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~Recording() override {
        for (const char* file : {ThreadRecord::file, StackRecord::file, process_file, "bytes"}) {
            unlink(path(file).c_str());
        }
        rmdir(folder_.c_str());
    }
    std::string path(const char* file) const { return folder_ + "/" + file; }

    std::string folder_;
};

TEST_F(Recording, HasItsHeaderAndItsRecordsInOrder) {
    Allowance allowance;
    RecordFile<StackRecord> file;
    ASSERT_FALSE(file.open(folder_, allowance));
    EXPECT_TRUE(file.append({StackRecord::instruction, 0, 0x1234}));
    EXPECT_TRUE(file.append({StackRecord::return_address, 1, 0x5678}));
    file.close();
    EXPECT_EQ(file.records(), 2U);
    EXPECT_EQ(file.lost(), 0U);
    const std::string bytes = contents(path("stacks.rec"));
    ASSERT_EQ(bytes.size(), 32U + 2 * 16);
    EXPECT_EQ(bytes.substr(0, 16), std::string("WARRENLR\1\0\0\0STCK", 16));
    EXPECT_EQ(bytes[32], 2);
    EXPECT_EQ(bytes[52], 1);
}

TEST_F(Recording, SumsAreThoseOfZlib) {
    Checksum sum;
    EXPECT_EQ(sum.value(), 0U);
    sum.add("123456789", 9); // the check value of CRC-32
    EXPECT_EQ(sum.value(), 0xCBF43926U);
    std::string text(1000, 'a');
    for (std::size_t index = 0; index < text.size(); ++index) {
        text[index] = static_cast<char>(index * index >> 3);
    }
    Checksum whole;
    whole.add(text.data(), text.size());
    Checksum pieces; // of all lengths, at all places
    for (std::size_t begin = 0, length = 0; begin < text.size(); begin += length) {
        length = std::min(length + 1, text.size() - begin);
        pieces.add(text.data() + begin, length);
    }
    EXPECT_EQ(pieces.value(), whole.value());
}

TEST_F(Recording, NeverWritesOverAnother) {
    Allowance allowance;
    RecordFile<StackRecord> file;
    ASSERT_FALSE(file.open(folder_, allowance));
    RecordFile<StackRecord> again;
    Error error = again.open(folder_, allowance);
    ASSERT_TRUE(error);
    error.drop();
}

TEST_F(Recording, StaysWithinItsLimitAndCountsWhatIsLost) {
    Allowance allowance{32 + 3 * sizeof(ThreadRecord) + 5};
    RecordFile<ThreadRecord> file;
    ASSERT_FALSE(file.open(folder_, allowance));
    for (std::uint32_t thread = 0; thread < 10; ++thread) {
        EXPECT_EQ(file.append({ThreadRecord::began, thread, 1, 0, 1, 0, 0, ""}), thread < 3);
    }
    EXPECT_NE(file.problem().find("limit"), std::string::npos);
    file.close();
    EXPECT_EQ(file.records(), 3U);
    EXPECT_EQ(file.lost(), 7U);
    EXPECT_EQ(contents(path("threads.rec")).size(), 32 + 3 * sizeof(ThreadRecord));
}

// A limit of the file's size acts like a full disk: part of a write arrives.
TEST_F(Recording, KeepsWholeRecordsOnAFullDisk) {
    Allowance allowance;
    RecordFile<ThreadRecord> file;
    ASSERT_FALSE(file.open(folder_, allowance));
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit small = before;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (std::uint32_t thread = 0; thread < 5000; ++thread) {
        file.append({ThreadRecord::began, thread, 1, 0, 1, 0, 0, ""});
    }
    file.close();
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_FALSE(file.problem().empty());
    const std::uint64_t kept = (1000 - 32) / sizeof(ThreadRecord);
    EXPECT_EQ(file.records(), kept);
    EXPECT_EQ(file.lost(), 5000 - kept);
    const std::string bytes = contents(path("threads.rec"));
    EXPECT_EQ(bytes.size(), 32 + kept * sizeof(ThreadRecord));
    EXPECT_EQ(file.bytes().bytes(), bytes.size());
    Checksum sum;
    sum.add(bytes.data(), bytes.size());
    EXPECT_EQ(file.bytes().checksum(), sum.value()); // of what is there
}

TEST_F(Recording, LeavesTheDisksReserveToOthers) {
    Allowance allowance;
    RecordFile<StackRecord> file;
    ASSERT_FALSE(file.open(folder_, allowance));
    file.set_reserve(1); // the disk has more
    EXPECT_TRUE(file.append({StackRecord::instruction, 0, 1}));
    EXPECT_TRUE(file.flush());
    file.set_reserve(UINT64_MAX - 1); // it hasn't
    EXPECT_TRUE(file.append({StackRecord::instruction, 0, 2}));
    EXPECT_FALSE(file.flush());
    file.close();
    EXPECT_EQ(file.records(), 1U);
    EXPECT_EQ(file.lost(), 1U);
    EXPECT_NE(file.problem().find("what is left of the disk"), std::string::npos);
    EXPECT_EQ(contents(path("stacks.rec")).size(), 32U + 16);
}

TEST_F(Recording, DescribesItsProcessInTheSpaceThatItHasFromTheStart) {
    ProcessDescription process;
    process.mode = "first-touch";
    process.command = {"./a \"b\"", "\xff\xc3\xa4\n"};
    DescriptionFile file;
    ASSERT_FALSE(file.open(folder_));
    ASSERT_FALSE(file.write(process));
    const std::string before = contents(path(process_file));
    EXPECT_NE(before.find("\"end\": null"), std::string::npos);
    EXPECT_NE(before.find("[\"./a \\\"b\\\"\", \"\\ufffd\xc3\xa4\\u000a\"]"), std::string::npos);
    process.end = "exit 3";
    process.lost.push_back({"touches", 12, "the kernel's buffer was full"});
    ASSERT_FALSE(file.write(process));
    const std::string after = contents(path(process_file));
    EXPECT_NE(after.find("\"end\": \"exit 3\""), std::string::npos);
    EXPECT_NE(after.find("\"count\": 12"), std::string::npos);
    EXPECT_EQ(after.size(), before.size());
}

TEST_F(Recording, DescribesItsFilesAndSumsUpTheDescription) {
    ProcessDescription process;
    EXPECT_EQ(to_json(process).find("\"sum\""), std::string::npos);
    process.files = {{"touches.rec", 80, 0xCBF43926U}, {"strings.bin", 0, 0}};
    const std::string text = to_json(process);
    EXPECT_NE(text.find("\"files\": {\"touches.rec\": {\"bytes\": 80, \"crc32\": 3421780262}, "
                        "\"strings.bin\": {\"bytes\": 0, \"crc32\": 0}}"),
              std::string::npos);
    const std::size_t end = text.find(",\n \"sum\": ");
    ASSERT_NE(end, std::string::npos);
    Checksum sum;
    sum.add(text.data(), end);
    EXPECT_EQ(text.substr(end), ",\n \"sum\": " + std::to_string(sum.value()) + "\n}\n");
}

} // namespace
} // namespace warren::locality
