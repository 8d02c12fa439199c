// ProfilePage: the page of `mpiexec --profile=FILE`: one HTML file that needs no network and no
// script, in the style of the analyser's reports.
//
// The file is opened before ranks start, so a place that can't be written is refused then; it is
// written when the job has ended. Thread rule: mpiexec's only thread.
#pragma once

#include <string>

#include "base/error.hpp"
#include "launch/mpiexec/profile_report.hpp"

namespace warren::launch {

class ProfilePage {
  public:
    ProfilePage() = default;
    ~ProfilePage();
    ProfilePage(const ProfilePage&) = delete;
    ProfilePage& operator=(const ProfilePage&) = delete;

    // Errors are the launcher's own (errors.hpp). A file that there was not before goes again if
    // nothing is written.
    Error open(const std::string& path);
    // On an error nothing of the page stays.
    Error write(const std::string& text);
    bool is_open() const { return descriptor_ >= 0; }

  private:
    std::string path_;
    int descriptor_ = -1;
    bool made_ = false;    // by open()
    bool written_ = false; // completely
};

// `command`: the program with its arguments.
std::string profile_html(const ProfileReport& report, const std::string& command);

// The style of the analyser's reports (analyser/reports/assets/report.css).
extern const char* const report_style;

} // namespace warren::launch
