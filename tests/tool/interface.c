/* The interface itself: its life, its tables, strings, sessions, and the errors of each procedure;
   before MPI_Init, between, and after MPI_Finalize. */
#include "tool.h"

static int bogus; /* its address is no handle */
#define BOGUS(type) ((type)(void*)&bogus)

#define FAILS(code, call)                                                                          \
    do {                                                                                           \
        const int got = (call);                                                                    \
        CHECK(got == (code), "it returned %d, not %s", got, #code);                                \
    } while (0)

static void ignore(MPI_T_event_instance instance, MPI_T_event_registration registration,
                   MPI_T_cb_safety safety, void* data) {
    (void)instance, (void)registration, (void)safety, (void)data;
}

/* Every procedure but the first says that the interface is not initialised. */
static void refused_without_initialisation(void) {
    int number;
    char text[8];
    MPI_Count ticks;
    MPI_Info info = MPI_INFO_NULL;
    MPI_T_cvar_handle control = MPI_T_CVAR_HANDLE_NULL;
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle variable = MPI_T_PVAR_HANDLE_NULL;
    MPI_T_event_registration registration = BOGUS(MPI_T_event_registration);
    MPI_T_event_instance instance = BOGUS(MPI_T_event_instance);
#define REFUSED(call) FAILS(MPI_T_ERR_NOT_INITIALIZED, call)
    REFUSED(MPI_T_finalize());
    REFUSED(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &number, NULL, NULL));
    REFUSED(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &number, NULL, NULL));
    REFUSED(MPI_T_category_get_num(&number));
    REFUSED(MPI_T_category_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(MPI_T_category_get_num_events(0, &number));
    REFUSED(MPI_T_category_get_index("warren", &number));
    REFUSED(MPI_T_category_get_cvars(0, 1, &number));
    REFUSED(MPI_T_category_get_pvars(0, 1, &number));
    REFUSED(MPI_T_category_get_events(0, 1, &number));
    REFUSED(MPI_T_category_get_categories(0, 1, &number));
    REFUSED(MPI_T_category_changed(&number));
    REFUSED(MPI_T_cvar_get_num(&number));
    REFUSED(MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(MPI_T_cvar_get_index("wait_spins", &number));
    REFUSED(MPI_T_cvar_handle_alloc(0, NULL, &control, &number));
    REFUSED(MPI_T_cvar_handle_free(&control));
    REFUSED(MPI_T_cvar_read(control, text));
    REFUSED(MPI_T_cvar_write(control, text));
    REFUSED(MPI_T_pvar_get_num(&number));
    REFUSED(MPI_T_pvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                NULL));
    REFUSED(MPI_T_pvar_get_index("waits", MPI_T_PVAR_CLASS_COUNTER, &number));
    REFUSED(MPI_T_pvar_session_create(&session));
    REFUSED(MPI_T_pvar_session_free(&session));
    REFUSED(MPI_T_pvar_handle_alloc(session, 0, NULL, &variable, &number));
    REFUSED(MPI_T_pvar_handle_free(session, &variable));
    REFUSED(MPI_T_pvar_start(session, variable));
    REFUSED(MPI_T_pvar_stop(session, variable));
    REFUSED(MPI_T_pvar_read(session, variable, text));
    REFUSED(MPI_T_pvar_write(session, variable, text));
    REFUSED(MPI_T_pvar_reset(session, variable));
    REFUSED(MPI_T_pvar_readreset(session, variable, text));
    REFUSED(MPI_T_source_get_num(&number));
    REFUSED(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(MPI_T_source_get_timestamp(0, &ticks));
    REFUSED(MPI_T_event_get_num(&number));
    REFUSED(
        MPI_T_event_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(MPI_T_event_get_index("long_wait", &number));
    REFUSED(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &registration));
    REFUSED(MPI_T_event_handle_set_info(registration, MPI_INFO_NULL));
    REFUSED(MPI_T_event_handle_get_info(registration, &info));
    REFUSED(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL,
                                          ignore));
    REFUSED(MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL));
    REFUSED(MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_NONE, &info));
    REFUSED(MPI_T_event_handle_free(registration, NULL, NULL));
    REFUSED(MPI_T_event_set_dropped_handler(registration, NULL));
    REFUSED(MPI_T_event_read(instance, 0, text));
    REFUSED(MPI_T_event_copy(instance, text));
    REFUSED(MPI_T_event_get_timestamp(instance, &ticks));
    REFUSED(MPI_T_event_get_source(instance, &number));
}

