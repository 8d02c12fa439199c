/* What a window is: attributes, name, info, group, error handler, shared_query; and its handle. */
#include <sys/syscall.h>
#include <unistd.h>

#include "window.h"

static int deleted;
static int delete_value(MPI_Win win, int keyval, void* value, void* extra) {
    (void)win, (void)keyval, (void)extra;
    deleted += *(int*)value;
    return MPI_SUCCESS;
}

static void check_attributes(const Window* window) {
    const int expected[flavours] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE,
                                    MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_DYNAMIC};
    void* base;
    MPI_Aint* size;
    int *unit, *flavour, *model, flag;
    MPI_Win_get_attr(window->win, MPI_WIN_BASE, &base, &flag);
    CHECK(flag && base == (window->flavour == dynamic ? MPI_BOTTOM : window->words), "base %p",
          base);
    MPI_Win_get_attr(window->win, MPI_WIN_SIZE, &size, &flag);
    CHECK(flag && *size == (window->flavour == dynamic ? 0 : window->count * 8), "size %ld",
          (long)*size);
    MPI_Win_get_attr(window->win, MPI_WIN_DISP_UNIT, &unit, &flag);
    CHECK(flag && *unit == (window->flavour == dynamic ? 1 : 8), "unit %d", *unit);
    MPI_Win_get_attr(window->win, MPI_WIN_CREATE_FLAVOR, &flavour, &flag);
    CHECK(flag && *flavour == expected[window->flavour], "flavour %d", *flavour);
    MPI_Win_get_attr(window->win, MPI_WIN_MODEL, &model, &flag);
    CHECK(flag && *model == MPI_WIN_UNIFIED, "model %d", *model);
    MPI_Win_set_errhandler(window->win, MPI_ERRORS_RETURN);
    CHECK(check_class(MPI_Win_set_attr(window->win, MPI_WIN_SIZE, &flag)) == MPI_ERR_KEYVAL,
          "a predefined attribute was changed");
    MPI_Win_set_errhandler(window->win, MPI_ERRORS_ARE_FATAL);
}

static void check_own_attributes(const Window* window, int keyval) {
    static int value = 7;
    int* found;
    int flag = 1;
    MPI_Win_get_attr(window->win, keyval, &found, &flag);
    CHECK(!flag, "an attribute before it was set");
    MPI_Win_set_attr(window->win, keyval, &value);
    MPI_Win_get_attr(window->win, keyval, &found, &flag);
    CHECK(flag && found == &value, "value %p", (void*)found);
    MPI_Win_delete_attr(window->win, keyval);
    CHECK(deleted == 7, "deleted %d", deleted);
    deleted = 0;
    MPI_Win_set_attr(window->win, keyval, &value); /* until the window is freed */
}

static void check_name_and_group(const Window* window, MPI_Comm comm) {
    char name[MPI_MAX_OBJECT_NAME];
    int length = -1, result;
    MPI_Win_get_name(window->win, name, &length);
    CHECK(length == 0 && name[0] == '\0', "name \"%s\"", name);
    char null_name[MPI_MAX_OBJECT_NAME];
    int null_length = -1;
    MPI_Win_get_name(MPI_WIN_NULL, null_name, &null_length);
    CHECK(strcmp(null_name, "MPI_WIN_NULL") == 0, "the null handle's name is \"%s\"", null_name);
    MPI_Win_set_name(window->win, "halo");
    MPI_Win_get_name(window->win, name, &length);
    CHECK(length == 4 && strcmp(name, "halo") == 0, "name \"%s\"", name);
    MPI_Group of_window, of_comm;
    MPI_Win_get_group(window->win, &of_window);
    MPI_Comm_group(comm, &of_comm);
    MPI_Group_compare(of_window, of_comm, &result);
    CHECK(result == MPI_IDENT, "groups compare as %d", result);
    MPI_Group_free(&of_window);
    MPI_Group_free(&of_comm);
    CHECK(MPI_Win_fromint(MPI_Win_toint(window->win)) == window->win, "integer handle");
}

