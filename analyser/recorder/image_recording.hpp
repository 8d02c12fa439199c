// ImageRecording: the recording of one process image from the kernel's events (perf_events.hpp):
// its threads, its modules, its first touches with their calls.
//
// Its folder is made when its tracker connects or when there is much to write; beside another
// recorder the first image's is made at once. Until then records wait in memory, so a forked
// process that soon executes another program leaves no folder. Thread rule: one thread.
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

// Settings that all images of a recording share.
struct RecordingSettings {
    std::string folder;          // absolute
    std::string tracker;         // the path of the library that programs load first
    std::uint64_t threshold = 0; // bytes
    std::uint64_t limit_bytes = 0;
    std::uint32_t calls = 0;
    std::string host;
    std::vector<int> nodes;           // with memory
    std::vector<std::string> missing; // what can't be seen, of any process
    // Processes have another recorder within them. It follows allocations, and they execute code
    // that it generates.
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
    // There will be no file: waiting records are lost and freed.
    void give_up() {
        given_up_ = !file_.is_open();
        waiting_ = {};
    }
    RecordFile<Record>& file() { return file_; }
    std::uint64_t count() const { return count_; } // the number of the last one
    // Records that are in no file.
    std::uint64_t lost() const { return count_ - file_.records(); }

  private:
    RecordFile<Record> file_;
    std::vector<Record> waiting_;
    std::uint64_t count_ = 0;
    bool given_up_ = false;
};

class ImageRecording {
  public:
    // The image that `pid` has since `start_ns`. Rank and size are the parent's until the tracker
    // says more.
    ImageRecording(const RecordingSettings& settings, std::uint32_t pid, std::uint32_t parent,
                   std::uint64_t start_ns);

    void thread_began(const PerfEvent& event);
    void thread_ended(const PerfEvent& event);
    void thread_time(std::uint32_t tid, std::uint64_t cpu_ns);
    void mapped(const PerfEvent& event);
    void fault(const PerfEvent& event);

    // Samples the processor time of running threads. The kernel's events mix the times of threads
    // that follow each other on a processor, so they count only for threads that were never
    // sampled.
    void sample_times(std::uint64_t now_ns);

    // Takes over what a forked child inherits.
    void inherit(const ImageRecording& parent);

    // The process's tracker has connected.
    void set_tracked() { tracked_ = true; }

    // Makes the folder if there is none.
    Error open();
    bool is_open() const { return !folder_.empty(); }
    const std::string& folder() const { return folder_; }

    // Writes the records since the last time. False: records are lost from now on, and `problem`
    // says why; returned once.
    bool finish_round(std::string& problem);

    // Ends the recording; `how` as in ProcessDescription::end. `alive`: the process goes on,
    // unseen.
    Error close(std::uint64_t time_ns, const std::string& how, bool alive);

    std::uint64_t last_end_ns() const { return last_end_ns_; } // of a thread; 0: none has ended
    bool has_live_threads() const { return live_threads_ > 0; }
    // All threads have ended, and no further event can arrive.
    bool has_ended(std::uint64_t now_ns) const;

    // Whether an image without a folder gets one when it `executes` another program or ends. A
    // forked process that allocates nothing and touches little gets none.
    bool is_worth_a_folder(bool executes) const;

    std::uint64_t touches() const { return touches_.count(); }
    // Touches that are in no file; after close() those that are lost.
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
