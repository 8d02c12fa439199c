// warren/locality.h in a program that isn't recorded: nothing. The tracker's functions of these
// names come first in one that is.

#include "warren/locality.h"

extern "C" {

void warren_locality_begin(const char*) {}
void warren_locality_end(const char*) {}
void warren_locality_name(const void*, size_t, const char*) {}
int warren_locality_recording(void) {
    return 0;
}

} // extern "C"
