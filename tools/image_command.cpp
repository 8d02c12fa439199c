#include "image_command.hpp"

#include <cstdio>
#include <cstring>

#include "warren/image.h"

namespace {

struct Findings {
    const char* program;
    int count = 0;
};

void print_finding(void* context, int weight, const char* file, const char* what,
                   const char* remedy) {
    auto* findings = static_cast<Findings*>(context);
    static constexpr const char* words[] = {"refused", "changes", "note"};
    std::printf("%-8s ", words[weight]);
    if (std::strcmp(file, findings->program) != 0) {
        std::printf("%s: ", file);
    }
    std::printf("%s%s%s\n", what, *remedy != 0 ? "\n         remedy: " : "", remedy);
    ++findings->count;
}

} // namespace

int check_image(const char* path) {
    Findings findings{path};
    const int error = warren_image_check(path, print_finding, &findings);
    if (error != WARREN_IMAGE_SUCCESS) {
        std::printf("%s can't run as an image.\n", path);
    } else if (findings.count == 0) {
        std::printf("%s can run as an image; nothing changes its meaning.\n", path);
    } else {
        std::printf("%s can run as an image.\n", path);
    }
    return error == WARREN_IMAGE_SUCCESS ? 0 : 1;
}
