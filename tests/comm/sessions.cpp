// Sessions without MPI_Init, one after the other and side by side; process sets; communicators and
// intercommunicators from groups; error handlers; MPI_Init and sessions in each other's order.
#include "check.hpp"

#include <cstring>

namespace {

int handled, handled_code;

void handler(MPI_Session* session, int* code, ...) {
    handled += *session != MPI_SESSION_NULL;
    handled_code = *code;
}

MPI_Comm world_of(MPI_Session session, const char* tag) {
    MPI_Group group;
    MPI_Comm comm;
    EXPECT(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
    EXPECT(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) ==
           MPI_SUCCESS);
    MPI_Group_free(&group);
    MPI_Comm_size(comm, &world_size);
    MPI_Comm_rank(comm, &world_rank);
    return comm;
}

void check_sum(MPI_Comm comm) {
    int sum = 0;
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(sum == world_size * (world_size - 1) / 2);
}

void process_sets(MPI_Session session) {
    int flag;
    int sets;
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
    EXPECT(sets == 2);
    bool found_world = false, found_self = false;
    for (int n = 0; n < sets; ++n) {
        int length = 0;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, nullptr);
        char name[MPI_MAX_PSET_NAME_LEN];
        EXPECT(length > 1 && length < static_cast<int>(sizeof name));
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name);
        EXPECT(static_cast<int>(std::strlen(name)) + 1 == length);
        const bool world = std::strcmp(name, "mpi://WORLD") == 0;
        found_world |= world;
        found_self |= std::strcmp(name, "mpi://SELF") == 0;
        MPI_Info info;
        MPI_Session_get_pset_info(session, name, &info);
        char size[16];
        int room = sizeof size;
        MPI_Info_get_string(info, "mpi_size", &room, size, &flag);
        EXPECT(flag != 0 && std::atoi(size) == (world ? world_size : 1));
        MPI_Info_free(&info);
        int few = 4;
        MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &few, name);
        EXPECT(std::strcmp(name, "mpi") == 0 && few == length);
    }
    EXPECT(found_world && found_self);
}

// Between two groups that make up the world.
void between(MPI_Group all, MPI_Group even) {
    MPI_Group odd;
    MPI_Group_difference(all, even, &odd);
    MPI_Comm inter, merged;
    const bool is_even = world_rank % 2 == 0;
    MPI_Intercomm_create_from_groups(is_even ? even : odd, 0, is_even ? odd : even, 0, "both",
                                     MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter);
    int remote;
    MPI_Comm_remote_size(inter, &remote);
    EXPECT(remote + size_of(inter) == world_size);
    MPI_Intercomm_merge(inter, is_even ? 1 : 0, &merged);
    check_sum(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
    MPI_Group_free(&odd);
}

// The own group; and the even ranks, in falling order.
void groups(MPI_Session session) {
    MPI_Group self, all, even;
    MPI_Comm alone;
    MPI_Group_from_session_pset(session, "mpi://self", &self);
    MPI_Comm_create_from_group(self, "self", MPI_INFO_NULL, MPI_ERRORS_RETURN, &alone);
    EXPECT(size_of(alone) == 1);
    MPI_Comm_free(&alone);
    MPI_Group_free(&self);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    std::vector<int> ranks;
    for (int r = 0; r < world_size; r += 2) {
        ranks.insert(ranks.begin(), r);
    }
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &even);
    if (world_rank % 2 == 0) {
        MPI_Comm evens;
        MPI_Comm_create_from_group(even, "even", MPI_INFO_NULL, MPI_ERRORS_RETURN, &evens);
        EXPECT(size_of(evens) == static_cast<int>(ranks.size()));
        EXPECT(ranks[static_cast<std::size_t>(rank_in(evens))] == world_rank);
        MPI_Comm_free(&evens);
    }
    if (world_size > 1) {
        between(all, even);
    }
    MPI_Comm none;
    EXPECT(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                      &none) == MPI_SUCCESS);
    EXPECT(none == MPI_COMM_NULL);
    MPI_Group_free(&even);
    MPI_Group_free(&all);
}

