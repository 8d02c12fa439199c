#include "analyser/recorder/image_recording.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "base/page.hpp"

namespace warren::locality {

namespace {

constexpr int other_error = 16; // MPI_ERR_OTHER
// Touches that may wait in memory for a folder: more than a child needs to execute another program.
constexpr std::uint64_t waiting_touches = 4096;
// Limit of that wait beside another recorder, whose files exist from the beginning: waiting touches
// are lost when this process is killed.
constexpr std::uint64_t longest_wait_ns = 1'000'000'000;
// A forked process that does nothing touches about so many pages of its parent's memory.
constexpr std::uint64_t few_touches = 64;
// A thread's processor time arrives after its end, processor by processor.
constexpr std::uint64_t late_time_ns = 100'000'000;
constexpr std::size_t longest_instruction = 15;
constexpr std::size_t most_instructions = 100'000; // whose accesses are known at a time
// Intervals between samples of the threads' processor time. With thousands of threads a sample
// takes long.
constexpr std::uint64_t sample_ns = 50'000'000;
constexpr std::uint64_t sample_per_thread_ns = 1'000'000;

std::uint64_t page_of(std::uint64_t address) {
    return address & ~(page_bytes - 1);
}

bool is_c_library(const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return name.rfind("libc.so", 0) == 0 || name.rfind("libc-2.", 0) == 0;
}

std::string link_target(const std::string& path) {
    char text[4096];
    const ssize_t bytes = readlink(path.c_str(), text, sizeof text);
    return bytes > 0 ? std::string(text, static_cast<std::size_t>(bytes)) : "";
}

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf(); // a thread may end meanwhile: what is read with iterators throws then
    return text.str();
}

std::int64_t time_of_day_ns(std::uint64_t monotonic) {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    const std::int64_t now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    return now - static_cast<std::int64_t>(monotonic_ns() - monotonic);
}

} // namespace

std::size_t ImageRecording::PlaceHash::operator()(const PlaceKey& key) const {
    std::uint64_t value =
        (key.address ^ std::uint64_t{key.caller} << 40 ^ key.place) * 0x9E3779B97F4A7C15U;
    return value ^ value >> 32;
}

ImageRecording::ImageRecording(const RecordingSettings& settings, std::uint32_t pid,
                               std::uint32_t parent, std::uint64_t start_ns)
    : settings_(settings), pid_(pid) {
    // The other half is the tracker's, if that writes here.
    allowance_.bytes = settings.limit_bytes / (settings.beside_another ? 1 : 2);
    description_.mode = "first-touch";
    description_.granularity = description_.page_size = page_bytes;
    description_.pid = pid;
    description_.parent = parent;
    description_.host = settings.host;
    description_.threshold = settings.threshold;
    description_.limit_bytes = settings.limit_bytes;
    description_.nodes = settings.nodes;
    description_.missing = settings.missing;
    description_.start_ns = start_ns;
    description_.start_unix_ns = time_of_day_ns(start_ns);
}

void ImageRecording::inherit(const ImageRecording& parent) {
    description_.rank = parent.description_.rank;
    description_.size = parent.description_.size;
    description_.rank_source = parent.description_.rank_source;
    description_.command = parent.description_.command;
    description_.executable = parent.description_.executable;
    for (const auto& [begin, module] : parent.loaded_) {
        PerfEvent event;
        event.address = begin;
        event.bytes = module.end - begin;
        event.file_offset = module.file_offset;
        event.path = module.path.c_str();
        event.time_ns = description_.start_ns;
        mapped(event);
    }
}

ImageRecording::Thread& ImageRecording::thread(std::uint32_t tid, std::uint64_t time_ns) {
    const auto found = live_.find(tid);
    if (found != live_.end()) {
        return found->second;
    }
    const auto gone = finished_.find(tid); // an event that was late
    if (gone != finished_.end()) {
        return gone->second;
    }
    Thread& made = live_[tid];
    made.number = thread_count_++;
    ++live_threads_;
    write_thread(ThreadRecord::began, tid, made, time_ns);
    return made;
}

