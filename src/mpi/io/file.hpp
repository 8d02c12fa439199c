// File: a file that the ranks of a communicator have opened together (MPI 5.0, chapter 14).
//
// Independent accesses are transfers (transfer.hpp) by the rank itself, or by a helper thread if
// they don't block (helpers.hpp). Collective ones go through a staging area in the node's memory
// where that helps (collective.cpp), or by messages (exchange.cpp). What the ranks share is in the
// control block. Ranks of several nodes have a copy each (among_nodes.cpp).
//
// Thread rule: under the rank's lock, which waits release. Invariants
//  1. The file's communicator is its own: nothing else uses its collective slot or its context.
//  2. An access is checked before it moves a pointer or touches anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "mpi.h"
#include "mpi/comm/communicator.hpp"
#include "mpi/io/control.hpp"
#include "mpi/io/helpers.hpp"
#include "mpi/io/hints.hpp"
#include "mpi/io/representation.hpp"
#include "mpi/io/shared_pointer.hpp"
#include "mpi/io/system_file.hpp"
#include "mpi/io/transfer.hpp"
#include "mpi/io/view.hpp"
#include "mpi/message/engine.hpp"
#include "mpi/rma/shared_part.hpp"

namespace warren::io {

using datatype::Buffer;

// Which offset an access begins at.
enum class Pointer : std::uint8_t { explicit_offset, individual, shared };

// An access of one rank, in the view's data.
struct Access {
    Direction direction = Direction::read;
    Pointer pointer = Pointer::explicit_offset;
    MPI_Offset offset = 0; // in etypes, where it is explicit
    Buffer memory;
    // Set by File::check().
    MPI_Count item_bytes = 0; // of an element of memory in the file
    MPI_Count etypes = 0;
    MPI_Count first = 0; // byte of the view's data; set by File::place()
};

// The data of an access as it is in the file: the memory itself, or a converted copy.
struct FileData {
    Buffer data;
    std::unique_ptr<std::byte[]> converted;
};

class NonblockingAccess;

// Collective calls that concern the file as a whole, as ranks tell them each other.
enum class WholeCall : std::int8_t {
    open,
    close,
    set_size,
    preallocate,
    synchronise,
    set_atomicity,
    set_view,
    seek_shared
};

class File {
  public:
    File(rma::WindowServer& server, message::Engine& engine, comm::Communicator& communicator,
         const Representation& native)
        : server_(server), engine_(engine), communicator_(communicator), native_(native) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    // Collective: opens the file, or fails at all ranks (opening.cpp). `forced_kind`: see
    // path_of_name (file_name.hpp).
    Error open(const char* name, int amode, const Hints& hints, const char* forced_kind);
    // Collective: the first step of open(), and all of it at a rank whose arguments are `wrong`,
    // so that the others don't wait.
    static Error agree_to_open(message::Engine& engine, comm::Communicator& communicator, int amode,
                               Error wrong);
    static Error remove(const char* name);
    // Collective: afterwards the object can only be destroyed, unless it fails.
    Error close();

    comm::Communicator& communicator() const { return communicator_; }
    int amode() const { return amode_; }
    const std::string& path() const { return file_->path(); }
    const View& view() const { return *view_; }
    bool atomic() const { return atomic_; }
    Hints hints;

    // --- The file as a whole (opening.cpp). All but size() are collective.
    Error size(MPI_Offset& bytes) const;
    Error set_size(MPI_Offset bytes);
    Error preallocate(MPI_Offset bytes);
    Error synchronise();
    Error set_atomic(bool atomic);
    // `wrong`: what the caller has found to be wrong with the arguments.
    Error set_view(MPI_Offset displacement, const datatype::Datatype& etype,
                   const datatype::Datatype& filetype, const Representation* representation,
                   Error wrong);

    // --- Pointers (pointers.cpp)
    Error seek(MPI_Offset offset, int whence);
    Error position(MPI_Offset& offset) const;
    Error seek_shared(MPI_Offset offset, int whence);
    Error position_shared(MPI_Offset& offset);
    Error byte_offset(MPI_Offset offset, MPI_Offset& bytes) const;

    // --- Accesses (access.cpp). `bytes`: of memory that were read or written.
    Error independent(Access& access, MPI_Count& bytes);
    Error collective(Access& access, MPI_Count& bytes);
    Error ordered(Access& access, MPI_Count& bytes);
    // In place of a collective call, a rank whose arguments are wrong tells the others,
    // so that they don't wait. Returns its error.
    enum class Call : std::uint8_t { access, ordered_access, set_view };
    Error refuse(Call call, Error own);
    // Begins one that a helper carries out.
    Error start(Access& access, std::unique_ptr<NonblockingAccess>& made);

    // --- Split collective accesses: the first call does all of the work.
    enum class Split : std::uint8_t { none, at_all, all, ordered };
    Error begin_split(Access& access, Split kind);
    Error end_split(Direction direction, Split kind, const void* base, MPI_Count& bytes);

