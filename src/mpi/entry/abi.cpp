#include "mpi/entry/abi.hpp"

#include <cstring>
#include <string>

#include "mpi/entry/info.hpp"
#include "mpi/entry/process.hpp"

namespace warren::mpi {

namespace {

Error check_logical_size(int size) {
    for (const int known : {1, 2, 4, 8, 16}) {
        if (size == known) {
            return {};
        }
    }
    return fail(MPI_ERR_ARG, "logical_size = %d is no size of a Fortran LOGICAL", size);
}

Process::Booleans* find(Process& process, int logical_size) {
    for (Process::Booleans& booleans : process.fortran_booleans) {
        if (booleans.size == logical_size) {
            return &booleans;
        }
    }
    return nullptr;
}

} // namespace

Error abi_get_info(Process& process, MPI_Info* info) {
    comm::Info sizes;
    sizes.set("mpi_aint_size", std::to_string(sizeof(MPI_Aint)));
    sizes.set("mpi_count_size", std::to_string(sizeof(MPI_Count)));
    sizes.set("mpi_offset_size", std::to_string(sizeof(MPI_Offset)));
    return make_info(process, &sizes, info);
}

Error abi_set_fortran_info(Process& process, comm::Info& info) {
    if (process.fortran_info != nullptr) {
        return fail(MPI_ERR_ABI, "the Fortran types have been described before");
    }
    process.fortran_info = std::make_unique<comm::Info>(info);
    return {};
}

Error abi_get_fortran_info(Process& process, MPI_Info* info) {
    if (process.fortran_info == nullptr) {
        *info = MPI_INFO_NULL;
        return {};
    }
    return make_info(process, process.fortran_info.get(), info);
}

Error abi_set_fortran_booleans(Process& process, int logical_size, void* logical_true,
                               void* logical_false) {
    if (Error error = check_logical_size(logical_size)) {
        return error;
    }
    if (logical_true == nullptr || logical_false == nullptr) {
        return fail(MPI_ERR_ARG, "logical_true or logical_false is a null pointer");
    }
    if (find(process, logical_size) != nullptr) {
        return fail(MPI_ERR_ABI, "the values of LOGICALs of %d bytes have been set before",
                    logical_size);
    }
    Process::Booleans booleans = {};
    booleans.size = logical_size;
    std::memcpy(booleans.true_value, logical_true, static_cast<std::size_t>(logical_size));
    std::memcpy(booleans.false_value, logical_false, static_cast<std::size_t>(logical_size));
    process.fortran_booleans.push_back(booleans);
    return {};
}

Error abi_get_fortran_booleans(Process& process, int logical_size, void* logical_true,
                               void* logical_false, int* is_set) {
    if (Error error = check_logical_size(logical_size)) {
        return error;
    }
    const Process::Booleans* booleans = find(process, logical_size);
    *is_set = booleans != nullptr;
    if (booleans != nullptr) {
        std::memcpy(logical_true, booleans->true_value, static_cast<std::size_t>(logical_size));
        std::memcpy(logical_false, booleans->false_value, static_cast<std::size_t>(logical_size));
    }
    return {};
}

} // namespace warren::mpi
