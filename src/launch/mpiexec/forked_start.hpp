// ForkedStart: starts a program's processes as copies of its first one.
//
// The first process is started like any other, with a library that makes the copies when the
// program is ready to run and none of its code has run (copies/first_process.cpp). So processes are
// as if each had been executed, but for what the kernel chooses at random when it executes a
// program: all have the same addresses. It is done where a program has more processes than fit on
// the processors at once, since then every instruction before MPI_Init is paid for by all. Where
// the first process does not answer (it is no dynamic program after all, the kernel can't tell what
// is needed, it ends), the others are executed.
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

    // Whether the library may be put before this program.
    static bool fits(const ResolvedProgram& program);
    // The library's place; empty when it can't be preloaded from there.
    static std::string library();

    // Makes the socket. False, with errno, when there is none.
    bool open();
    // What the first process inherits, and the setting that tells it.
    int socket_of_first() const { return theirs_; }
    EnvironmentSetting setting() const;
    // When it has been started: the socket is its own.
    void close_theirs();

    // Whether copies can be made. Waits for the first process at the first call.
    bool ready();

    struct Started {
        std::uint32_t rank = 0;
        pid_t pid = 0;
        SpawnFailure failure; // there is no process then
    };
    // Asks for one more process. False when copies can't be made any more: then nothing was asked
    // for.
    bool start(const SpawnRequest& request);
    // Waits until at most `limit` processes that were asked for have not answered, and adds those
    // that have. False when the first process is gone, or hangs.
    bool collect(std::size_t limit, std::vector<Started>& started);
    // Adds those that have not answered, as failures.
    void give_up(std::vector<Started>& started);

    // Lets the first process go on into its program.
    void close();

    // Requests under way at once: the kernel limits descriptors that nobody has taken yet.
    static constexpr std::size_t window = 16;

  private:
    bool answer(int timeout_ms, std::vector<Started>* started);

    int ours_ = -1;
    int theirs_ = -1;
    bool ready_ = false;
    std::vector<std::uint32_t> waiting_; // ranks
};

} // namespace warren::launch
