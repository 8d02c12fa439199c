// Windows: how they are made, and what they are. See windows_operations.cpp for what is done with
// them.
#include "mpi/entry/windows.hpp"

#include <climits>
#include <cstring>
#include <mutex>
#include <utility>

#include "mpi/entry/context.hpp"
#include "mpi/entry/environment.hpp"
#include "mpi/entry/info.hpp"
#include "mpi/entry/memory_kinds.hpp"
#include "mpi/entry/new_communicator.hpp"
#include "mpi/entry/window_release.hpp"

namespace warren::mpi {

namespace {

using rma::Flavour;
using rma::WindowPlan;

void give_pointer(void* place, void* value) {
    // A baseptr is declared void* for the caller's comfort, and is a void**.
    std::memcpy(place, &value, sizeof value);
}

Error check_plan(const WindowPlan& plan) {
    if (plan.size < 0) {
        return fail(MPI_ERR_SIZE, "size = %lld is negative", static_cast<long long>(plan.size));
    }
    if (plan.displacement_unit <= 0 || plan.displacement_unit > INT_MAX) {
        return fail(MPI_ERR_DISP, "disp_unit = %lld is not in 1 … %d",
                    static_cast<long long>(plan.displacement_unit), INT_MAX);
    }
    if (plan.flavour == Flavour::create && plan.base == nullptr && plan.size > 0) {
        return fail(MPI_ERR_BASE, "base is a null pointer, but the window has %lld bytes",
                    static_cast<long long>(plan.size));
    }
    return {};
}

bool says(const comm::Info* info, const char* key, const char* value) {
    const std::string* found = info != nullptr ? info->find(key) : nullptr;
    return found != nullptr && *found == value;
}

// Hints about memory, which is had when the window is made: later ones have no effect.
bool is_about_memory(const std::string& key) {
    return key == memory_alignment_key || key == memory_criteria_key;
}

void add_info(rma::Window& window, const comm::Info& info, bool is_new) {
    if (window.info == nullptr) {
        window.info = new comm::Info();
    }
    for (int i = 0; i < info.keys(); ++i) {
        const std::string& key = info.key(i);
        if (is_new || !is_about_memory(key)) {
            window.info->set(key, *info.find(key));
        }
    }
}

// Whether this rank's memory begins where an info wants it. (Among parts without gaps only the
// first one's does.)
bool has_alignment(const rma::Window& window) {
    std::size_t alignment = 0;
    Error error = memory_alignment(window.info, alignment);
    const bool read = !error;
    error.drop();
    return read && reinterpret_cast<std::uintptr_t>(window.values.base) % alignment == 0;
}

// Collective: this rank has its communicator, and can't make its part of the window.
Error fail_at_all(Context& context, comm::Communicator& own, Error wrong) {
    WindowPlan plan;
    plan.error = wrong;
    Error error;
    {
        rma::Window none(context.window_server, context.messages, own);
        error = none.create(plan);
    }
    give_up(context, own);
    return error;
}

// Collective. The window gets a communicator of its own.
Error make_window(Context& context, WindowPlan plan, const comm::Info* info,
                  comm::Communicator& comm, MPI_Win* win) {
    if (comm.inter()) {
        return fail(MPI_ERR_COMM, "comm is an intercommunicator");
    }
    static constexpr rma::Placing placing = {.bind = place_pages, .unbind = unplace_pages};
    plan.placing = &placing;
    plan.error = check_plan(plan);
    if (plan.flavour == Flavour::allocate || plan.flavour == Flavour::shared) {
        plan.criteria = memory_criteria(info);
        plan.error = plan.error ? plan.error : memory_alignment(info, plan.alignment);
    }
    comm::Communicator* own = nullptr;
    if (Error error = make_of_first(context, comm, comm.size(), own)) {
        plan.error.drop();
        return error;
    }
    rma::Window* window = context.windows.insert(context.window_server, context.messages, *own);
    if (window == nullptr) {
        plan.error.drop();
        return fail_at_all(context, *own, fail(MPI_ERR_NO_MEM, "no memory for another window"));
    }
    if (Error error = window->create(plan)) {
        context.windows.remove(*window);
        give_up(context, *own);
        return error;
    }
    if (info != nullptr) {
        const std::lock_guard lock(context.process.mutex);
        add_info(*window, *info, true);
    }
    *win = handle_of(*window);
    return {};
}

Error make_with_memory(Context& context, const WindowPlan& plan, const comm::Info* info,
                       comm::Communicator& comm, void* baseptr, MPI_Win* win) {
    if (Error error = make_window(context, plan, info, comm, win)) {
        return error;
    }
    give_pointer(baseptr, context.windows.find(*win)->values.base);
    return {};
}

} // namespace

void release_attached(Context& context, rma::Window& window) {
    delete std::exchange(window.attributes, nullptr);
    delete std::exchange(window.info, nullptr);
    if (window.error_handler != nullptr) {
        const std::lock_guard lock(context.process.mutex);
        context.error_handlers.release(*std::exchange(window.error_handler, nullptr));
    }
}

Error refuse_new_window(Context& context, comm::Communicator& comm, Error wrong) {
    comm::Communicator* own = nullptr;
    Error error = comm.inter() ? std::exchange(wrong, Error())
                               : make_of_first(context, comm, comm.size(), own);
    if (error) { // at all ranks
        wrong.drop();
        return error;
    }
    return fail_at_all(context, *own, wrong);
}

Error win_create(Context& context, void* base, MPI_Aint size, MPI_Count disp_unit, comm::Info* info,
                 comm::Communicator& comm, MPI_Win* win) {
    WindowPlan plan;
    plan.base = base;
    plan.size = size;
    plan.displacement_unit = disp_unit;
    return make_window(context, plan, info, comm, win);
}

Error win_allocate(Context& context, MPI_Aint size, MPI_Count disp_unit, comm::Info* info,
                   comm::Communicator& comm, void* baseptr, MPI_Win* win) {
    WindowPlan plan;
    plan.flavour = Flavour::allocate;
    plan.size = size;
    plan.displacement_unit = disp_unit;
    return make_with_memory(context, plan, info, comm, baseptr, win);
}

Error win_allocate_shared(Context& context, MPI_Aint size, MPI_Count disp_unit, comm::Info* info,
                          comm::Communicator& comm, void* baseptr, MPI_Win* win) {
    WindowPlan plan;
    plan.flavour = Flavour::shared;
    plan.size = size;
    plan.displacement_unit = disp_unit;
    plan.contiguous = !says(info, "alloc_shared_noncontig", "true");
    return make_with_memory(context, plan, info, comm, baseptr, win);
}

Error win_create_dynamic(Context& context, comm::Info* info, comm::Communicator& comm,
                         MPI_Win* win) {
    WindowPlan plan;
    plan.flavour = Flavour::dynamic;
    return make_window(context, plan, info, comm, win);
}

Error win_attach(Context&, rma::Window& win, void* base, MPI_Aint size) {
    return win.attach(base, size);
}

Error win_detach(Context&, rma::Window& win, const void* base) {
    return win.detach(base);
}

Error win_free(Context& context, rma::Window& win) {
    if (Error error = win.check_end()) {
        return error;
    }
    if (win.attributes != nullptr) {
        if (Error error = win.attributes->clear(context.rank.lock, handle_of(win))) {
            return error;
        }
    }
    if (Error error = win.end()) {
        return error;
    }
    release_attached(context, win);
    comm::Communicator& own = win.communicator();
    context.windows.remove(win);
    give_up(context, own);
    return {};
}

Error win_get_group(Context& context, rma::Window& win, MPI_Group* group) {
    *group =
        context.communicators.insert_group(win.communicator().map(), win.communicator().session);
    return *group != MPI_GROUP_NULL ? Error() : fail(MPI_ERR_NO_MEM, "no memory for another group");
}

Error win_shared_query(Context&, rma::Window& win, int rank, MPI_Aint* size, MPI_Count& disp_unit,
                       void* baseptr) {
    if (win.flavour() == Flavour::dynamic) {
        return fail(MPI_ERR_RMA_FLAVOR, "the window is a dynamic one, whose memory is attached");
    }
    // MPI_PROC_NULL: the first rank that has memory.
    int found = rank == MPI_PROC_NULL ? 0 : rank;
    for (int other = 0; rank == MPI_PROC_NULL && other < win.size(); ++other) {
        if (win.control_of(other).size > 0) {
            found = other;
            break;
        }
    }
    std::byte* memory = win.memory_of(found);
    // A part of no bytes is nowhere, unless it is between those of its neighbours.
    if (memory != nullptr && win.control_of(found).size == 0 && !win.contiguous()) {
        memory = nullptr;
    }
    *size = memory != nullptr ? static_cast<MPI_Aint>(win.control_of(found).size) : 0;
    disp_unit = win.control_of(found).displacement_unit;
    give_pointer(baseptr, memory);
    return {};
}

Error win_set_name(Context&, rma::Window& win, const char* win_name) {
    win.name.assign(win_name, strnlen(win_name, MPI_MAX_OBJECT_NAME - 1));
    return {};
}

Error win_get_name(Context&, rma::Window* win, char* win_name, int* resultlen) {
    const char* name = win == nullptr ? "MPI_WIN_NULL" : win->name.c_str();
    std::strcpy(win_name, name);
    *resultlen = static_cast<int>(std::strlen(name));
    return {};
}

Error win_set_info(Context& context, rma::Window& win, comm::Info& info) {
    const std::lock_guard lock(context.process.mutex);
    add_info(win, info, false);
    return {};
}

// The hints that Warren knows, as they have been set or else by default. Others are ignored.
Error win_get_info(Context& context, rma::Window& win, MPI_Info* info_used) {
    static constexpr struct {
        const char* key;
        const char* by_default;
    } hints[] = {{"no_locks", "false"},
                 {"accumulate_ordering", "rar,raw,war,waw"},
                 {"accumulate_ops", "same_op_no_op"},
                 {"mpi_accumulate_granularity", "0"},
                 {"same_size", "false"},
                 {"same_disp_unit", "false"},
                 {"alloc_shared_noncontig", "false"}};
    const std::lock_guard lock(context.process.mutex);
    const auto set_to = [&win](const char* key) {
        return win.info != nullptr ? win.info->find(key) : nullptr;
    };
    comm::Info info;
    for (const auto& hint : hints) {
        const std::string* its = set_to(hint.key);
        info.set(hint.key, its != nullptr ? its->c_str() : hint.by_default);
    }
    const bool has_memory = win.flavour() == Flavour::shared || win.flavour() == Flavour::allocate;
    if (!has_memory) {
        info.remove("alloc_shared_noncontig");
    } else if (win.flavour() == Flavour::shared) { // all ranks have agreed
        info.set("alloc_shared_noncontig", win.contiguous() ? "false" : "true");
    }
    if (const char* criteria = has_memory ? memory_criteria(win.info) : nullptr) {
        info.set(memory_criteria_key, criteria);
    }
    const std::string* alignment = has_memory ? set_to(memory_alignment_key) : nullptr;
    if (alignment != nullptr && has_alignment(win)) {
        info.set(memory_alignment_key, alignment->c_str());
    }
    const comm::Session* session = context.sessions.find(win.communicator().session);
    info.set(memory_kinds_key,
             session != nullptr ? session->memory_kinds : granted_memory_kinds(""));
    const std::string* asserted = set_to(memory_kinds_assertion);
    if (asserted != nullptr && has_memory_kinds(*asserted)) {
        info.set(memory_kinds_assertion, *asserted);
    }
    return make_info(context.process, &info, info_used);
}

} // namespace warren::mpi