// Errors belong to the session.
void errors(MPI_Session session, MPI_Session other) {
    MPI_Errhandler own, got;
    MPI_Session_create_errhandler(handler, &own);
    EXPECT(MPI_Session_set_errhandler(session, own) == MPI_SUCCESS);
    MPI_Session_get_errhandler(session, &got);
    EXPECT(got == own);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&own);
    handled = 0;
    MPI_Group wrong;
    const int code = MPI_Group_from_session_pset(session, "mpi://NOWHERE", &wrong);
    EXPECT(class_of(code) == MPI_ERR_ARG && handled == 1 && handled_code == code);
    MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    EXPECT(handled == 2 && handled_code == MPI_ERR_OTHER);
    EXPECT(MPI_Group_from_session_pset(other, "mpi://NOWHERE", &wrong) != MPI_SUCCESS);
    EXPECT(handled == 2);
}

void one_session() {
    MPI_Session session, other;
    EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other) == MPI_SUCCESS);
    EXPECT(session != other);
    EXPECT(MPI_Session_fromint(MPI_Session_toint(session)) == session);
    int flag;
    MPI_Initialized(&flag);
    MPI_Comm comm = world_of(session, "one");
    MPI_Comm second = world_of(other, "one");
    check_sum(comm);
    check_sum(second);

    process_sets(session);
    groups(session);
    errors(session, other);

    check_sum(comm);
    // Nobody sends to it. Who has finalised the session, and opens one again, waits for those that
    // still finalise it.
    static int unused;
    MPI_Request request;
    MPI_Irecv(&unused, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &request);
    MPI_Request_free(&request);
    MPI_Comm_free(&comm);
    EXPECT(MPI_Session_finalize(&session) == MPI_SUCCESS);
    EXPECT(session == MPI_SESSION_NULL);
    check_sum(second); // the other one is still open
    MPI_Comm_disconnect(&second);
    MPI_Session_finalize(&other);
}

void hints() {
    MPI_Info info, used;
    MPI_Info_create(&info); // before anything else is
    MPI_Info_set(info, "thread_level", "MPI_THREAD_FUNNELED");
    MPI_Session session;
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &used);
    char level[32];
    int length = sizeof level, flag;
    MPI_Info_get_string(used, "thread_level", &length, level, &flag);
    EXPECT(flag != 0 && std::strcmp(level, "MPI_THREAD_FUNNELED") == 0);
    MPI_Info_free(&used);
    MPI_Session_finalize(&session);
}

int told = 0;

void on_session(MPI_Session* session, int* code, ...) {
    EXPECT(*session == MPI_SESSION_NULL && class_of(*code) == MPI_ERR_INFO_VALUE);
    ++told;
}

void on_communicator(MPI_Comm* comm, int* code, ...) {
    EXPECT(*comm == MPI_COMM_NULL && class_of(*code) == MPI_ERR_ARG);
    ++told;
}

// The handler that an object is to have is told when the object is not made.
void failures_of_what_is_made() {
    MPI_Errhandler of_session, of_communicator;
    MPI_Session_create_errhandler(on_session, &of_session);
    MPI_Comm_create_errhandler(on_communicator, &of_communicator);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MANY");
    MPI_Session session;
    told = 0;
    EXPECT(class_of(MPI_Session_init(info, of_session, &session)) == MPI_ERR_INFO_VALUE);
    EXPECT(told == 1);
    EXPECT(class_of(MPI_Session_init(info, MPI_ERRORS_RETURN, &session)) == MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group self;
    MPI_Group_from_session_pset(session, "mpi://SELF", &self);
    EXPECT(class_of(MPI_Comm_create_from_group(self, "none", MPI_INFO_NULL, of_communicator,
                                               nullptr)) == MPI_ERR_ARG);
    EXPECT(told == 2);
    MPI_Group_free(&self);
    MPI_Errhandler_free(&of_session);
    MPI_Errhandler_free(&of_communicator);
    MPI_Session_finalize(&session);
}

} // namespace

int main(int argc, char** argv) {
    hints();
    failures_of_what_is_made();
    for (int round = 0; round < 5; ++round) {
        one_session();
    }
    // A session around MPI_Init and MPI_Finalize, and one after them.
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    int flag;
    MPI_Initialized(&flag);
    EXPECT(flag == 0);
    start(&argc, &argv);
    MPI_Comm comm = world_of(session, "around");
    check_sum(MPI_COMM_WORLD);
    one_session();
    MPI_Finalize();
    MPI_Finalized(&flag);
    EXPECT(flag != 0);
    check_sum(comm);
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    one_session();
    return all == 0 && failures == 0 ? 0 : 1;
}
