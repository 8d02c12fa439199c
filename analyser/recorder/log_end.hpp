// Completes the logs of a process's tracker (tracker/log.hpp) after the process has ended: gives
// unused space back, reads losses, and computes checksums.
#pragma once

#include <string>

#include "analyser/recorder/recording.hpp"

namespace warren::locality {

// Finds a folder again after it was renamed.
class FolderPlace {
  public:
    FolderPlace() = default;
    FolderPlace(const FolderPlace&) = delete;
    FolderPlace& operator=(const FolderPlace&) = delete;
    ~FolderPlace();
    void open(const std::string& path);
    // A path to the folder in this process; `otherwise` if it couldn't be opened.
    std::string path(const std::string& otherwise) const;

  private:
    int descriptor_ = -1;
};

// Adds to `lost` and `files` of the description. A log without a header found no disk space: all of
// it is lost.
void end_logs(const std::string& folder, ProcessDescription& description);

} // namespace warren::locality
