/* SPDX-License-Identifier: MIT */
/* test_doctor: rlock_examine() of servers that deny requests or send malformed replies. */
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>

#define NOW "*2\r\n$10\r\n1700000000\r\n$6\r\n000001\r\n"
#define INFO(text) "$" text
#define GOOD_INFO                                                       \
    INFO("72\r\nredis_version:7.0.15\r\nrole:master\r\nmaxmemory:0\r\n" \
         "connected_slaves:0\r\nx:\r\n\r\n")
#define SENTINEL_INFO                                            \
    INFO("65\r\nredis_version:7.2.4\r\nvalkey_version:8.1.1\r\n" \
         "server_mode:sentinel\r\n\r\n")
#define SETTING(value) "*2\r\n$1\r\nn\r\n" value
#define UNSET "*0\r\n"
#define EMPTY "$0\r\n\r\n"
#define SIX EMPTY EMPTY EMPTY EMPTY EMPTY EMPTY
#define ALL_RIGHTS "*12\r\n" SIX SIX
#define NOPERM "-NOPERM this user has no permissions\r\n"
#define NO_LOCKS "*2\r\n:1700000000000\r\n$1\r\n0\r\n"
#define TIMES(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
#define SETTINGS UNSET, UNSET, UNSET, UNSET, UNSET

static const struct {
    const char *what; /* what the server does */
    const char *const answers[64];
    enum rlock_status st; /* what rlock_examine() must return */
    const char *seen;     /* some findings that must be reported: CHECK GRADE CHECK GRADE ... */
} rows[] = {
    {"replies to all requests",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 0 role 0 eviction 0 "},
    {"is a Sentinel of Valkey",
     {NOW, SENTINEL_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 3 "},
    {"allows nothing but scripts",
     {NOW, NOPERM, NOPERM, NOPERM, NOPERM, NOPERM, NOPERM, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 1 role 1 eviction 1 persistence 1 replicas 1 scripts 0 rights 0 "},
    {"allows no scripts", {NOPERM}, RLOCK_OK, "rights 3 "},
    {"wants a password", {"-NOAUTH Authentication required.\r\n"}, RLOCK_E_REFUSED, ""},
    {"is loading", {"-LOADING\r\n"}, RLOCK_E_SERVER, ""},
    {"replies to INFO with a number", {NOW, ":1\r\n"}, RLOCK_E_PROTOCOL, "connection 0 "},
    {"replies to INFO with nil", {NOW, "$-1\r\n"}, RLOCK_E_PROTOCOL, "connection 0 "},
    {"replies to CONFIG GET with numbers",
     {NOW, GOOD_INFO, ":1\r\n", ":1\r\n", SETTING(":1\r\n"), SETTING("$-1\r\n"), SETTING("*0\r\n"),
      ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "rights 0 "},
    {"replies to rights.lua with a number",
     {NOW, GOOD_INFO, SETTINGS, ":1\r\n"},
     RLOCK_E_PROTOCOL,
     "scripts 0 "},
    {"replies to rights.lua with too few strings",
     {NOW, GOOD_INFO, SETTINGS, "*11\r\n" SIX EMPTY EMPTY EMPTY EMPTY EMPTY},
     RLOCK_E_PROTOCOL,
     "scripts 0 "},
    {"replies to TIME with an empty array",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, "*0\r\n"},
     RLOCK_E_PROTOCOL,
     "rights 0 "},
    {"replies to TIME with too many digits",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, "*2\r\n$12\r\n170000000000\r\n$1\r\n1\r\n"},
     RLOCK_E_PROTOCOL,
     "rights 0 "},
    {"closes the connection", {NOW, GOOD_INFO, CLOSE}, RLOCK_E_UNREACHABLE, "connection 0 "},
    {"doesn't know the script list.lua",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), "-ERR unknown command\r\n"},
     RLOCK_OK,
     "locks 1 "},
};

static void add_finding(void *context, const struct rlock_finding *finding)
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
    const struct rlock_config config = {.timing = {.ttl_ms = 30000, .reply_ms = 2000}};
    enum rlock_status st = RLOCK_E_SYSTEM;
    struct rlock *lock = NULL;
    char seen[1000] = "";
    struct rlock_examiner examiner = {add_finding, seen};

    if (server_open(&server, config, &lock, &err) == RLOCK_OK)
        st = rlock_examine(lock, NULL, deadline, &examiner, &err);
    okf(st == rows[i].st && strstr(seen, rows[i].seen) != NULL,
        "a server that %s: status %d, text \"%s\", findings %s", rows[i].what, (int)st, err.text,
        seen);
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
