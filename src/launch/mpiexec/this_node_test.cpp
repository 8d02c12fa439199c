#include "launch/mpiexec/this_node.hpp"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <unistd.h>

#include <gtest/gtest.h>

namespace warren::launch {
namespace {

std::string text_of(Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    return record == nullptr ? "" : record->text;
}

std::string own_name() {
    char name[HOST_NAME_MAX + 1] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

class Hostfile {
  public:
    explicit Hostfile(const std::string& text) {
        close(mkstemp(name_));
        std::ofstream(name_) << text;
    }
    ~Hostfile() { std::remove(name_); }
    const char* name() const { return name_; }

  private:
    char name_[40] = "/tmp/warren-hostfile-test-XXXXXX";
};

TEST(ThisNode, HasSeveralNames) {
    const std::string own = own_name();
    EXPECT_TRUE(is_this_node("localhost"));
    EXPECT_TRUE(is_this_node("127.0.0.1"));
    EXPECT_TRUE(is_this_node(own));
    EXPECT_TRUE(is_this_node(own.substr(0, own.find('.'))));
    EXPECT_FALSE(is_this_node(""));
    EXPECT_FALSE(is_this_node("192.0.2.1")); // reserved for documentation: nobody's
    EXPECT_FALSE(is_this_node(own + "x"));
}

TEST(ThisNode, IsAcceptedInLists) {
    EXPECT_EQ(text_of(check_hosts("option -host", "localhost")), "");
    EXPECT_EQ(text_of(check_hosts("option -host", "localhost:4," + own_name())), "");
    EXPECT_NE(text_of(check_hosts("option -host", "localhost,192.0.2.1:2"))
                  .find("option -host: '192.0.2.1:2' is not this node"),
              std::string::npos);
    EXPECT_NE(text_of(check_hosts("option -host", "")).find("needs the name"), std::string::npos);
}

TEST(ThisNode, IsAcceptedInFiles) {
    const Hostfile own("# all\nlocalhost slots=2\n\n127.0.0.1:4 # again\n");
    EXPECT_EQ(text_of(check_hostfile("option -f", own.name())), "");
    const Hostfile other("localhost\n192.0.2.1\n");
    EXPECT_NE(text_of(check_hostfile("option -f", other.name())).find("'192.0.2.1' is not"),
              std::string::npos);
    const Hostfile none("# nothing\n");
    EXPECT_NE(text_of(check_hostfile("option -f", none.name())).find("names no node"),
              std::string::npos);
    EXPECT_NE(text_of(check_hostfile("option -f", "/nonexistent")).find("No such file"),
              std::string::npos);
    EXPECT_NE(text_of(check_hostfile("option -f", "/tmp")).find("directory"), std::string::npos);
}

} // namespace
} // namespace warren::launch
