#include "image/libc/own_path.hpp"

#include <charconv>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>

#include "image/host.hpp"
#include "image/image.hpp"

namespace warren::image::libc {

namespace {

// Other names of what /proc/self has.
std::string_view part_of_devices(std::string_view path) {
    using namespace std::string_view_literals;
    constexpr std::pair<std::string_view, std::string_view> streams[] = {
        {"/dev/stdin"sv, "fd/0"sv}, {"/dev/stdout"sv, "fd/1"sv}, {"/dev/stderr"sv, "fd/2"sv}};
    for (const auto& [name, part] : streams) {
        if (path == name) {
            return part;
        }
    }
    return path == "/dev/fd" || path.starts_with("/dev/fd/") ? path.substr(5) : std::string_view{};
}

bool is_in(std::string_view part, std::string_view folder) {
    return part.starts_with(folder) && (part.size() == folder.size() || part[folder.size()] == '/');
}

// Whether threads can differ in it.
bool is_of_thread(std::string_view part) {
    return is_in(part, "fd") || is_in(part, "fdinfo") || is_in(part, "cwd");
}

// The system's number of what the program knows as its standard stream; -1: the number stays.
int number_of_stream(const Image& image, std::string_view number) {
    const Descriptors& own = image.options().descriptors;
    if (own.own_table || number.size() != 1 || number[0] < '0' || number[0] > '2') {
        return -1;
    }
    const int streams[] = {own.input, own.output, own.error};
    return streams[number[0] - '0'];
}

} // namespace

Image* program_image() {
    Image* image = current_image();
    return image != nullptr && image->running().first_thread != nullptr ? image : nullptr;
}

std::string_view part_of_process(const char* path) {
    constexpr std::string_view folder = "/proc/";
    const std::string_view text = path != nullptr ? path : "";
    if (!text.starts_with(folder)) {
        return {};
    }
    const std::string_view rest = text.substr(folder.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos) {
        return {};
    }
    const std::string_view who = rest.substr(0, slash);
    char process[12];
    const char* const end = std::to_chars(process, std::end(process), getpid()).ptr;
    return who == "self" || who == "thread-self" || who == std::string_view(process, end)
               ? rest.substr(slash + 1)
               : std::string_view{};
}

OwnPath::OwnPath(const char* path) : path_(path) {
    if (path == nullptr || path[0] != '/') {
        return;
    }
    std::string_view part = part_of_process(path);
    part = part.empty() ? part_of_devices(path) : part;
    const Image* image = part == "exe" || is_of_thread(part) ? program_image() : nullptr;
    if (image == nullptr) {
        return;
    }
    if (part == "exe") {
        path_ = image->program()->file->location().c_str();
        return;
    }
    const int stream =
        is_in(part, "fd") && part.size() == 4 ? number_of_stream(*image, part.substr(3)) : -1;
    const int length =
        stream >= 0 ? std::snprintf(text_.data(), text_.size(), "/proc/thread-self/fd/%d", stream)
                    : std::snprintf(text_.data(), text_.size(), "/proc/thread-self/%.*s",
                                    static_cast<int>(part.size()), part.data());
    path_ = static_cast<std::size_t>(length) < text_.size() ? text_.data() : path;
}

} // namespace warren::image::libc
