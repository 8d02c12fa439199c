#include "analyser/recorder/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <memory>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyser/recorder/disk.hpp"
#include "analyser/recorder/image_recording.hpp"
#include "analyser/recorder/log_sum.hpp"
#include "analyser/recorder/node.hpp"
#include "analyser/recorder/perf_events.hpp"
#include "analyser/recorder/rank_environment.hpp"
#include "analyser/recorder/recording_folder.hpp"
#include "analyser/recorder/target.hpp"
#include "analyser/tracker/link.hpp"
#include "base/futex.hpp"

namespace warren::locality {

namespace {

constexpr int other_error = 16; // MPI_ERR_OTHER
constexpr int round_ms = 50;    // events wait this long at most, when they are few

Error failed(const char* what) {
    return fail(other_error, "%s: %s", what, std::strerror(errno));
}

const char* environment_variable(const char* name) {
    return std::getenv(name);
}

class Recorder {
  public:
    explicit Recorder(const RecordOptions& options) : options_(options) {}
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;
    ~Recorder();

    Error run(int& status, int& signal);

  private:
    Error prepare();
    Error prepare_settings();
    Error listen();
    Error start();
    [[noreturn]] void become_program(int wait_for, int report_to);
    Error wait_for_execution(int report_from);
    Error follow();
    void take_signals();
    void answer();
    void welcome(int line, std::uint32_t pid, const Hello& hello);
    void thread_began(const PerfEvent& event);
    void executed(const PerfEvent& event);
    void process(const PerfEvent& event);
    void process(const std::vector<PerfEvent>& events);
    void end_image(std::uint32_t pid, std::uint64_t time_ns, const std::string& how, bool alive);
    ImageRecording& image(std::uint32_t pid, std::uint64_t time_ns);
    void finish();
    void say(const std::string& text) const;
    void say(Error error) const;

    const RecordOptions& options_;
    RecordingSettings settings_;
    RankEnvironment rank_;
    std::string program_;
    PerfEvents events_;
    std::map<std::uint32_t, std::unique_ptr<ImageRecording>> images_; // by pid
    std::string socket_name_;
    int listener_ = -1;
    int signals_ = -1;
    int poll_ = -1;
    sigset_t signals_before_{};
    struct sigaction pipe_before_ {};
    struct sigaction size_before_ {};
    rlimit files_before_{};
    pid_t child_ = -1;
    int child_status_ = 0;
    bool child_ended_ = false;
    std::uint64_t touches_ = 0; // that are in files
    std::uint64_t lost_touches_ = 0;
    std::uint64_t threads_ = 0;
    std::uint64_t folders_ = 0;
    std::uint64_t lost_told_ = 0;
};

Recorder::~Recorder() {
    for (const int descriptor : {listener_, signals_, poll_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    if (signals_ >= 0) {
        sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
    }
}

void Recorder::say(const std::string& text) const {
    if (rank_.rank >= 0) {
        std::fprintf(stderr, "warren locality record: rank %d: %s\n", rank_.rank, text.c_str());
    } else {
        std::fprintf(stderr, "warren locality record: %s\n", text.c_str());
    }
}

void Recorder::say(Error error) const {
    if (ErrorRecord* record = error.take()) {
        say(record->text);
        delete record;
    }
}

Error Recorder::prepare() {
    if (options_.command.empty()) {
        return fail(other_error, "no program is given");
    }
    if (options_.beside_another) {
        program_ = options_.program;
        return prepare_settings();
    }
    if (Error error = find_program(options_.command[0], program_)) {
        return error;
    }
    if (Error error = check_program(program_)) {
        return error;
    }
    if (access(options_.tracker.c_str(), R_OK) != 0) {
        return fail(other_error, "%s, a part of Warren, can't be read: %s",
                    options_.tracker.c_str(), std::strerror(errno));
    }
    char* tracker = realpath(options_.tracker.c_str(), nullptr); // as the kernel names it
    settings_.tracker = tracker != nullptr ? tracker : "";
    std::free(tracker);
    return prepare_settings();
}

Error Recorder::prepare_settings() {
    rank_ = rank_in(environment_variable);
    settings_.threshold = options_.threshold;
    settings_.limit_bytes = options_.limit_bytes;
    settings_.calls = options_.calls;
    settings_.host = host_name();
    settings_.nodes = numbers_in("/sys/devices/system/node/has_memory");
    if (settings_.nodes.empty()) {
        settings_.nodes = {0};
    }
    if (Error error = listen()) {
        return error;
    }
    settings_.beside_another = options_.beside_another;
    if (options_.beside_another) {
        settings_.folder = options_.folder;
        settings_.reserve_bytes =
            std::min(options_.reserve_bytes, disk_free_bytes(options_.folder.c_str()) / 2);
        return {};
    }
    // The program can start. Only now a folder is left behind.
    return make_folder(options_.folder, rank_.rank, settings_.folder);
}

Error Recorder::listen() {
    unsigned char random[12];
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        return failed("getrandom");
    }
    socket_name_ = "warren-locality-";
    for (const unsigned char byte : random) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", byte);
        socket_name_ += digits;
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, socket_name_.data(), socket_name_.size());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener_ < 0 ||
        bind(listener_, reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket_name_.size())) !=
            0 ||
        ::listen(listener_, SOMAXCONN) != 0) {
        return failed("the recorder's socket");
    }
    return {};
}

