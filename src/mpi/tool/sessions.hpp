// Sessions: sessions of performance variables, and their handles.
//
// A handle keeps what it showed before it was last started, and the count of the rank then; while
// it is started, it shows the difference more. So the rank counts once for all sessions, and
// starting, stopping, writing one changes no other. Thread rule: under the rank's lock and the
// tool's mutex.
#pragma once

#include <cstdint>

#include "base/late_handle_table.hpp"
#include "mpi/tool/performance_variables.hpp"

namespace warren::tool {

struct Session {
    std::uint64_t handles = 0;
    std::uint64_t number = 0;
};

struct VariableHandle {
    const PerformanceVariable* variable = nullptr;
    Session* session = nullptr;
    bool started = false;
    std::uint64_t kept = 0; // of a mark: its value
    std::uint64_t base = 0;
};

class Sessions {
  public:
    // Null: memory is out.
    Session* create() { return sessions_.insert(); }
    Session* find(MPI_T_pvar_session handle) const { return sessions_.find(handle); }
    static MPI_T_pvar_session handle_of(const Session& session) {
        return static_cast<MPI_T_pvar_session>(LateHandleTable<Session>::handle_of(session));
    }
    void free(Session& session);
    void free_all();

    // Null: memory is out. `subject`, here and below: null while there is no rank.
    VariableHandle* allocate(Session& session, const PerformanceVariable& variable);
    VariableHandle* find(const Session& session, MPI_T_pvar_handle handle) const;
    static MPI_T_pvar_handle handle_of(const VariableHandle& handle) {
        return static_cast<MPI_T_pvar_handle>(LateHandleTable<VariableHandle>::handle_of(handle));
    }
    void free(VariableHandle& handle);
    template <typename Visitor>
    void for_each(const Session& session, Visitor visit) {
        handles_.for_each([&](VariableHandle& handle) {
            if (handle.session == &session) {
                visit(handle);
            }
        });
    }

    // The variable is not continuous. A handle that is started, or stopped, already stays so.
    void start(VariableHandle& handle, const Subject* subject);
    void stop(VariableHandle& handle, const Subject* subject);
    static std::uint64_t read(const VariableHandle& handle, const Subject* subject);
    static void write(VariableHandle& handle, std::uint64_t value, const Subject* subject);

    // The rank's counts begin, or are about to end.
    void attach(const Subject& subject);
    void detach(const Subject& subject);

    // The level of a mark has risen.
    void raise(const Subject& subject);

    // Started handles whose variables the rank counts only while somebody looks; and of marks.
    int observing() const { return observing_; }
    int marks() const { return marks_; }

  private:
    void count(const VariableHandle& handle, int change);

    LateHandleTable<Session> sessions_;
    LateHandleTable<VariableHandle> handles_;
    int observing_ = 0;
    int marks_ = 0;
};

} // namespace warren::tool
