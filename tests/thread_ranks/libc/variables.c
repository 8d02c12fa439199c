/* Variables of the C and the mathematics library that a rank sees are its own, and the functions
   that go with them use these. */
#define _GNU_SOURCE

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

static void gamma_signs(void) {
    volatile double negative = -0.5 - 2 * (world_rank % 2);
    for (int i = 0; i < 1000; ++i) {
        const int odd = (i + world_rank) % 2;
        expect(isfinite(lgamma(odd ? negative : 2.5)) && signgam == (odd ? -1 : 1));
    }
    expect(isfinite(lgammaf((float)negative)) && signgam == -1);
    expect(isfinite(lgammal(3.5L)) && signgam == 1);
    expect(isfinite(gamma(negative)) && signgam == -1);
    expect(lgammaf32(2.5F) != 0 && signgam == 1 && lgammaf32((float)negative) != 0 &&
           signgam == -1);
    expect(lgammaf64(2.5) != 0 && signgam == 1 && lgammaf64(negative) != 0 && signgam == -1);
#if __HAVE_FLOAT128 /* glibc declares none of these for clang 14 */
    expect(lgammaf128(2.5) != 0 && signgam == 1 && lgammaf128(negative) != 0 && signgam == -1);
#endif
}

static void own_zone(const char* name, long offset, const char* normal, const char* summer) {
    const time_t summer_day = 1719835200; /* 2024-07-01 12:00 UTC */
    const time_t winter_day = 1704110400; /* 2024-01-01 12:00 UTC */
    char text[60];
    struct tm parts;
    if (name != NULL) {
        setenv("TZ", name, 1);
    } else {
        unsetenv("TZ");
    }
    tzset();
    together();
    for (int i = 0; i < 200; ++i) {
        expect(timezone == offset && daylight == (summer != NULL));
        expect(strcmp(tzname[0], normal) == 0);
        expect(summer == NULL || strcmp(tzname[1], summer) == 0);
        const struct tm* local = localtime(&winter_day);
        expect(local->tm_hour == (int)((12 * 3600 - offset) / 3600) % 24 && local->tm_isdst == 0);
        expect(local->tm_gmtoff == -offset && strcmp(local->tm_zone, normal) == 0);
        parts = *local;
        expect(mktime(&parts) == winter_day);
        strftime(text, sizeof text, "%Z %z", local);
        expect(strncmp(text, normal, strlen(normal)) == 0);
        localtime_r(&summer_day, &parts);
        expect(parts.tm_isdst == (summer != NULL));
        strftime(text, sizeof text, "%Z", &parts);
        expect(strcmp(text, summer != NULL ? summer : normal) == 0);
        ctime_r(&winter_day, text);
        char hour[4];
        snprintf(hour, sizeof hour, " %02d", (int)((12 * 3600 - offset) / 3600) % 24);
        expect(strstr(text, hour) != NULL && strcmp(ctime(&winter_day), text) == 0);
    }
    expect(gmtime(&winter_day)->tm_hour == 12);
    /* These two don't look for a zone again. */
    setenv("TZ", "NEW-7", 1);
    localtime_r(&winter_day, &parts);
    expect(parts.tm_gmtoff == -offset);
    expect(strstr(ctime_r(&winter_day, text), " 19:00") == NULL);
    expect(localtime(&winter_day)->tm_gmtoff == 7 * 3600 && timezone == -7 * 3600);
    localtime_r(&winter_day, &parts);
    expect(parts.tm_hour == 19);
}

static void zones(void) {
    static const struct {
        const char* name;
        long offset;
        const char* normal;
        const char* summer;
    } all[] = {
        {"XYZ-1XYS,M3.5.0,M10.5.0/3", -3600, "XYZ", "XYS"},
        {"ABC5", 18000, "ABC", NULL},
        {"UTC0", 0, "UTC", NULL},
        {"DEF+3DES,M3.5.0,M10.5.0/3", 10800, "DEF", "DES"},
    };
    for (int i = 0; i < 4; ++i) {
        const int one = (world_rank + i) % 4;
        own_zone(all[one].name, all[one].offset, all[one].normal, all[one].summer);
    }
}

static void dates(void) {
    unsetenv("DATEMSK");
    getdate_err = 0;
    if (world_rank % 2 == 0) {
        expect(getdate("1.1.2000") == NULL && getdate_err == 1);
    }
    together();
    expect(getdate_err == (world_rank % 2 == 0));
    char path[] = "/tmp/mpi-test-dates.XXXXXX";
    const int file = mkstemp(path);
    expect(dprintf(file, world_rank % 2 ? "%%d.%%m.%%Y\n" : "%%Y-%%m-%%d\n") > 0);
    close(file);
    setenv("DATEMSK", path, 1);
    together();
    const struct tm* date = getdate(world_rank % 2 ? "05.06.2010" : "2010-06-05");
    expect(date != NULL && date->tm_mday == 5 && date->tm_mon == 5 && date->tm_year == 110);
    unlink(path);
    together();
}

static void syntaxes(void) {
    static struct re_pattern_buffer pattern;
    /* In one of them '+' repeats, in the other "\+" does. */
    const int extended = world_rank % 2;
    re_set_syntax(extended ? RE_SYNTAX_POSIX_EXTENDED : RE_SYNTAX_POSIX_BASIC);
    together();
    for (int i = 0; i < 100; ++i) {
        memset(&pattern, 0, sizeof pattern);
        expect(re_compile_pattern("ab+c", 4, &pattern) == NULL);
        expect(re_match(&pattern, "abbc", 4, 0, NULL) == (extended ? 4 : -1));
        expect(re_match(&pattern, "ab+c", 4, 0, NULL) == (extended ? -1 : 4));
        regfree(&pattern);
    }
    expect(re_syntax_options == (extended ? RE_SYNTAX_POSIX_EXTENDED : RE_SYNTAX_POSIX_BASIC));
    expect(re_set_syntax(0) == (extended ? RE_SYNTAX_POSIX_EXTENDED : RE_SYNTAX_POSIX_BASIC));
}

int main(int argc, char** argv) {
    begin(&argc, &argv);
    gamma_signs();
    zones();
    dates();
    syntaxes();
    together();
    return finish();
}