// Runs in the child: waits until the events are open, then executes the program.
void Recorder::become_program(int wait_for, int report_to) {
    if (!options_.beside_another) {
        std::string preload = settings_.tracker;
        if (const char* others = std::getenv("LD_PRELOAD")) {
            preload += std::string(":") + others;
        }
        setenv("LD_PRELOAD", preload.c_str(), 1);
        setenv(link_variable, socket_name_.c_str(), 1);
    }
    std::vector<char*> words;
    for (const std::string& word : options_.command) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    char byte = 0;
    if (read(wait_for, &byte, 1) != 1) {
        _exit(127);
    }
    sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
    execvp(program_.c_str(), words.data());
    const int code = errno;
    if (write(report_to, &code, sizeof code) < 0) {
        _exit(126);
    }
    _exit(127);
}

Error Recorder::start() {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
        sigaddset(&watched, number);
    }
    sigprocmask(SIG_BLOCK, &watched, &signals_before_);
    signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignored, &pipe_before_); // who reads what is said may be gone
    sigaction(SIGXFSZ, &ignored, &size_before_); // a limit of files is told as a full disk is
    // The recorder needs three descriptors per processor and seven per process. The program keeps
    // its own limit.
    getrlimit(RLIMIT_NOFILE, &files_before_);
    const rlimit files{files_before_.rlim_max, files_before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &files);
    int go[2];
    int report[2];
    if (signals_ < 0 || pipe2(go, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0) {
        return failed("starting the program");
    }
    child_ = fork();
    if (child_ < 0) {
        return failed("fork");
    }
    if (child_ == 0) {
        sigaction(SIGPIPE, &pipe_before_, nullptr);
        sigaction(SIGXFSZ, &size_before_, nullptr);
        setrlimit(RLIMIT_NOFILE, &files_before_);
        close(go[1]);
        close(report[0]);
        become_program(go[0], report[1]);
    }
    close(go[0]);
    close(report[1]);
    PerfOptions perf;
    perf.calls = options_.calls;
    // Beside another recorder instructions lie in code that it generated.
    perf.brief = options_.beside_another;
    Error error = events_.open(child_, perf);
    if (error && !options_.beside_another) {
        const std::unique_ptr<ErrorRecord> record(error.take());
        error = fail(record->error_class,
                     "%s. Without them: --mode counts, or sample (which need DynamoRIO), or hooks",
                     record->text.c_str());
    }
    if (!error && write(go[1], "g", 1) != 1) {
        error = failed("starting the program");
    }
    close(go[1]); // without the byte it ends
    if (!error) {
        error = wait_for_execution(report[0]);
    }
    close(report[0]);
    if (error) {
        waitpid(child_, nullptr, 0);
        rmdir(settings_.folder.c_str()); // if it is empty
    }
    return error;
}

Error Recorder::wait_for_execution(int report_from) {
    int code = 0;
    ssize_t bytes = 0;
    do {
        bytes = read(report_from, &code, sizeof code);
    } while (bytes < 0 && errno == EINTR);
    if (bytes == sizeof code) {
        return fail(other_error, "%s can't be executed: %s", program_.c_str(), std::strerror(code));
    }
    return {};
}

ImageRecording& Recorder::image(std::uint32_t pid, std::uint64_t time_ns) {
    std::unique_ptr<ImageRecording>& found = images_[pid];
    if (!found) {
        found = std::make_unique<ImageRecording>(settings_, pid, 0, time_ns);
    }
    return *found;
}

void Recorder::end_image(std::uint32_t pid, std::uint64_t time_ns, const std::string& how,
                         bool alive) {
    const auto found = images_.find(pid);
    if (found == images_.end()) {
        return;
    }
    ImageRecording& of = *found->second;
    const bool is_first = pid == static_cast<std::uint32_t>(child_) && how != "exec";
    const bool wanted = is_first || of.is_worth_a_folder(how == "exec");
    if (wanted) {
        say(of.open());
    }
    const bool is_open = of.is_open();
    say(of.close(time_ns, how, alive));
    for (const Loss& loss : of.description().lost) {
        const auto is_of = [&](const TrackedLog& log) { return loss.what == log.what; };
        if (std::any_of(std::begin(tracked_logs), std::end(tracked_logs), is_of)) {
            say((loss.count == Loss::all ? "all" : std::to_string(loss.count)) + " " + loss.what +
                " of process " + std::to_string(pid) + " are lost: " + loss.why);
        }
    }
    if (is_open) {
        touches_ += of.touches() - of.lost_touches();
        lost_touches_ += of.lost_touches();
        threads_ += of.threads();
        ++folders_;
    } else if (wanted) {
        lost_touches_ += of.touches();
    }
    images_.erase(found);
}

