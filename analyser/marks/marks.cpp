// Functions of warren/locality.h for a program that isn't recorded: they do nothing. In a recorded
// one the tracker's functions of these names come first.

#include "warren/locality.h"

extern "C" {

void warren_locality_begin(const char*) {}
void warren_locality_end(const char*) {}
void warren_locality_name(const void*, size_t, const char*) {}
int warren_locality_recording(void) {
    return 0;
}

} // extern "C"
