// Programs as images: what they print and how they end is what it is as processes, in many copies
// at once, each in a thread of its own.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "image/test_image.hpp"

namespace warren::image {

namespace {

struct ProgramRun {
    int status = -1;
    int signal = 0;
    std::string output;
    std::string error;
    std::string refusal;
};

// A file without a name.
class Sink {
  public:
    Sink() : file_(std::tmpfile()) {}
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;
    ~Sink() { std::fclose(file_); }
    int descriptor() const { return fileno(file_); }
    std::string text() const {
        std::string all(static_cast<std::size_t>(lseek(descriptor(), 0, SEEK_END)), 0);
        EXPECT_EQ(pread(descriptor(), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
        return all;
    }

  private:
    std::FILE* file_;
};

class Arguments {
  public:
    explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {
        for (std::string& word : words_) {
            pointers_.push_back(word.data());
        }
        pointers_.push_back(nullptr);
    }
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;
    int count() const { return static_cast<int>(words_.size()); }
    char** list() { return pointers_.data(); }

  private:
    std::vector<std::string> words_;
    std::vector<char*> pointers_;
};

const std::vector<std::string> test_environment{"WARREN_TEST_GIVEN=given", "PATH=/usr/bin:/bin",
                                                "LC_ALL=C"};

ProgramRun run_process(const std::string& program, const std::vector<std::string>& words) {
    Arguments arguments(words);
    Arguments environment(test_environment);
    const Sink output;
    const Sink error;
    const pid_t child = fork();
    if (child == 0) {
        dup2(output.descriptor(), STDOUT_FILENO);
        dup2(error.descriptor(), STDERR_FILENO);
        execve(program.c_str(), arguments.list(), environment.list());
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
            output.text(), error.text(), ""};
}

ProgramRun run_image(const std::string& program, const std::vector<std::string>& words,
                     unsigned flags = 0) {
    Arguments arguments(words);
    Arguments environment(test_environment);
    const Sink output;
    const Sink error;
    warren_image_options options{};
    options.bytes = sizeof options;
    options.input = -1;
    options.output = output.descriptor();
    options.error = error.descriptor();
    options.flags = flags;
    TestImage image(&options);
    ProgramRun run;
    if (warren_image_load_program(image.get(), program.c_str()) != WARREN_IMAGE_SUCCESS) {
        run.refusal = warren_image_error();
        return run;
    }
    warren_image_end end{-1, -1};
    EXPECT_EQ(warren_image_run(image.get(), arguments.count(), arguments.list(), environment.list(),
                               &end),
              WARREN_IMAGE_SUCCESS)
        << warren_image_error();
    image.destroy();
    return {end.status, end.signal, output.text(), error.text(), ""};
}

void expect_equal(const ProgramRun& image, const ProgramRun& process) {
    EXPECT_EQ(image.refusal, "");
    EXPECT_EQ(image.status, process.status);
    EXPECT_EQ(image.signal, process.signal);
    EXPECT_EQ(image.output, process.output);
    EXPECT_EQ(image.error, process.error);
}

std::vector<std::string> words_for(const std::string& program, int number) {
    const std::string text = std::to_string(number);
    if (program.find("_c_") == std::string::npos) {
        return {program, text};
    }
    switch (number % 4) {
    case 0:
        return {program, "first", "-n", text, "second", "-v", "third"};
    case 1:
        return {program, "-vv", "--number=" + text, "--lev=high", "-xrest", "--", "-v"};
    case 2:
        return {program, "-n", text, "--unknown", "-q", "--verbose=no", "operand"};
    default:
        return {program, "--level", "here", "-vn" + text, "-", "-x", "--number"};
    }
}

class Program : public testing::TestWithParam<const char*> {};

TEST_P(Program, does_as_an_image_what_it_does_as_a_process) {
    const std::string program = fixture(std::string("everything_") + GetParam());
    for (int number = 0; number < 8; ++number) {
        const std::vector<std::string> words = words_for(program, number);
        const ProgramRun process = run_process(program, words);
        EXPECT_GT(process.output.size(), 50U);
        std::thread([&] { expect_equal(run_image(program, words), process); }).join();
    }
}

TEST_P(Program, runs_in_many_copies_at_once) {
    constexpr int copies = 16;
    const std::string program = fixture(std::string("everything_") + GetParam());
    std::vector<std::thread> threads;
    std::vector<ProgramRun> runs(copies);
    for (int number = 0; number < copies; ++number) {
        threads.emplace_back([&, number] {
            runs[static_cast<std::size_t>(number)] = run_image(program, words_for(program, number));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (int number = 0; number < copies; ++number) {
        expect_equal(runs[static_cast<std::size_t>(number)],
                     run_process(program, words_for(program, number)));
    }
}

INSTANTIATE_TEST_SUITE_P(Builds, Program, testing::Values("c_O0", "c_O3", "cpp_O0", "cpp_O3"),
                         [](const auto& build) { return std::string(build.param); });

class Ending : public testing::TestWithParam<const char*> {};

TEST_P(Ending, is_that_of_a_process) {
    const std::string program = fixture("endings");
    const std::vector<std::string> words{program, GetParam()};
    const LeaksAllowed killed;
    expect_equal(run_image(program, words), run_process(program, words));
}

INSTANTIATE_TEST_SUITE_P(Ways, Ending,
                         testing::Values("return", "exit", "_exit", "quick_exit", "abort",
                                         "uncaught", "assert", "errx", "exit_in_exit", "fork",
                                         "system", "popen", "large"),
                         [](const auto& way) { return std::string(way.param); });

// As a process and as an image, with these arguments.
void expect_same(const std::string& name, const std::vector<std::string>& arguments) {
    std::vector<std::string> words{fixture(name)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const ProgramRun process = run_process(words[0], words);
    ASSERT_FALSE(process.output.empty());
    std::thread([&] { expect_equal(run_image(words[0], words), process); }).join();
}

TEST(Programs, load_libraries_while_they_run) {
    expect_same("loading", {fixture("libcounter_O3.so")});
    expect_same("loading", {"/nowhere/libcounter.so"});
}

TEST(Programs, have_threads_of_all_makes) {
    expect_same("threads", {});
    expect_same("threads", {"exit_thread"});
}

TEST(Programs, have_a_locale_of_their_own) {
    expect_same("locale", {"C.UTF-8", "C", "", "nowhere", "POSIX", "C.UTF-8"});
    expect_same("locale", {});
}

#if !defined(__clang__)
// OpenMP's library never frees what it allocates when it is constructed.
TEST(Programs, use_openmp) {
    const LeaksAllowed leaks;
    const std::string program = fixture("openmp");
    for (const char* threads : {"1", "2", "5"}) {
        const std::vector<std::string> words{program, threads};
        expect_equal(run_image(program, words), run_process(program, words));
    }
}

TEST(Programs, use_openmp_in_many_copies) {
    const std::string program = fixture("openmp");
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            const LeaksAllowed leaks;
            const int wanted = i % 4 + 1;
            EXPECT_EQ(run_image(program, {program, std::to_string(wanted)}).status, wanted);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}
#endif

TEST(Programs, that_cannot_be_images_are_refused_with_the_remedy) {
    EXPECT_NE(run_image(fixture("fixed_address"), {"x"}).refusal.find("-fPIE"), std::string::npos);
    EXPECT_NE(run_image(fixture("libcounter_O0.so"), {"x"}).refusal.find("is a library"),
              std::string::npos);
}

TEST(Programs, have_descriptors_and_a_directory_of_their_own_if_the_host_wants) {
    const std::string program = fixture("endings");
    for (const char* how : {"exec", "directory", "popen", "fork"}) {
        const std::vector<std::string> words{program, how};
        const ProgramRun process = run_process(program, words);
        ASSERT_FALSE(process.output.empty());
        std::thread([&] {
            expect_equal(run_image(program, words,
                                   WARREN_IMAGE_OWN_DESCRIPTORS | WARREN_IMAGE_OWN_DIRECTORY),
                         process);
        }).join();
    }
    char here[1000] = "";
    ASSERT_NE(getcwd(here, sizeof here), nullptr);
    EXPECT_STRNE(here, "/tmp"); // where the program went
}

TEST(Programs, that_would_replace_the_process_are_told_so) {
    const ProgramRun run = run_image(fixture("endings"), {"endings", "own_exec"});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.output, "refused\natexit\nobject gone\n");
    EXPECT_EQ(run.error, "endings: exec of /bin/true is refused: it would end all programs of this "
                         "process; fork first\n");
}

// Ends by exit in another thread than its first.
TEST(Programs, that_end_in_another_thread_tell_the_host) {
    struct Told {
        std::atomic<int> status{-1};
    };
    static Told told;
    warren_image_options options{};
    options.bytes = sizeof options;
    options.output = STDOUT_FILENO;
    options.error = STDERR_FILENO;
    options.input = -1;
    options.ended = [](void* context, const warren_image_end* end) {
        static_cast<Told*>(context)->status = end->status;
    };
    options.context = &told;
    static warren_image* image = nullptr;
    static const int ready = warren_image_host();
    ASSERT_EQ(ready, WARREN_IMAGE_SUCCESS);
    std::thread([options] {
        const LeaksAllowed stays;
        ASSERT_EQ(warren_image_create(&options, &image), WARREN_IMAGE_SUCCESS);
        ASSERT_EQ(warren_image_enter(image), WARREN_IMAGE_SUCCESS);
        ASSERT_EQ(warren_image_load_program(image, fixture("threads").c_str()),
                  WARREN_IMAGE_SUCCESS);
        static Arguments arguments({"threads", "exit_elsewhere"});
        static Arguments environment({});
        warren_image_end end{};
        warren_image_run(image, arguments.count(), arguments.list(), environment.list(), &end);
        FAIL() << "the program's first thread came back";
    }).detach();
    for (int waited_ms = 0; told.status < 0 && waited_ms < 20000; ++waited_ms) {
        usleep(1000);
    }
    EXPECT_EQ(told.status, 21);
    EXPECT_EQ(warren_image_destroy(image), WARREN_IMAGE_ERR_BUSY); // both its threads are there
    EXPECT_STREQ(warren_image_error(), "2 threads of the image still run");
}

TEST(Programs, run_once_per_image) {
    warren_image_options options{};
    options.bytes = sizeof options;
    const Sink output;
    options.input = -1;
    options.output = options.error = output.descriptor();
    TestImage image(&options);
    Arguments arguments({"plain"});
    Arguments environment({});
    warren_image_end end{};
    EXPECT_EQ(warren_image_run(image.get(), 1, arguments.list(), environment.list(), &end),
              WARREN_IMAGE_ERR_USE);
    EXPECT_STREQ(warren_image_error(), "there is no program in the image");
    ASSERT_EQ(warren_image_load_program(image.get(), fixture("plain").c_str()),
              WARREN_IMAGE_SUCCESS);
    EXPECT_EQ(warren_image_load_program(image.get(), fixture("plain").c_str()),
              WARREN_IMAGE_ERR_USE);
    ASSERT_EQ(warren_image_run(image.get(), 1, arguments.list(), environment.list(), &end),
              WARREN_IMAGE_SUCCESS);
    EXPECT_EQ(warren_image_run(image.get(), 1, arguments.list(), environment.list(), &end),
              WARREN_IMAGE_ERR_USE);
    EXPECT_EQ(output.text(), "plain 42\n");
}

} // namespace

} // namespace warren::image
