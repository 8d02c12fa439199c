// Failures: what faulty_files.c (preloaded) makes fail, and who must hear of it. Without that, all
// calls must succeed. Each rank is a process.
#pragma once

#include <cerrno>
#include <dlfcn.h>
#include <string>
#include <vector>

#include <mpi.h>

#include "faulty_files.h"

class Failures {
  public:
    enum class Scope {
        one_rank,   // a rank hears of what failed at itself, and of nothing else
        collective, // that, or all hear of what failed at any
        all         // all hear of what failed at any
    };

    // False: nothing is preloaded that makes calls fail.
    bool begin(const char* part_of_path, unsigned one_fails_in, unsigned seed) {
        const auto fail = reinterpret_cast<decltype(&faulty_files_fail)>(
            dlsym(RTLD_DEFAULT, "faulty_files_fail"));
        count_ = reinterpret_cast<decltype(&faulty_files_failures)>(
            dlsym(RTLD_DEFAULT, "faulty_files_failures"));
        if (fail == nullptr || count_ == nullptr) {
            return false;
        }
        fail(part_of_path, one_fails_in, seed);
        return true;
    }

    int how_many() const {
        int cause = 0;
        return count_ != nullptr ? count_(&cause) : 0;
    }

    // Collective, after a call that returned `code` here: at which ranks it failed. `complaint`:
    // what was wrong with that.
    std::vector<char> judge(int code, Scope scope, std::string& complaint) {
        int cause = 0;
        const int until_now = count_ != nullptr ? count_(&cause) : 0;
        const bool own_failed = until_now != until_last_;
        until_last_ = until_now;
        int own_class = MPI_SUCCESS;
        if (code != MPI_SUCCESS) {
            MPI_Error_class(code, &own_class);
        }
        if (own_failed ? own_class != class_of(cause)
                       : own_class != MPI_SUCCESS && scope == Scope::one_rank) {
            complain(code, own_failed ? cause : 0, complaint);
        }
        if (count_ == nullptr) {
            if (code != MPI_SUCCESS) {
                complain(code, 0, complaint);
            }
            return std::vector<char>(static_cast<std::size_t>(ranks()));
        }
        return compare(code, own_class, own_failed ? class_of(cause) : MPI_SUCCESS, scope,
                       complaint);
    }

  private:
    struct Said {
        int error_class; // that the call returned
        int injected;    // that this rank has to return; MPI_SUCCESS: none failed here
    };

    static int ranks() {
        int size = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        return size;
    }

    static std::vector<char> compare(int code, int own_class, int injected, Scope scope,
                                     std::string& complaint) {
        const Said own = {own_class, injected};
        std::vector<Said> all(static_cast<std::size_t>(ranks()));
        MPI_Allgather(&own, 2, MPI_INT, all.data(), 2, MPI_INT, MPI_COMM_WORLD);
        std::vector<char> failed;
        bool any = false;   // something failed
        bool heard = false; // a rank returned another's error
        bool known = injected != MPI_SUCCESS || own_class == MPI_SUCCESS;
        for (const Said& said : all) {
            failed.push_back(static_cast<char>(said.error_class != MPI_SUCCESS));
            any = any || said.injected != MPI_SUCCESS;
            heard = heard || (said.error_class != MPI_SUCCESS && said.injected == MPI_SUCCESS);
            known = known || said.injected == own_class;
        }
        if (!known || (own_class == MPI_SUCCESS && (heard || (any && scope == Scope::all)))) {
            complain(code, 0, complaint);
        }
        return failed;
    }

    static void complain(int code, int cause, std::string& complaint) {
        char text[MPI_MAX_ERROR_STRING] = "success";
        int length = 0;
        if (code != MPI_SUCCESS) {
            MPI_Error_string(code, text, &length);
        }
        complaint = std::string("returned: ") + text + "; errno here: " + std::to_string(cause);
    }

    static int class_of(int cause) {
        return cause == ENOSPC   ? MPI_ERR_NO_SPACE
               : cause == EDQUOT ? MPI_ERR_QUOTA
               : cause == EACCES ? MPI_ERR_ACCESS
                                 : MPI_ERR_IO;
    }

    decltype(&faulty_files_failures) count_ = nullptr;
    int until_last_ = 0;
};
