// A random program: a function of its seed, executed by all ranks (in threaded runs by one thread
// of each rank, several programs at a time). A step is an operation that all ranks draw alike, from
// the seed and the step's number; what is a rank's own business (its datatypes, when it completes
// what) it draws for itself. Those that aren't in the step's communicator pass over it.
//
// No step deadlocks: steps come in the same order at all ranks; within one, what others wait for is
// started before anything is waited for; what is pending needs nothing that others do later, or is
// not waited for until they have (Activity::not_before).
#pragma once

#include "buffer.hpp"
#include "communicator.hpp"
#include "report.hpp"

#include <functional>
#include <map>
#include <set>

namespace programs {

struct Options {
    unsigned long seed = 1;
    int programs = 1;
    int steps = 200;
    int threads = 1;
    long bytes = 1L << 20;              // of a message or a collective's buffer, about
    std::set<std::pair<int, int>> only; // first and last steps that are executed; empty: all
    std::set<std::string> without;      // kinds of steps that are left out
    bool verbose = false;
    unsigned alarm = 0;
};

// An operation that has been begun: its request, its memory, what must be true when it is complete.
struct Activity {
    std::string what;
    int step = 0;
    int not_before = 0; // the first step that may wait for it
    MPI_Request request = MPI_REQUEST_NULL;
    bool persistent = false;
    bool once = false; // a persistent request that is freed when it is complete
    bool active = false;
    CommPtr on;
    std::vector<std::shared_ptr<void>> kept; // what MPI reads until the end
    std::vector<std::pair<std::string, std::shared_ptr<Buffer>>> buffers;
    std::function<void(Bits round)>
        refill; // the buffers' contents, for a persistent one's nth start
    Bits round = 0;
    std::function<void(const MPI_Status&)> check; // the status; the buffers are compared anyway
};
using ActivityPtr = std::shared_ptr<Activity>;

class Program {
  public:
    // `shared` is for messages of all threads; null: there is one thread.
    Program(const Options& options, unsigned long seed, int thread, MPI_Comm base, MPI_Comm shared);
    void run();

    long steps_run() const { return steps_run_; }

    // --- for the steps
    const Options& options() const { return options_; }
    int rank() const { return rank_; } // in the base
    int size() const { return size_; }
    int step() const { return position_.step; }
    int thread() const { return position_.thread; }
    unsigned long seed() const { return position_.seed; }
    bool executes() const { return executes_; } // false: the step is only to be modelled
    Bits key() const { return step_key_; }      // of the step
    Draw& own() { return own_; }                // draws of this rank alone
    Communicator& base() { return *live[0]; }
    MPI_Group base_group() const { return base_group_; }
    int next_tag();                                         // on any communicator, of this step
    int own_tag(int tag);                                   // on the shared one: this thread's
    int persistent_tag();                                   // one that no step's messages have
    bool operand_exists() const { return operand_exists_; } // of the last at()
    bool without(const std::string& kind) const { return options_.without.count(kind) > 0; }
    void at(const std::string& what, const Communicator* where = nullptr);

    ActivityPtr begin(const std::string& what, const CommPtr& on); // a new one, of this step
    // Begins to watch a started request.
    void pend(const ActivityPtr& activity);
    void finish(const ActivityPtr& activity);     // waits for it
    void finish_all(const CommPtr& on = nullptr); // all that may be waited for
    void finish_some(bool blocking);              // a random call on random ones
    void check(const Activity& activity, const MPI_Status& status);

    // A persistent operation: of all members of a communicator, or of two.
    struct Persistent {
        CommPtr on;
        ActivityPtr activity; // null: not mine
        ActivityPtr receive;  // of a message, whose other end is the activity
    };

    // A receive that is made some steps after its message has been sent.
    struct Delayed {
        int due;
        std::function<void()> receive;
    };
    // A communicator that is being made (MPI_Comm_idup).
    struct Arriving {
        int due;
        CommPtr made;
        ActivityPtr request;
    };

