// Handlers of signals that come amid the scheduler's own doings. The points are those where it
// calls somebody with its locks held, who raises a signal there; and, from another thread, any.
#include "fibre/handlers.hpp"

#include <array>
#include <atomic>
#include <csetjmp>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fibre/test_fibres.hpp"

#ifndef __SANITIZE_THREAD__ // it keeps signals until a call that waits is over

namespace warren::fibre {
namespace {

std::function<void()>& handler() {
    static std::function<void()> only;
    return only;
}

void set_handler(std::function<void()> function, int flags = 0) {
    handler() = std::move(function);
    struct sigaction action {};
    action.sa_handler = [](int) { handler()(); };
    action.sa_flags = flags;
    EXPECT_EQ(Handlers::set(SIGUSR1, &action, nullptr), 0);
}

void raise_here() {
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
}

// Of a handler: all that a program may do there, with what others in the test don't use.
void do_everything() {
    static std::atomic<std::uint32_t> word{0};
    static int object;
    const timespec moment = {.tv_sec = 0, .tv_nsec = 20'000};
    scheduler()->give_way();
    scheduler()->wait(word, 0, &moment, nullptr);
    scheduler()->wake(word, 1);
    scheduler()->sleep_until(monotonic_ns() + 20'000);
    scheduler()->object_waits().tell(&object, 1);
    scheduler()->release(&object);
    scheduler()->at_point();
}

bool is_blocked(int number) {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    return sigismember(&mask, number) == 1;
}

TEST(HandlersTest, what_comes_amid_a_section_is_handled_once_behind_the_outermost) {
    alone([] {
        static int handled = 0;
        static int value = 0;
        struct sigaction action {};
        action.sa_flags = SA_SIGINFO;
        action.sa_sigaction = [](int, siginfo_t* about, void*) {
            ++handled;
            value = about->si_value.sival_int;
        };
        EXPECT_EQ(Handlers::set(SIGUSR1, &action, nullptr), 0);
        set_handler([] { ADD_FAILURE() << "replaced"; });
        EXPECT_EQ(Handlers::set(SIGUSR1, &action, nullptr), 0);
        static int other = 0;
        action = {};
        action.sa_handler = [](int) { ++other; };
        EXPECT_EQ(Handlers::set(SIGUSR2, &action, nullptr), 0);
        {
            const Section outer;
            {
                const Section inner;
                sigqueue(getpid(), SIGUSR1, {.sival_int = 17});
                raise(SIGUSR2);
            }
            EXPECT_EQ(handled + other, 0);
            errno = 5;
        }
        EXPECT_EQ(errno, 5);
        EXPECT_EQ(handled, 1);
        EXPECT_EQ(other, 1);
        EXPECT_EQ(value, 17);
        EXPECT_FALSE(is_blocked(SIGUSR1) || is_blocked(SIGUSR2) || is_blocked(SIGTERM));
        { const Section another; }
        raise(SIGUSR2);
        EXPECT_EQ(other, 2);
    });
}

TEST(HandlersTest, are_set_as_the_c_library_does) {
    alone([] {
        static int handled = 0;
        static bool nests = false;
        struct sigaction action {};
        struct sigaction before {};
        action.sa_handler = [](int number) {
            if (++handled == 1 && nests) {
                raise(number);
                EXPECT_EQ(handled, 2);
            }
        };
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        EXPECT_EQ(Handlers::set(SIGCHLD, &action, &before), 0);
        EXPECT_EQ(before.sa_handler, SIG_DFL);
        raise(SIGCHLD);
        raise(SIGCHLD); // which does nothing by itself
        EXPECT_EQ(handled, 1);
        EXPECT_EQ(Handlers::set(SIGCHLD, nullptr, &before), 0);
        EXPECT_EQ(before.sa_handler, SIG_DFL);
        handled = 0;
        nests = true;
        action.sa_flags = SA_NODEFER;
        EXPECT_EQ(Handlers::set(SIGCHLD, &action, &before), 0);
        raise(SIGCHLD);
        EXPECT_EQ(handled, 2);
        EXPECT_EQ(Handlers::set(SIGCHLD, nullptr, &before), 0);
        EXPECT_EQ(before.sa_handler, action.sa_handler);
        EXPECT_EQ(before.sa_flags & (SA_NODEFER | SA_SIGINFO), SA_NODEFER);
        before.sa_handler = SIG_IGN;
        EXPECT_EQ(Handlers::set(SIGCHLD, &before, &before), 0);
        EXPECT_EQ(before.sa_handler, action.sa_handler);
        EXPECT_EQ(Handlers::set(SIGKILL, &action, nullptr), -1);
        EXPECT_EQ(Handlers::set(1000, &action, nullptr), -1);
    });
}

// Also where a thread that the child doesn't have was amid that.
TEST(HandlersTest, are_set_in_children_that_are_made_while_others_set_them) {
    alone([] {
        static std::atomic<bool> ends{false};
        static std::atomic<int> handled{0};
        static constexpr auto set = [](int number) {
            struct sigaction action {};
            action.sa_handler = [](int) { ++handled; };
            return Handlers::set(number, &action, nullptr);
        };
        std::vector<std::thread> others;
        for (int number = 0; number < 2; ++number) {
            others.emplace_back([] {
                while (!ends) {
                    set(SIGUSR1);
                }
            });
        }
        for (int round = 0; round < 300; ++round) {
            const pid_t child = fork();
            if (child == 0) {
                alarm(20);
                set(SIGUSR1);
                set(SIGUSR2);
                raise(SIGUSR1);
                raise(SIGUSR2);
                _exit(handled == 2 ? 0 : 1);
            }
            int status = -1;
            EXPECT_EQ(waitpid(child, &status, 0), child);
            EXPECT_EQ(status, 0);
        }
        ends = true;
        for (std::thread& other : others) {
            other.join();
        }
    });
}

// Under the gathering's lock, by one that is parked right then: the handler is the only one who
// can release it, and there is nobody else on its worker to end the section.
TEST(HandlersTest, release_and_wake_whom_they_have_interrupted) {
    for (const bool by_bell : {false, true}) {
        alone([by_bell] {
            static bool rings = by_bell;
            static std::atomic<std::uint32_t> bell{0};
            static int event;
            static std::atomic<int> handled{0};
            set_handler([] {
                do_everything();
                ++handled;
                if (rings) {
                    ++bell;
                    scheduler()->wake(bell, 1);
                } else {
                    scheduler()->release(&event);
                }
            });
            auto fibres = std::make_unique<Fibres>(1, std::vector<int>{-1});
            fibres->add([] {
                for (int round = 0; round < 20; ++round) {
                    const auto happened = [](void*) {
                        raise_here();
                        return false;
                    };
                    scheduler()->gather(&event, happened, nullptr, bell, bell, nullptr);
                    EXPECT_EQ(handled, round + 1);
                    EXPECT_FALSE(is_blocked(SIGUSR1) || is_blocked(SIGTERM));
                    EXPECT_NE(Scheduler::current(), nullptr);
                }
            });
            fibres->run();
        });
    }
}

// Under a bucket's lock, by who sees to the timers: a worker, whoever runs there.
TEST(HandlersTest, come_behind_a_look_at_what_is_due) {
    alone([] {
        static std::atomic<bool> told{false};
        static int object;
        static std::atomic<int> raised{0};
        static std::atomic<int> handled{0};
        set_handler([] {
            do_everything();
            if (++handled == 20) {
                told = true;
                scheduler()->object_waits().tell(&object, 1);
            }
        });
        static constexpr Looks looks = {[](const void*, std::uint32_t) {
                                            // (The monitor blocks signals: it takes none.)
                                            if (here.own != nullptr || here.worker != nullptr) {
                                                ++raised;
                                                raise_here();
                                            }
                                            return false;
                                        },
                                        20'000, 20'000};
        auto fibres = std::make_unique<Fibres>(2, std::vector<int>{-1});
        fibres->add([] {
            ObjectWait wait(&object, looks);
            while (!wait.park(UINT64_MAX)) {
            }
            EXPECT_TRUE(told);
        });
        fibres->add([] {
            while (!told) {
                scheduler()->give_way();
            }
        });
        fibres->run();
        EXPECT_GE(raised, 20);
    });
}

balance::Placement place_and_raise(const balance::Matrix& matrix) {
    raise_here();
    return balance::place_none(matrix);
}

// Amid the placing of ranks.
TEST(HandlersTest, fork_and_come_to_points_behind_a_balancing) {
    alone([] {
        static std::atomic<int> handled{0};
        static std::atomic<std::uint32_t> word{0};
        set_handler([] {
            const pid_t child = fork();
            if (child == 0) {
                // A thread there: it waits and wakes by the kernel.
                const timespec moment = {.tv_sec = 0, .tv_nsec = 1'000'000};
                scheduler()->wait(word, 0, &moment, nullptr);
                scheduler()->wake(word, 1);
                do_everything();
                _exit(Scheduler::current() == nullptr && !Section::has_caller() &&
                              scheduler()->fibre(0).number == 0
                          ? 0
                          : 1);
            }
            int status = -1;
            EXPECT_EQ(waitpid(child, &status, 0), child);
            EXPECT_EQ(status, 0);
            do_everything();
            ++handled;
        });
        static const balance::Balancer balancer = {"raising", "", place_and_raise, false};
        BalancingOptions balancing;
        balancing.balancer = &balancer;
        auto fibres = std::make_unique<Fibres>(2, std::vector<int>{-1}, nullptr, balancing);
        for (int number = 0; number < 2; ++number) {
            fibres->add([] {
                for (int round = 0; round < 5; ++round) {
                    scheduler()->at_point();
                    scheduler()->give_way();
                }
            });
        }
        fibres->run();
        EXPECT_GT(handled, 0);
    });
}

// There is one worker, which the handler keeps. It comes in the second fibre, which is the next to
// end a section there.
TEST(HandlersTest, wait_for_fibres_of_the_worker_that_they_keep) {
    for (const bool yields : {false, true}) {
        alone([yields] {
            static bool gives_way = yields;
            static std::atomic<std::uint32_t> word{0};
            static std::atomic<bool> is_over{false};
            static int event;
            static std::atomic<std::uint32_t> bell{0};
            set_handler([] {
                while (word == 0) {
                    if (gives_way) {
                        scheduler()->give_way();
                    } else {
                        scheduler()->wait(word, 0, nullptr, nullptr);
                    }
                }
                is_over = true;
                scheduler()->release(&event);
            });
            static std::atomic<bool> sleeps{false};
            auto fibres = std::make_unique<Fibres>(3, std::vector<int>{-1});
            fibres->add([] {
                while (!sleeps) {
                    scheduler()->give_way();
                }
                const auto happened = [](void*) {
                    raise_here();
                    return false;
                };
                scheduler()->gather(&event, happened, nullptr, bell, 0, nullptr);
                EXPECT_TRUE(is_over);
            });
            fibres->add([] {
                while (!is_over) {
                    scheduler()->give_way();
                }
            });
            fibres->add([] {
                sleeps = true;
                scheduler()->sleep_until(monotonic_ns() + 20'000'000);
                word = 1;
                scheduler()->wake(word, 1);
            });
            fibres->run();
        });
    }
}

// After it counts as asleep, when it looks whether all fibres wait for each other: nobody else
// would ever call it.
TEST(HandlersTest, come_before_a_worker_sleeps) {
    alone([] {
        static std::atomic<std::uint32_t> word{0};
        static std::atomic<bool> shown_by_monitor{false};
        static WaitNote note;
        note.show = [](void*) {
            if (here.worker != nullptr) {
                raise_here();
            } else {
                shown_by_monitor = true; // which was quicker: nothing is shown twice
            }
        };
        set_handler([] {
            word = 1;
            scheduler()->wake(word, 1);
        });
        auto fibres = std::make_unique<Fibres>(1, std::vector<int>{-1});
        fibres->add([] { scheduler()->wait(word, 0, nullptr, &note); });
        EXPECT_EQ(fibres->made->start(), 0);
        while (fibres->done == 0 && !shown_by_monitor) {
            usleep(1000);
        }
        if (shown_by_monitor) {
            handler()();
        }
        fibres->finish();
    });
}

// Which is the kernel thread's: two handlers on it at a time would write over each other.
TEST(HandlersTest, on_an_alternate_stack_stay_with_their_worker) {
    alone([] {
        static std::atomic<int> handled{0};
        static std::atomic<bool> was_elsewhere{false};
        static constexpr std::size_t stack_size = 256 * 1024;
        set_handler(
            [] {
                std::array<std::uint32_t, 4096> own{};
                own.fill(static_cast<std::uint32_t>(++handled));
                auto* const written = reinterpret_cast<volatile std::uint32_t*>(own.data());
                const std::uint32_t before = written[0];
                stack_t stack{};
                sigaltstack(nullptr, &stack);
                was_elsewhere = was_elsewhere || (stack.ss_flags & SS_ONSTACK) != 0;
                const auto thread = syscall(SYS_gettid);
                for (int turn = 0; turn < 3; ++turn) {
                    do_everything();
                    for (std::size_t index = 0; index < own.size(); ++index) {
                        EXPECT_EQ(written[index], before);
                    }
                }
                EXPECT_EQ(syscall(SYS_gettid), thread);
            },
            SA_ONSTACK);
        auto fibres = std::make_unique<Fibres>(3, std::vector<int>{-1});
        for (int number = 0; number < 3; ++number) {
            fibres->add([] {
                stack_t stack{};
                sigaltstack(nullptr, &stack);
                if ((stack.ss_flags & SS_DISABLE) != 0) {
                    stack.ss_flags = 0;
                    stack.ss_size = stack_size;
                    stack.ss_sp = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                    sigaltstack(&stack, nullptr);
                }
                for (int round = 0; round < 5; ++round) {
                    raise_here();
                    EXPECT_NE(Scheduler::current(), nullptr);
                    scheduler()->give_way();
                }
            });
        }
        fibres->run();
        EXPECT_EQ(handled, 15);
        EXPECT_TRUE(was_elsewhere);
    });
}

// By a jump: what it has left is a fibre again. By the fibre's end: the worker's mask is as before.
TEST(HandlersTest, may_leave_for_good) {
    alone([] {
        static sigjmp_buf place;
        static bool ends = false;
        static std::atomic<int> after{0};
        set_handler([] {
            EXPECT_EQ(Scheduler::current(), nullptr);
            if (!ends) {
                siglongjmp(place, 1);
            }
            ++after;
            kernel_wake(*reinterpret_cast<std::atomic<std::uint32_t>*>(&after), 1);
            scheduler()->end();
        });
        auto fibres = std::make_unique<Fibres>(3, std::vector<int>{-1});
        fibres->add([] {
            if (sigsetjmp(place, 1) == 0) {
                raise_here();
                ADD_FAILURE() << "it has returned";
            }
            EXPECT_NE(Scheduler::current(), nullptr);
            const auto thread = syscall(SYS_gettid);
            scheduler()->sleep_until(monotonic_ns() + 1'000'000);
            EXPECT_EQ(syscall(SYS_gettid), thread);
            ends = true;
        });
        fibres->add([] {
            while (!ends) {
                scheduler()->give_way();
            }
            EXPECT_FALSE(is_blocked(SIGUSR1));
            raise_here();
        });
        fibres->add([] {
            while (after == 0) {
                scheduler()->give_way();
            }
            EXPECT_FALSE(is_blocked(SIGUSR1));
        });
        fibres->all = 2; // the second ends without a word
        fibres->run();
    });
}

// At any instruction: each signal is the only one that brings what a fibre waits for.
TEST(HandlersTest, each_of_many_wakes_whom_it_is_to_wake) {
    alone([] {
        constexpr std::uint32_t waiting = 4;
        constexpr std::uint32_t busy = 3;
        constexpr std::uint32_t signals = 3000;
        static constexpr Looks no_looks = {nullptr, 1'000'000, 1'000'000};
        static std::atomic<std::uint32_t> posts{0};
        static std::atomic<std::uint32_t> taken{0};
        static std::atomic<std::uint32_t> handled{0};
        set_handler([] {
            const std::uint32_t number = ++handled;
            if (number % 64 == 0) {
                do_everything();
            }
            ++posts;
            // By each way of waking in turn.
            if (number % 2 == 0) {
                scheduler()->object_waits().tell(&posts, UINT32_MAX);
                scheduler()->wake(posts, INT32_MAX);
            } else {
                scheduler()->wake(posts, INT32_MAX);
                scheduler()->object_waits().tell(&posts, UINT32_MAX);
            }
        });
        const auto take = [] {
            for (std::uint32_t seen = posts; seen != 0;) {
                if (posts.compare_exchange_weak(seen, seen - 1)) {
                    ++taken;
                    return;
                }
            }
        };
        auto fibres = std::make_unique<Fibres>(waiting + busy, std::vector<int>{-1, -1});
        for (std::uint32_t number = 0; number < waiting; ++number) {
            fibres->add([number, take] {
                while (taken < signals) {
                    if (number % 2 == 0) {
                        scheduler()->wait(posts, 0, nullptr, nullptr);
                    } else {
                        ObjectWait wait(&posts, no_looks);
                        std::atomic_thread_fence(std::memory_order_seq_cst);
                        if (posts == 0 && taken < signals) {
                            wait.park(UINT64_MAX);
                        }
                    }
                    take();
                }
                ++posts; // the others are to end, too
                scheduler()->object_waits().tell(&posts, UINT32_MAX);
                scheduler()->wake(posts, INT32_MAX);
            });
        }
        static std::atomic<std::uint32_t> bell{0};
        static int event;
        for (std::uint32_t number = 0; number < busy; ++number) {
            fibres->add([] {
                static std::atomic<std::uint32_t> turns{0};
                while (taken < signals) {
                    switch (++turns / 32 % 4) {
                    case 0:
                        scheduler()->give_way();
                        break;
                    case 1:
                        scheduler()->sleep_until(monotonic_ns() + 20'000);
                        break;
                    case 2:
                        scheduler()->release(&event);
                        scheduler()->wake(bell, 1);
                        break;
                    default: {
                        const ObjectWait wait(&event, no_looks);
                    }
                    }
                }
            });
        }
        std::thread sender([&] {
            for (std::uint32_t sent = 0; sent < signals; ++sent) {
                const Worker& worker = fibres->made->worker(sent % 2);
                while (worker.thread == 0) {
                    std::this_thread::yield();
                }
                syscall(SYS_tgkill, getpid(), worker.thread.load(), SIGUSR1);
                while (handled != sent + 1 || taken < sent + 1) {
                    std::this_thread::yield();
                }
            }
        });
        fibres->run();
        sender.join();
        EXPECT_EQ(handled, signals);
    });
}

} // namespace
} // namespace warren::fibre

#endif
