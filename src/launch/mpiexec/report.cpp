#include "launch/mpiexec/report.hpp"

#include <cstring>
#include <memory>

namespace warren::launch {

void Report::say(const std::string& text) {
    output_.say("mpiexec: " + text + "\n");
}

void Report::explain(const std::string& text) {
    if (verbose_) {
        say(text);
    }
}

void Report::fail(int exit_code, const std::string& message) {
    if (!failed_) {
        failed_ = true;
        exit_code_ = exit_code;
        if (link_ != nullptr) {
            link_->send(FrameKind::failed, static_cast<std::uint32_t>(exit_code), message);
        } else if (!message.empty() && (spawned_by_ == nullptr || !spawned_by_->tell(message))) {
            say(message);
        }
    }
}

void Report::take_back() {
    failed_ = false;
    if (link_ != nullptr) {
        link_->send(FrameKind::explains_more);
    }
}

void Report::fail(int exit_code, Error error) {
    const std::unique_ptr<ErrorRecord> record(error.take());
    fail(exit_code, record->text);
}

void Report::fail(Error error) {
    const int exit_code = error.error_class();
    fail(exit_code, error);
}

std::string describe_write_error(int error_number) {
    return std::string("writing the ranks' output to the standard output: ") +
           std::strerror(error_number);
}

} // namespace warren::launch
