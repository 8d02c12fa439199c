// TerminalInput: passes what the user types on to rank 0.
//
// Only a terminal is passed on through mpiexec, because ranks are not in its foreground group and
// may not read it; a file or a pipe is given to rank 0 itself. Thread rule: mpiexec's only thread.
#pragma once

#include <string>

namespace warren::launch {

class TerminalInput {
  public:
    ~TerminalInput() { close_pipe(); }

    // Makes the pipe when standard input is a terminal. Returns the descriptor for rank 0's
    // standard input: the pipe's end (close_reader() when rank 0 has it) or mpiexec's own.
    int open();
    void close_reader();

    // There is a terminal whose input somebody may want.
    bool active() const { return writer_ >= 0; }

    // mpiexec is in the terminal's foreground, so reading does not stop it.
    bool readable_now() const;

    // Reads a piece of what was typed and passes it on. Ends the pipe at the end of the input, or
    // when rank 0 has closed its side.
    void pass_on();
    void close_pipe();

  private:
    int reader_ = -1;
    int writer_ = -1;
};

} // namespace warren::launch
