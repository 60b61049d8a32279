/* SPDX-License-Identifier: MIT */
/* test_sentinel: what the answers of three Sentinels decide, also if some of them don't answer. */
#include "server.h"
#include "server/sentinel.h"
#include "tap.h"

#include <errno.h>

#define SENTINELS 3
#define SHORT_MS 300
#define LONG_MS 60000

#define ADDRESS(port) "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n" port "\r\n"
#define NOAUTH "-NOAUTH Authentication required.\r\n"
#define OLD ADDRESS("7001")
#define NEW ADDRESS("7002")
#define UNKNOWN "*-1\r\n" /* the Sentinel doesn't know the service */
#define NOAUTH "-NOAUTH Authentication required.\r\n"

enum patience { DEFAULT, OVER, ENDLESS };

static const struct {
    const char *name;
    const char *answers[SENTINELS];
    enum rlock_status st;
    const char *found; /* the port of the server that is found, or a part of the error text */
    bool avoids_old;   /* the server at port 7001 was found to be down */
    enum patience patience;
    bool is_short; /* the deadline ends after SHORT_MS */
} rows[] = {
    {.name = "all Sentinels answer", .answers = {OLD, OLD, OLD}, .st = RLOCK_OK, .found = "7001"},
    {.name = "two Sentinels hang",
     .answers = {SILENT, SILENT, OLD},
     .st = RLOCK_OK,
     .found = "7001"},
    {.name = "only one Sentinel knows the service",
     .answers = {CLOSE, UNKNOWN, OLD},
     .st = RLOCK_OK,
     .found = "7001"},
    {.name = "no Sentinel knows the service",
     .answers = {UNKNOWN, UNKNOWN, UNKNOWN},
     .st = RLOCK_E_UNSUPPORTED,
     .found = "the Sentinel doesn't know this service"},
    {.name = "the Sentinel that closes the connection might know the service",
     .answers = {UNKNOWN, CLOSE, UNKNOWN},
     .st = RLOCK_E_UNREACHABLE,
     .found = "connection"},
    {.name = "the Sentinel that hangs might know the service",
     .answers = {UNKNOWN, SILENT, UNKNOWN},
     .st = RLOCK_E_UNREACHABLE,
     .found = "no answer in time",
     .is_short = true},
    {.name = "the user can mend the fault of one Sentinel",
     .answers = {CLOSE, NOAUTH, UNKNOWN},
     .st = RLOCK_E_REFUSED,
     .found = "password"},
    {.name = "all Sentinels answer with errors",
     .answers = {LOADING, LOADING, LOADING},
     .st = RLOCK_E_UNREACHABLE,
     .found = "Sentinel: "},
    {.name = "all Sentinels answer with nonsense",
     .answers = {"+OK\r\n", "+OK\r\n", "+OK\r\n"},
     .st = RLOCK_E_UNREACHABLE,
     .found = "not the answer of a Sentinel"},
    {.name = "all Sentinels want a password",
     .answers = {NOAUTH, NOAUTH, NOAUTH},
     .st = RLOCK_E_REFUSED,
     .found = "NOAUTH"},
    {.name = "one Sentinel names another server than the one to avoid",
     .answers = {OLD, OLD, NEW},
     .st = RLOCK_OK,
     .found = "7002",
     .avoids_old = true,
     .patience = ENDLESS},
    {.name = "all Sentinels name the server to avoid",
     .answers = {OLD, OLD, OLD},
     .st = RLOCK_OK,
     .found = "7001",
     .avoids_old = true,
     .patience = ENDLESS},
    {.name = "one Sentinel names the server to avoid, and the time to wait for the others is over",
     .answers = {OLD, SILENT, SILENT},
     .st = RLOCK_OK,
     .found = "7001",
     .avoids_old = true,
     .patience = OVER},
};

/* Asks until the Sentinels have named a server, or a fault is known. */
static enum rlock_status locate(struct sentinel *sentinel, struct url *to, struct rlock_error *err)
{
    struct pollfd watch[URL_SENTINELS_MAX];
    enum rlock_status st;

