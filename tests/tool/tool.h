/* What the tests of the tool information interface share. */
#ifndef TOOL_H
#define TOOL_H

#include <time.h>

#include "../point_to_point/check.h"

enum { by_processes = 1, by_threads, by_fibres }; /* values of the variable "ranks" */

static inline void pause_ms(long ms) {
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static inline void tool_init(void) {
    int provided = -1;
    CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS, "MPI_T_init_thread");
    CHECK(provided == MPI_THREAD_MULTIPLE, "provided is %d", provided);
}

/* A performance variable, in a session of its own; started if it can be. */
typedef struct {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_Datatype datatype;
    int continuous;
    int index;
    const char* name;
} Variable;

static inline Variable variable_open(const char* name, int var_class) {
    Variable its = {.name = name};
    int index = -1, count = -1;
    CHECK(MPI_T_pvar_get_index(name, var_class, &index) == MPI_SUCCESS, "no variable %s", name);
    MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, &its.datatype, NULL, NULL, NULL, NULL, NULL,
                        &its.continuous, NULL);
    its.index = index;
    CHECK(MPI_T_pvar_session_create(&its.session) == MPI_SUCCESS, "session");
    CHECK(MPI_T_pvar_handle_alloc(its.session, index, NULL, &its.handle, &count) == MPI_SUCCESS,
          "handle of %s", name);
    CHECK(count == 1, "%s has %d elements", name, count);
    if (!its.continuous)
        CHECK(MPI_T_pvar_start(its.session, its.handle) == MPI_SUCCESS, "start of %s", name);
    return its;
}

static inline double variable_value(const Variable* its) {
    union {
        int i;
        unsigned u;
        unsigned long long l;
        double d;
    } value = {.l = 0};
    CHECK(MPI_T_pvar_read(its->session, its->handle, &value) == MPI_SUCCESS, "read of %s",
          its->name);
    return its->datatype == MPI_DOUBLE               ? value.d
           : its->datatype == MPI_UNSIGNED_LONG_LONG ? (double)value.l
           : its->datatype == MPI_UNSIGNED           ? (double)value.u
                                                     : value.i;
}

static inline double variable_close(Variable* its) {
    const double value = variable_value(its);
    CHECK(MPI_T_pvar_handle_free(its->session, &its->handle) == MPI_SUCCESS, "free of a handle");
    CHECK(its->handle == MPI_T_PVAR_HANDLE_NULL, "a freed handle is not null");
    CHECK(MPI_T_pvar_session_free(&its->session) == MPI_SUCCESS, "free of a session");
    CHECK(its->session == MPI_T_PVAR_SESSION_NULL, "a freed session is not null");
    return value;
}

/* The value of a control variable that is no string; `written`: its new one, if any. */
static inline unsigned long long control_access(const char* name,
                                                const unsigned long long* written) {
    int index = -1, count = -1;
    MPI_Datatype datatype;
    MPI_T_cvar_handle handle;
    union {
        unsigned u;
        unsigned long long l;
    } value = {.l = 0};
    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS, "no control variable %s", name);
    MPI_T_cvar_get_info(index, NULL, NULL, NULL, &datatype, NULL, NULL, NULL, NULL, NULL);
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS, "handle of %s",
          name);
    if (written) {
        if (datatype == MPI_UNSIGNED_LONG_LONG)
            value.l = *written;
        else
            value.u = (unsigned)*written;
        CHECK(MPI_T_cvar_write(handle, &value) == MPI_SUCCESS, "write of %s", name);
    }
    CHECK(MPI_T_cvar_read(handle, &value) == MPI_SUCCESS, "read of %s", name);
    CHECK(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS, "free of %s", name);
    return datatype == MPI_UNSIGNED_LONG_LONG ? value.l : value.u;
}

static inline unsigned long long control_get(const char* name) {
    return control_access(name, NULL);
}

/* Returns the value before. */
static inline unsigned long long control_set(const char* name, unsigned long long value) {
    const unsigned long long before = control_get(name);
    const unsigned long long after = control_access(name, &value);
    CHECK(after == value, "%s is %llu after the write of %llu", name, after, value);
    return before;
}

#endif
