// A file that is open to be read, until the end of a block.
//
// Thread rule: any.
#pragma once

namespace warren::image {

class OpenFile {
  public:
    OpenFile() = default;
    explicit OpenFile(const char* path) { open(path); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile();
    // None is open yet.
    void open(const char* path);
    int number() const { return number_; } // -1: errno says why not
    void close();
    // Whatever has its number now is not it.
    void forget() { number_ = -1; }

  private:
    int number_ = -1;
};

} // namespace warren::image
