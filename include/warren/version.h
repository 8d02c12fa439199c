/* The version of Warren, at compile time and at run time. */
#ifndef WARREN_VERSION_H
#define WARREN_VERSION_H

#define WARREN_VERSION_MAJOR 0
#define WARREN_VERSION_MINOR 1
#define WARREN_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that the program runs with, "major.minor.patch". A constant string:
   any thread may call it at any time. */
const char* warren_version(void);

#ifdef __cplusplus
}
#endif

#endif
