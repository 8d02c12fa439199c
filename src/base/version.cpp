#include "warren/version.h"

#define WARREN_TEXT_OF(number) #number
#define WARREN_TEXT(number) WARREN_TEXT_OF(number)

extern "C" [[gnu::visibility("default")]] const char* warren_version(void) {
    return WARREN_TEXT(WARREN_VERSION_MAJOR) "." WARREN_TEXT(WARREN_VERSION_MINOR) "." WARREN_TEXT(
        WARREN_VERSION_PATCH);
}