static void check_info(const Window* window) {
    MPI_Info info;
    char value[64];
    int flag, length = sizeof value;
    MPI_Win_get_info(window->win, &info);
    MPI_Info_get_string(info, "no_locks", &length, value, &flag);
    CHECK(flag && strcmp(value, "false") == 0, "no_locks is \"%s\"", value);
    MPI_Info_free(&info);
    MPI_Info_create(&info);
    MPI_Info_set(info, "same_size", "true");
    MPI_Info_set(info, "unheard_of", "true");
    MPI_Win_set_info(window->win, info);
    MPI_Info_free(&info);
    MPI_Win_get_info(window->win, &info);
    length = sizeof value;
    MPI_Info_get_string(info, "same_size", &length, value, &flag);
    CHECK(flag && strcmp(value, "true") == 0, "same_size is \"%s\"", value);
    MPI_Info_get_string(info, "unheard_of", &length, value, &flag);
    CHECK(!flag, "a hint that is ignored is given back");
    MPI_Info_free(&info);
}

/* The pages have their places once a window has been made: the next window in their memory shall
   not find the policy. (A system that does not tell is not asked.) */
static void check_policy(const char* memory) {
    const char* page = memory + 4096;
    int mode = 0;
    const unsigned long of_address = 2;
    if (syscall(SYS_get_mempolicy, &mode, NULL, 0UL, page, of_address) == 0)
        CHECK(mode == 0, "memory policy %d is left", mode);
}

static int handled;
static MPI_Win handled_on;
static void count_error(MPI_Win* win, int* code, ...) {
    (void)code;
    handled++;
    handled_on = *win;
}

static void check_handlers(const Window* window) {
    MPI_Errhandler handler, found;
    MPI_Win_get_errhandler(window->win, &found);
    CHECK(found == MPI_ERRORS_ARE_FATAL, "another handler than the default");
    MPI_Win_create_errhandler(count_error, &handler);
    MPI_Win_set_errhandler(window->win, handler);
    MPI_Win_get_errhandler(window->win, &found);
    CHECK(found == handler, "another handler than was set");
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&handler);
    handled = 0;
    MPI_Win_call_errhandler(window->win, MPI_ERR_OTHER);
    CHECK(handled == 1 && handled_on == window->win, "called %d times", handled);
    const int code = MPI_Win_unlock(0, window->win);
    CHECK(check_class(code) == MPI_ERR_RMA_SYNC && handled == 2, "called %d times", handled);
    MPI_Win_set_errhandler(window->win, MPI_ERRORS_ARE_FATAL);
}

/* Whether a rank of the world is on this one's node. */
static int is_here(int rank) {
    MPI_Comm here = window_node(MPI_COMM_WORLD);
    MPI_Group all, near;
    int found;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(here, &near);
    MPI_Group_translate_ranks(all, 1, &rank, near, &found);
    MPI_Group_free(&all);
    MPI_Group_free(&near);
    MPI_Comm_free(&here);
    return found != MPI_UNDEFINED;
}

/* The node's memory of shared and allocated windows is there to load and store. */
static void check_shared_query(const Window* window, int rank, int size) {
    if (window->flavour == dynamic) {
        MPI_Aint bytes;
        int unit;
        void* base;
        MPI_Win_set_errhandler(window->win, MPI_ERRORS_RETURN);
        CHECK(check_class(MPI_Win_shared_query(window->win, 0, &bytes, &unit, &base)) ==
                  MPI_ERR_RMA_FLAVOR,
              "a dynamic window was queried");
        return;
    }
    window->words[0] = 1000 + rank;
    MPI_Win_sync(window->win);
    MPI_Win_fence(0, window->win);
    int first = size;
    int* here = malloc((size_t)size * sizeof *here);
    for (int other = size - 1; other >= 0; other--) {
        here[other] = is_here(other);
        first = here[other] ? other : first;
    }
    for (int other = -1; other < size; other++) {
        MPI_Aint bytes = -1;
        int unit = -1;
        int64_t* base = NULL;
        const int asked = other < 0 ? MPI_PROC_NULL : other;
        MPI_Win_shared_query(window->win, asked, &bytes, &unit, &base);
        CHECK(unit == 8, "unit %d", unit);
        if (base == NULL && (window->flavour == created || (other >= 0 && !here[other]))) {
            CHECK(bytes == 0 && other != rank, "no memory, but %ld bytes", (long)bytes);
            continue;
        }
        CHECK(bytes == window->count * 8, "%ld bytes", (long)bytes);
        CHECK(base[0] == 1000 + (other < 0 ? first : other), "word %ld of rank %d", (long)base[0],
              other);
    }
    free(here);
    MPI_Win_fence(0, window->win);
}

