// ScopedVariable: sets a variable of the environment, for what a library reads there, and puts back
// what was there at the end. Thread rule: nobody else looks at the environment meanwhile.
#pragma once

#include <cstdlib>
#include <string>

namespace warren::launch {

class ScopedVariable {
  public:
    ScopedVariable(const char* name, const char* value) : name_(name) {
        const char* former = std::getenv(name);
        had_ = former != nullptr;
        former_ = had_ ? former : "";
        setenv(name, value, 1);
    }
    ~ScopedVariable() {
        if (had_) {
            setenv(name_, former_.c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }
    ScopedVariable(const ScopedVariable&) = delete;
    ScopedVariable& operator=(const ScopedVariable&) = delete;

  private:
    const char* name_;
    bool had_;
    std::string former_;
};

} // namespace warren::launch
