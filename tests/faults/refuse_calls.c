/* refuse_calls NAME[,NAME…] PROGRAM [ARGUMENTS]: runs the program as containers do, whose seccomp
   profile refuses system calls: each one that is named fails with EPERM. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char* name;
    unsigned number;
} calls[] = {
    {"io_uring_setup", SYS_io_uring_setup},     {"membarrier", SYS_membarrier},
    {"memfd_create", SYS_memfd_create},         {"perf_event_open", SYS_perf_event_open},
    {"process_vm_readv", SYS_process_vm_readv}, {"ptrace", SYS_ptrace},
};
enum { call_count = sizeof calls / sizeof calls[0] };

int main(int count, char** words) {
    if (count < 3) {
        fprintf(stderr, "usage: refuse_calls NAME[,NAME…] PROGRAM [ARGUMENTS]\n");
        return 2;
    }
    struct sock_filter rules[2 * call_count + 2];
    unsigned length = 0;
    rules[length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char* name = strtok(words[1], ","); name != NULL; name = strtok(NULL, ",")) {
        unsigned at = 0;
        while (at < call_count && strcmp(calls[at].name, name) != 0)
            at++;
        if (at == call_count || length + 3 > sizeof rules / sizeof rules[0]) {
            fprintf(stderr, "refuse_calls: %s is unknown, or too many\n", name);
            return 2;
        }
        rules[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[at].number, 0, 1);
        rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)length, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "refuse_calls: %s\n", strerror(errno));
        return 77;
    }
    execvp(words[2], words + 2);
    fprintf(stderr, "refuse_calls: %s: %s\n", words[2], strerror(errno));
    return 127;
}
