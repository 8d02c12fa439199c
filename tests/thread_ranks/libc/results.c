/* What functions return pointers to, or remember, is not changed by other ranks' calls. */
#define _GNU_SOURCE

#include <grp.h>
#include <locale.h>
#include <math.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <pty.h>
#include <pwd.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "expect.h"

/* Each goes through a database at its own pace. */
static void databases(void) {
    for (int i = 0; i <= world_rank; ++i) {
        setpwent();
        setgrent();
        setservent(1);
        const struct passwd* user = getpwent();
        expect(user != NULL && user->pw_uid == 0);
        together();
        user = getpwent();
        const struct group* group_entry = getgrent();
        expect(user != NULL && user->pw_uid == 1 && group_entry != NULL &&
               group_entry->gr_gid == 0);
        int users = 2, services = 0;
        while (getpwent() != NULL) {
            ++users;
        }
        while (getservent() != NULL) {
            ++services;
        }
        char line[1000];
        int lines = 0;
        FILE* file = fopen("/etc/passwd", "r");
        while (fgets(line, sizeof line, file) != NULL) {
            ++lines;
        }
        fclose(file);
        expect(users >= lines && getpwent() == NULL);
        endpwent();
        endgrent();
        endservent();
    }
    for (int i = world_rank + 1; i < world_size; ++i) {
        together();
    }
}

/* Half of a character, which others must not finish. */
static void characters(void) {
    setlocale(LC_ALL, "C.UTF-8");
    wchar_t wide = 0;
    char text[20];
    expect(mbrtowc(&wide, world_rank % 2 ? "\xc3" : "\xe2", 1, NULL) == (size_t)-2);
    together();
    expect(mbrtowc(&wide, world_rank % 2 ? "\xa4" : "\x82\xac", 2, NULL) ==
           (world_rank % 2 ? 1u : 2u));
    expect(wide == (world_rank % 2 ? 0xe4 : 0x20ac));
    expect(mblen("\xe2\x82\xac", 3) == 3 && wctomb(text, 0xe4) == 2);
    together();
    expect(strcmp(localeconv()->decimal_point, ".") == 0);
}

/* What one function has returned stays when another one is called. */
static void results_of_several(void) {
    const struct passwd* by_number = getpwuid(1);
    const struct passwd* by_name = getpwnam("root");
    expect(by_number != NULL && by_name != NULL && by_number->pw_uid == 1 && by_name->pw_uid == 0);
    const struct group* group_by_number = getgrgid(1);
    const struct group* group_by_name = getgrnam("root");
    expect(group_by_number != NULL && group_by_name != NULL);
    expect(group_by_number->gr_gid == 1 && group_by_name->gr_gid == 0);
    const struct hostent* host = gethostbyname("127.0.0.1");
    const struct hostent* other = gethostbyname2("127.0.0.2", AF_INET);
    expect(host != NULL && other != NULL);
    expect(host->h_addr_list[0][3] == 1 && other->h_addr_list[0][3] == 2);
}

/* What a function returns a pointer to, another one of the same rank changes. */
static void times_of_day(void) {
    const time_t first = 1700000000 + world_rank * 86400, second = first + 3600;
    const struct tm* broken = gmtime(&first);
    const char* text = ctime(&second);
    together();
    struct tm wanted;
    localtime_r(&second, &wanted);
    expect(broken->tm_mday == wanted.tm_mday && broken->tm_hour == wanted.tm_hour);
    char wanted_text[40];
    expect(strcmp(text, asctime_r(&wanted, wanted_text)) == 0);
}

static void terminals(void) {
    int master, slave;
    char name[100];
    if (openpty(&master, &slave, name, NULL, NULL) != 0) {
        return; /* there may be none */
    }
    const char* own = ttyname(slave);
    const char* of_master = ptsname(master);
    together();
    expect(own != NULL && strcmp(own, name) == 0);
    expect(of_master != NULL && strcmp(of_master, name) == 0 && of_master != own);
    together();
    close(master);
    close(slave);
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    results_of_several();
    int point = 0, sign = 0;
    char name[20];
    const double value = world_rank + 0.25;
    const uid_t user = world_rank % 2; /* root and daemon, which Debian has */
    const gid_t group = world_rank % 2;
    char expected_digits[30];
    snprintf(expected_digits, sizeof expected_digits, "%d250000", world_rank);
    const int digits = 6 + (int)strlen(expected_digits) - 7;

    char user_name[60], group_name[60];
    strcpy(user_name, getpwuid(user)->pw_name);
    strcpy(group_name, getgrgid(group)->gr_name);
    struct ether_addr card = {{1, 2, 3, 4, 5, (unsigned char)world_rank}};
    char card_text[30];
    snprintf(card_text, sizeof card_text, "1:2:3:4:5:%x", world_rank);
    snprintf(name, sizeof name, "key%d", world_rank);
    together();

    for (int i = 0; i < 20; ++i) {
        char* text = fcvt(value, 6, &point, &sign);
        const char* long_text = qfcvt(value, 6, &point, &sign);
        const char* short_text = l64a(64 * 3 + world_rank + 2);
        const struct passwd* entry = getpwuid(user);
        const struct group* group_entry = getgrgid(group);
        const struct servent* service = getservbyname(world_rank % 2 ? "ssh" : "http", "tcp");
        const char* address = ether_ntoa(&card);
        const char* temporary = tmpnam(NULL);
        char kept[L_tmpnam];
        strcpy(kept, temporary);
        ENTRY wanted = {name, &value};
        expect(hcreate(10 + world_rank) != 0);
        expect(hsearch(wanted, ENTER) != NULL);
        together();
        (void)digits;
        expect(strstr(text, "25") != NULL && atoi(text) == world_rank * 1000000 + 250000);
        expect(atoi(long_text) == world_rank * 1000000 + 250000);
        expect(a64l(short_text) == 64 * 3 + world_rank + 2);
        expect(strcmp(entry->pw_name, user_name) == 0 && entry->pw_uid == user);
        expect(strcmp(group_entry->gr_name, group_name) == 0 && group_entry->gr_gid == group);
        expect(service == NULL ||
               ntohs((unsigned short)service->s_port) == (world_rank % 2 ? 22 : 80));
        expect(strcmp(address, card_text) == 0);
        expect(strcmp(temporary, kept) == 0);
        for (int other = 0; other < world_size; ++other) {
            char key[20];
            snprintf(key, sizeof key, "key%d", other);
            ENTRY asked = {key, NULL};
            ENTRY* found = hsearch(asked, FIND);
            expect((found != NULL) == (other == world_rank));
            expect(found == NULL || found->data == &value);
        }
        hdestroy();
        together();
    }

    databases();
    characters();
    times_of_day();
    terminals();
    return finish();
}
