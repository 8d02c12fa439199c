/* Warren's version as CMake knows it (the argument) is that of the header and of the library. */
#include <stdio.h>
#include <string.h>
#include <warren/version.h>

int main(int argc, char** argv) {
    char header[64];
    snprintf(header, sizeof header, "%d.%d.%d", WARREN_VERSION_MAJOR, WARREN_VERSION_MINOR,
             WARREN_VERSION_PATCH);
    if (argc != 2 || strcmp(argv[1], header) != 0 || strcmp(warren_version(), header) != 0) {
        fprintf(stderr, "header %s, library %s, CMake %s\n", header, warren_version(),
                argc == 2 ? argv[1] : "none");
        return 1;
    }
    return 0;
}
