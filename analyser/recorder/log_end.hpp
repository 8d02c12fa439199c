// What is left to do with the files that a process's tracker has written (tracker/log.hpp), when
// the process has ended: the room that was made for more is given back, losses are read, and what
// is there is summed up.
#pragma once

#include <string>

#include "analyser/recorder/recording.hpp"

namespace warren::locality {

// Where a folder is, whatever it is called by now.
class FolderPlace {
  public:
    FolderPlace() = default;
    FolderPlace(const FolderPlace&) = delete;
    FolderPlace& operator=(const FolderPlace&) = delete;
    ~FolderPlace();
    void open(const std::string& path);
    // A path to it in this process; `otherwise` if it couldn't be opened.
    std::string path(const std::string& otherwise) const;

  private:
    int descriptor_ = -1;
};

// Adds to `lost` and `files` of the description. A log that its tracker made but found no room for
// has no header: all of it is lost.
void end_logs(const std::string& folder, ProcessDescription& description);

} // namespace warren::locality
