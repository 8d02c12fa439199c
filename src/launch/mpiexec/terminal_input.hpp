// TerminalInput: passes what the user types on to rank 0.
//
// Only a terminal is passed on through mpiexec, because ranks are not in its foreground group and
// may not read it; a file or a pipe is given to rank 0 itself. An agent passes on what mpiexec
// sends it, whatever that reads from. Thread rule: mpiexec's only thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warren::launch {

class TerminalInput {
  public:
    ~TerminalInput() { close_pipe(); }

    // Makes the pipe when standard input is a terminal. Returns the descriptor for rank 0's
    // standard input: the pipe's end (close_reader() when rank 0 has it) or mpiexec's own.
    int open();
    // Makes the pipe for input that an agent is sent, and returns rank 0's end; `none` when there
    // is no pipe.
    int open_relay(int none);
    void close_reader();

    // There is a terminal whose input somebody may want.
    bool active() const { return writer_ >= 0 && !relays_; }

    // mpiexec is in the terminal's foreground, so reading does not stop it.
    bool readable_now() const;

    // Reads a piece of what was typed and passes it on. Ends the pipe at the end of the input, or
    // when rank 0 has closed its side.
    void pass_on();
    // Text that an agent was sent; empty: the end.
    void give(std::string_view text);
    // Writes what rank 0 takes. Returns how many bytes are done with.
    std::size_t flush();
    bool has_waiting() const { return writer_ >= 0 && !waiting_.empty(); }
    int writer() const { return writer_; }
    void close_pipe();

  private:
    int reader_ = -1;
    int writer_ = -1;
    bool relays_ = false;
    std::string waiting_; // that an agent was sent and rank 0 has not taken
    bool ends_ = false;   // after that
};

} // namespace warren::launch
