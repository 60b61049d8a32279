/* SPDX-License-Identifier: MIT */
/* test_doctor: what is made of servers that tell little, nothing, or nonsense. */
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>

#define NOW "*2\r\n$10\r\n1700000000\r\n$6\r\n000001\r\n"
#define INFO(text) "$" text
#define WELL                                                            \
    INFO("72\r\nredis_version:7.0.15\r\nrole:master\r\nmaxmemory:0\r\n" \
         "connected_slaves:0\r\nx:\r\n\r\n")
#define A_SENTINEL                                               \
    INFO("65\r\nredis_version:7.2.4\r\nvalkey_version:8.1.1\r\n" \
         "server_mode:sentinel\r\n\r\n")
#define SAYS(value) "*2\r\n$1\r\nn\r\n" value
#define UNSET "*0\r\n"
#define NOTHING "$0\r\n\r\n"
#define SIX NOTHING NOTHING NOTHING NOTHING NOTHING NOTHING
#define ALL_RIGHT "*12\r\n" SIX SIX
#define NOPERM "-NOPERM this user has no permissions\r\n"
#define NO_LOCKS "*2\r\n:1700000000000\r\n$1\r\n0\r\n"
#define TIMES(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
#define SETTINGS UNSET, UNSET, UNSET, UNSET, UNSET

static const struct {
    const char *what;
    const char *const answers[64];
    enum rlock_status st;
    const char *seen; /* "check grade" of each finding that is looked for */
} rows[] = {
    {"all that is asked for",
     {NOW, WELL, SETTINGS, ALL_RIGHT, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 0 role 0 eviction 0 "},
    {"that it is a Sentinel, as Valkey says it",
     {NOW, A_SENTINEL, SETTINGS, ALL_RIGHT, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 3 "},
    {"nothing but scripts",
     {NOW, NOPERM, NOPERM, NOPERM, NOPERM, NOPERM, NOPERM, ALL_RIGHT, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 1 role 1 eviction 1 persistence 1 replicas 1 scripts 0 rights 0 "},
    {"not even scripts", {NOPERM}, RLOCK_OK, "rights 3 "},
    {"no password, where one is wanted",
     {"-NOAUTH Authentication required.\r\n"},
     RLOCK_E_REFUSED,
     ""},
    {"that it is loading", {"-LOADING\r\n"}, RLOCK_E_SERVER, ""},
    {"no text for INFO", {NOW, ":1\r\n"}, RLOCK_E_PROTOCOL, "connection 0 "},
    {"nil for INFO", {NOW, "$-1\r\n"}, RLOCK_E_PROTOCOL, "connection 0 "},
    {"numbers for CONFIG",
     {NOW, WELL, ":1\r\n", ":1\r\n", SAYS(":1\r\n"), SAYS("$-1\r\n"), SAYS("*0\r\n"), ALL_RIGHT,
      TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "rights 0 "},
    {"a number for rights", {NOW, WELL, SETTINGS, ":1\r\n"}, RLOCK_E_PROTOCOL, "scripts 0 "},
    {"too little of rights",
     {NOW, WELL, SETTINGS, "*11\r\n" SIX NOTHING NOTHING NOTHING NOTHING NOTHING},
     RLOCK_E_PROTOCOL,
     "scripts 0 "},
    {"no time", {NOW, WELL, SETTINGS, ALL_RIGHT, "*0\r\n"}, RLOCK_E_PROTOCOL, "rights 0 "},
    {"a time that is too long",
     {NOW, WELL, SETTINGS, ALL_RIGHT, "*2\r\n$12\r\n170000000000\r\n$1\r\n1\r\n"},
     RLOCK_E_PROTOCOL,
     "rights 0 "},
    {"nothing, and it hangs up", {NOW, WELL, CLOSE}, RLOCK_E_UNREACHABLE, "connection 0 "},
    {"that it does no list",
     {NOW, WELL, SETTINGS, ALL_RIGHT, TIMES(NOW), "-ERR unknown command\r\n"},
     RLOCK_OK,
     "locks 1 "},
};

static void see(void *context, const struct rlock_finding *finding)
{
    char *seen = context;

    sprintf(seen + strlen(seen), "%.20s %d ", finding->check, (int)finding->grade);
    if (!is_printable(finding->found))
        strcat(seen, "unprintable ");
}

static void examine(size_t i)
{
    struct server server = {
        .answers = {[ASKED_OTHER] = rows[i].answers, [ASKED_WAKE] = ANSWERS(NOT_WOKEN)}};
    struct rlock_deadline deadline = {rlock_clock_ms() + 20000, -1};
    struct rlock_error err = {.text = ""};
    const char *url = server.url;
    struct rlock_config config = {.urls = &url,
                                  .n_urls = 1,
                                  .timing = {.ttl_ms = 30000, .reply_ms = 2000},
                                  .connect_ms = 5000};
    enum rlock_status st = RLOCK_E_SYSTEM;
    struct rlock *lock = NULL;
    char seen[1000] = "";
    struct rlock_examiner examiner = {see, seen};

    if (server_start(&server) && rlock_open(&lock, &config, &err) == RLOCK_OK)
        st = rlock_examine(lock, NULL, deadline, &examiner, &err);
    okf(st == rows[i].st && strstr(seen, rows[i].seen) != NULL, "a server that says %s: %d %s: %s",
        rows[i].what, (int)st, err.text, seen);
    rlock_close(lock);
    server_stop(&server);
}

int main(void)
{
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        examine(i);
    return done_testing();
}
