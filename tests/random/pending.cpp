// What has been begun and isn't complete: random calls complete it in random orders.
#include "program.hpp"

#include <algorithm>

namespace programs {

ActivityPtr Program::begin(const std::string& what, const CommPtr& on) {
    auto activity = std::make_shared<Activity>();
    activity->what = what;
    activity->step = activity->not_before = step();
    activity->on = on;
    return activity;
}

void Program::pend(const ActivityPtr& activity) {
    activity->active = true;
    pending_.push_back(activity);
}

void Program::check(const Activity& activity, const MPI_Status& status) {
    for (const auto& [name, buffer] : activity.buffers) {
        buffer->check(
            (activity.what + " of step " + std::to_string(activity.step) + ", " + name).c_str());
    }
    if (activity.check) {
        activity.check(status);
    }
}

void Program::completed(const ActivityPtr& activity, MPI_Request request,
                        const MPI_Status& status) {
    if (activity->persistent ? request != activity->request : request != MPI_REQUEST_NULL) {
        fail("%s of step %d: its request has a wrong value once it is complete",
             activity->what.c_str(), activity->step);
    }
    activity->request = request;
    activity->active = false;
    pending_.erase(std::find(pending_.begin(), pending_.end(), activity));
    check(*activity, status);
    if (activity->once) {
        MUST(MPI_Request_free(&activity->request));
    }
}

void Program::finish(const ActivityPtr& activity) {
    if (!activity->active) {
        return;
    }
    MPI_Request request = activity->request;
    MPI_Status status;
    MUST(MPI_Wait(&request, &status));
    completed(activity, request, status);
}

void Program::finish_all(const CommPtr& on) {
    std::vector<ActivityPtr> mine;
    for (const ActivityPtr& activity : pending_) {
        if (activity->not_before <= step() && (on == nullptr || activity->on == on)) {
            mine.push_back(activity);
        }
    }
    own_.shuffle(mine);
    if (own_.one_in(2)) {
        std::vector<MPI_Request> requests;
        for (const ActivityPtr& activity : mine) {
            requests.push_back(activity->request);
        }
        std::vector<MPI_Status> statuses(mine.size());
        MUST(MPI_Waitall(static_cast<int>(mine.size()), requests.data(), statuses.data()));
        for (std::size_t i = 0; i < mine.size(); ++i) {
            completed(mine[i], requests[i], statuses[i]);
        }
    } else {
        for (const ActivityPtr& activity : mine) {
            finish(activity);
        }
    }
}

// Completes some of these activities (null: a null request is in their place) by one call.
class Program::Completion {
  public:
    Completion(Program& its_program, const std::vector<ActivityPtr>& activities)
        : program(its_program), chosen(activities) {
        for (const ActivityPtr& activity : chosen) {
            requests.push_back(activity != nullptr ? activity->request : MPI_REQUEST_NULL);
        }
        statuses.resize(requests.size());
        indices.resize(requests.size());
        n = static_cast<int>(requests.size());
    }

    void wait(int call);
    void test(int call);

  private:
    void one(int which, const MPI_Status& status) {
        if (which < 0 || which >= n || chosen[static_cast<std::size_t>(which)] == nullptr) {
            fail("a call that completes requests named index %d of %d, which it may not", which, n);
        }
        const auto place = static_cast<std::size_t>(which);
        program.completed(chosen[place], requests[place], status);
    }
    void all() {
        for (int i = 0; i < n; ++i) {
            if (chosen[static_cast<std::size_t>(i)] != nullptr) {
                one(i, statuses[static_cast<std::size_t>(i)]);
            }
        }
    }
    void some() {
        for (int i = 0; i < count; ++i) {
            one(indices[static_cast<std::size_t>(i)], statuses[static_cast<std::size_t>(i)]);
        }
    }

