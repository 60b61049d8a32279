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
    {"all Sentinels answer", EACH(OLD, OLD, OLD), RLOCK_OK, "7001", false, DEFAULT, false},
    {"two Sentinels hang", EACH(SILENT, SILENT, OLD), RLOCK_OK, "7001", false, DEFAULT, false},
    {"only one Sentinel knows the service", EACH(CLOSE, UNKNOWN, OLD), RLOCK_OK, "7001", false,
     DEFAULT, false},
    {"no Sentinel knows the service", EACH(UNKNOWN, UNKNOWN, UNKNOWN), RLOCK_E_UNSUPPORTED,
     "the Sentinel doesn't know this service", false, DEFAULT, false},
    {"the Sentinel that closes the connection might know the service",
     EACH(UNKNOWN, CLOSE, UNKNOWN), RLOCK_E_UNREACHABLE, "connection", false, DEFAULT, false},
    {"the Sentinel that hangs might know the service", EACH(UNKNOWN, SILENT, UNKNOWN),
     RLOCK_E_UNREACHABLE, "no answer in time", false, DEFAULT, true},
    {"the user can mend the fault of one Sentinel", EACH(CLOSE, NOAUTH, UNKNOWN), RLOCK_E_REFUSED,
     "password", false, DEFAULT, false},
    {"all Sentinels answer with errors", EACH(LOADING, LOADING, LOADING), RLOCK_E_UNREACHABLE,
     "Sentinel: ", false, DEFAULT, false},
    {"all Sentinels answer with nonsense", EACH("+OK\r\n", "+OK\r\n", "+OK\r\n"),
     RLOCK_E_UNREACHABLE, "unexpected reply to a question for Sentinels; name", false, DEFAULT,
     false},
    {"all Sentinels want a password", EACH(NOAUTH, NOAUTH, NOAUTH), RLOCK_E_REFUSED, "NOAUTH",
     false, DEFAULT, false},
    {"one Sentinel names another server than the one to avoid", EACH(OLD, OLD, NEW), RLOCK_OK,
     "7002", true, ENDLESS, false},
    {"all Sentinels name the server to avoid", EACH(OLD, OLD, OLD), RLOCK_OK, "7001", true, ENDLESS,
     false},
    {"one Sentinel names the server to avoid, and the time to wait for the others is over",
     EACH(OLD, SILENT, SILENT), RLOCK_OK, "7001", true, OVER, false},
    {"one Sentinel names the server to avoid, and the others hang until the deadline",
     EACH(OLD, SILENT, SILENT), RLOCK_E_UNREACHABLE, "names a primary that has failed", true,
     ENDLESS, true},
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
