// Measures private copies of a program or library: the time to load the first and each further one,
// the memory of each before it runs, and the time to return it.
//     images COPIES PROGRAM|LIBRARY…
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "warren/image.h"

namespace {

double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

// Memory that only this process has, in kB.
long private_kb() {
    long sum = 0;
    if (std::FILE* rollup = std::fopen("/proc/self/smaps_rollup", "re")) {
        char line[256];
        while (std::fgets(line, sizeof line, rollup) != nullptr) {
            if (std::strncmp(line, "Private_Dirty:", 14) == 0) {
                sum += std::atol(line + 14);
            }
        }
        std::fclose(rollup);
    }
    return sum;
}

void check(int error) {
    if (error != WARREN_IMAGE_SUCCESS) {
        std::fprintf(stderr, "%s\n", warren_image_error());
        std::exit(1);
    }
}

warren_image* load(const char* path, bool is_program) {
    warren_image* image = nullptr;
    check(warren_image_create(nullptr, &image));
    check(warren_image_enter(image));
    warren_image_module* module = nullptr;
    check(is_program ? warren_image_load_program(image, path)
                     : warren_image_load(image, path, &module));
    check(warren_image_leave());
    return image;
}

void measure(std::size_t copies, const char* path) {
    const bool is_program = std::strstr(path, ".so") == nullptr;
    std::vector<warren_image*> images;
    images.reserve(copies);
    const double start_us = now_us();
    images.push_back(load(path, is_program));
    const double first_us = now_us() - start_us;
    images.push_back(load(path, is_program)); // what grows once has grown
    const long before_kb = private_kb();
    double best_us = 1e9;
    while (images.size() < copies) {
        const double begin_us = now_us();
        images.push_back(load(path, is_program));
        const double this_us = now_us() - begin_us;
        best_us = this_us < best_us ? this_us : best_us;
    }
    const double each_kb =
        static_cast<double>(private_kb() - before_kb) / static_cast<double>(copies - 2);
    const double end_us = now_us();
    for (warren_image* image : images) {
        check(warren_image_destroy(image));
    }
    std::printf(
        "%s: first %.0f us, further ones %.0f us at best, %.1f kB each, returned in %.0f us\n",
        path, first_us, best_us, each_kb, (now_us() - end_us) / static_cast<double>(copies));
}

} // namespace

int main(int argc, char** argv) {
    const long copies = argc >= 3 ? std::atol(argv[1]) : 0;
    if (copies < 3) {
        std::fputs("usage: images COPIES PROGRAM|LIBRARY…   (at least 3 copies)\n", stderr);
        return 2;
    }
    check(warren_image_host());
    for (int i = 2; i < argc; ++i) {
        measure(static_cast<std::size_t>(copies), argv[i]);
    }
    return 0;
}
