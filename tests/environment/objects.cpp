// Error handlers and codes, info objects, attributes and handles as integers.
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include <mpi.h>

#include "expect.hpp"

namespace {

int handled;
void count(MPI_Comm*, int*, ...) {
    ++handled;
}

void error_handlers() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
    EXPECT(handler == MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Comm_create_errhandler(count, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler again;
    MPI_Comm_get_errhandler(comm, &again);
    EXPECT(again == handler);
    MPI_Errhandler_free(&again);
    MPI_Errhandler_free(&handler);
    EXPECT(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER) == MPI_SUCCESS && handled == 1);
    EXPECT(MPI_Send(nullptr, 1, MPI_INT, 0, 0, comm) != MPI_SUCCESS && handled == 2);
    // Made by any means, a communicator has its parent's.
    MPI_Comm split;
    MPI_Comm_split(comm, 0, 0, &split);
    EXPECT(MPI_Send(nullptr, 1, MPI_INT, 0, 0, split) != MPI_SUCCESS && handled == 3);
    MPI_Comm_free(&split);
    MPI_Comm_free(&comm);
}

void error_codes() {
    int error_class = 0;
    int code = 0;
    int found = 0;
    int length = 0;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&error_class);
    MPI_Add_error_code(error_class, &code);
    MPI_Add_error_string(code, "too hot");
    MPI_Error_class(code, &found);
    EXPECT(found == error_class && error_class > MPI_ERR_LASTCODE);
    MPI_Error_string(code, text, &length);
    EXPECT(std::strcmp(text, "too hot") == 0 && length == 7);
    int* last_used = nullptr;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, static_cast<void*>(&last_used), &found);
    EXPECT(found == 1 && *last_used == code);
    EXPECT(MPI_Remove_error_string(code) == MPI_SUCCESS);
    EXPECT(MPI_Remove_error_code(code) == MPI_SUCCESS);
    EXPECT(MPI_Remove_error_class(error_class) == MPI_SUCCESS);
}

void info_objects() {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "first", "1");
    MPI_Info_set(info, "second", "twenty-two");
    char value[MPI_MAX_INFO_VAL];
    char key[MPI_MAX_INFO_KEY];
    int flag = 0;
    int length = 4;
    MPI_Info_get_string(info, "second", &length, value, &flag);
    EXPECT(flag == 1 && length == 11 && std::strcmp(value, "twe") == 0);
    length = 0;
    EXPECT(MPI_Info_get_string(info, "second", &length, nullptr, &flag) == MPI_SUCCESS);
    EXPECT(flag == 1 && length == 11);
    MPI_Info_get_string(info, "third", &length, value, &flag);
    EXPECT(flag == 0);
    MPI_Info_get_nthkey(info, 1, key);
    EXPECT(std::strcmp(key, "second") == 0);
    MPI_Info copy;
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "first");
    int keys = 0;
    MPI_Info_get_nkeys(copy, &keys);
    EXPECT(keys == 2);
    EXPECT(MPI_Info_fromint(MPI_Info_toint(copy)) == copy);
    MPI_Comm comm;
    MPI_Comm_dup_with_info(MPI_COMM_SELF, copy, &comm);
    MPI_Info_free(&copy);
    MPI_Comm_get_info(comm, &copy);
    length = 0;
    MPI_Info_get_string(copy, "second", &length, nullptr, &flag);
    EXPECT(flag == 1);
    MPI_Info_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Info_free(&info);
    length = MPI_MAX_INFO_VAL;
    MPI_Info_get_string(MPI_INFO_ENV, "command", &length, value, &flag);
    EXPECT(flag == 1 && std::strstr(value, "environment.objects") != nullptr);
    // What the program was started with, not what it has done since.
    MPI_Info_create_env(0, nullptr, &info);
    MPI_Info_get_string(info, "thread_level", &length, value, &flag);
    EXPECT(flag == 0);
    MPI_Info_free(&info);
}

int predefined(int key) {
    int* value = nullptr;
    int flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, static_cast<void*>(&value), &flag);
    return flag == 1 ? *value : -1000;
}

int copied;
int copy_and_count(MPI_Comm, int, void*, void* value, void* result, int* flag) {
    ++copied;
    std::memcpy(result, static_cast<void*>(&value), sizeof value);
    *flag = 1;
    return MPI_SUCCESS;
}