/* Parts of a shared window follow each other without gaps; those of no size have none. */
static void check_contiguous(MPI_Comm comm) {
    MPI_Win win;
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    char *own, *first, *base;
    MPI_Aint bytes;
    int unit;
    const MPI_Aint wanted = rank % 3 == 1 ? 0 : 24 + rank;
    MPI_Win_allocate_shared(wanted, 1, MPI_INFO_NULL, comm, &own, &win);
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first);
    MPI_Aint expected = 0;
    for (int other = 0; other < size; other++) {
        MPI_Win_shared_query(win, other, &bytes, &unit, &base);
        CHECK(bytes == (other % 3 == 1 ? 0 : 24 + other), "%ld bytes", (long)bytes);
        CHECK(bytes == 0 || base == first + expected, "rank %d begins at %ld, not %ld", other,
              (long)(base - first), (long)expected);
        expected += bytes;
    }
    MPI_Win_free(&win);
    MPI_Win_allocate_shared(0, 1, MPI_INFO_NULL, comm, &own, &win);
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &base);
    CHECK(bytes == 0, "%ld bytes of a window of nothing", (long)bytes);
    MPI_Win_free(&win);
}

static void check_stale_handle(MPI_Comm comm) {
    char memory[8];
    MPI_Win win, stale;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, comm, &win);
    stale = win;
    MPI_Win_free(&win);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(check_class(MPI_Win_fence(0, stale)) == MPI_ERR_WIN, "a stale handle was taken");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* Memory by attribute: criteria that are wrong at one rank are every rank's error. */
static void check_placement(int rank, int size) {
    MPI_Info info;
    MPI_Win win;
    char* memory;
    const int bytes = 3 * 4096;
    MPI_Info_create(&info);
    MPI_Info_set(info, "warren_memory", "latency,capacity full=interleave");
    MPI_Comm here = window_node(MPI_COMM_WORLD);
    for (int shared_one = 0; shared_one < 2; shared_one++) {
        for (int turn = 0; turn < 2; turn++) {
            (shared_one ? MPI_Win_allocate_shared : MPI_Win_allocate)(
                bytes + 8 * rank, 1, info, shared_one ? here : MPI_COMM_WORLD, &memory, &win);
            check_policy(memory);
            for (int i = 0; i < bytes + 8 * rank; i++)
                CHECK(memory[i] == 0, "byte %d is %d", i, memory[i]);
            memset(memory, 1, (size_t)(bytes + 8 * rank));
            MPI_Win_free(&win);
        }
    }
    MPI_Comm_free(&here);
    MPI_Info_set(info, "warren_memory", rank == size - 1 ? "swiftness" : "latency");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int code = MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, &memory, &win);
    CHECK(check_class(code) == MPI_ERR_INFO_VALUE, "class %d", check_class(code));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Info_free(&info);
}

int main(int argc, char** argv) {
    int rank, size, keyval;
    MPI_Init(&argc, &argv);
    check_ranks(&rank, &size, 1);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_value, &keyval, NULL);
    for (int flavour = 0; flavour < flavours; flavour++) {
        Window window = window_make(flavour, 33, MPI_COMM_WORLD);
        check_attributes(&window);
        check_own_attributes(&window, keyval);
        check_name_and_group(&window, MPI_COMM_WORLD);
        check_info(&window);
        check_handlers(&window);
        check_shared_query(&window, rank, size);
        window_free(&window);
        CHECK(deleted == 7, "freeing the window deleted %d", deleted);
        deleted = 0;
    }
    MPI_Win_free_keyval(&keyval);
    MPI_Comm here = window_node(MPI_COMM_WORLD);
    check_contiguous(here);
    MPI_Comm_free(&here);
    check_stale_handle(MPI_COMM_WORLD);
    check_placement(rank, size);
    MPI_Finalize();
    return 0;
}
