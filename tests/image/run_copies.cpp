// A host of images: runs so many copies of a program at once, each in a thread of its own, and says
// how each ended.
//     run_copies COPIES PROGRAM [ARGUMENT…]     an argument %d is the copy's number
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "warren/image.h"

namespace {

int run(int number, const std::vector<std::string>& words) {
    std::vector<std::string> own;
    std::vector<char*> arguments;
    for (const std::string& word : words) {
        own.push_back(word == "%d" ? std::to_string(number) : word);
    }
    for (std::string& word : own) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);

    warren_image_options options{};
    options.bytes = sizeof options;
    options.input = number == 0 ? STDIN_FILENO : -1;
    options.output = STDOUT_FILENO;
    options.error = STDERR_FILENO;
    warren_image* image = nullptr;
    warren_image_end end{};
    if (warren_image_create(&options, &image) != WARREN_IMAGE_SUCCESS ||
        warren_image_enter(image) != WARREN_IMAGE_SUCCESS ||
        warren_image_load_program(image, words[0].c_str()) != WARREN_IMAGE_SUCCESS ||
        warren_image_run(image, static_cast<int>(own.size()), arguments.data(), environ, &end) !=
            WARREN_IMAGE_SUCCESS) {
        std::fprintf(stderr, "copy %d: %s\n", number, warren_image_error());
        return 1;
    }
    if (warren_image_destroy(image) != WARREN_IMAGE_SUCCESS) {
        std::fprintf(stderr, "copy %d: %s\n", number, warren_image_error());
    }
    if (end.signal != 0) {
        std::printf("copy %d: signal %d\n", number, end.signal);
    } else {
        std::printf("copy %d: status %d\n", number, end.status);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fputs("usage: run_copies COPIES PROGRAM [ARGUMENT…]\n", stderr);
        return 2;
    }
    if (warren_image_host() != WARREN_IMAGE_SUCCESS) {
        return 1;
    }
    const std::vector<std::string> words(argv + 2, argv + argc);
    std::vector<int> failures(static_cast<std::size_t>(std::atoi(argv[1])));
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < failures.size(); ++i) {
        threads.emplace_back([&, i] { failures[i] = run(static_cast<int>(i), words); });
    }
    int failed = 0;
    for (std::size_t i = 0; i < failures.size(); ++i) {
        threads[i].join();
        failed += failures[i];
    }
    return failed == 0 ? 0 : 1;
}
