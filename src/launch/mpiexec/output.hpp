// The ranks' output on its way to mpiexec's own: lines stay whole, and a slow reader stops nobody
// but the writers.
//
// LineAssembler holds the unfinished line of one stream of one rank. Sink is mpiexec's standard
// output or standard error.
// Thread rule: mpiexec's only thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "launch/mpiexec/link.hpp"
#include "launch/mpiexec/tuning.hpp"

namespace warren::launch {

class Sink {
  public:
    // `descriptor` stays the caller's.
    explicit Sink(int descriptor);
    // From now on, text goes there as frames of this kind.
    void send_to(Link& link, FrameKind kind) {
        link_ = &link;
        kind_ = kind;
        pollable_ = false;
    }
    // Nobody reads at the other end of the link.
    void break_off(int error) { error_ = error; }

    // Appends text of a writer (a rank; mpiexec itself is `own_writer`). When another writer has
    // left an unfinished line, that one is ended first. A carriage return ends lines of ranks for
    // other ranks, whose progress bars take turns, but not for mpiexec's messages.
    void append(std::string_view text, std::uint32_t writer);
    static constexpr std::uint32_t own_writer = UINT32_MAX;

    // Writes what the reader takes without blocking. Regular files and the like take everything.
    void flush();

    bool empty() const { return written_ == pending_.size(); }
    bool full() const {
        return (link_ != nullptr ? link_->backlog() : pending_.size() - written_) >=
               sink_limit_bytes;
    }
    bool pollable() const { return pollable_; }

    // The reader has gone, or what was written did not fit: what is appended is dropped.
    bool broken() const { return error_ != 0; }
    int error() const { return error_; } // of the write that failed; 0: none has
    int descriptor() const { return descriptor_; }

  private:
    int descriptor_;
    Link* link_ = nullptr;
    FrameKind kind_ = FrameKind::output;
    bool pollable_ = false;
    int error_ = 0;
    char last_ = '\n'; // that was appended
    std::uint32_t last_writer_ = own_writer;
    std::size_t written_ = 0; // of pending_
    std::string pending_;
};

// A newline ends a line, and so does a carriage return: the next text of a progress bar replaces
// the last. Both together are one end.
class LineAssembler {
  public:
    // `tag` is put before each line ("" for none).
    void set_tag(std::string tag) { tag_ = std::move(tag); }

    // Passes the whole lines of `text`, together with what was kept before, to the sink and keeps
    // the rest. A carriage return is kept until it is known whether a newline follows. Returns
    // whether what is kept begins in `text`.
    bool feed(std::string_view text, std::uint32_t rank, Sink& sink);

    // Passes on the unfinished line: at the end of the stream a newline is not invented, but
    // another rank's next output starts on a line of its own (Sink::append).
    void finish(std::uint32_t rank, Sink& sink);

    bool unfinished() const { return !partial_.empty(); }
    // Nothing but a newline can still belong to what is kept.
    bool ends_in_return() const { return partial_.ends_with('\r'); }
    bool tagged() const { return !tag_.empty(); }

  private:
    void pass_on(std::string_view text, std::uint32_t rank, Sink& sink);

    std::string tag_;
    std::string partial_;
    bool in_line_ = false;      // the last piece passed on did not end its line
    bool after_return_ = false; // it ended in a carriage return
};

} // namespace warren::launch