/* Strings are cut to the room, and their whole length comes back. */
static void strings(void) {
    char text[64];
    int whole = 0, length;
    FAILS(MPI_SUCCESS,
          MPI_T_cvar_get_info(0, NULL, &whole, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(whole == (int)sizeof "wait_spins", "the name's length is %d", whole);
    length = 0;
    strcpy(text, "kept");
    MPI_T_cvar_get_info(0, text, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(length == whole && strcmp(text, "kept") == 0, "no room: %d, %s", length, text);
    length = 5;
    MPI_T_cvar_get_info(0, text, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(length == whole && strcmp(text, "wait") == 0, "room for 5: %d, %s", length, text);
    length = sizeof text;
    MPI_T_cvar_get_info(0, text, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(length == whole && strcmp(text, "wait_spins") == 0, "room: %d, %s", length, text);
    strcpy(text, "kept");
    MPI_T_cvar_get_info(0, text, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(strcmp(text, "kept") == 0, "without a length: %s", text);
}

static void control_variables(void) {
    int number = 0, index, count;
    FAILS(MPI_SUCCESS, MPI_T_cvar_get_num(&number));
    FAILS(MPI_T_ERR_INVALID, MPI_T_cvar_get_num(NULL));
    CHECK(number > 10, "%d control variables", number);
    for (int i = 0; i < number; i++) {
        char name[64], description[512], value[512];
        int name_length = sizeof name, description_length = sizeof description;
        int verbosity = -1, bind = -1, scope = -1;
        MPI_Datatype datatype;
        MPI_T_enum names;
        MPI_T_cvar_handle handle;
        FAILS(MPI_SUCCESS, MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &datatype, &names,
                                               description, &description_length, &bind, &scope));
        CHECK(name_length == (int)strlen(name) + 1, "%s: length %d", name, name_length);
        CHECK(description_length <= (int)sizeof description, "%s", name);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL,
              "%s: verbosity %d", name, verbosity);
        CHECK(bind == MPI_T_BIND_NO_OBJECT, "%s: bind %d", name, bind);
        FAILS(MPI_SUCCESS, MPI_T_cvar_get_index(name, &index));
        CHECK(index == i, "%s is %d and %d", name, i, index);
        FAILS(MPI_SUCCESS, MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
        CHECK(count == 1 || datatype == MPI_CHAR, "%s has %d elements", name, count);
        FAILS(MPI_SUCCESS, MPI_T_cvar_read(handle, value));
        FAILS(MPI_T_ERR_INVALID, MPI_T_cvar_read(handle, NULL));
        if (scope == MPI_T_SCOPE_CONSTANT || scope == MPI_T_SCOPE_READONLY) {
            FAILS(MPI_T_ERR_CVAR_SET_NEVER, MPI_T_cvar_write(handle, value));
        } else {
            CHECK(scope == MPI_T_SCOPE_LOCAL || scope == MPI_T_SCOPE_ALL_EQ, "%s: scope %d", name,
                  scope);
            FAILS(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, NULL));
        }
        if (names != MPI_T_ENUM_NULL) {
            int items = 0, item = -1, chosen;
            memcpy(&chosen, value, sizeof chosen);
            FAILS(MPI_SUCCESS, MPI_T_enum_get_info(names, &items, NULL, NULL));
            CHECK(chosen >= 0 && chosen < items, "%s is %d of %d", name, chosen, items);
            for (int k = 0; k < items; k++) {
                FAILS(MPI_SUCCESS, MPI_T_enum_get_item(names, k, &item, NULL, NULL));
                CHECK(item == k, "item %d is %d", k, item);
            }
            FAILS(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(names, items, &item, NULL, NULL));
            FAILS(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(names, -1, &item, NULL, NULL));
        }
        MPI_T_cvar_handle freed = handle;
        FAILS(MPI_SUCCESS, MPI_T_cvar_handle_free(&handle));
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL, "a freed handle is not null");
        FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(freed, value));
        FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_write(freed, value));
        FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_handle_free(&freed));
    }
    MPI_T_cvar_handle handle;
    FAILS(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(number, NULL, &handle, &count));
    FAILS(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(-1, NULL, &handle, &count));
    FAILS(MPI_T_ERR_INVALID, MPI_T_cvar_handle_alloc(0, NULL, NULL, &count));
    FAILS(MPI_T_ERR_INVALID_INDEX,
          MPI_T_cvar_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    FAILS(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("no such name", &index));
    FAILS(MPI_T_ERR_INVALID, MPI_T_cvar_get_index(NULL, &index));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(BOGUS(MPI_T_cvar_handle), &index));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_info(BOGUS(MPI_T_enum), &index, NULL, NULL));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &index, NULL, NULL));
}

