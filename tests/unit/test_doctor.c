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

#define AOF_INFO                                                                         \
    INFO("83\r\nredis_version:7.0.15\r\nrole:master\r\naof_enabled:1\r\nmaxmemory:0\r\n" \
         "connected_slaves:0\r\n\r\n")
#define REPLICAS_INFO                                                           \
    INFO("116\r\nredis_version:7.0.15\r\nrole:master\r\nconnected_slaves:3\r\n" \
         "slave0:state=online\r\nslave1:state=online\r\nslave2:state=wait\r\n\r\n")
#define ALWAYS SETTING("$6\r\nalways\r\n")
/* A reply of list.lua with one lock: its value, the ms left, and what is wrong. */
#define ONE_LOCK(row) "*3\r\n:1700000000000\r\n$1\r\n0\r\n" row
#define ROW(value, left, wrong)                                                   \
    "*2\r\n$1\r\nk\r\n*8\r\n" value ":" left "\r\n$1\r\n7\r\n:0\r\n:0\r\n:-1\r\n" \
    "*0\r\n" wrong
#define HELD_LOCK "$62\r\n0123456789abcdef0123456789abcdef v1 try=1 ttl=30000 host=h pid\r\n"

static const struct {
    const char *what; /* what the server does */
    const char *const answers[64];
    enum rlock_status st; /* what rlock_examine() must return */
    const char *seen;     /* some findings that must be reported: CHECK GRADE CHECK GRADE ... */
    const char *text;     /* a part of the text of a finding */
} rows[] = {
    {"replies to all requests",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 0 role 0 eviction 0 ",
     ""},
    {"is a Sentinel of Valkey",
     {NOW, SENTINEL_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 3 ",
     ""},
    {"allows nothing but scripts",
     {NOW, NOPERM, NOPERM, NOPERM, NOPERM, NOPERM, NOPERM, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "server 1 role 1 eviction 1 persistence 1 replicas 1 scripts 0 rights 0 ",
     ""},
    {"allows no scripts", {NOPERM}, RLOCK_OK, "rights 3 ", ""},
    {"wants a password", {"-NOAUTH Authentication required.\r\n"}, RLOCK_E_REFUSED, "", ""},
    {"is loading", {"-LOADING\r\n"}, RLOCK_E_SERVER, "", ""},
    {"replies to INFO with a number", {NOW, ":1\r\n"}, RLOCK_E_PROTOCOL, "connection 0 ", ""},
    {"replies to INFO with nil", {NOW, "$-1\r\n"}, RLOCK_E_PROTOCOL, "connection 0 ", ""},
    {"replies to CONFIG GET with numbers",
     {NOW, GOOD_INFO, ":1\r\n", ":1\r\n", SETTING(":1\r\n"), SETTING("$-1\r\n"), SETTING("*0\r\n"),
      ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "rights 0 ",
     ""},
    {"replies to rights.lua with a number",
     {NOW, GOOD_INFO, SETTINGS, ":1\r\n"},
     RLOCK_E_PROTOCOL,
     "scripts 0 ",
     ""},
    {"replies to rights.lua with too few strings",
     {NOW, GOOD_INFO, SETTINGS, "*11\r\n" SIX EMPTY EMPTY EMPTY EMPTY EMPTY},
     RLOCK_E_PROTOCOL,
     "scripts 0 ",
     ""},
    {"replies to TIME with an empty array",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, "*0\r\n"},
     RLOCK_E_PROTOCOL,
     "rights 0 ",
     ""},
    {"replies to TIME with too many digits",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, "*2\r\n$12\r\n170000000000\r\n$1\r\n1\r\n"},
     RLOCK_E_PROTOCOL,
     "rights 0 ",
     ""},
    {"closes the connection", {NOW, GOOD_INFO, CLOSE}, RLOCK_E_UNREACHABLE, "connection 0 ", ""},
    {"doesn't know the script list.lua",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), "-ERR unknown command\r\n"},
     RLOCK_OK,
     "locks 1 ",
     ""},
    {"replies to rights.lua with a number as the first string",
     {NOW, GOOD_INFO, SETTINGS, "*12\r\n:1\r\n" EMPTY EMPTY EMPTY EMPTY EMPTY SIX},
     RLOCK_E_PROTOCOL,
     "scripts 0 ",
     ""},
    {"has a lock with a bad helper key",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW),
      ONE_LOCK(ROW("$-1\r\n", "-2", "$9\r\nk is bad!\r\n"))},
     RLOCK_OK,
     "locks 3 ",
     "1 of 1 locks can't be granted, as a helper key has another program's data: k is bad!"},
    {"has a lock that lasts longer than its TTL",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), ONE_LOCK(ROW(HELD_LOCK, "60000", EMPTY))},
     RLOCK_OK,
     "locks 3 ",
     "1 of 1 locks last longer than their ttl, as happens when the server's clock is set back, for "
     "example k"},
    {"has a lock that never expires",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), ONE_LOCK(ROW(HELD_LOCK, "-1", EMPTY))},
     RLOCK_OK,
     "locks 2 ",
     "1 of 1 locks never expire, for example k"},
    {"has a lock that expires",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), ONE_LOCK(ROW(HELD_LOCK, "9000", EMPTY))},
     RLOCK_OK,
     "locks 0 ",
     "1, and each lock expires by itself"},
    {"writes each command to its disk",
     {NOW, AOF_INFO, UNSET, ALWAYS, UNSET, UNSET, UNSET, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "persistence 0 ",
     "appendfsync always: no restart loses a lock"},
    {"has three replicas, of which two are online",
     {NOW, REPLICAS_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "replicas 2 ",
     "only 2 of 3 replicas are online"},
    {"has no replicas",
     {NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, TIMES(NOW), NO_LOCKS},
     RLOCK_OK,
     "replicas 0 ",
     "none, so no failover can lose a lock"},
};

struct findings {
    char seen[1000];  /* CHECK GRADE CHECK GRADE ... */
    char found[4000]; /* the texts, with a newline after each */
};

static void add_finding(void *context, const struct rlock_finding *finding)
{
    struct findings *findings = context;
    char *seen = findings->seen;
    char *found = findings->found;
    double middle_ms;
    double worst_ms;

    sprintf(seen + strlen(seen), "%.20s %d ", finding->check, (int)finding->grade);
    if (!is_printable(finding->found))
        strcat(seen, "unprintable ");
    if (strlen(found) + strlen(finding->found) + 2 < sizeof findings->found)
        strcat(strcat(found, finding->found), "\n");
    if (strcmp(finding->check, "round trip") == 0)
        okf(sscanf(finding->found, "%lf ms, at worst %lf ms", &middle_ms, &worst_ms) == 2 &&
                middle_ms <= worst_ms && worst_ms < 20000,
            "the times of the round trips are plausible: %s", finding->found);
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
    struct findings findings = {.seen = ""};
    struct rlock_examiner examiner = {add_finding, &findings};

    if (server_open(&server, config, &lock, &err) == RLOCK_OK)
        st = rlock_examine(lock, NULL, deadline, &examiner, &err);
    okf(st == rows[i].st && strstr(findings.seen, rows[i].seen) != NULL,
        "a server that %s: status %d, text \"%s\", findings %s", rows[i].what, (int)st, err.text,
        findings.seen);
    okf(strstr(findings.found, rows[i].text) != NULL, "a finding says: %s", rows[i].text);
    okf((st >= RLOCK_E_USAGE) == (err.text[0] != '\0'), "only a fault has a text: %s", err.text);
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
