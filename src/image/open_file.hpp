// Files that the loader has open for a moment, among descriptors that may be all ranks' of a host.
//
// A program may close whatever there is from 3 on, while another rank's is being loaded. So it
// closes what it may not have opened only while the loader has nothing open: open files hold a lock
// for readers, who so closes is its writer, and writers go first.
//
// Thread rule: any. Nobody who has one open may open a second, wait for anybody, or run code of a
// program's.
#pragma once

namespace warren::image {

// None is opened while one of these is there, and none is open.
class NoOpenFiles {
  public:
    NoOpenFiles();
    NoOpenFiles(const NoOpenFiles&) = delete;
    NoOpenFiles& operator=(const NoOpenFiles&) = delete;
    ~NoOpenFiles();
};

// Files that are opened in this block are closed at its end.
class MayOpenFiles {
  public:
    MayOpenFiles();
    MayOpenFiles(const MayOpenFiles&) = delete;
    MayOpenFiles& operator=(const MayOpenFiles&) = delete;
    ~MayOpenFiles();
};

// One to be read.
class OpenFile {
  public:
    explicit OpenFile(const char* path);
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile();
    int number() const { return number_; } // -1: errno says why not

  private:
    MayOpenFiles held_;
    int number_;
};

} // namespace warren::image
