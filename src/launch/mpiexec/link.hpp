// Link: frames between mpiexec and the agent of a node, over the launcher's standard input and
// output. So a node needs no port that others can reach, and whoever can start the agent is who
// talks to it.
//
// A frame is a header and its payload. The agent's first words are a greeting with the version of
// the frames: what a shell prints before is not taken for frames. Neither side blocks: what the
// other does not take yet is kept. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warren::launch {

enum class FrameKind : std::uint32_t {
    // From mpiexec.
    plan = 1,      // what the agent is to start (node_plan.hpp)
    input,         // of rank 0; empty: its end
    signal,        // number: to be passed on to the ranks
    states,        // print what each rank waits for
    end_job,       // end the ranks: something failed elsewhere
    output_broken, // number: errno; nobody takes the standard output any more
    fence_over,    // the cards of all nodes (packed strings)
    // From the agent.
    machine,     // what it runs on: nodes with equal ones share processors (Front::look_for_plans)
    output,      // text for mpiexec's standard output
    errors,      // and standard error
    input_taken, // number: bytes
    failed,      // number: exit code; the message
    explains_more, // the next failure of this node explains more than its last
    ends_job,      // the job ends because of the last failure
    without_init,  // number: exit code; ranks ended without MPI_Init, which matters if others wait
    fence,         // all ranks of the node have come to a fence: their cards
    ended          // number: exit code; the last frame
};

struct Frame {
    FrameKind kind = FrameKind::ended;
    std::uint32_t number = 0;
    std::string payload;
};

class Link {
  public:
    static constexpr std::string_view greeting = "\1warren agent 1\n";

    // Takes both descriptors over.
    Link(int input, int output);
    ~Link();
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    void greet() { pending_ += greeting; }
    // Takes frames only behind the other side's greeting; `before`: gets what precedes it.
    void expect_greeting() { greeted_ = false; }

    void send(FrameKind kind, std::uint32_t number = 0, std::string_view payload = {});
    // Writes what the other side takes; false: it is gone.
    bool flush();
    // Writes all, or until nothing has been taken for so long.
    void drain(int timeout_ms);
    std::size_t backlog() const { return pending_.size() - written_; }

    // Reads what is there. False: the end, or bytes that are no frames (is_foreign()), as is text
    // without end before a greeting.
    bool receive();
    bool next(Frame& frame);
    // Waits for a frame, at most so long; -1: however long.
    bool await(Frame& frame, int timeout_ms);
    bool greeted() const { return greeted_; }
    bool is_foreign() const { return foreign_; }
    // Returns the bytes that preceded the greeting, once.
    std::string take_before();

    int input() const { return input_; }
    int output() const { return output_; }

  private:
    static constexpr std::size_t frame_limit_bytes = std::size_t{1} << 30;
    static constexpr std::size_t before_limit_bytes = 65536; // more than a shell says

    int input_;
    int output_;
    std::string pending_;
    std::size_t written_ = 0;
    bool broken_ = false;
    std::string received_;
    std::size_t taken_ = 0;
    bool greeted_ = true;
    bool foreign_ = false;
    std::string before_;
};

// Numbers and strings one behind the other.
class Packer {
  public:
    void add(std::uint64_t number);
    void add(std::string_view text);
    void add(const std::vector<std::string>& texts);
    const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

// Reads the values that a Packer has packed. When the bytes end too early, or some are left,
// sound() is false and the values are empty.
class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

    std::uint64_t number();
    std::string text();
    std::vector<std::string> texts();
    bool sound() const { return sound_ && rest_.empty(); }

  private:
    std::string_view take(std::uint64_t bytes);

    std::string_view rest_;
    bool sound_ = true;
};

} // namespace warren::launch
