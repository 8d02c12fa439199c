// Info: an ordered set of (key, value) strings (MPI chapter 10), and a rank's table of them.
// Thread rule: under the process's mutex (mpi/entry/process.hpp). Invariant: keys are unique, in
// order of their first setting.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/late_handle_table.hpp"
#include "mpi.h"

namespace warren::comm {

class Info {
  public:
    Info() = default;

    // Null when the key is not set.
    const std::string* find(std::string_view key) const;
    void set(std::string_view key, std::string_view value);
    // False when the key is not set.
    bool remove(std::string_view key);

    int keys() const { return static_cast<int>(entries_.size()); }
    const std::string& key(int index) const {
        return entries_[static_cast<std::size_t>(index)].first;
    }

  private:
    std::vector<std::pair<std::string, std::string>> entries_;
};

class Infos {
  public:
    // The object of a handle; null for MPI_INFO_NULL and what is no info object.
    Info* find(MPI_Info handle) {
        return handle == MPI_INFO_ENV ? &environment_ : made_.find(handle);
    }
    MPI_Info handle_of(const Info& info) const;
    // The handle of a Fortran integer; MPI_INFO_NULL when there is none.
    MPI_Info of_integer(int integer) const;

    // MPI_INFO_ENV.
    Info& environment() { return environment_; }

    // Null when memory is out.
    Info* insert() { return made_.insert(); }
    Info* insert(const Info& copied) { return made_.insert(copied); }
    void remove(Info& info) { made_.remove(info); }
    std::size_t live() const { return made_.live(); }

  private:
    Info environment_;
    LateHandleTable<Info> made_;
};

} // namespace warren::comm