    while ((st = sentinel_locate(sentinel, to, err)) == RLOCK_PENDING) {
        size_t n = sentinel_watch(sentinel, watch);
        int64_t left_ms = sentinel_wake_ms(sentinel) - rlock_clock_ms();

        poll(watch, n, left_ms > 0 ? (int)left_ms : 0);
    }
    return st;
}

static void test_row(size_t row)
{
    static struct server server[SENTINELS];
    const char *answers[SENTINELS][2] = {{NULL}};
    struct url old = {.host = NULL};
    struct url to = {.host = NULL};
    struct sentinel sentinel;
    struct rlock_error err = {.text = ""};
    struct url url;
    char text[300];
    enum rlock_status st;

    for (int i = 0; i < SENTINELS; i++) {
        answers[i][0] = rows[row].answers[i];
        server[i] = (struct server){.answers = {[ASKED_OTHER] = answers[i]}};
        need(server_start(&server[i]), "a server is started");
    }
    snprintf(text, sizeof text, "redis+sentinel://%.50s,%.50s,%.50s/service", server[0].url + 8,
             server[1].url + 8, server[2].url + 8);
    ok(url_parse(&url, text, &err) == RLOCK_OK && sentinel_init(&sentinel, &url, &err) == RLOCK_OK);
    if (rows[row].avoids_old && url_parse(&old, "redis://127.0.0.1:7001", &err) == RLOCK_OK)
        sentinel_avoid(&sentinel, &old);
    sentinel_ask(&sentinel, rlock_clock_ms() + (rows[row].is_short ? SHORT_MS : LONG_MS));
    if (rows[row].patience != DEFAULT)
        sentinel.wait_until_ms = rows[row].patience == OVER ? 0 : RLOCK_NEVER;
    st = locate(&sentinel, &to, &err);
    is_int(st, rows[row].st, rows[row].name);
    if (st == RLOCK_OK) {
        is_str(to.port, rows[row].found, "the server at this port is found");
    } else {
        ok((err.reason == RLOCK_REASON_SENTINEL_LOGIN) == (strstr(err.text, "NOAUTH") != NULL));
        ok(strstr(err.text, strerror(EPERM)) == NULL, "the Sentinel's answer is no system's error");
        okf(strstr(err.text, rows[row].found) != NULL && err.status == st,
            "the error has the text and the status of the fault: %s", err.text);
    }
    ok(!sentinel.is_asking, "no request is pending afterwards");
    sentinel_fini(&sentinel);
    url_fini(&to);
    url_fini(&old);
    url_fini(&url);
    for (int i = 0; i < SENTINELS; i++)
        server_stop(&server[i]);
}

static void test_login(void)
{
    struct server server = {.answers = {[ASKED_OTHER] = ANSWERS("+OK\r\n", OLD)}};
    struct url to = {.host = NULL};
    struct sentinel sentinel;
    struct url url;
    char text[100];

    need(server_start(&server), "a server is started");
    snprintf(text, sizeof text, "redis+sentinel://%.50s/service", server.url + 8);
    ok(url_parse(&url, text, NULL) == RLOCK_OK && sentinel_init(&sentinel, &url, NULL) == RLOCK_OK);
    sentinel_set_password(&sentinel, "5ec3e7", NULL);
    sentinel_ask(&sentinel, rlock_clock_ms() + LONG_MS);
    is_int(locate(&sentinel, &to, NULL), RLOCK_OK, "a Sentinel with a password names the server");
    sentinel_fini(&sentinel);
    url_fini(&to);
    url_fini(&url);
    server_stop(&server);
    is_str(server.log[0].text, "AUTH 5ec3e7 ", "the Sentinel gets the password first");
}

int main(void)
{
    RUN(test_login());

    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++)
        RUN_AS(rows[row].name, test_row(row));
    return done_testing();
}