static void one_variable(int i, MPI_T_pvar_session session, MPI_T_pvar_session other) {
    char name[64];
    int length = sizeof name, var_class, readonly, continuous, atomic, index = -1, count = 0;
    double value = 0;
    MPI_T_pvar_handle handle;
    FAILS(MPI_SUCCESS, MPI_T_pvar_get_info(i, name, &length, NULL, &var_class, NULL, NULL, NULL,
                                           NULL, NULL, &readonly, &continuous, &atomic));
    FAILS(MPI_SUCCESS, MPI_T_pvar_get_index(name, var_class, &index));
    CHECK(index == i, "%s is %d and %d", name, i, index);
    FAILS(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_PERCENTAGE, &index));
    FAILS(MPI_SUCCESS, MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
    FAILS(continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS,
          MPI_T_pvar_start(session, handle));
    FAILS(MPI_SUCCESS, MPI_T_pvar_read(session, handle, &value));
    FAILS(MPI_T_ERR_INVALID, MPI_T_pvar_read(session, handle, NULL));
    FAILS(readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS,
          MPI_T_pvar_write(session, handle, &value));
    FAILS(readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS, MPI_T_pvar_reset(session, handle));
    FAILS(atomic ? MPI_SUCCESS : MPI_T_ERR_PVAR_NO_ATOMIC,
          MPI_T_pvar_readreset(session, handle, &value));
    FAILS(continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS, MPI_T_pvar_stop(session, handle));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other, handle, &value));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_start(other, handle));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(other, &handle));
    MPI_T_pvar_handle freed = handle;
    FAILS(MPI_SUCCESS, MPI_T_pvar_handle_free(session, &handle));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, freed, &value));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(session, &freed));
}

static void performance_variables(void) {
    int number = 0, index = 0, count = 0;
    double value;
    MPI_T_pvar_session session, other;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    FAILS(MPI_SUCCESS, MPI_T_pvar_get_num(&number));
    CHECK(number > 20, "%d performance variables", number);
    FAILS(MPI_T_ERR_INVALID, MPI_T_pvar_session_create(NULL));
    FAILS(MPI_SUCCESS, MPI_T_pvar_session_create(&session));
    FAILS(MPI_SUCCESS, MPI_T_pvar_session_create(&other));
    for (int i = 0; i < number; i++)
        one_variable(i, session, other);
    FAILS(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_handle_alloc(session, number, NULL, &handle, &count));
    FAILS(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, NULL));
    FAILS(MPI_T_ERR_INVALID_SESSION,
          MPI_T_pvar_handle_alloc(BOGUS(MPI_T_pvar_session), 0, NULL, &handle, &count));
    FAILS(MPI_T_ERR_INVALID_NAME,
          MPI_T_pvar_get_index("no such name", MPI_T_PVAR_CLASS_COUNTER, &index));
    /* All of a session: also when there are none, and read-only ones are left alone. */
    FAILS(MPI_SUCCESS, MPI_T_pvar_start(other, MPI_T_PVAR_ALL_HANDLES));
    for (int i = 0; i < number; i++)
        FAILS(MPI_SUCCESS, MPI_T_pvar_handle_alloc(other, i, NULL, &handle, &count));
    FAILS(MPI_SUCCESS, MPI_T_pvar_start(other, MPI_T_PVAR_ALL_HANDLES));
    FAILS(MPI_SUCCESS, MPI_T_pvar_reset(other, MPI_T_PVAR_ALL_HANDLES));
    FAILS(MPI_SUCCESS, MPI_T_pvar_stop(other, MPI_T_PVAR_ALL_HANDLES));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other, MPI_T_PVAR_ALL_HANDLES, &value));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_write(other, MPI_T_PVAR_ALL_HANDLES, &value));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_readreset(other, MPI_T_PVAR_ALL_HANDLES, &value));
    MPI_T_pvar_session freed = other;
    FAILS(MPI_SUCCESS, MPI_T_pvar_session_free(&other));
    FAILS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&other));
    FAILS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(NULL));
    FAILS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_start(freed, MPI_T_PVAR_ALL_HANDLES));
    FAILS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(freed, handle, &value));
    FAILS(MPI_SUCCESS, MPI_T_pvar_session_free(&session));
}

