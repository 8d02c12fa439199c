#include "analyser/recorder/node.hpp"

#include <cstdio>
#include <unistd.h>

namespace warren::locality {

std::string host_name() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

std::vector<int> numbers_in(const char* path) {
    std::vector<int> numbers;
    FILE* file = std::fopen(path, "r");
    if (file == nullptr) {
        return numbers;
    }
    int first = 0;
    while (std::fscanf(file, "%d", &first) == 1) {
        int last = first;
        int next = std::fgetc(file);
        if (next == '-') {
            if (std::fscanf(file, "%d", &last) != 1) {
                break;
            }
            next = std::fgetc(file);
        }
        for (int number = first; number <= last; ++number) {
            numbers.push_back(number);
        }
        if (next != ',') {
            break;
        }
    }
    std::fclose(file);
    return numbers;
}

} // namespace warren::locality
