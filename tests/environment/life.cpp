// The life of MPI in a process: what may be called before, between and after.
#include <cstring>

#include <mpi.h>

#include "expect.hpp"

namespace {

void at_any_time() {
    int version = 0;
    int subversion = -1;
    EXPECT(MPI_Get_version(&version, &subversion) == MPI_SUCCESS);
    EXPECT(version == 5 && subversion == 0);
    EXPECT(MPI_Abi_get_version(&version, &subversion) == MPI_SUCCESS);
    EXPECT(version == MPI_ABI_VERSION && subversion == MPI_ABI_SUBVERSION);
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    EXPECT(MPI_Get_library_version(text, &length) == MPI_SUCCESS);
    EXPECT(length == static_cast<int>(std::strlen(text)) && std::strstr(text, "Warren") == text);
    int error_class = -1;
    EXPECT(MPI_Error_class(MPI_ERR_TAG, &error_class) == MPI_SUCCESS);
    EXPECT(error_class == MPI_ERR_TAG);
    MPI_Info info;
    EXPECT(MPI_Info_create(&info) == MPI_SUCCESS);
    EXPECT(MPI_Info_set(info, "key", "value") == MPI_SUCCESS);
    EXPECT(MPI_Info_free(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
    EXPECT(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_SELF)) == MPI_COMM_SELF);
}

void expect_life(int initialized, int finalized) {
    int flag = -1;
    EXPECT(MPI_Initialized(&flag) == MPI_SUCCESS && flag == initialized);
    EXPECT(MPI_Finalized(&flag) == MPI_SUCCESS && flag == finalized);
}

// Called by MPI_Finalize, when MPI must still work.
int deleted;
int on_delete(MPI_Comm comm, int, void* value, void*) {
    int finalized = -1;
    int size = 0;
    MPI_Finalized(&finalized);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(comm == MPI_COMM_SELF && finalized == 0 && size > 0);
    // The latest set goes first.
    EXPECT(*static_cast<int*>(value) == 1 - deleted);
    ++deleted;
    return MPI_SUCCESS;
}

void tool_interface() {
    int number = -1;
    EXPECT(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED);
    int provided = -1;
    EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    EXPECT(MPI_T_cvar_get_num(&number) == MPI_SUCCESS && number > 0);
    EXPECT(MPI_T_pvar_get_num(&number) == MPI_SUCCESS && number > 0);
    EXPECT(MPI_T_cvar_get_index("none", &number) == MPI_T_ERR_INVALID_NAME);
    EXPECT(MPI_T_finalize() == MPI_SUCCESS);
    EXPECT(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
}

} // namespace

int main(int argc, char** argv) {
    expect_life(0, 0);
    at_any_time();
    tool_interface();
    MPI_Info survivor;
    MPI_Info_create(&survivor);
    MPI_Info_set(survivor, "key", "value");

    MPI_Init(&argc, &argv);
    expect_life(1, 0);
    at_any_time();
    int keys = 0;
    EXPECT(MPI_Info_get_nkeys(survivor, &keys) == MPI_SUCCESS && keys == 1);
    int level = -1;
    int main_thread = 0;
    EXPECT(MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_SINGLE);
    EXPECT(MPI_Is_thread_main(&main_thread) == MPI_SUCCESS && main_thread == 1);
    const double start = MPI_Wtime();
    EXPECT(start > 0 && MPI_Wtick() > 0 && MPI_Wtick() < 1e-3 && MPI_Wtime() >= start);
    void* memory = nullptr;
    EXPECT(MPI_Alloc_mem(100, MPI_INFO_NULL, static_cast<void*>(&memory)) == MPI_SUCCESS);
    EXPECT(memory != nullptr && MPI_Free_mem(memory) == MPI_SUCCESS);
    EXPECT(MPI_Aint_add(100, -30) == 70 && MPI_Aint_diff(100, 30) == 70);

    int values[2] = {0, 1};
    int key = 0;
    for (int& value : values) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, nullptr);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, &value);
        MPI_Comm_free_keyval(&key);
    }
    MPI_Finalize();
    EXPECT(deleted == 2);

    expect_life(1, 1);
    at_any_time();
    EXPECT(MPI_Info_get_nkeys(survivor, &keys) == MPI_SUCCESS && keys == 1);
    MPI_Info_free(&survivor);
    return failures == 0 ? 0 : 1;
}