static void categories(void) {
    int number = 0, index = -1, changed = -1, listed = 0, controls = 0;
    FAILS(MPI_SUCCESS, MPI_T_category_get_num(&number));
    for (int i = 0; i < number; i++) {
        char name[64];
        int length = sizeof name, counts[4] = {-1, -1, -1, -1}, indices[64], limits[4];
        FAILS(MPI_SUCCESS, MPI_T_category_get_info(i, name, &length, NULL, NULL, &counts[0],
                                                   &counts[1], &counts[2]));
        FAILS(MPI_SUCCESS, MPI_T_category_get_num_events(i, &counts[3]));
        FAILS(MPI_SUCCESS, MPI_T_category_get_index(name, &index));
        CHECK(index == i, "%s is %d and %d", name, i, index);
        MPI_T_cvar_get_num(&limits[0]);
        MPI_T_pvar_get_num(&limits[1]);
        limits[2] = number;
        MPI_T_event_get_num(&limits[3]);
        for (int kind = 0; kind < 4; kind++) {
            int (*const get[])(int, int,
                               int*) = {MPI_T_category_get_cvars, MPI_T_category_get_pvars,
                                        MPI_T_category_get_categories, MPI_T_category_get_events};
            FAILS(MPI_SUCCESS, get[kind](i, counts[kind], indices));
            for (int k = 0; k < counts[kind]; k++)
                CHECK(indices[k] >= 0 && indices[k] < limits[kind], "%s, kind %d: item %d is %d",
                      name, kind, k, indices[k]);
            indices[0] = -7;
            FAILS(MPI_SUCCESS, get[kind](i, 0, indices));
            CHECK(indices[0] == -7, "an item was stored beyond the array");
            FAILS(MPI_T_ERR_INVALID_INDEX, get[kind](number, 1, indices));
            FAILS(MPI_T_ERR_INVALID, get[kind](i, -1, indices));
        }
        listed += counts[1];
        controls += counts[0];
    }
    MPI_T_pvar_get_num(&index);
    CHECK(listed == index, "categories list %d of %d performance variables", listed, index);
    MPI_T_cvar_get_num(&index);
    CHECK(controls >= index, "categories list %d of %d control variables", controls, index);
    FAILS(MPI_SUCCESS, MPI_T_category_changed(&changed));
    FAILS(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("no such name", &index));
    FAILS(MPI_T_ERR_INVALID_INDEX,
          MPI_T_category_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
}

static int freed_with; /* what the function below was given */

static void note_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void* data) {
    (void)registration;
    CHECK(safety == MPI_T_CB_REQUIRE_NONE, "safety %d", (int)safety);
    freed_with = *(int*)data;
}

static void event_registrations(int event) {
    MPI_T_event_registration registration;
    MPI_Info info;
    int keys = -1, answer = 42;
    FAILS(MPI_SUCCESS, MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &registration));
    FAILS(MPI_SUCCESS, MPI_T_event_handle_set_info(registration, MPI_INFO_NULL));
    FAILS(MPI_SUCCESS, MPI_T_event_handle_get_info(registration, &info));
    MPI_Info_get_nkeys(info, &keys);
    CHECK(keys == 0, "%d hints", keys);
    MPI_Info_free(&info);
    FAILS(MPI_T_ERR_INVALID,
          MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_THREAD_SAFE, &info));
    FAILS(MPI_SUCCESS, MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_THREAD_SAFE,
                                                     MPI_INFO_NULL, NULL, ignore));
    FAILS(MPI_SUCCESS,
          MPI_T_event_callback_set_info(registration, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL));
    FAILS(MPI_SUCCESS,
          MPI_T_event_callback_get_info(registration, MPI_T_CB_REQUIRE_THREAD_SAFE, &info));
    MPI_Info_free(&info);
    FAILS(MPI_T_ERR_INVALID, MPI_T_event_register_callback(registration, (MPI_T_cb_safety)77,
                                                           MPI_INFO_NULL, NULL, ignore));
    FAILS(MPI_SUCCESS, MPI_T_event_set_dropped_handler(registration, NULL));
    FAILS(MPI_SUCCESS, MPI_T_event_handle_free(registration, &answer, note_free));
    CHECK(freed_with == answer, "the function of the end got %d", freed_with);
    freed_with = 0;
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_free(registration, NULL, NULL));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_set_dropped_handler(registration, NULL));
    FAILS(MPI_T_ERR_INVALID_HANDLE,
          MPI_T_event_register_callback(BOGUS(MPI_T_event_registration), MPI_T_CB_REQUIRE_NONE,
                                        MPI_INFO_NULL, NULL, ignore));
}

