#include "mpi/job/pmi_client.hpp"

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace warren::node {

namespace {

std::string message_of(Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record != nullptr ? record->text : "";
}

TEST(ProcessMapping, HasANodeForEachProcess) {
    std::vector<std::uint32_t> nodes;
    ASSERT_TRUE(parse_process_mapping("(vector,(0,2,2),(2,1,3))", 7, nodes));
    EXPECT_EQ(nodes, (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 2}));
    ASSERT_TRUE(parse_process_mapping("(vector,(0,2,1))", 5, nodes)); // begins again
    EXPECT_EQ(nodes, (std::vector<std::uint32_t>{0, 1, 0, 1, 0}));
    ASSERT_TRUE(parse_process_mapping("(vector,(0,1,8))", 3, nodes));
    EXPECT_EQ(nodes, (std::vector<std::uint32_t>{0, 0, 0}));
    for (const char* wrong :
         {"", "(vector)", "(vector,(0,0,4))", "(vector,(0,1,0))", "(vector,(0,1)",
          "(vector,(0,1,2)", "(vector,(0,1,2))x", "(list,(0,1,2))", "(vector,(-1,1,2))"}) {
        EXPECT_FALSE(parse_process_mapping(wrong, 2, nodes)) << wrong;
    }
}

// A launcher of one process with small values.
class PmiClientTest : public testing::Test {
  protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
        setenv("PMI_RANK", "1", 1);
        setenv("PMI_SIZE", "2", 1);
        server_ = std::thread([this, end = ends[0]] { serve(end); });
    }
    void TearDown() override {
        client_.reset(); // ends the server
        server_.join();
        for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) {
            unsetenv(name);
        }
    }

    static std::string word(const std::string& line, const std::string& name) {
        const std::size_t at = line.find(" " + name + "=");
        const std::size_t begin = at + name.size() + 2;
        return at == std::string::npos ? "" : line.substr(begin, line.find(' ', begin) - begin);
    }
    std::string answer(const std::string& line) {
        if (line.starts_with("cmd=init ")) {
            return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
        }
        if (line == "cmd=get_maxes") {
            return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=80";
        }
        if (line == "cmd=get_my_kvsname") {
            return "cmd=my_kvsname kvsname=board";
        }
        if (line.starts_with("cmd=put ")) {
            EXPECT_LT(word(line, "value").size(), 80U);
            EXPECT_LT(word(line, "key").size(), 64U);
            return board_.emplace(word(line, "key"), word(line, "value")).second
                       ? "cmd=put_result rc=0 msg=success"
                       : "cmd=put_result rc=-1 msg=duplicate";
        }
        if (line.starts_with("cmd=get ")) {
            const auto found = board_.find(word(line, "key"));
            return found == board_.end() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown"
                                         : "cmd=get_result rc=0 value=" + found->second;
        }
        return line == "cmd=barrier_in" ? "cmd=barrier_out rc=0" : "cmd=what";
    }
    void serve(int end) {
        std::string line;
        for (char letter = 0; read(end, &letter, 1) == 1;) {
            if (letter != '\n') {
                line += letter;
                continue;
            }
            const std::string text = answer(line) + "\n";
            line.clear();
            (void)!write(end, text.data(), text.size());
        }
        close(end);
    }

    std::map<std::string, std::string> board_;
    std::thread server_;
    std::unique_ptr<PmiClient> client_ = std::make_unique<PmiClient>();
};

TEST_F(PmiClientTest, HandsOverBytesOfAnyLength) {
    EXPECT_TRUE(PmiClient::has_launcher());
    ASSERT_FALSE(client_->connect());
    EXPECT_EQ(client_->rank(), 1U);
    EXPECT_EQ(client_->size(), 2U);
    for (const std::size_t length : {0, 1, 23, 24, 25, 1000}) {
        std::string bytes;
        for (std::size_t at = 0; at < length; ++at) {
            bytes += static_cast<char>(at * 37);
        }
        const std::string key = "key" + std::to_string(length);
        EXPECT_EQ(message_of(client_->put(key, bytes)), "");
        EXPECT_FALSE(client_->barrier());
        std::string got;
        EXPECT_EQ(message_of(client_->get(0, key, got)), "");
        EXPECT_EQ(got, bytes);
    }
}

TEST_F(PmiClientTest, SaysWhatTheLauncherDoesNotHave) {
    ASSERT_FALSE(client_->connect());
    std::string got;
    EXPECT_EQ(message_of(client_->get(0, "nothing", got)),
              "the launcher has nothing under 'nothing'");
    std::vector<std::uint32_t> nodes;
    EXPECT_NE(message_of(client_->nodes(nodes)), "");
}

} // namespace

} // namespace warren::node
