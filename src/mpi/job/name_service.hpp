// NameService: the names of ports that this process has published, for processes of its user on the
// node.
//
// A name is a local socket (local_socket.hpp), so the kernel sees to it that nobody else has it,
// and it ends with the process. A thread tells those that connect the port's name. Names of a
// user's processes do not meet those of other users. Thread rule: one thread; look_up by anybody.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.hpp"

namespace warren::node {

class NameService {
  public:
    NameService() = default;
    ~NameService();
    NameService(const NameService&) = delete;
    NameService& operator=(const NameService&) = delete;

    // Errors: MPI_ERR_SERVICE: it is published already.
    Error publish(const std::string& service, const std::string& port_name);
    // MPI_ERR_SERVICE: this process has not published it.
    Error unpublish(const std::string& service);
    // MPI_ERR_NAME: nobody has published it.
    static Error look_up(const std::string& service, std::string& port_name);

  private:
    struct Name {
        int listener;
        std::string port_name;
    };

    Error start();
    void serve();
    void nudge() const;

    std::mutex mutex_; // of the names
    std::map<std::string, Name> names_;
    bool stops_ = false;
    int nudges_ = -1; // has the thread look at the names again
    std::thread thread_;
};

} // namespace warren::node