void ImageRecording::write_thread(ThreadRecord::Event event, std::uint32_t tid, const Thread& of,
                                  std::uint64_t time_ns) {
    const std::uint64_t cpu_ns = of.sampled_ns != 0 ? of.sampled_ns : of.cpu_ns;
    ThreadRecord record{event, of.number, tid, of.parent, time_ns, cpu_ns, 0, ""};
    if (event == ThreadRecord::ended) {
        threads_.append(record);
        return;
    }
    const std::string name =
        contents("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(tid) + "/comm");
    const std::size_t length = std::min(name.find('\n'), sizeof record.name - 1);
    std::memcpy(record.name, name.data(), std::min(length, name.size()));
    threads_.append(record);
}

void ImageRecording::thread_began(const PerfEvent& event) {
    const auto gone = finished_.find(event.tid); // its number has come round
    if (gone != finished_.end()) {
        write_thread(ThreadRecord::ended, event.tid, gone->second, gone->second.end_ns);
        finished_.erase(gone);
    }
    if (live_.find(event.tid) != live_.end()) {
        return;
    }
    const auto parent = live_.find(event.parent_tid);
    Thread made;
    made.number = thread_count_++;
    made.parent =
        parent != live_.end() && event.parent_pid == pid_ ? parent->second.number : no_thread;
    ++live_threads_;
    live_[event.tid] = made;
    write_thread(ThreadRecord::began, event.tid, made, event.time_ns);
}

void ImageRecording::thread_ended(const PerfEvent& event) {
    const auto found = live_.find(event.tid);
    if (found == live_.end()) {
        return;
    }
    found->second.end_ns = last_end_ns_ = event.time_ns;
    finished_[event.tid] = found->second;
    live_.erase(found);
    --live_threads_;
}

void ImageRecording::thread_time(std::uint32_t tid, std::uint64_t cpu_ns) {
    for (auto* threads : {&finished_, &live_}) {
        const auto found = threads->find(tid);
        if (found != threads->end()) {
            found->second.cpu_ns += cpu_ns;
            return;
        }
    }
}

void ImageRecording::sample_times(std::uint64_t now_ns) {
    const std::string tasks = "/proc/" + std::to_string(pid_) + "/task/";
    for (auto& [tid, running] : live_) {
        const std::string text = contents(tasks + std::to_string(tid) + "/schedstat");
        if (!text.empty()) {
            running.sampled_ns = std::strtoull(text.c_str(), nullptr, 10);
        }
    }
    next_sample_ns_ = now_ns + std::max(sample_ns, live_.size() * sample_per_thread_ns);
}

void ImageRecording::mapped(const PerfEvent& event) {
    const std::uint64_t end = event.address + event.bytes;
    if (event.bytes == 0 || end < event.address) {
        return;
    }
    // A new mapping replaces older ones at its addresses.
    auto old = loaded_.upper_bound(event.address);
    if (old != loaded_.begin() && std::prev(old)->second.end > event.address) {
        --old;
    }
    while (old != loaded_.end() && old->first < end) {
        ModuleRecord record{};
        record.event = ModuleRecord::unloaded;
        record.time_ns = event.time_ns;
        record.begin = old->first;
        record.end = old->second.end;
        record.path_offset = old->second.path_offset;
        record.path_bytes = old->second.path_bytes;
        modules_.append(record);
        old = loaded_.erase(old);
        accesses_.clear();
    }
    Module module;
    module.end = end;
    module.file_offset = event.file_offset;
    module.path = event.path;
    module.is_c_library = is_c_library(module.path);
    module.path_offset = strings_bytes_;
    module.path_bytes = static_cast<std::uint32_t>(module.path.size());
    strings_bytes_ += module.path.size();
    if (strings_.is_open()) {
        strings_.append(module.path.data(), module.path.size());
        strings_.flush(); // few, and on the disk before touches fill it
    } else {
        waiting_strings_ += module.path;
    }
    ModuleRecord record{};
    record.event = ModuleRecord::loaded;
    record.path_bytes = module.path_bytes;
    record.time_ns = event.time_ns;
    record.begin = event.address;
    record.end = end;
    record.file_offset = event.file_offset;
    record.path_offset = module.path_offset;
    record.build_id_bytes = event.build_id_bytes;
    std::memcpy(record.build_id, event.build_id, sizeof record.build_id);
    modules_.append(record);
    if (description_.executable.empty() && module.path.front() == '/') {
        description_.executable = module.path; // the kernel maps the program first
    }
    loaded_[event.address] = std::move(module);
}

ImageRecording::Module* ImageRecording::module_at(std::uint64_t address) {
    auto after = loaded_.upper_bound(address);
    if (after == loaded_.begin()) {
        return nullptr;
    }
    --after;
    return address < after->second.end ? &after->second : nullptr;
}

Access ImageRecording::access_at(std::uint64_t address) {
    const auto known = accesses_.find(address);
    if (known != accesses_.end()) {
        return known->second;
    }
    Access access = Access::unknown;
    if (settings_.beside_another) {
        std::uint8_t code[longest_instruction];
        const iovec here{code, sizeof code};
        const iovec there{reinterpret_cast<void*>(address), sizeof code};
        const ssize_t bytes = process_vm_readv(static_cast<pid_t>(pid_), &here, 1, &there, 1, 0);
        access = bytes > 0 ? access_of(code, static_cast<std::size_t>(bytes)) : access;
        if (accesses_.size() > most_instructions) { // such code comes and goes
            accesses_.clear();
        }
        accesses_.emplace(address, access);
        return access;
    }
    auto after = loaded_.upper_bound(address);
    if (after != loaded_.begin() && address < std::prev(after)->second.end) {
        // Read once per instruction. Code that a program writes itself has no file.
        const Module& module = std::prev(after)->second;
        const auto offset =
            static_cast<off_t>(address - std::prev(after)->first + module.file_offset);
        const int file = ::open(module.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file >= 0) {
            std::uint8_t code[longest_instruction];
            const ssize_t bytes = pread(file, code, sizeof code, offset);
            access = bytes > 0 ? access_of(code, static_cast<std::size_t>(bytes)) : access;
            ::close(file);
        }
    }
    accesses_.emplace(address, access);
    return access;
}

std::uint32_t ImageRecording::place(std::uint64_t address, std::uint32_t caller,
                                    StackRecord::Place what) {
    const auto [entry, made] = places_.try_emplace(PlaceKey{address, caller, what}, 0U);
    if (made) {
        stacks_.append({what, caller, address});
        entry->second = static_cast<std::uint32_t>(stacks_.count());
    }
    return entry->second;
}

// The kernel follows frame pointers. Without one it finds an address that is no code, and the stack
// ends there. Functions of the C library that fill memory push nothing, so their return address is
// on top of the stack.
std::uint32_t ImageRecording::stack_of(const PerfEvent& event) {
    if (event.call_count == 0) {
        return event.in_kernel ? std::uint32_t{no_stack}
                               : place(event.instruction, no_stack, StackRecord::instruction);
    }
    std::uint32_t last = 1;
    while (last < event.call_count && module_at(event.calls[last]) != nullptr) {
        ++last;
    }
    std::uint32_t number = no_stack;
    for (std::uint32_t index = last; index > 1; --index) {
        number = place(event.calls[index - 1], number, StackRecord::return_address);
    }
    const Module* innermost = module_at(event.calls[0]);
    const Module* caller = module_at(event.top_of_stack);
    if (innermost != nullptr && innermost->is_c_library && caller != nullptr &&
        caller != innermost && (last < 2 || event.calls[1] != event.top_of_stack)) {
        number = place(event.top_of_stack, number, StackRecord::return_address);
    }
    return place(event.calls[0], number, StackRecord::instruction);
}

void ImageRecording::fault(const PerfEvent& event) {
    const Module* at = module_at(event.call_count > 0 ? event.calls[0] : event.instruction);
    if (at != nullptr && at->path == settings_.tracker) {
        return; // the tracker's own memory
    }
    TouchRecord record{};
    record.flags = TouchRecord::valid;
    if (event.in_kernel) {
        record.flags |= TouchRecord::kernel;
    } else if (event.address - event.instruction < longest_instruction) {
        record.flags |= TouchRecord::read; // the instruction itself
    } else {
        const Access access = access_at(event.instruction);
        if (access != Access::unknown) {
            record.flags |= writes(access, event.address, event.rsi, event.rdi, event.rsp)
                                ? TouchRecord::write
                                : TouchRecord::read;
        }
    }
    if (event.major) {
        record.flags |= TouchRecord::major;
    }
    record.thread = thread(event.tid, event.time_ns).number;
    record.address = event.address;
    record.bytes = event.bytes;
    record.time_ns = event.time_ns;
    record.physical = event.physical == 0 ? 0 : page_of(event.physical);
    record.stack_id = stack_of(event);
    record.node = settings_.nodes.size() == 1 ? settings_.nodes.front() : -1;
    round_.push_back(record);
}

// Looks up the nodes of pages a moment after they were placed.
void ImageRecording::find_nodes() {
    std::vector<void*> pages;
    pages.reserve(round_.size());
    for (const TouchRecord& record : round_) {
        pages.push_back(reinterpret_cast<void*>(page_of(record.address)));
    }
    std::vector<int> nodes(round_.size(), -1);
    if (syscall(SYS_move_pages, static_cast<pid_t>(pid_), pages.size(), pages.data(), nullptr,
                nodes.data(), 0) < 0) {
        return; // it has ended
    }
    for (std::size_t index = 0; index < round_.size(); ++index) {
        round_[index].node = nodes[index] >= 0 ? nodes[index] : -1;
    }
}

bool ImageRecording::finish_round(std::string& problem) {
    if (settings_.nodes.size() > 1 && !round_.empty()) {
        find_nodes();
    }
    for (const TouchRecord& record : round_) {
        touches_.append(record);
    }
    round_.clear();
    const std::uint64_t now = monotonic_ns();
    if (now >= next_sample_ns_) {
        sample_times(now);
    }
    for (auto gone = finished_.begin(); gone != finished_.end();) {
        if (gone->second.end_ns + late_time_ns < now) {
            write_thread(ThreadRecord::ended, gone->first, gone->second, gone->second.end_ns);
            gone = finished_.erase(gone);
        } else {
            ++gone;
        }
    }
    const bool waited = settings_.beside_another && touches_.count() != 0 &&
                        description_.start_ns + longest_wait_ns < now;
    if (!is_open() && (waited || touches_.count() > waiting_touches)) {
        if (Error error = open()) {
            ErrorRecord* record = error.take();
            problem = record->text;
            delete record;
            return false;
        }
    }
    if (!is_open()) {
        return true;
    }
    for (const std::string* text :
         {&touches_.file().problem(), &stacks_.file().problem(), &threads_.file().problem(),
          &modules_.file().problem(), &strings_.problem()}) {
        if (!text->empty() && !problem_told_) {
            problem_told_ = true;
            problem = *text;
            return false;
        }
    }
    touches_.file().flush();
    stacks_.file().flush();
    threads_.file().flush();
    modules_.file().flush();
    strings_.flush();
    return true;
}

bool ImageRecording::has_ended(std::uint64_t now_ns) const {
    return live_threads_ == 0 && last_end_ns_ != 0 && last_end_ns_ + 2 * late_time_ns < now_ns;
}

bool ImageRecording::is_worth_a_folder(bool executes) const {
    const std::uint64_t least = executes ? waiting_touches : few_touches;
    return is_open() || touches_.count() + round_.size() > least;
}

void ImageRecording::read_proc() {
    const std::string proc = "/proc/" + std::to_string(pid_);
    const std::string executable = link_target(proc + "/exe");
    if (!executable.empty()) {
        description_.executable = executable;
    }
    const std::string words = contents(proc + "/cmdline");
    if (!words.empty()) {
        description_.command.clear();
    }
    for (std::size_t begin = 0; begin < words.size();) {
        const std::size_t end = std::min(words.find('\0', begin), words.size());
        description_.command.push_back(words.substr(begin, end - begin));
        begin = end + 1;
    }
}

Error ImageRecording::make_folder() {
    std::string name = "process-" + std::to_string(pid_);
    if (description_.rank >= 0) {
        char text[32];
        std::snprintf(text, sizeof text, "rank-%05lld", static_cast<long long>(description_.rank));
        name = text;
    }
    const std::string first = settings_.folder + "/" + name;
    std::string path = first;
    for (int number = 2; mkdir(path.c_str(), 0777) != 0; ++number) {
        if (errno != EEXIST) {
            return fail(other_error, "%s can't be made: %s", path.c_str(), std::strerror(errno));
        }
        path = first + "." + std::to_string(number);
    }
    folder_ = path;
    place_.open(path);
    return {};
}

Error ImageRecording::open() {
    if (is_open() || problem_told_) {
        return {};
    }
    read_proc();
    Error error = make_files();
    if (error) { // told by who calls, once
        problem_told_ = true;
        threads_.give_up();
        modules_.give_up();
        stacks_.give_up();
        touches_.give_up();
    }
    return error;
}

Error ImageRecording::make_files() {
    if (Error error = make_folder()) {
        return error;
    }
    if (Error error = description_file_.open(folder_)) {
        return error;
    }
    if (Error error = description_file_.write(description_)) {
        return error;
    }
    if (Error error = strings_.open(folder_ + "/" + strings_file, allowance_)) {
        return error;
    }
    strings_.append(waiting_strings_.data(), waiting_strings_.size());
    strings_.flush();
    if (Error error = threads_.open(folder_, allowance_)) {
        return error;
    }
    if (Error error = modules_.open(folder_, allowance_)) {
        return error;
    }
    // Other files get no reserve: they are small, and recorded touches need them.
    touches_.file().set_reserve(settings_.reserve_bytes);
    if (Error error = stacks_.open(folder_, allowance_, StackRecord::touches_file)) {
        return error;
    }
    return touches_.open(folder_, allowance_);
}

// Closes a file and notes its losses and its checksum.
template <typename Record>
void ImageRecording::end_file(WaitingRecords<Record>& records, const char* what, const char* name) {
    const bool was_made = records.file().is_open();
    records.file().close();
    if (records.lost() > 0) {
        description_.lost.push_back(
            {what, records.lost(),
             was_made ? records.file().problem() : folder_ + "/" + name + " can't be made"});
    }
    if (was_made) {
        const ByteFile& bytes = records.file().bytes();
        description_.files.push_back({name, bytes.bytes(), bytes.checksum()});
    }
}

Error ImageRecording::close(std::uint64_t time_ns, const std::string& how, bool alive) {
    std::string problem; // told by now, and in the description
    finish_round(problem);
    for (const auto& [tid, gone] : finished_) {
        write_thread(ThreadRecord::ended, tid, gone, gone.end_ns);
    }
    for (const auto& [tid, running] : live_) {
        write_thread(alive ? ThreadRecord::so_far : ThreadRecord::ended, tid, running, time_ns);
    }
    finished_.clear();
    live_.clear();
    if (!is_open()) {
        return {};
    }
    const bool has_strings = strings_.is_open();
    strings_.close();
    end_file(touches_, "touches");
    end_file(stacks_, "calls of touches", StackRecord::touches_file);
    end_file(threads_, "threads");
    end_file(modules_, "modules");
    if (strings_bytes_ > strings_.bytes()) {
        description_.lost.push_back(
            {"bytes of modules' names", strings_bytes_ - strings_.bytes(),
             has_strings ? strings_.problem() : folder_ + "/" + strings_file + " can't be made"});
    }
    if (has_strings) {
        description_.files.push_back({strings_file, strings_.bytes(), strings_.checksum()});
    }
    if (!alive) { // else the tracker goes on writing
        end_logs(place_.path(folder_), description_);
    } else {
        description_.missing.push_back("the process was still running when its recording ended");
    }
    if (!tracked_ && !settings_.beside_another) { // that has the allocations
        description_.missing.push_back(
            "it ran without the tracker (a static program, or one with another environment), or "
            "allocated nothing: its allocations are not known");
    }
    description_.end_ns = time_ns;
    description_.end = how;
    return description_file_.write(description_);
}

} // namespace warren::locality