    std::vector<CommPtr> live; // live[0] is the base
    CommPtr shared;            // with the other threads' programs, for messages; null: no threads
    std::vector<Persistent> persistents;
    std::vector<Delayed> delayed;
    std::vector<Arriving> arriving;
    int attribute_key = MPI_KEYVAL_INVALID;
    MPI_Session session = MPI_SESSION_NULL;

    const CommPtr& any_communicator(Draw& draw) { return draw.of(live); }
    const CommPtr& any_intracommunicator(Draw& draw);
    void start(const std::vector<ActivityPtr>& persistent); // in this order, or at once
    void drop_persistent(std::size_t place);

  private:
    void execute(int step);
    void arrive();
    void remove(const ActivityPtr& activity);
    class Completion; // pending.cpp
    void completed(const ActivityPtr& activity, MPI_Request request, const MPI_Status& status);

    const Options& options_;
    Position position_;
    int rank_ = 0, size_ = 0;
    MPI_Group base_group_ = MPI_GROUP_NULL;
    bool executes_ = true, operand_exists_ = true;
    Bits step_key_ = 0;
    Draw own_{0};
    int tags_ = 0, persistent_tags_ = 0;
    long steps_run_ = 0;
    std::vector<ActivityPtr> pending_;
};

// --- The steps, a file per subject.
void make_communicator(Program& program, Draw& draw);
void free_communicator(Program& program, Draw& draw);
void arrived(Program& program, const CommPtr& made); // MPI_Comm_idup is complete
void inspect_communicators(Program& program, Draw& draw);
void calculate_with_groups(Program& program, Draw& draw);
void move_data(Program& program, Draw& draw);   // collectives
void reduce_data(Program& program, Draw& draw); // collectives
void reduce_here(Program& program, Draw& draw); // MPI_Reduce_local
void use_persistents(Program& program, Draw& draw);
void exchange_messages(Program& program, Draw& draw); // point-to-point, any modes
void exchange_wildly(Program& program, Draw& draw);   // any source, any tag
void shift_data(Program& program, Draw& draw);        // sendrecv
void make_persistent_messages(Program& program, Draw& draw);
void cancel_receive(Program& program, Draw& draw);
void cancel_send(Program& program, Draw& draw);
void pack_data(Program& program, Draw& draw);

// Which of its process's ranks a thread belongs to; 0 unless threads are ranks (main.cpp).
inline constexpr int process_rank_limit = 64;
inline thread_local int process_rank = 0;

extern bool count_elements; // by MPI_Get_count and MPI_Get_elements, in what has been received

// How an operation is called. Large: the form with MPI_Count.
enum class Form { blocking, nonblocking, persistent };
struct Way {
    Form form = Form::blocking;
    bool large = false;
};

// The number of units of a block, around the limits of protocols, with at most this many bytes.
int draw_units(Draw& draw, const Unit& unit, long bytes);

// Carries out a collective operation in one of its forms; the arguments are the blocking form's.
template <typename Blocking, typename Nonblocking, typename Persistent, typename... Arguments>
void perform(Program& program, Form form, const ActivityPtr& activity, Blocking blocking,
             Nonblocking nonblocking, Persistent persistent, Arguments... arguments) {
    switch (form) {
    case Form::blocking:
        MUST(blocking(arguments...));
        program.check(*activity, {});
        break;
    case Form::nonblocking:
        MUST(nonblocking(arguments..., &activity->request));
        program.pend(activity);
        break;
    case Form::persistent:
        activity->persistent = true;
        MUST(persistent(arguments..., MPI_INFO_NULL, &activity->request));
    }
}
#define FORMS(Name, name) MPI_##Name, MPI_I##name, MPI_##Name##_init
#define LARGE_FORMS(Name, name) MPI_##Name##_c, MPI_I##name##_c, MPI_##Name##_init_c

} // namespace programs
