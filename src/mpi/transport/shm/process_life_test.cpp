#include "mpi/transport/shm/process_life.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace warren::transport {
namespace {

// A child that runs body() and says so by a byte: what the test then finds has happened.
template <typename Body>
pid_t make(Body body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        static int end;
        end = ends[1];
        body([] { (void)!write(end, "", 1); });
        _exit(0);
    }
    close(ends[1]);
    char byte;
    EXPECT_GE(read(ends[0], &byte, 1), 0); // or its end
    close(ends[0]);
    return child;
}

using Say = void (*)();

void collect(pid_t child) {
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

// The state that the system shows of it, and nothing else, changes by itself.
bool first_thread_has_ended(pid_t child) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", child, child);
    char text[512] = {};
    if (FILE* file = std::fopen(path, "r")) {
        (void)!std::fread(text, 1, sizeof text - 1, file);
        std::fclose(file);
    }
    const char* name_end = std::strrchr(text, ')');
    return name_end != nullptr && name_end[2] == 'Z';
}

TEST(process_life, who_runs_has_not_ended) {
    EXPECT_FALSE(has_ended(getpid(), process_clock_ns()));
    const pid_t child = make([](Say say) {
        say();
        pause();
    });
    EXPECT_FALSE(has_ended(child, process_clock_ns()));
    collect(child);
}

TEST(process_life, a_process_lives_as_long_as_any_of_its_threads) {
    const pid_t child = make([](Say say) {
        static Say said = say;
        pthread_t thread;
        pthread_create(
            &thread, nullptr,
            [](void*) -> void* {
                said();
                pause();
                return nullptr;
            },
            nullptr);
        syscall(SYS_exit, 0);
    });
    while (!first_thread_has_ended(child)) {
        usleep(1000);
    }
    EXPECT_FALSE(has_ended(child, process_clock_ns()));
    collect(child);
}

TEST(process_life, who_has_ended_has_before_and_after_it_is_collected) {
    const pid_t child = make([](Say) {});
    siginfo_t about;
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child), &about, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(has_ended(child, process_clock_ns()));
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_TRUE(has_ended(child, process_clock_ns()));
}

TEST(process_life, who_began_later_is_another_with_the_same_number) {
    const std::uint64_t before = process_clock_ns();
    usleep(50'000); // several of the ticks by which the system says when a process began
    const pid_t child = make([](Say say) {
        say();
        pause();
    });
    EXPECT_TRUE(has_ended(child, before));
    EXPECT_FALSE(has_ended(child, process_clock_ns()));
    collect(child);
}

} // namespace
} // namespace warren::transport
