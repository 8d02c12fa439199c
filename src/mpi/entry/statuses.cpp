#include "mpi/entry/statuses.hpp"

#include "mpi/datatype/datatype.hpp"
#include "mpi/entry/status.hpp"

namespace warren::mpi {

Error get_count(Context&, const MPI_Status* status, const datatype::Datatype& datatype,
                MPI_Count& count) {
    count = datatype.count_in(status_bytes(*status));
    return {};
}

Error get_elements(Context&, const MPI_Status* status, const datatype::Datatype& datatype,
                   MPI_Count& count) {
    count = datatype.elements_in(status_bytes(*status));
    return {};
}

Error get_elements_x(Context& context, const MPI_Status* status, const datatype::Datatype& datatype,
                     MPI_Count* count) {
    return get_elements(context, status, datatype, *count);
}

Error test_cancelled(Context&, const MPI_Status* status, int* flag) {
    *flag = status_cancelled(*status);
    return {};
}

Error status_set_elements(Context&, MPI_Status* status, const datatype::Datatype& datatype,
                          MPI_Count count) {
    const MPI_Count basic = datatype.elements_in(datatype.size); // basic elements in one
    if (basic <= 0) {
        set_status_bytes(*status, 0);
        return {};
    }
    MPI_Count bytes = count / basic * datatype.size;
    // The rest of a whole one: as many bytes as get_elements will count it from.
    const MPI_Count whole = bytes + datatype.size;
    while (bytes < whole && datatype.elements_in(bytes) != count) {
        ++bytes;
    }
    set_status_bytes(*status, bytes);
    return {};
}

Error status_set_elements_x(Context& context, MPI_Status* status,
                            const datatype::Datatype& datatype, MPI_Count count) {
    return status_set_elements(context, status, datatype, count);
}

Error status_set_cancelled(Context&, MPI_Status* status, int flag) {
    set_status_cancelled(*status, flag != 0);
    return {};
}

Error status_get_error(const MPI_Status* status, int* error) {
    *error = status->MPI_ERROR;
    return {};
}

Error status_get_source(const MPI_Status* status, int* source) {
    *source = status->MPI_SOURCE;
    return {};
}

Error status_get_tag(const MPI_Status* status, int* tag) {
    *tag = status->MPI_TAG;
    return {};
}

Error status_set_error(MPI_Status* status, int error) {
    status->MPI_ERROR = error;
    return {};
}

Error status_set_source(MPI_Status* status, int source) {
    status->MPI_SOURCE = source;
    return {};
}

Error status_set_tag(MPI_Status* status, int tag) {
    status->MPI_TAG = tag;
    return {};
}

} // namespace warren::mpi
