// MPI_Comm_split_type by hardware: ranks bind themselves to processors in turn and must find
// themselves together with their neighbours there; and by process sets. Fibres, which nobody can
// bind, may run on all processors.
#include "check.hpp"

#include <cerrno>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <thread>

namespace {

// Binds to one of the processors there are; a fibre's is -1. Returns whether each rank has one.
bool bind_in_turn(std::vector<int>& processor_of_rank) {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    std::vector<int> processors;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
            processors.push_back(cpu);
        }
    }
    int own = processors[static_cast<std::size_t>(world_rank) % processors.size()];
    CPU_ZERO(&set);
    CPU_SET(own, &set);
    const int refused = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    EXPECT(refused == 0 || refused == ESRCH);
    own = refused == 0 ? own : -1;
    processor_of_rank.resize(static_cast<std::size_t>(world_size));
    MPI_Allgather(&own, 1, MPI_INT, processor_of_rank.data(), 1, MPI_INT, MPI_COMM_WORLD);
    return own != -1;
}

MPI_Comm split(int type, const char* key, const char* value) {
    MPI_Info info;
    MPI_Info_create(&info);
    if (key != nullptr) {
        MPI_Info_set(info, key, value);
    }
    MPI_Comm comm;
    EXPECT(MPI_Comm_split_type(MPI_COMM_WORLD, type, -world_rank, info, &comm) == MPI_SUCCESS);
    MPI_Info_free(&info);
    return comm;
}

int size_and_free(MPI_Comm comm) {
    if (comm == MPI_COMM_NULL) {
        return 0;
    }
    const int size = size_of(comm);
    MPI_Comm_free(&comm);
    return size;
}

// Some ranks may stay apart, whatever the others split by.
void ranks_stay_apart() {
    MPI_Comm comm;
    for (const int type : {MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_SHARED}) {
        EXPECT(MPI_Comm_split_type(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : type, 0,
                                   MPI_INFO_NULL, &comm) == MPI_SUCCESS);
        EXPECT(world_rank != 0 || comm == MPI_COMM_NULL);
        EXPECT(world_rank == 0 || type != MPI_COMM_TYPE_SHARED || size_of(comm) == world_size - 1);
        if (comm != MPI_COMM_NULL) {
            MPI_Comm_free(&comm);
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    start(&argc, &argv);
    std::vector<int> processors;
    const bool bound = bind_in_turn(processors);
    const int own = processors[static_cast<std::size_t>(world_rank)];
    std::vector<int> together;
    for (int rank = world_size; rank-- > 0;) {
        if (processors[static_cast<std::size_t>(rank)] == own) {
            together.push_back(rank);
        }
    }
    const char* key = "mpi_hw_resource_type";
    MPI_Comm comm = split(MPI_COMM_TYPE_HW_GUIDED, key, "hwloc://PU");
    const bool has_one = bound || std::thread::hardware_concurrency() == 1;
    EXPECT((comm != MPI_COMM_NULL) == has_one);
    if (comm != MPI_COMM_NULL) {
        MPI_Group group;
        MPI_Comm_group(comm, &group);
        EXPECT(members_of(group) == together);
        MPI_Group_free(&group);
        MPI_Comm_free(&comm);
    }
    EXPECT(size_and_free(split(MPI_COMM_TYPE_RESOURCE_GUIDED, key, "pu")) ==
           (has_one ? static_cast<int>(together.size()) : 0));
    EXPECT(size_and_free(split(MPI_COMM_TYPE_HW_GUIDED, key, "mpi_shared_memory")) == world_size);
    EXPECT(size_and_free(split(MPI_COMM_TYPE_HW_GUIDED, key, "hwloc://Machine")) == world_size);
    EXPECT(size_and_free(split(MPI_COMM_TYPE_HW_GUIDED, key, "flux capacitor")) == 0);
    EXPECT(size_and_free(split(MPI_COMM_TYPE_HW_GUIDED, nullptr, nullptr)) == 0);
    EXPECT(size_and_free(split(MPI_COMM_TYPE_SHARED, nullptr, nullptr)) == world_size);
    EXPECT(size_and_free(split(MPI_UNDEFINED, nullptr, nullptr)) == 0);
    EXPECT(size_and_free(split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD")) ==
           world_size);
    EXPECT(size_and_free(split(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://self")) == 1);

    // Smaller and smaller, until nothing is left to be told apart.
    MPI_Comm whole;
    MPI_Comm_dup(MPI_COMM_WORLD, &whole);
    for (int level = 0; whole != MPI_COMM_NULL; ++level) {
        EXPECT(level < 8);
        MPI_Info hints;
        MPI_Info_create(&hints);
        EXPECT(MPI_Comm_split_type(whole, MPI_COMM_TYPE_HW_UNGUIDED, 0, hints, &comm) ==
               MPI_SUCCESS);
        char told[32];
        int told_length = sizeof told, was_told;
        MPI_Info_get_string(hints, key, &told_length, told, &was_told);
        EXPECT((was_told != 0) == (comm != MPI_COMM_NULL));
        MPI_Info_free(&hints);
        if (comm != MPI_COMM_NULL) {
            EXPECT(size_of(comm) < size_of(whole));
            MPI_Info info;
            char name[32];
            int length = sizeof name, flag;
            MPI_Comm_get_info(comm, &info);
            MPI_Info_get_string(info, key, &length, name, &flag);
            EXPECT(flag != 0 && std::strncmp(name, "hwloc://", 8) == 0);
            EXPECT(std::strcmp(name, told) == 0);
            MPI_Info_free(&info);
        } else {
            EXPECT(size_of(whole) == static_cast<int>(together.size()));
        }
        MPI_Comm_free(&whole);
        whole = comm;
    }
    ranks_stay_apart();
    EXPECT(class_of(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &comm)) ==
           MPI_ERR_ARG);
    return finish();
}
