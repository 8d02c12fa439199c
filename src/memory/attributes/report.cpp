#include "memory/attributes/report.hpp"

#include <cstdio>
#include <memory>

#include "warren/memory.h"

namespace warren::memory {

namespace {

thread_local char last_sentence[512];

} // namespace

int report(Error error) {
    if (!error) {
        return WARREN_MEM_SUCCESS;
    }
    const std::unique_ptr<ErrorRecord> record(error.take());
    std::snprintf(last_sentence, sizeof last_sentence, "%s", record->text.c_str());
    return record->error_class;
}

int no_object(const char* function, const char* argument) {
    return report(fail(WARREN_MEM_ERR_ARG, "%s: %s is null", function, argument));
}

} // namespace warren::memory

extern "C" [[gnu::visibility("default")]] const char* warren_mem_error(void) {
    return warren::memory::last_sentence;
}
