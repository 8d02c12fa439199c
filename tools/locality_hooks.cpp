#include "locality_hooks.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/elf_file.hpp"
#include "launch/mpiexec/own_place.hpp"

namespace warren::tools {
const char* const flags_usage =
    "usage: warren locality flags [--clang] [--compile | --link]\n"
    "\n"
    "Prints what a compiler is to be told so that a program counts its accesses to memory itself,\n"
    "for warren locality record --mode hooks. All flags by default, which do for compiling and "
    "for\n"
    "linking, also in one step; --compile and --link print the part that one of the steps needs.\n"
    "\n"
    "    mpicc -O2 -g $(warren locality flags) solver.c -o solver\n"
    "    cmake -DCMAKE_CXX_FLAGS=\"-g $(warren locality flags)\" …   # and _C_, _Fortran_\n"
    "\n"
    "They are gcc's, g++'s and gfortran's, or with --clang those of clang. What has been\n"
    "compiled with them takes several times as long even when it isn't recorded: loops lose their\n"
    "vectors with gcc, where a stencil has taken 6 times and a matrix product 40 times as long, "
    "and\n"
    "3 to 22 times with clang. Keep such a build beside the usual one.\n";

namespace {

constexpr int status_usage = 2;
constexpr int status_failed = 125;

std::string hooks_folder() {
    char* const found =
        realpath((launch::own_folder() + launch::library_folder + "warren").c_str(), nullptr);
    std::string folder = found != nullptr ? found : "";
    std::free(found);
    return folder;
}

int failed(const std::string& text) {
    std::fprintf(stderr, "warren locality: %s\n", text.c_str());
    return status_failed;
}

enum class Needs { hooks, other, sanitizer };

// The library that the program itself needs: the hooks, a sanitizer, or neither.
Needs needs_of(const std::string& program) {
    std::shared_ptr<const image::ElfFile> file;
    if (Error error = image::ElfFile::open(program, file)) {
        delete error.take(); // a script, or linked statically: what it starts may be recorded
        return Needs::other;
    }
    Needs found = Needs::other;
    for (const std::string name : file->dynamic().needed) {
        if (name.rfind("libwarren-hooks.", 0) == 0) {
            return Needs::hooks;
        }
        if (name.rfind("libtsan.", 0) == 0) {
            found = Needs::sanitizer;
        }
    }
    return found;
}

bool is_empty(const std::string& folder) {
    DIR* const listing = opendir(folder.c_str());
    bool empty = true;
    while (const dirent* const entry = listing != nullptr ? readdir(listing) : nullptr) {
        empty = empty && entry->d_name[0] == '.';
    }
    if (listing != nullptr) {
        closedir(listing);
    }
    return empty;
}

volatile pid_t child = 0;

void hand_on(int number) {
    if (child > 0) {
        kill(child, number);
    }
}

} // namespace

int locality_flags(const std::vector<std::string>& words) {
    bool clang = false;
    bool compile = true;
    bool link = true;
    for (std::size_t at = 1; at < words.size(); ++at) {
        if (words[at] == "--clang") {
            clang = true;
        } else if (words[at] == "--compile") {
            link = false;
        } else if (words[at] == "--link") {
            compile = false;
        } else {
            const bool help = words[at] == "--help";
            std::fputs(flags_usage, help ? stdout : stderr);
            return help ? 0 : status_usage;
        }
    }
    if (!compile && !link) {
        std::fputs(flags_usage, stderr);
        return status_usage;
    }
    const std::string folder = hooks_folder();
    if (access((folder + "/libwarren-hooks.so.0").c_str(), R_OK) != 0) {
        return failed("there is no " + folder + "/libwarren-hooks.so.0: " + std::strerror(errno));
    }
    if (folder.find_first_of(" \t'\"\\,") != std::string::npos) {
        return failed(folder +
                      ": compilers can't be told of a folder with a blank, a comma or a quote");
    }
    std::string text = "-fsanitize=thread";
    if (clang) {
        // By default no call is inserted for wider vectors and for reads before a write to the
        // place.
        text += compile ? " -mprefer-vector-width=128 -mllvm -tsan-instrument-func-entry-exit=0"
                          " -mllvm -tsan-instrument-read-before-write=1"
                        : "";
        text += link ? " -fno-sanitize-link-runtime" : "";
    } else if (compile) {
        // Copies and fills become calls, which can be counted.
        text += " --param=tsan-instrument-func-entry-exit=0 -mmemcpy-strategy=libcall:-1:noalign"
                " -mmemset-strategy=libcall:-1:noalign";
    }
    if (link) {
        text += " -L" + folder + "/hooks " + (clang ? "-ltsan " : "") + "-Wl,-rpath," + folder;
        for (const char* const name : {"memcpy", "memmove", "memset"}) {
            text += std::string(",--wrap=") + name + ",--wrap=__" + name + "_chk";
        }
    }
    std::puts(text.c_str());
    return 0;
}

int record_hooks(const locality::counts::Settings& settings, const std::string& program,
                 std::vector<std::string>& command) {
    const std::string tracker =
        launch::own_folder() + launch::library_folder + "warren/libwarren-tracker.so";
    if (access(tracker.c_str(), R_OK) != 0) {
        return failed(tracker + ": " + std::strerror(errno));
    }
    const Needs needs = needs_of(program);
    if (needs == Needs::sanitizer) {
        return failed(program +
                      " is linked with the compiler's own library of -fsanitize=thread; link "
                      "it with what `warren locality flags` prints");
    }
    locality::counts::Settings written = settings;
    written.mode = "counts"; // which is what is recorded
    // As in mode counts, so that addresses in recordings can be compared and counters don't clash.
    personality(ADDR_NO_RANDOMIZE);
    // The library is preloaded even if only code that is loaded later needs it, as in a process of
    // thread ranks.
    std::string preload = tracker + ":" + hooks_folder() + "/libwarren-hooks.so.0";
    if (const char* const others = std::getenv("LD_PRELOAD")) {
        preload += std::string(":") + others;
    }
    setenv("LD_PRELOAD", preload.c_str(), 1);
    setenv("WARREN_LOCALITY_HOOKS", locality::counts::write_settings(written).c_str(), 1);
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string& word : command) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    if (needs == Needs::hooks) {
        execv(program.c_str(), arguments.data());
        return failed(program + " can't be started: " + std::strerror(errno));
    }
    // A launcher or a script may start programs that count. Whether it has is known at the end.
    child = fork();
    if (child == 0) {
        execv(program.c_str(), arguments.data());
        _exit(failed(program + " can't be started: " + std::strerror(errno)));
    }
    if (child < 0) {
        return failed(std::string("fork: ") + std::strerror(errno));
    }
    for (const int number : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
        std::signal(number, hand_on);
    }
    std::signal(SIGINT, SIG_IGN); // the terminal's goes to the program as well
    std::signal(SIGQUIT, SIG_IGN);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (is_empty(settings.folder)) {
        rmdir(settings.folder.c_str());
        const int result = failed("nothing was recorded: " + program +
                                  " has started no program that is compiled and linked with what "
                                  "`warren locality flags` prints");
        return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : result;
    }
    if (WIFSIGNALED(status)) {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_CORE, &none);
        std::signal(WTERMSIG(status), SIG_DFL);
        std::raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}

} // namespace warren::tools
