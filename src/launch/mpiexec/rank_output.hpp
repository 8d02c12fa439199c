// RankOutput: the ranks' output on its way through mpiexec: a pipe per stream in, two sinks out.
//
// Whoever writes by itself has streams of its own, a pipe each for output and errors: a process, or
// each rank of a host process. Lines that are not finished are held for line_hold_ns, so that the
// pieces of a line stay together. The streams of a job that has only one pass everything on at
// once; lines with a tag are passed on whole, but for a question to the user at the terminal. A
// piece that ends where a buffer of the writer's was full waits for its line as well: the writer
// did not mean it to be seen yet.
// Invariant: a stream is in held_ when its line is not finished, and is passed on by time.
// Thread rule: mpiexec's only thread.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "launch/mpiexec/events.hpp"
#include "launch/mpiexec/output.hpp"

namespace warren::launch {

class RankOutput {
  public:
    RankOutput();
    ~RankOutput();
    RankOutput(const RankOutput&) = delete;
    RankOutput& operator=(const RankOutput&) = delete;

    // Output arrives as Source::all_output of `job`, which outlives this.
    bool open(Events& job);
    void set_streams(std::uint32_t count) { streams_.resize(count); }
    // Makes the pipes of these streams; the ends to write to are the caller's.
    bool add(std::uint32_t number, const std::string& tag, int& output, int& errors);
    // A user at the terminal may be asked by the first streams' output.
    void expect_questions() { asks_ = true; }

    std::uint32_t open_streams() const { return open_streams_; }
    // Why nothing can be written to the standard output any more; 0: it can.
    int write_error() const { return output_.error(); }

    // The ranks' output and mpiexec's own text go over a link.
    void send_to(Link& link) {
        output_.send_to(link, FrameKind::output);
        errors_.send_to(link, FrameKind::errors);
    }
    void break_output(int error) { output_.break_off(error); }

    // mpiexec's own text, on the standard error.
    void say(std::string_view text);

    void read_some();
    void drain(std::uint32_t number);
    // Passes on the lines that were held long enough.
    void pass_on_held(std::uint64_t now_ns);
    std::uint64_t deadline_ns() const { return held_.empty() ? 0 : held_.top().until_ns; }
    // Writes what readers take; reads on from the ranks, or no more while a sink is full.
    void update_sinks();

    // Reads what is left and waits until readers have taken it. Ends before when `signals` has one
    // that ends mpiexec: its number, 0 else.
    int finish(int signals);

  private:
    struct Stream {
        int descriptor = -1;
        bool held = false;        // it is in held_
        bool buffer_full = false; // the last piece ends where the writer's buffer was full
        std::uint64_t until_ns = 0;
        LineAssembler lines;
    };
    struct Streams {
        Stream output;
        Stream errors;
    };
    struct Held {
        std::uint64_t until_ns;
        Event stream;
        bool operator>(const Held& other) const { return until_ns > other.until_ns; }
    };

    Stream& stream(Event which);
    Sink& sink(Source source) { return source == Source::output ? output_ : errors_; }
    bool passes_on(Event which, const Stream& from) const;
    void read_stream(Event which);
    void close_stream(Event which);
    bool flush(int signals, int& signal);

    std::vector<Streams> streams_;
    // The earliest first. A stream is in it once: a line that begins meanwhile is put back.
    std::priority_queue<Held, std::vector<Held>, std::greater<>> held_;
    std::uint32_t open_streams_ = 0;
    bool asks_ = false;
    Sink output_{1};
    Sink errors_{2};
    Events* job_ = nullptr;
    Events events_; // in the job's, left out while a sink is full
    bool reads_ = true;
    bool sink_watched_[2] = {false, false};
    std::vector<char> buffer_;
};

} // namespace warren::launch