void attributes() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(predefined(MPI_TAG_UB) >= 32767);
    EXPECT(predefined(MPI_WTIME_IS_GLOBAL) == 1);
    EXPECT(predefined(MPI_UNIVERSE_SIZE) >= size);
    EXPECT(predefined(MPI_APPNUM) == 0);
    EXPECT(predefined(MPI_IO) == MPI_ANY_SOURCE);
    EXPECT(predefined(MPI_HOST) == MPI_PROC_NULL);

    int key = 0;
    int value = 5;
    MPI_Comm_create_keyval(copy_and_count, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    MPI_Comm comm;
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, &value);
    MPI_Comm_dup(comm, &copy);
    int* found = nullptr;
    int flag = 0;
    MPI_Comm_get_attr(copy, key, static_cast<void*>(&found), &flag);
    EXPECT(copied == 1 && flag == 1 && found == &value);
    MPI_Comm_delete_attr(copy, key);
    MPI_Comm_get_attr(copy, key, static_cast<void*>(&found), &flag);
    EXPECT(flag == 0);
    MPI_Comm_free(&copy);
    // A key that is freed while an attribute has it is still good for that.
    const int kept = key;
    MPI_Comm_free_keyval(&key);
    EXPECT(key == MPI_KEYVAL_INVALID);
    MPI_Comm_get_attr(comm, kept, static_cast<void*>(&found), &flag);
    EXPECT(flag == 1 && found == &value);
    EXPECT(MPI_Comm_delete_attr(comm, kept) == MPI_SUCCESS);
    MPI_Comm_free(&comm);

    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &key, nullptr);
    MPI_Type_set_attr(MPI_INT, key, &value);
    MPI_Datatype type;
    MPI_Type_dup(MPI_INT, &type);
    MPI_Type_get_attr(type, key, static_cast<void*>(&found), &flag);
    EXPECT(flag == 1 && found == &value);
    MPI_Type_free(&type);
    MPI_Type_free_keyval(&key);
}

// What a program may do with predefined types as with its own.
void predefined_types() {
    for (MPI_Datatype type : {MPI_INT, MPI_FLOAT_INT, MPI_PACKED}) {
        EXPECT(MPI_Type_commit(&type) == MPI_SUCCESS);
    }
    MPI_Datatype type = MPI_INT;
    MPI_Type_set_name(type, "number");
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    MPI_Type_get_name(type, name, &length);
    EXPECT(std::strcmp(name, "number") == 0 && length == 6);
}

void null_handles() {
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    EXPECT(MPI_Comm_get_name(MPI_COMM_NULL, name, &length) == MPI_SUCCESS);
    EXPECT(std::strcmp(name, "MPI_COMM_NULL") == 0 && length == 13);
    EXPECT(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length) == MPI_SUCCESS);
    EXPECT(std::strcmp(name, "MPI_DATATYPE_NULL") == 0 && length == 17);
}

void statuses() {
    MPI_Status status;
    EXPECT(MPI_Status_set_source(&status, MPI_ANY_SOURCE) == MPI_SUCCESS);
    EXPECT(MPI_Status_set_tag(&status, MPI_ANY_TAG) == MPI_SUCCESS);
    EXPECT(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
}

int query_error = MPI_SUCCESS;
int free_error = MPI_SUCCESS;
int freed = 0;
int query(void*, MPI_Status* status) {
    MPI_Status_set_elements(status, MPI_BYTE, 7);
    MPI_Status_set_cancelled(status, 0);
    return query_error;
}
int end(void*) {
    ++freed;
    return free_error;
}
int cancel(void*, int) {
    return MPI_SUCCESS;
}

// The codes that a generalised request's functions return are those of the call.
void generalised_requests() {
    int error_class = MPI_SUCCESS;
    const auto wait = [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Grequest_start(query, end, cancel, nullptr, &request);
        MPI_Grequest_complete(request);
        MPI_Status status;
        MPI_Error_class(MPI_Wait(&request, &status), &error_class);
        EXPECT(request == MPI_REQUEST_NULL);
    };
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    wait();
    EXPECT(error_class == MPI_SUCCESS && freed == 1);
    query_error = MPI_ERR_BUFFER;
    wait();
    EXPECT(error_class == MPI_ERR_BUFFER && freed == 2);
    query_error = MPI_SUCCESS;
    free_error = MPI_ERR_DIMS;
    wait();
    EXPECT(error_class == MPI_ERR_DIMS && freed == 3);

    int number = 1;
    MPI_Error_class(MPI_Reduce_local(&number, &number, 1, MPI_INT, MPI_SUM), &error_class);
    EXPECT(error_class == MPI_ERR_BUFFER);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

void integers() {
    EXPECT(MPI_Comm_toint(MPI_COMM_WORLD) == 0x101);
    EXPECT(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)) == MPI_DOUBLE);
    EXPECT(MPI_Op_fromint(MPI_Op_toint(MPI_MAX)) == MPI_MAX);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int integer = MPI_Comm_toint(comm);
    EXPECT(MPI_Comm_fromint(integer) == comm);
    MPI_Comm_free(&comm);
    EXPECT(MPI_Comm_fromint(integer) == MPI_COMM_NULL);
    EXPECT(MPI_Comm_fromint(-5) == MPI_COMM_NULL);
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    error_handlers();
    error_codes();
    info_objects();
    attributes();
    predefined_types();
    null_handles();
    statuses();
    generalised_requests();
    integers();
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
