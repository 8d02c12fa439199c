// warren_image_check of the public header.
#include "image/check.hpp"
#include "warren/image.h"

extern "C" [[gnu::visibility("default")]] int
warren_image_check(const char* path, warren_image_finding* finding, void* context) {
    using namespace warren::image;
    std::vector<ProgramFinding> findings;
    warren::Error error = check_program(path, Sharing{}, findings);
    const int code = error.error_class();
    error.drop();
    for (const ProgramFinding& found : findings) {
        finding(context, static_cast<int>(found.finding.weight), found.file.c_str(),
                found.finding.what.c_str(), found.finding.remedy.c_str());
    }
    return code;
}