    Program& program;
    const std::vector<ActivityPtr>& chosen;
    std::vector<MPI_Request> requests;
    std::vector<MPI_Status> statuses;
    std::vector<int> indices;
    int n = 0, count = 0, flag = 0, index = -1;
};

void Program::Completion::wait(int call) {
    switch (call) {
    case 0:
        MUST(MPI_Wait(requests.data(), statuses.data()));
        one(0, statuses[0]);
        break;
    case 1:
        MUST(MPI_Waitany(n, requests.data(), &index, statuses.data()));
        one(index, statuses[0]);
        break;
    case 2:
        MUST(MPI_Waitsome(n, requests.data(), &count, indices.data(), statuses.data()));
        if (count < 1) {
            fail("MPI_Waitsome completed %d of %d", count, n);
        }
        some();
        break;
    default:
        MUST(MPI_Waitall(n, requests.data(), statuses.data()));
        all();
        break;
    }
}

void Program::Completion::test(int call) {
    switch (call) {
    case 0:
    case 4:
        MUST(MPI_Request_get_status(requests[0], &flag, statuses.data()));
        if (flag != 0) { // then it is, and says the same again
            MUST(MPI_Test(requests.data(), &flag, statuses.data()));
            if (flag == 0) {
                fail("MPI_Request_get_status said that it is complete, MPI_Test doesn't");
            }
            one(0, statuses[0]);
        }
        break;
    case 1:
    case 5:
        MUST(MPI_Testany(n, requests.data(), &index, &flag, statuses.data()));
        if (flag != 0) {
            one(index, statuses[0]);
        }
        break;
    case 2:
    case 6:
        MUST(MPI_Testsome(n, requests.data(), &count, indices.data(), statuses.data()));
        some();
        break;
    case 3:
        MUST(MPI_Testall(n, requests.data(), &flag, statuses.data()));
        if (flag != 0) {
            all();
        }
        break;
    default:
        MUST(MPI_Test(requests.data() + n - 1, &flag, statuses.data()));
        if (flag != 0 && chosen.back() != nullptr) {
            one(n - 1, statuses[0]);
        }
    }
}

void Program::finish_some(bool blocking) {
    std::vector<ActivityPtr> chosen;
    for (const ActivityPtr& activity : pending_) {
        if (!blocking || activity->not_before <= step()) {
            chosen.push_back(activity);
        }
    }
    if (chosen.empty()) {
        return;
    }
    own_.shuffle(chosen);
    chosen.resize(static_cast<std::size_t>(own_.between(1, static_cast<int>(chosen.size()))));
    const int call = own_.below(8);
    if (own_.one_in(3) && call % 4 != 0) {
        chosen.insert(chosen.begin() + own_.below(static_cast<long>(chosen.size())), nullptr);
    }
    if (!blocking && call % 4 == 0 && without("get-status")) {
        return;
    }
    Completion completion(*this, chosen);
    if (blocking) {
        completion.wait(call % 4);
    } else {
        completion.test(call);
    }
}

void Program::start(const std::vector<ActivityPtr>& persistent) {
    std::vector<MPI_Request> requests;
    for (const ActivityPtr& activity : persistent) {
        finish(activity);
        activity->refill(++activity->round);
        activity->step = step();
        activity->not_before = step();
        requests.push_back(activity->request);
    }
    std::set<CommPtr> different;
    for (const ActivityPtr& activity : persistent) {
        different.insert(activity->on);
    }
    if (different.size() == persistent.size() && own_.one_in(2)) {
        MUST(MPI_Startall(static_cast<int>(requests.size()), requests.data()));
    } else {
        for (MPI_Request& request : requests) {
            MUST(MPI_Start(&request));
        }
    }
    for (std::size_t i = 0; i < persistent.size(); ++i) {
        if (requests[i] != persistent[i]->request) {
            fail("starting %s changed its request", persistent[i]->what.c_str());
        }
        pend(persistent[i]);
    }
}

void Program::drop_persistent(std::size_t place) {
    const Persistent dropped = persistents[place];
    persistents.erase(persistents.begin() + static_cast<std::ptrdiff_t>(place));
    for (const ActivityPtr& activity : {dropped.activity, dropped.receive}) {
        if (activity != nullptr) {
            finish(activity);
            MUST(MPI_Request_free(&activity->request));
            if (activity->request != MPI_REQUEST_NULL) {
                fail("MPI_Request_free left the request of %s", activity->what.c_str());
            }
        }
    }
}

void use_persistents(Program& program, Draw& draw) {
    auto& all = program.persistents;
    if (all.empty()) {
        return;
    }
    std::vector<int> order = draw.permutation(static_cast<int>(all.size()));
    order.resize(static_cast<std::size_t>(draw.between(1, static_cast<int>(all.size()))));
    std::vector<ActivityPtr> mine;
    for (int place : order) {
        const Program::Persistent& one = all[static_cast<std::size_t>(place)];
        for (const ActivityPtr& activity : {one.activity, one.receive}) {
            if (activity != nullptr) {
                mine.push_back(activity);
            }
        }
    }
    program.at("start of persistent operations");
    if (program.executes() && !mine.empty()) {
        program.start(mine);
    }
    if (draw.one_in(3) || all.size() > 8) {
        program.drop_persistent(
            static_cast<std::size_t>(draw.below(static_cast<long>(all.size()))));
    }
}

} // namespace programs