    // All but the staging area's size, which the first rank has chosen for all.
    void take_hints(const Hints& wanted);

    // Owned by the room of entry points. Null: MPI_ERRORS_RETURN.
    comm::ErrorHandler* error_handler = nullptr;

  private:
    friend class NonblockingAccess;

    Error agree(Error own) const;
    Error agree_on_call(WholeCall call) const;
    Error agree_on(WholeCall call, MPI_Offset value, const char* name, Error own) const;
    Error agree_on_view(MPI_Count etype_bytes, const Representation* representation,
                        Error own) const;
    Error share_result(Error own) const;
    Error barrier() const;
    Error open_first(const char* path, struct Opened& opened);
    Error open_next(const char* path, const struct Opened& opened);
    Error begin(const struct Opened& opened);
    Error take_control(std::uint64_t& offset) const;
    Error map_control(std::uint64_t offset);
    void give_back(std::uint64_t extent) const;

    // --- Ranks of several nodes (among_nodes.cpp)
    // Whether others write to the file whom this node's locks don't keep away.
    bool is_shared_elsewhere() const;
    // Ranks have each written a part of their own control: afterwards all see that of all.
    Error tell_all(void* own, std::size_t bytes);
    // The first rank has written a part of the control block for all.
    Error hear_first(void* part, std::size_t bytes);
    Error make_own_control();
    Error make_pointer();
    Error synchronise_nodes();

    Error check(Access& access) const;
    Error prepare(const Access& access, FileData& prepared) const;
    Error place(Access& access);
    Error advance_shared(MPI_Count etypes, MPI_Offset& begin);
    Error order(Error own, Part part, MPI_Count etypes, MPI_Offset& begin);
    Error check_position(MPI_Offset offset, MPI_Count etypes) const;
    Error find_position(MPI_Offset offset, int whence, MPI_Offset current,
                        MPI_Offset& position) const;
    Error check_not_sequential(const char* what) const;
    void set_medium();

    Error transfer(const Access& access, const Buffer& data, bool collectively, MPI_Count& done);
    Error carry_out(const Access& access, const FileData& prepared, bool collectively,
                    MPI_Count& bytes);

    // collective.cpp
    AccessPlan& next_plan(int& turn);
    Error check_parts(int turn) const;
    Error transfer_staged(const Access& access, const Buffer& data, MPI_Count& done);
    Error transfer_exchanged(const Access& access, const Buffer& data, const ByteRange& all,
                             MPI_Count& done);
    bool may_stage(bool writes);
    Error make_plan(const Access& access, MPI_Count bytes, Error refused, bool& staged,
                    ByteRange& all);
    Error refuse_access(Error own);
    Error prepare_staging();
    void take_back(const Access& access);

    rma::WindowServer& server_;
    message::Engine& engine_;
    comm::Communicator& communicator_;
    const Representation& native_;
    int amode_ = 0;
    bool atomic_ = false;
    bool deletes_ = false; // on close
    std::string deleted_path_;
    bool flushed_ = false;             // on close, of a remote file
    std::shared_ptr<SystemFile> file_; // nonblocking accesses keep it
    Medium medium_;
    std::shared_ptr<const View> view_;
    Scratch scratch_;
    std::vector<std::unique_ptr<Scratch>> spare_scratches_; // of threads that share the rank
    MPI_Offset individual_pointer_ = 0;                     // in etypes

    bool spans_nodes_ = false;         // or worlds
    std::uint64_t control_extent_ = 0; // 0: none
    rma::SharedPart control_part_;
    std::unique_ptr<ControlLine[]> own_control_; // of a rank of several nodes
    ControlBlock control_;
    SharedPointer shared_pointer_;
    std::uint32_t plans_made_ = 0; // the same at all ranks

    // The staging area, taken by the first access that uses it.
    std::uint64_t staging_extent_ = 0;
    std::uint64_t staging_half_ = 0;
    bool staging_refused_ = false; // a rank had no memory for it
    rma::SharedPart staging_part_;

    struct {
        Split kind = Split::none;
        Direction direction = Direction::read;
        const void* base = nullptr;
        MPI_Count bytes = 0;
    } split_;
};

// An access that a helper carries out. Ended by its rank, under the rank's lock.
class NonblockingAccess final : public Job {
  public:
    NonblockingAccess(File& file, const Access& access, FileData prepared);
    ~NonblockingAccess() override;

    // Once it is finished: converts what has been read. `bytes` of memory.
    Error complete(MPI_Count& bytes, RankLock& lock);

  protected:
    void perform(Scratch& scratch) override;

  private:
    friend class File;

    Counts& counts_; // of the rank
    const std::shared_ptr<SystemFile> file_;
    const Medium medium_;
    const std::shared_ptr<const View> view_;
    const Access access_;
    const bool atomic_;
    const FileData prepared_;
    MPI_Count done_ = 0;
    Error error_;
};

} // namespace warren::io
