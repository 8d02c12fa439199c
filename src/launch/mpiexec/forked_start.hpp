// ForkedStart: starts a program's further processes by forking its first one.
//
// The first process starts like any other, with a preloaded library. When the program is ready to
// run and none of its code has run, the library forks (preload/forked_start/first_process.cpp). The
// processes are as if each had been executed, except that all have the same addresses, which the
// kernel otherwise chooses at random. Warren does so where a program has more than two processes
// per processor: then the instructions before MPI_Init add up. The other processes are executed if
// the first does not answer: it is no dynamic program after all, the kernel lacks a call, or it
// ends.
//
// Thread rule: mpiexec's only thread.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "launch/mpiexec/program.hpp"
#include "launch/mpiexec/spawn.hpp"

namespace warren::launch {

class ForkedStart {
  public:
    ForkedStart() = default;
    ForkedStart(const ForkedStart&) = delete;
    ForkedStart& operator=(const ForkedStart&) = delete;
    ~ForkedStart() { close(); }

    // Whether the library may be preloaded into this program.
    static bool fits(const ResolvedProgram& program);
    // The library's path; empty when it can't be preloaded from there.
    static std::string library();

    // Makes the socket. False, with errno, when there is none.
    bool open();
    // The descriptor that the first process inherits, and the variable that names it.
    int socket_of_first() const { return theirs_; }
    EnvironmentSetting setting() const;
    // Closes the first process's end of the socket here, once that process has it.
    void close_theirs();

    // Whether the first process can be forked. Waits for the first process at the first call.
    bool ready();

    struct Started {
        std::uint32_t rank = 0;
        pid_t pid = 0;
        SpawnFailure failure; // there is no process then
    };
    // Requests one more process. False: the first process can't be forked any more, and nothing was
    // requested.
    bool start(const SpawnRequest& request);
    // Waits until at most `limit` requests have no answer, and adds the processes of the answered
    // ones. False when the first process is gone, or hangs.
    bool collect(std::size_t limit, std::vector<Started>& started);
    // Adds the requests without an answer, as failures.
    void give_up(std::vector<Started>& started);

    // Lets the first process go on into its program.
    void close();

  private:
    bool answer(int timeout_ms, std::vector<Started>* started);

    int ours_ = -1;
    int theirs_ = -1;
    bool ready_ = false;
    std::vector<std::uint32_t> waiting_; // ranks
};

} // namespace warren::launch
