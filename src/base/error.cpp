#include "base/error.hpp"

#include <cstdarg>
#include <cstdio>

namespace warren {

Error fail(int error_class, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return Error::adopt(new ErrorRecord{error_class, text});
}

} // namespace warren
