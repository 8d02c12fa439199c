// ImageRecording: the recording of one process image, as the kernel's events (perf_events.hpp) come
// in: its threads, what is mapped, its first touches with their calls.
//
// Its folder is made when its tracker makes itself known, or when there is much to write, the first
// one's beside another recorder at once; until then records wait in memory. So a forked process
// that soon executes another program leaves no folder. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyser/recorder/log_end.hpp"
#include "analyser/recorder/perf_events.hpp"
#include "analyser/recorder/recording.hpp"
#include "analyser/recorder/x86_access.hpp"
#include "base/error.hpp"

namespace warren::locality {

// What all images of a recording have in common.
struct RecordingSettings {
    std::string folder;          // absolute
    std::string tracker;         // the path of the library that programs load first
    std::uint64_t threshold = 0; // bytes
    std::uint64_t limit_bytes = 0;
    std::uint32_t calls = 0;
    std::string host;
    std::vector<int> nodes;           // with memory
    std::vector<std::string> missing; // what can't be seen, of any process
    // Processes have another recorder within them, which follows allocations, and whose code they
    // run, not that of files.
    bool beside_another = false;
    std::uint64_t reserve_bytes = 0; // of the disk, which touches leave to it
};

// Records that wait for their file.
template <typename Record>
class WaitingRecords {
  public:
    Error open(const std::string& folder, Allowance& allowance, const char* name = Record::file) {
        if (Error error = file_.open(folder, allowance, name)) {
            return error;
        }
        for (const Record& record : waiting_) {
            file_.append(record);
        }
        waiting_ = {};
        return {};
    }
    void append(const Record& record) {
        ++count_;
        if (file_.is_open()) {
            file_.append(record);
        } else if (!given_up_) {
            waiting_.push_back(record);
        }
    }
    // There will be no file: what waits is lost, and takes no memory.
    void give_up() {
        given_up_ = !file_.is_open();
        waiting_ = {};
    }
    RecordFile<Record>& file() { return file_; }
    std::uint64_t count() const { return count_; } // the number of the last one
    // Of those, what has not reached its file, which may not be there.
    std::uint64_t lost() const { return count_ - file_.records(); }

  private:
    RecordFile<Record> file_;
    std::vector<Record> waiting_;
    std::uint64_t count_ = 0;
    bool given_up_ = false;
};

class ImageRecording {
  public:
    // An image that `pid` has since `start_ns`. `rank`… of its parent until it says more.
    ImageRecording(const RecordingSettings& settings, std::uint32_t pid, std::uint32_t parent,
                   std::uint64_t start_ns);

    void thread_began(const PerfEvent& event);
    void thread_ended(const PerfEvent& event);
    void thread_time(std::uint32_t tid, std::uint64_t cpu_ns);
    void mapped(const PerfEvent& event);
    void fault(const PerfEvent& event);

    // Looks at the processor time of the threads that run. The kernel's events mix the times of
    // threads that follow each other on a processor, so they count only for threads that were never
    // looked at.
    void sample_times(std::uint64_t now_ns);

    // What forked children take over.
    void inherit(const ImageRecording& parent);

    // Its tracker has made itself known.
    void set_tracked() { tracked_ = true; }

    // The folder, made if need be.
    Error open();
    bool is_open() const { return !folder_.empty(); }
    const std::string& folder() const { return folder_; }

    // Writes what has come since the last time. False: something is lost from now on; once, with
    // the problem.
    bool finish_round(std::string& problem);

    // The end; `how` as in ProcessDescription::end. `alive`: it goes on, unseen.
    Error close(std::uint64_t time_ns, const std::string& how, bool alive);

    std::uint64_t last_end_ns() const { return last_end_ns_; } // of a thread; 0: none has ended
    bool has_live_threads() const { return live_threads_ > 0; }
    // All threads have ended, and all that could still come has come.
    bool has_ended(std::uint64_t now_ns) const;

    // One that has none yet, and `executes` another program or ends: nothing is to be seen in what
    // a forked process does that allocates nothing and touches little.
    bool is_worth_a_folder(bool executes) const;

    std::uint64_t touches() const { return touches_.count(); }
    // What of them is in no file: once it is closed, what is lost.
    std::uint64_t lost_touches() const { return touches_.lost(); }
    std::uint64_t threads() const { return thread_count_; }
    ProcessDescription& description() { return description_; }
    std::uint32_t pid() const { return pid_; }

  private:
    struct Thread {
        std::uint32_t number = 0;
        std::uint32_t parent = no_thread;
        std::uint64_t cpu_ns = 0;     // as the kernel's events say
        std::uint64_t sampled_ns = 0; // the same when it was last looked at; 0: never
        std::uint64_t end_ns = 0;     // 0: it runs
    };
    struct Module {
        std::uint64_t end = 0;
        std::uint64_t file_offset = 0;
        std::uint64_t path_offset = 0;
        std::uint32_t path_bytes = 0;
        bool is_c_library = false;
        std::string path;
    };
    struct PlaceKey {
        std::uint64_t address;
        std::uint32_t caller;
        std::uint32_t place;
        bool operator==(const PlaceKey&) const = default;
    };
    struct PlaceHash {
        std::size_t operator()(const PlaceKey& key) const;
    };

    Thread& thread(std::uint32_t tid, std::uint64_t time_ns);
    void write_thread(ThreadRecord::Event event, std::uint32_t tid, const Thread& thread,
                      std::uint64_t time_ns);
    Module* module_at(std::uint64_t address);
    Access access_at(std::uint64_t address);
    std::uint32_t stack_of(const PerfEvent& event);
    std::uint32_t place(std::uint64_t address, std::uint32_t caller, StackRecord::Place what);
    void find_nodes();
    void read_proc();
    Error make_folder();
    Error make_files();
    template <typename Record>
    void end_file(WaitingRecords<Record>& records, const char* what,
                  const char* name = Record::file);

    const RecordingSettings& settings_;
    std::uint32_t pid_;
    std::string folder_;
    FolderPlace place_; // of that, if it is moved
    Allowance allowance_;
    ProcessDescription description_;
    DescriptionFile description_file_;
    WaitingRecords<ThreadRecord> threads_;
    WaitingRecords<ModuleRecord> modules_;
    WaitingRecords<StackRecord> stacks_;
    WaitingRecords<TouchRecord> touches_;
    ByteFile strings_;
    std::string waiting_strings_;
    std::uint64_t strings_bytes_ = 0;
    std::vector<TouchRecord> round_;
    std::unordered_map<std::uint32_t, Thread> live_;     // by tid
    std::unordered_map<std::uint32_t, Thread> finished_; // that may still get processor time
    std::map<std::uint64_t, Module> loaded_;             // by begin
    std::unordered_map<std::uint64_t, Access> accesses_;
    std::unordered_map<PlaceKey, std::uint32_t, PlaceHash> places_;
    std::uint32_t thread_count_ = 0;
    std::uint32_t live_threads_ = 0;
    std::uint64_t last_end_ns_ = 0; // of its threads
    std::uint64_t next_sample_ns_ = 0;
    bool tracked_ = false;
    bool problem_told_ = false;
};

} // namespace warren::locality