void Recorder::thread_began(const PerfEvent& event) {
    if (event.pid != event.parent_pid) {
        end_image(event.pid, event.time_ns, "ended", false); // its number has come round
        auto made =
            std::make_unique<ImageRecording>(settings_, event.pid, event.parent_pid, event.time_ns);
        if (const auto parent = images_.find(event.parent_pid); parent != images_.end()) {
            made->inherit(*parent->second);
        }
        images_[event.pid] = std::move(made);
    }
    image(event.pid, event.time_ns).thread_began(event);
}

void Recorder::executed(const PerfEvent& event) {
    std::uint32_t parent = 0;
    if (const auto found = images_.find(event.pid); found != images_.end()) {
        parent = static_cast<std::uint32_t>(found->second->description().parent);
        end_image(event.pid, event.time_ns, "exec", false);
    } else if (event.pid == static_cast<std::uint32_t>(child_)) {
        parent = static_cast<std::uint32_t>(getpid());
    }
    images_[event.pid] =
        std::make_unique<ImageRecording>(settings_, event.pid, parent, event.time_ns);
    images_[event.pid]->thread_began(event);
    if (options_.beside_another && event.pid == static_cast<std::uint32_t>(child_)) {
        // If this process is killed, the missing end of this description tells why other
        // images have no folder.
        say(images_[event.pid]->open());
    }
}

void Recorder::process(const PerfEvent& event) {
    switch (event.kind) {
    case PerfEvent::fault:
        image(event.pid, event.time_ns).fault(event);
        break;
    case PerfEvent::mapped:
        image(event.pid, event.time_ns).mapped(event);
        break;
    case PerfEvent::time:
        if (const auto found = images_.find(event.pid); found != images_.end()) {
            found->second->thread_time(event.tid, event.cpu_ns);
        }
        break;
    case PerfEvent::began:
        thread_began(event);
        break;
    case PerfEvent::ended:
        if (const auto found = images_.find(event.pid); found != images_.end()) {
            found->second->thread_ended(event);
        }
        break;
    case PerfEvent::executed:
        executed(event);
        break;
    }
}

void Recorder::process(const std::vector<PerfEvent>& events) {
    for (const PerfEvent& event : events) {
        process(event);
    }
    std::vector<std::uint32_t> ended;
    const std::uint64_t now = monotonic_ns();
    for (auto& [pid, of] : images_) {
        std::string problem;
        if (!of->finish_round(problem)) {
            say(problem + ": what comes is lost; the program goes on");
        }
        if (of->has_ended(now) && pid != static_cast<std::uint32_t>(child_)) {
            ended.push_back(pid); // of the first its parent, this, hears how
        }
    }
    for (const std::uint32_t pid : ended) {
        end_image(pid, images_[pid]->last_end_ns(), "ended", false);
    }
    if (events_.lost() > lost_told_) {
        if (lost_told_ == 0) {
            say("the kernel's buffer was full: events were lost; the recording says how many");
        }
        lost_told_ = events_.lost();
    }
}

