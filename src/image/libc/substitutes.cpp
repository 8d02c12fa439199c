#include "image/libc/substitutes.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "image/architecture.hpp"
#include "image/libc/functions.hpp"

namespace warren::image {

namespace {

struct Substitute {
    const char* name;
    void* function;
};

template <typename Function>
void* erase(Function* function) {
    return reinterpret_cast<void*>(function);
}

// In the order of strcmp.
const Substitute* table(std::size_t& count) {
    using namespace inside;
    static const Substitute substitutes[] = {
        {"_Exit", erase(immediate_exit)},
        {"__assert_fail", erase(assertion_failed)},
        {"__chk_fail", erase(overflow_detected)},
        {"__cxa_at_quick_exit", erase(cxa_at_quick_exit)},
        {"__cxa_atexit", erase(cxa_atexit)},
        {"__cxa_finalize", erase(cxa_finalize)},
        {"__cxa_thread_atexit_impl", erase(cxa_thread_atexit)},
        {"__isoc99_scanf", erase(scan)},
        {"__isoc99_vscanf", erase(scan_list)},
        {"__libc_start_main", erase(libc_start_main)},
        {"__printf_chk", erase(print_checked)},
        {"__secure_getenv", erase(getenv_of)},
        {"__stack_chk_fail", erase(stack_smashed)},
        {"__tls_get_addr", architecture::get_thread_variable()},
        {"__vprintf_chk", erase(print_list_checked)},
        {"_dl_find_object", erase(inside::find_object)},
        {"_exit", erase(immediate_exit)},
        {"abort", erase(inside::abort)},
        {"asctime", erase(inside::time_text)},
        {"atexit", erase(plain_atexit)},
        {"call_once", erase(call_once_c11)},
        {"clearenv", erase(clear_environment)},
        {"clock_nanosleep", erase(sleep_by_clock)},
        {"cnd_broadcast", erase(broadcast_condition_c11)},
        {"cnd_signal", erase(signal_condition_c11)},
        {"cnd_timedwait", erase(wait_condition_c11_till)},
        {"cnd_wait", erase(wait_condition_c11)},
        {"ctime", erase(local_time_text)},
        {"dl_iterate_phdr", erase(inside::iterate_modules)},
        {"dladdr", erase(describe_address)},
        {"dladdr1", erase(describe_address_further)},
        {"dlclose", erase(close_module)},
        {"dlerror", erase(module_error)},
        {"dlinfo", erase(inspect_module)},
        {"dlopen", erase(open_module)},
        {"dlsym", erase(symbol_of_module)},
        {"dlvsym", erase(versioned_symbol_of_module)},
        {"drand48", erase(drand48_number)},
        {"erand48", erase(erand48_number)},
        {"err", erase(fail_with_error)},
        {"error", erase(report_error)},
        {"errx", erase(fail_without_error)},
        {"execl", erase(execute_list)},
        {"execle", erase(execute_list_with)},
        {"execlp", erase(execute_found_list)},
        {"execv", erase(execute)},
        {"execve", erase(execute_with)},
        {"execvp", erase(execute_found)},
        {"execvpe", erase(execute_found_with)},
        {"exit", erase(inside::exit)},
        {"fclose", erase(close_stream)},
        {"fcloseall", erase(close_all_streams)},
        {"fdopen", erase(open_descriptor)},
        {"fopen", erase(open_stream)},
        {"fopen64", erase(open_stream)},
        {"getchar", erase(get_character)},
        {"getchar_unlocked", erase(get_character)},
        {"getenv", erase(getenv_of)},
        {"getopt", erase(get_option)},
        {"getopt_long", erase(get_long_option)},
        {"getopt_long_only", erase(get_long_option_only)},
        {"gmtime", erase(universal_time)},
        {"initstate", erase(begin_random_state)},
        {"jrand48", erase(jrand48_number)},
        {"lcong48", erase(set_random48_parameters)},
        {"localtime", erase(local_time)},
        {"lrand48", erase(lrand48_number)},
        {"mrand48", erase(mrand48_number)},
        {"mtx_lock", erase(lock_c11)},
        {"mtx_timedlock", erase(lock_c11_till)},
        {"mtx_unlock", erase(unlock_c11)},
        {"nanosleep", erase(sleep_time)},
        {"nrand48", erase(nrand48_number)},
        {"on_exit", erase(plain_on_exit)},
        {"pclose", erase(close_command)},
        {"perror", erase(print_error)},
        {"poll", erase(poll_descriptors)},
        {"popen", erase(open_command)},
        {"printf", erase(print)},
        {"pthread_barrier_destroy", erase(destroy_barrier)},
        {"pthread_barrier_wait", erase(wait_barrier)},
        {"pthread_cond_broadcast", erase(broadcast_condition)},
        {"pthread_cond_clockwait", erase(wait_condition_by_clock)},
        {"pthread_cond_signal", erase(signal_condition)},
        {"pthread_cond_timedwait", erase(wait_condition_till)},
        {"pthread_cond_wait", erase(wait_condition)},
        {"pthread_create", erase(create)},
        {"pthread_exit", erase(exit_thread)},
        {"pthread_join", erase(join_thread)},
        {"pthread_key_create", erase(create_key)},
        {"pthread_key_delete", erase(delete_key)},
        {"pthread_mutex_clocklock", erase(lock_mutex_by_clock)},
        {"pthread_mutex_init", erase(init_mutex)},
        {"pthread_mutex_lock", erase(lock_mutex)},
        {"pthread_mutex_timedlock", erase(lock_mutex_till)},
        {"pthread_mutex_trylock", erase(try_to_lock_mutex)},
        {"pthread_mutex_unlock", erase(unlock_mutex)},
        {"pthread_once", erase(call_once)},
        {"pthread_rwlock_clockrdlock", erase(read_lock_by_clock)},
        {"pthread_rwlock_clockwrlock", erase(write_lock_by_clock)},
        {"pthread_rwlock_rdlock", erase(read_lock)},
        {"pthread_rwlock_timedrdlock", erase(read_lock_till)},
        {"pthread_rwlock_timedwrlock", erase(write_lock_till)},
        {"pthread_rwlock_tryrdlock", erase(try_to_read_lock)},
        {"pthread_rwlock_unlock", erase(unlock_read_write)},
        {"pthread_rwlock_wrlock", erase(write_lock)},
        {"pthread_yield", erase(yield_processor)},
        {"putchar", erase(put_character)},
        {"putchar_unlocked", erase(put_character)},
        {"putenv", erase(put_environment)},
        {"puts", erase(put_line)},
        {"putwchar", erase(put_wide_character)},
        {"quick_exit", erase(inside::quick_exit)},
        {"rand", erase(short_random_number)},
        {"random", erase(random_number)},
        {"register_printf_function", erase(refuse_conversion)},
        {"register_printf_modifier", erase(refuse_conversion)},
        {"register_printf_specifier", erase(refuse_conversion)},
        {"register_printf_type", erase(refuse_conversion)},
        {"scanf", erase(scan)},
        {"sched_yield", erase(yield_processor)},
        {"secure_getenv", erase(getenv_of)},
        {"seed48", erase(set_random48)},
        {"select", erase(select_descriptors)},
        {"sem_clockwait", erase(wait_semaphore_by_clock)},
        {"sem_post", erase(post_semaphore)},
        {"sem_timedwait", erase(wait_semaphore_till)},
        {"sem_wait", erase(wait_semaphore)},
        {"setenv", erase(set_environment)},
        {"setlocale", erase(set_locale)},
        {"setstate", erase(set_random_state)},
        {"sleep", erase(sleep_seconds)},
        {"srand", erase(seed_random)},
        {"srand48", erase(seed_random48)},
        {"srandom", erase(seed_random)},
        {"strtok", erase(next_token)},
        {"syscall", erase(system_call)},
        {"system", erase(run_command)},
        {"thrd_create", erase(create_c11)},
        {"thrd_join", erase(join_c11)},
        {"thrd_sleep", erase(sleep_c11)},
        {"thrd_yield", erase(yield_c11)},
        {"tmpfile", erase(open_temporary)},
        {"tmpfile64", erase(open_temporary)},
        {"tss_create", erase(create_key)},
        {"tss_delete", erase(delete_key_c11)},
        {"unsetenv", erase(unset_environment)},
        {"usleep", erase(sleep_microseconds)},
        {"vprintf", erase(print_list)},
        {"vscanf", erase(scan_list)},
        {"warn", erase(warn_with_error)},
        {"warnx", erase(warn_without_error)},
        {"wprintf", erase(print_wide)},
    };
    count = std::size(substitutes);
    return substitutes;
}

} // namespace

const char* substitute_name(std::size_t index) {
    std::size_t count = 0;
    const Substitute* first = table(count);
    return index < count ? first[index].name : nullptr;
}

void* find_substitute_function(const char* name) {
    std::size_t count = 0;
    const Substitute* first = table(count);
    const Substitute* found =
        std::lower_bound(first, first + count, name, [](const Substitute& entry, const char* key) {
            return std::strcmp(entry.name, key) < 0;
        });
    return found != first + count && std::strcmp(found->name, name) == 0 ? found->function
                                                                         : nullptr;
}

void** find_substitute_variable(LibcState& state, const char* name) {
    Variable variable{};
    return find_variable(name, variable) ? &state.place(variable) : nullptr;
}

} // namespace warren::image
