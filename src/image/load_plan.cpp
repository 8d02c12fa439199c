#include "image/load_plan.hpp"

#include <list>
#include <mutex>
#include <sys/stat.h>

namespace warren::image {

namespace {

// A host runs a handful of programs; a plan of a C++ program has half a megabyte.
constexpr std::size_t plan_limit = 16;

struct Kept {
    std::string key;
    std::shared_ptr<const LoadPlan> plan;
};

struct Plans {
    std::mutex lock;
    std::list<Kept> kept; // the latest used first
};

Plans& plans() {
    static Plans& only = *new Plans;
    return only;
}

bool is_current(const LoadPlan& plan) {
    for (const Closure::Member& member : plan.closure.members) {
        struct stat status {};
        if (stat(member.file->path().c_str(), &status) != 0 ||
            identity_of(status) != member.file->identity()) {
            return false;
        }
    }
    return true;
}

} // namespace

std::shared_ptr<const LoadPlan> LoadPlan::find(const std::string& key) {
    Plans& all = plans();
    std::shared_ptr<const LoadPlan> plan;
    {
        const std::lock_guard guard(all.lock);
        for (auto at = all.kept.begin(); at != all.kept.end(); ++at) {
            if (at->key == key) {
                all.kept.splice(all.kept.begin(), all.kept, at);
                plan = at->plan;
                break;
            }
        }
    }
    return plan != nullptr && is_current(*plan) ? plan : nullptr;
}

void LoadPlan::keep(const std::string& key, std::shared_ptr<const LoadPlan> plan) {
    Plans& all = plans();
    const std::lock_guard guard(all.lock);
    std::erase_if(all.kept, [&](const Kept& one) { return one.key == key; });
    all.kept.push_front({key, std::move(plan)});
    if (all.kept.size() > plan_limit) {
        all.kept.pop_back();
    }
}

} // namespace warren::image