static void events(void) {
    int number = 0, index = -1;
    MPI_Count before = 0, after = 0, ticks = 0;
    MPI_T_source_order order;
    MPI_T_event_registration registration;
    MPI_Info info;
    FAILS(MPI_SUCCESS, MPI_T_source_get_num(&number));
    CHECK(number == 1, "%d sources", number);
    FAILS(MPI_SUCCESS,
          MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, &order, &ticks, NULL, &info));
    CHECK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000, "order %d", (int)order);
    MPI_Info_free(&info);
    FAILS(MPI_SUCCESS, MPI_T_source_get_timestamp(0, &before));
    pause_ms(2);
    FAILS(MPI_SUCCESS, MPI_T_source_get_timestamp(0, &after));
    CHECK(after - before >= 2000000, "2 ms are %lld ticks", (long long)(after - before));
    FAILS(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(1, &after));
    FAILS(MPI_T_ERR_INVALID_INDEX,
          MPI_T_source_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    FAILS(MPI_T_ERR_INVALID, MPI_T_source_get_timestamp(0, NULL));

    FAILS(MPI_SUCCESS, MPI_T_event_get_num(&number));
    for (int i = 0; i < number; i++) {
        char name[64];
        int length = sizeof name, elements = 1, all = 16;
        MPI_Datatype types[16] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
        MPI_Aint displacements[16];
        FAILS(MPI_SUCCESS, MPI_T_event_get_info(i, name, &length, NULL, types, displacements,
                                                &elements, NULL, NULL, NULL, NULL, NULL));
        CHECK(types[0] != MPI_DATATYPE_NULL && types[1] == MPI_DATATYPE_NULL,
              "%s: an element was stored beyond the array, or none", name);
        FAILS(MPI_SUCCESS, MPI_T_event_get_info(i, NULL, NULL, NULL, types, displacements, &all,
                                                NULL, NULL, NULL, NULL, NULL));
        CHECK(all == elements && types[all - 1] != MPI_DATATYPE_NULL, "%s: %d elements", name, all);
        FAILS(MPI_SUCCESS, MPI_T_event_get_index(name, &index));
        CHECK(index == i, "%s is %d and %d", name, i, index);
        event_registrations(i);
    }
    FAILS(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("no such name", &index));
    FAILS(MPI_T_ERR_INVALID_INDEX, MPI_T_event_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL,
                                                        NULL, NULL, NULL, NULL, NULL));
    FAILS(MPI_T_ERR_INVALID_INDEX,
          MPI_T_event_handle_alloc(number, NULL, MPI_INFO_NULL, &registration));
    FAILS(MPI_T_ERR_INVALID, MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, NULL));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_read(BOGUS(MPI_T_event_instance), 0, &index));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_copy(BOGUS(MPI_T_event_instance), &index));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_get_timestamp(BOGUS(MPI_T_event_instance), &after));
    FAILS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_get_source(BOGUS(MPI_T_event_instance), &index));
}

static void everything(void) {
    strings();
    control_variables();
    performance_variables();
    categories();
    events();
}

int main(int argc, char** argv) {
    int provided;
    refused_without_initialisation();
    FAILS(MPI_T_ERR_INVALID, MPI_T_init_thread(MPI_THREAD_SINGLE, NULL));
    FAILS(MPI_T_ERR_INVALID, MPI_T_init_thread(-5, &provided));
    tool_init();
    everything();
    /* A handle, and what has been written, outlive MPI's beginning and end. */
    Variable sent = variable_open("self_sent", MPI_T_PVAR_CLASS_COUNTER);
    control_set("wait_spins", 777);
    MPI_Init(&argc, &argv);
    CHECK(control_get("wait_spins") == 777, "wait_spins is %llu", control_get("wait_spins"));
    int rank, one = 1, two = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 3; i++)
        MPI_Sendrecv(&one, 1, MPI_INT, rank, 0, &two, 1, MPI_INT, rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    CHECK(variable_value(&sent) == 3, "%g sent", variable_value(&sent));
    tool_init(); /* twice */
    everything();
    FAILS(MPI_SUCCESS, MPI_T_finalize());
    everything();
    MPI_Finalize();
    everything();
    CHECK(variable_value(&sent) == 3, "%g sent", variable_value(&sent));
    CHECK(control_get("wait_spins") == 777, "wait_spins is %llu", control_get("wait_spins"));
    FAILS(MPI_SUCCESS, MPI_T_finalize());
    refused_without_initialisation();
    tool_init();
    double value;
    FAILS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(sent.session, sent.handle, &value));
    FAILS(MPI_SUCCESS, MPI_T_finalize());
    return 0;
}
