// Names of ports (MPI chapter 11.4.4): publish, unpublish, look up.

#include <cstring>

#include "mpi/entry/context.hpp"
#include "mpi/entry/dynamic_processes.hpp"
#include "mpi/job/name_service.hpp"

namespace warren::mpi {

Error publish_name(Context& context, const char* service_name, comm::Info*, const char* port_name) {
    if (*port_name == '\0' || std::strlen(port_name) >= MPI_MAX_PORT_NAME) {
        return fail(MPI_ERR_PORT, "port_name is %s",
                    *port_name == '\0' ? "empty" : "longer than MPI_MAX_PORT_NAME");
    }
    return context.names.publish(service_name, port_name);
}

Error unpublish_name(Context& context, const char* service_name, comm::Info*, const char*) {
    return context.names.unpublish(service_name);
}

Error lookup_name(Context&, const char* service_name, comm::Info*, char* port_name) {
    std::string found;
    if (Error error = node::NameService::look_up(service_name, found)) {
        return error;
    }
    std::memcpy(port_name, found.c_str(), found.size() + 1);
    return {};
}

} // namespace warren::mpi
