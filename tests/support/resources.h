/* What a process holds, for tests that nothing grows. */
#ifndef RESOURCES_H
#define RESOURCES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind a key in a file such as /proc/self/status; -1: there is none. */
static inline long file_number(const char* path, const char* key) {
    char line[256];
    long found = -1;
    FILE* file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0)
            found = strtol(line + strlen(key), NULL, 10);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static inline int mappings(void) {
    int lines = 0, c;
    FILE* file = fopen("/proc/self/maps", "r");
    while ((c = fgetc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

static inline int directory_entries(const char* path) {
    int entries = 0;
    DIR* directory = opendir(path);
    while (directory != NULL && readdir(directory) != NULL)
        entries++;
    if (directory != NULL)
        closedir(directory);
    return entries;
}

#endif
