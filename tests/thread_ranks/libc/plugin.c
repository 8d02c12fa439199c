/* What plugins.c opens: as often as it is compiled, with another NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int nobody_defines_this(void);
extern int only_another_has(void);

static int total;
static char events[64];

int shared_name(void) {
    return NAME;
}

int ask_shared_name(void) {
    return shared_name();
}

int add(int count) {
    return total += count;
}

int call_undefined(void) {
    return nobody_defines_this();
}

int call_other(void) {
    return only_another_has();
}

#if NAME == 2
int only_another_has(void) {
    return 22;
}
#endif

const char* name_in_environment(void) {
    return events;
}

static void at_exit(void) {
    printf("exit function %d\n", NAME);
}

__attribute__((constructor)) static void construct(int argc, char** argv, char** variables) {
    (void)argc;
    (void)argv;
    for (; *variables != NULL; ++variables) {
        if (strncmp(*variables, "WARREN_PLUGIN=", 14) == 0) {
            strncpy(events, *variables + 14, sizeof events - 1);
        }
    }
    atexit(at_exit);
}

__attribute__((destructor)) static void destruct(void) {
    printf("destructor %d\n", NAME);
    fflush(stdout);
}
