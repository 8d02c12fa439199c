/* Writes an unfinished line to each standard stream and waits until a file is there, which says
 * that somebody has seen them, or until the time is over. pieces FILE SECONDS OUTPUT ERRORS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int count, char** words) {
    if (count != 5) {
        return 2;
    }
    fputs(words[3], stdout);
    fflush(stdout);
    fputs(words[4], stderr);
    int seen = 0;
    for (double left_s = atof(words[2]); !seen && left_s > 0; left_s -= 0.01) {
        const struct timespec pause = {.tv_sec = 0, .tv_nsec = 10000000};
        nanosleep(&pause, NULL);
        seen = access(words[1], F_OK) == 0;
    }
    puts(seen ? "seen" : "end");
    fputs(seen ? "seen\n" : "end\n", stderr);
    return 0;
}
