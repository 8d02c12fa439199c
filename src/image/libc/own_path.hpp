// Paths by which the system means a process, for programs that aren't the process's.
#pragma once

#include <array>
#include <string_view>

namespace warren::image {
class Image;
}

namespace warren::image::libc {

// The image whose program the calling thread runs, also in a child of fork: it has the host's file
// and arguments, too. Null: it runs none.
Image* program_image();

// The part of a path behind the calling process's folder of /proc; empty: it isn't there.
std::string_view part_of_process(const char* path);

// The path of the calling thread's program where the system would take another one: its file for
// /proc/self/exe; the thread's folder for what the path says of descriptors and working folders,
// which ranks that are threads have of their own. Any other path stays.
//
// Thread rule: an object is its thread's. Signals: allocates nothing.
class OwnPath {
  public:
    explicit OwnPath(const char* path);

    OwnPath(const OwnPath&) = delete;
    OwnPath& operator=(const OwnPath&) = delete;

    // Valid as long as the object and the path that it was made of.
    const char* get() const { return path_; }

  private:
    const char* path_;
    std::array<char, 512> text_; // longer paths stay as they are
};

} // namespace warren::image::libc