void Recorder::answer() {
    while (true) {
        const int line = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (line < 0) {
            return;
        }
        ucred who{};
        socklen_t length = sizeof who;
        Hello hello{};
        const timeval patience{2, 0};
        setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (getsockopt(line, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == geteuid() &&
            recv(line, &hello, sizeof hello, 0) == sizeof hello && hello.version == link_version) {
            welcome(line, static_cast<std::uint32_t>(who.pid), hello);
        }
        close(line);
    }
}

// A process connects. The kernel's events of it are taken first, as it may have executed another
// program a moment ago.
void Recorder::welcome(int line, std::uint32_t pid, const Hello& hello) {
    process(events_.collect(true));
    ImageRecording& of = image(pid, monotonic_ns());
    ProcessDescription& description = of.description();
    if (!of.is_open()) {
        description.rank = hello.rank;
        description.size = hello.size;
        description.rank_source.assign(hello.rank_source,
                                       strnlen(hello.rank_source, sizeof hello.rank_source));
        if (hello.own_malloc != 0) {
            description.missing.emplace_back(
                "the program has a malloc of its own: its heap blocks are not known");
        }
        of.set_tracked();
    }
    if (Error error = of.open()) {
        say(error);
    }
    Welcome answer{};
    answer.version = link_version;
    answer.threshold = options_.threshold;
    answer.limit_bytes = options_.limit_bytes / 2;
    answer.stack_depth = options_.calls;
    if (of.folder().size() < sizeof answer.folder) {
        std::memcpy(answer.folder, of.folder().data(), of.folder().size());
    }
    if (send(line, &answer, sizeof answer, MSG_NOSIGNAL) < 0) {
        return; // it has ended
    }
}

void Recorder::take_signals() {
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof info) == sizeof info) {
        const int number = static_cast<int>(info.ssi_signo);
        if (number == SIGCHLD) {
            int status = 0;
            siginfo_t about{};
            if (waitid(P_PID, static_cast<id_t>(child_), &about, WEXITED | WNOHANG | WNOWAIT) ==
                    0 &&
                about.si_pid == child_) {
                // Its processor time can be read until it is waited for.
                image(static_cast<std::uint32_t>(child_), monotonic_ns())
                    .sample_times(monotonic_ns());
            }
            if (waitpid(child_, &status, WNOHANG) == child_) {
                child_status_ = status;
                child_ended_ = true;
            }
        } else if (info.ssi_code != SI_KERNEL) {
            kill(child_, number); // a terminal's goes to the program as well
        }
    }
}

Error Recorder::follow() {
    poll_ = epoll_create1(EPOLL_CLOEXEC);
    for (const int descriptor : {events_.descriptor(), listener_, signals_}) {
        epoll_event interest{};
        interest.events = EPOLLIN;
        interest.data.fd = descriptor;
        if (poll_ < 0 || epoll_ctl(poll_, EPOLL_CTL_ADD, descriptor, &interest) != 0) {
            return failed("epoll");
        }
    }
    process(events_.collect(true)); // the first image, before anything can happen to this process
    while (!child_ended_) {
        epoll_event ready[4];
        const int count = epoll_wait(poll_, ready, 4, round_ms);
        if (count < 0 && errno != EINTR) {
            return failed("epoll_wait");
        }
        process(events_.collect(false));
        answer();
        take_signals();
    }
    return {};
}

std::string end_of(int status) {
    if (WIFSIGNALED(status)) {
        return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
               ")";
    }
    return "exit " + std::to_string(WEXITSTATUS(status));
}

void Recorder::finish() {
    answer();
    process(events_.collect(true));
    const std::uint64_t now = monotonic_ns();
    if (const auto found = images_.find(static_cast<std::uint32_t>(child_));
        found != images_.end()) {
        found->second->thread_time(static_cast<std::uint32_t>(child_), events_.first_thread_ns());
    }
    while (!images_.empty()) {
        const auto [pid, of] = std::pair(images_.begin()->first, images_.begin()->second.get());
        const bool is_child = pid == static_cast<std::uint32_t>(child_);
        const bool alive = !is_child && of->has_live_threads();
        if (events_.lost() > 0) {
            of->description().lost.push_back(
                {"events of all processes", events_.lost(), "the kernel's buffer was full"});
        }
        const bool has_died = !is_child && !alive && of->last_end_ns() != 0;
        end_image(pid, has_died ? of->last_end_ns() : now,
                  is_child ? end_of(child_status_)
                  : alive  ? ""
                           : "ended",
                  alive);
    }
    if (!options_.quiet && rank_.rank < 0) {
        say(std::to_string(touches_) + " first touches by " + std::to_string(threads_) +
            " threads of " + std::to_string(folders_) +
            (folders_ == 1 ? " process" : " processes") + " are in " + options_.folder +
            (lost_touches_ == 0 ? "" : "; " + std::to_string(lost_touches_) + " more are lost"));
    }
}

Error Recorder::run(int& status, int& signal) {
    if (Error error = prepare()) {
        return error;
    }
    if (Error error = start()) {
        return error;
    }
    if (!events_.sees_kernel()) {
        settings_.missing.emplace_back(
            "touches within system calls are known of read, recv and the like only: the kernel "
            "tells others where kernel.perf_event_paranoid is at most 1, or with CAP_PERFMON");
    }
    if (Error error = follow()) {
        if (!options_.beside_another) {
            return error; // the program goes on
        }
        say(error); // and is recorded by the other
        while (waitpid(child_, &child_status_, 0) < 0 && errno == EINTR) {
        }
    }
    finish();
    signal = WIFSIGNALED(child_status_) ? WTERMSIG(child_status_) : 0;
    status = WIFEXITED(child_status_) ? WEXITSTATUS(child_status_) : 128 + signal;
    return {};
}

} // namespace

Error record(const RecordOptions& options, int& status, int& signal) {
    Recorder recorder(options);
    return recorder.run(status, signal);
}

} // namespace warren::locality
