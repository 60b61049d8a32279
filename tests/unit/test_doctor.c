/* SPDX-License-Identifier: MIT */
/* test_doctor: rlock_examine() of servers that deny requests or send malformed replies. */
#include "server.h"
#include "tap.h"

#include <rlock_admin.h>
#include <time.h>

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
#define RIGHTS "*13\r\n" SIX SIX EMPTY
#define WRONGTYPE "WRONGTYPE Operation against"
#define ALL_RIGHTS RIGHTS, UNSET, UNSET /* and two settings of scripts */
#define DENIED_KEYS "-NOPERM no\r\n"
#define DONE "+OK\r\n"
#define DONE_4 DONE, DONE, DONE, DONE
#define DONE_12 DONE_4, DONE_4, DONE_4
#define LONG_60 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define NOPERM "-NOPERM this user has no permissions\r\n"
#define NO_KEY "-NOPERM No permissions to access a key\r\n"
#define NO_LOCKS "*2\r\n$1\r\n0\r\n*0\r\n"
#define TIMES(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
#define WHOAMI "$7\r\ndefault\r\n"
#define SETTINGS UNSET, UNSET, UNSET, WHOAMI

/* The replies to all requests in front of SCAN. */
#define WELL(INFO_REPLY) NOW, INFO_REPLY, SETTINGS, ALL_RIGHTS, TIMES(NOW)

#define AOF_INFO                                                                         \
    INFO("83\r\nredis_version:7.0.15\r\nrole:master\r\naof_enabled:1\r\nmaxmemory:0\r\n" \
         "connected_slaves:0\r\n\r\n")
#define REPLICAS_INFO                                                           \
    INFO("116\r\nredis_version:7.0.15\r\nrole:master\r\nconnected_slaves:3\r\n" \
         "slave0:state=online\r\nslave1:state=online\r\nslave2:state=wait\r\n\r\n")
#define MANY_REPLICAS_INFO                               \
    INFO("94\r\nredis_version:7.0.15\r\nrole:master\r\n" \
         "connected_slaves:9223372036854775807\r\nslave0:state=online\r\n\r\n")
#define CLUSTER_INFO                                                           \
    INFO("88\r\nredis_version:7.0.15\r\nredis_mode:cluster\r\nrole:master\r\n" \
         "maxmemory:0\r\nconnected_slaves:0\r\n\r\n")
#define ALWAYS SETTING("$6\r\nalways\r\n")
#define DENIES ANSWERS(NOW, GOOD_INFO, SETTINGS, DENIED_KEYS, UNSET, UNSET, TIMES(NOW), NO_LOCKS)
/* The replies to SCAN and to what reads the key k, at last by inspect.lua. */
#define ONE_LOCK(value, left)                                                                      \
    "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n", NOW, "+string\r\n", NOW, value,                          \
        "*4\r\n:1700000000000\r\n*8\r\n" value ":" left "\r\n$1\r\n7\r\n:0\r\n:0\r\n:-1\r\n*0\r\n" \
        "$0\r\n\r\n$1\r\nn\r\n$0\r\n\r\n"
/* The replies about a free lock whose key of the fence has another program's text. */
#define BAD_FENCE                                                                         \
    "*2\r\n$1\r\n0\r\n*1\r\n$15\r\n{k}:rlock:fence\r\n",                                  \
        "*4\r\n:1700000000000\r\n*8\r\n$-1\r\n:-2\r\n$0\r\n\r\n:0\r\n:0\r\n:-1\r\n*0\r\n" \
        "$28\r\n{k}:rlock:fence is no number\r\n$1\r\nn\r\n$0\r\n\r\n"
#define HELD_LOCK "$62\r\n0123456789abcdef0123456789abcdef v1 try=1 ttl=30000 host=h pid\r\n"

struct row {
    const char *what; /* what the server does */
    const char *const *answers;
    enum rlock_status st; /* what rlock_examine() must return */
    const char *seen;     /* some findings that must be reported: CHECK GRADE CHECK GRADE ... */
    const char *text;     /* a part of the text of a finding, or of its advice */
};

static const struct row rows[] = {
    {"replies to all requests", ANSWERS(WELL(GOOD_INFO), NO_LOCKS), RLOCK_OK,
     "server 0 role 0 eviction 0 ", ""},
    {"is a Sentinel of Valkey", ANSWERS(WELL(SENTINEL_INFO), NO_LOCKS), RLOCK_OK, "server 3 ", ""},
    {"allows nothing but scripts",
     ANSWERS(NOW, NOPERM, NOPERM, RIGHTS, NOPERM, NOPERM, TIMES(NOW), NO_LOCKS), RLOCK_OK,
     "connection 0 info 1 user 0 rights 0 history 0 scripts 0 clock",
     " permissions), so version, role, eviction, persistence and replicas were not checked\nallow "
     "the user +info\n"},
    {"denies TIME", ANSWERS(NOPERM), RLOCK_OK, "rights 3 ",
     "denied: TIME (the server says: NOPERM "},
    {"denies scripts",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, "-NOPERM this user can't run the 'eval' command\r\n",
             TIMES(NOW), NO_LOCKS),
     RLOCK_OK, "user 0 scripts 3 clock", /* the rights can't be checked */
     "refused, so this user can't have a lock with --scripts yes here (the server says: NOPERM "
     "this user can't run the 'eval' command)\nuse --scripts auto (RLOCK_SCRIPTS=auto), or allow "
     "the user +eval +evalsha"},
    {"denies scripts, so that its locks are read without them",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, "-NOPERM this user can't run the 'eval' command\r\n",
             TIMES(NOW), "*2\r\n$1\r\n0\r\n*1\r\n$15\r\n{k}:rlock:fence\r\n", ":9000\r\n",
             "$7\r\nforeign\r\n", NOW, "$1\r\n7\r\n", ":0\r\n"),
     RLOCK_OK, "locks 0 ", "1, and each lock expires by itself"},
    {"wants a password", ANSWERS("-NOAUTH Authentication required.\r\n"), RLOCK_E_REFUSED, "", ""},
    {"replies to INFO with a number", ANSWERS(NOW, ":1\r\n"), RLOCK_E_PROTOCOL, "connection 0 ",
     ""},
    {"replies to CONFIG GET with numbers",
     ANSWERS(NOW, GOOD_INFO, ":1\r\n", ":1\r\n", SETTING(":1\r\n"), WHOAMI, RIGHTS,
             SETTING("$-1\r\n"), SETTING("*0\r\n"), TIMES(NOW), NO_LOCKS),
     RLOCK_OK, "rights 0 ", ""},
    {"replies to rights.lua with a number", ANSWERS(NOW, GOOD_INFO, SETTINGS, ":1\r\n"),
     RLOCK_E_PROTOCOL, "user 0 ", ""},
    {"replies to TIME with too many digits",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, "*2\r\n$12\r\n170000000000\r\n$1\r\n1\r\n"),
     RLOCK_E_PROTOCOL, "rights 0 ", ""},
    {"closes the connection", ANSWERS(NOW, GOOD_INFO, CLOSE), RLOCK_E_UNREACHABLE, "connection 0 ",
     ""},
    {"doesn't know SCAN", ANSWERS(WELL(GOOD_INFO), "-ERR unknown command\r\n"), RLOCK_OK,
     "locks 1 ", ""},
    {"replies to rights.lua with a number as the first string",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, "*13\r\n:1\r\n" SIX SIX), RLOCK_E_PROTOCOL, "user 0 ", ""},
    {"has a lock with a bad helper key", ANSWERS(WELL(GOOD_INFO), BAD_FENCE), RLOCK_OK, "locks 3 ",
     "1 of 1 locks can't be granted, as a helper key has another program's data: "
     "{k}:rlock:fence is no number"},
    {"has a lock that lasts longer than its TTL",
     ANSWERS(WELL(GOOD_INFO), ONE_LOCK(HELD_LOCK, "60000")), RLOCK_OK, "locks 3 ",
     "1 of 1 locks last longer than their ttl, as happens when the server's clock is set back, for "
     "example k"},
    {"has a lock that never expires", ANSWERS(WELL(GOOD_INFO), ONE_LOCK(HELD_LOCK, "-1")), RLOCK_OK,
     "locks 2 ", "1 of 1 locks never expire, for example k"},
    {"has a lock that expires", ANSWERS(WELL(GOOD_INFO), ONE_LOCK(HELD_LOCK, "9000")), RLOCK_OK,
     "locks 0 ", "1, and each lock expires by itself"},
    {"writes each command to its disk",
     ANSWERS(NOW, AOF_INFO, UNSET, ALWAYS, UNSET, WHOAMI, ALL_RIGHTS, TIMES(NOW), NO_LOCKS),
     RLOCK_OK, "persistence 0 ", "appendfsync always: no restart loses a lock"},
    {"has an append-only file, and doesn't tell how often it is synced",
     ANSWERS(WELL(AOF_INFO), NO_LOCKS), RLOCK_OK, "persistence 1 ",
     "appendonly yes: no restart loses a lock; what a crash"},
    {"has three replicas, of which two are online", ANSWERS(WELL(REPLICAS_INFO), NO_LOCKS),
     RLOCK_OK, "replicas 2 ", "only 2 of 3 replicas are online"},
    {"tells a number of replicas that no server has", ANSWERS(WELL(MANY_REPLICAS_INFO), NO_LOCKS),
     RLOCK_OK, "replicas 2 ", "only 1 of 9223372036854775807 replicas are online"},
    {"has no replicas", ANSWERS(WELL(GOOD_INFO), NO_LOCKS), RLOCK_OK, "replicas 0 ",
     "none, so no failover can lose a lock"},
    {"is a node of a Cluster",
     ANSWERS(NOW, CLUSTER_INFO, ":0\r\n", CLUSTER_INFO, UNSET, SETTINGS, RIGHTS, NOPERM, UNSET,
             UNSET, TIMES(NOW), NO_LOCKS),
     RLOCK_OK, "cluster 1 role 0 ",
     "denied: ASKING for slots that migrate (the server says: NOPERM this user has no "
     "permissions)\nallow the user +asking\n"},
};

/*
 * What doctor finds and sends if the user names a lock, or if the server refuses scripts. Each
 * examination returns RLOCK_OK.
 */
static const struct {
    const char *what;
    const char *const *answers;
    const char *seen, *text;
    const char *key;      /* the lock that the user names */
    bool without_scripts; /* the user holds locks without scripts */
    const char *sent; /* how a request begins that the doctor must send; NULL: any may be missing */
} users[] = {
    {"denies the keys of a lock without a prefix", DENIES, "rights 3 ",
     "denied: the keys of job (the server says: NOPERM no)\nallow the user ~job ~{job}:rlock:*\n",
     "job", false, NULL},
    {"denies the keys of locks with a prefix", DENIES, "rights 3 ",
     "\nallow the user ~job:* ~{job:*\n", "job:1", false, NULL},
    {"denies the keys of locks whose prefix is too long for a message", DENIES, "rights 3 ",
     "\nallow the user ~" LONG_60 "* ~{" LONG_60 "*\n", LONG_60 ":1", false, NULL},
    {"denies the keys of a lock that is a hash tag", DENIES, "rights 3 ",
     "\nallow the user ~{job} ~{job}:rlock:{}:*\n", "{job}", false, NULL},
    {"denies the keys of a lock whose key has characters of a pattern", DENIES, "rights 3 ",
     "\nallow the user ~a\\*\\?\\[b?c ~{a\\*\\?\\[b?c}:rlock:*\n", "a*?[b c", false, NULL},
    {"denies the keys of a lock whose key is too long for a message", DENIES, "rights 3 ",
     "\nallow the user ~" LONG_60 "* ~{" LONG_60 "*\n", LONG_60 "1", false, NULL},
    {"has a list in place of the lock, and a lock that never expires",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, "*13\r\n" SIX SIX "$27\r\n" WRONGTYPE "\r\n", UNSET, UNSET,
             TIMES(NOW), ONE_LOCK(HELD_LOCK, "-1")),
     "locks 3 locks 2 ", "job can't be granted, as another program uses this key: WRONGTYPE", "job",
     false, NULL},
    {"has a list in place of the lock of a user without scripts",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, DONE_12, DONE_12, DONE_12, DONE, DONE, "-" WRONGTYPE "\r\n",
             UNSET, UNSET, TIMES(NOW), NO_LOCKS),
     "locks 3 ", "job can't be granted, as another program uses this key", "job", true, NULL},
    {"executes all commands that locks need without scripts",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, DONE_12, DONE_12, DONE_12, DONE, DONE, DONE, UNSET, UNSET,
             TIMES(NOW), NOPERM),
     "user 0 rights 0 clock", "all that a lock with plain commands needs for job", "job", true,
     "SET job  NX PX 1 "},
    {"denies GETRANGE to a user who holds locks without scripts",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, DONE_4, DONE, DONE, NOPERM, DONE_12, DONE_4, DONE, UNSET,
             UNSET, TIMES(NOW), NOPERM),
     "rights 3 ", "denied: GETRANGE (", "job", true, "GETRANGE {job}:rlock:"},
    {"denies the keys to a user who holds locks without scripts",
     ANSWERS(NOW, GOOD_INFO, SETTINGS, NO_KEY, NO_KEY, DONE, DONE, DONE, NO_KEY, NO_KEY, DONE_12,
             DONE_4, DONE, DONE, NO_KEY, NO_KEY, DONE, DONE, DONE, DONE_4, DONE_4, UNSET, UNSET,
             TIMES(NOW), NOPERM),
     "rights 3 ", "denied: the keys of job (the server says: NOPERM No permissions to access a key",
     "job", true, NULL},
};

#define FOUND_BYTES 4000

/* What the last call of examine() has told. */
static struct {
    char seen[1000];         /* CHECK GRADE CHECK GRADE ... */
    char found[FOUND_BYTES]; /* the texts and the advice, with a newline after each */
    double middle_ms;        /* the median of the round trips */
} told;

static void add_line(char found[FOUND_BYTES], const char *line)
{
    if (strlen(found) + strlen(line) + 2 < FOUND_BYTES)
        strcat(strcat(found, line), "\n");
}

static void add_finding(void *context, const struct rlock_finding *finding)
{
    char *seen = told.seen;
    char *found = told.found;
    double worst_ms;

    (void)context;
    sprintf(seen + strlen(seen), "%.20s %d ", finding->check, (int)finding->grade);
    if (!is_printable(finding->found))
        strcat(seen, "unprintable ");
    add_line(found, finding->found);
    if (finding->change != NULL)
        add_line(found, finding->change);
    if (strcmp(finding->check, "round trip") == 0)
        okf(sscanf(finding->found, "%lf ms, at worst %lf ms", &told.middle_ms, &worst_ms) == 2 &&
                told.middle_ms <= worst_ms && worst_ms < 20000,
            "the times of the round trips are plausible: %s", finding->found);
}

static const struct rlock_config usual = {.timing = {.ttl_ms = 30000, .reply_ms = 2000}};

/* Lets the doctor examine the servers of an open handle; NULL: opening has failed. */
static enum rlock_status examine(struct rlock *lock, const char *key, struct rlock_error *err)
{
    struct rlock_examiner examiner = {.on_finding = add_finding};

    memset(&told, 0, sizeof told);
    return lock == NULL ? RLOCK_E_SYSTEM : rlock_examine(lock, key, in(20000), &examiner, err);
}

/* `sent`: how a request begins that the doctor must send; NULL: any may be missing. */
static void test_row(const struct row *row, const char *key, bool without_scripts, const char *sent)
{
    struct server server = {
        .answers = {[ASKED_OTHER] = row->answers, [ASKED_WAKE] = ANSWERS(NOT_WOKEN)}};
    struct rlock_config config = usual;
    struct rlock_error err = {.text = ""};
    enum rlock_status st;
    struct rlock *lock;

    config.scripts = without_scripts ? RLOCK_SCRIPTS_NO : RLOCK_SCRIPTS_YES;
    config.history = without_scripts ? 0 : 9;
    (void)!server_open(&server, config, &lock, &err);
    st = examine(lock, key, &err);
    okf(st == row->st && strstr(told.seen, row->seen) != NULL,
        "a server that %s: status %d, text \"%s\", findings %s", row->what, (int)st, err.text,
        told.seen);
    okf(strstr(told.found, row->text) != NULL, "a finding says: %s", row->text);
    okf((st >= RLOCK_E_USAGE) == (err.text[0] != '\0'), "only a fault has a text: %s", err.text);
    if (sent != NULL)
        okf(server_has_read(&server, ASKED_OTHER, sent), "the doctor sends: %s", sent);
    rlock_close(lock);
    server_stop(&server);
}

static void test_user(size_t i)
{
    const struct row row = {users[i].what, users[i].answers, RLOCK_OK, users[i].seen,
                            users[i].text};

    test_row(&row, users[i].key, users[i].without_scripts, users[i].sent);
}

/* Returns the finding that begins with these words, or "". */
static const char *finding_of(const char *words)
{
    const char *at = strstr(told.found, words);

    return at != NULL ? at : "";
}

#define SLOW_MS 100
#define SLOW AFTER(100, NOW)
#define LAST 19    /* the index of the last sample */
#define N_BEFORE 9 /* how many requests other than BLPOP come before the first sample */

/*
 * The server's clock stands still, and half of the 20 replies to TIME take SLOW_MS or more. What
 * the doctor says about the clocks is compared with the times at which the server has read the
 * requests, so that it doesn't matter how busy this machine is.
 */
static void test_clocks(void)
{
    struct server server = {
        .answers = {[ASKED_OTHER] = ANSWERS(NOW, GOOD_INFO, SETTINGS, ALL_RIGHTS, SLOW, SLOW, SLOW,
                                            SLOW, SLOW, NOW, NOW, NOW, NOW, NOW, NOW, NOW, NOW, NOW,
                                            NOW, SLOW, SLOW, SLOW, SLOW, SLOW, NO_LOCKS),
                    [ASKED_WAKE] = ANSWERS(NOPERM)}};
    struct rlock *lock;
    int64_t read_ms[LAST + 2]; /* of the samples, and of the request that follows them */
    int64_t least_ms;
    int64_t most_ms;
    int64_t before_s = time(NULL) - 1700000000;
    int behind_s = 0;
    int ours_ms = 0;

    need(server_open(&server, usual, &lock, NULL) == RLOCK_OK &&
         examine(lock, NULL, NULL) == RLOCK_OK);
    rlock_close(lock);
    for (int i = 0; i < LAST + 2; i++)
        read_ms[i] = server_read_ms(&server, ASKED_OTHER, N_BEFORE + i);
    okf(told.middle_ms >= SLOW_MS, "half of the round trips take 100 ms or more: %.1f ms",
        told.middle_ms);
    ok(*finding_of("denied: BLPOP, so waiters ask several times a second") != '\0');
    sscanf(finding_of("the server's clock is "), "the server's clock is %d.", &behind_s);
    okf(behind_s >= before_s && behind_s <= time(NULL) - 1700000000,
        "the server's clock is behind by as much as it is: %d s", behind_s);
    /* the doctor compares the middles of the two samples: half way from request to reply */
    least_ms =
        (read_ms[LAST - 1] + SLOW_MS + read_ms[LAST] + SLOW_MS) / 2 - (read_ms[0] + read_ms[1]) / 2;
    most_ms = (read_ms[LAST] + read_ms[LAST + 1]) / 2 -
              (server_read_ms(&server, ASKED_WAKE, 0) + read_ms[0] + SLOW_MS) / 2;
    sscanf(finding_of("the server's clock advanced "),
           "the server's clock advanced 0 ms while this machine's advanced %d ms", &ours_ms);
    okf(ours_ms >= least_ms - 2 && ours_ms <= most_ms + 2,
        "this machine's clock advanced from the middle of the first sample to that of the last: %d",
        ours_ms);
    server_stop(&server);
}

/* ---- servers that several programs watch, or that decide together ---- */

static void test_quorum(void)
{
    static const char *const answers[] = {NOW,        GOOD_INFO, SETTINGS, ALL_RIGHTS,
                                          TIMES(NOW), NO_LOCKS,  NULL};
    static const char *const silent[] = {CLOSE, NULL};
    static const char *const not_woken[] = {NOT_WOKEN, NULL};
    static struct server server[SERVERS_MAX];
    struct rlock *lock;

    for (int i = 0; i < SERVERS_MAX; i++)
        server[i] = (struct server){
            .answers = {[ASKED_OTHER] = i == 1 ? silent : answers, [ASKED_WAKE] = not_woken}};
    (void)!servers_open(server, SERVERS_MAX, usual, &lock, NULL);
    is_int(examine(lock, NULL, NULL), RLOCK_OK);
    rlock_close(lock);
    ok(strstr(told.seen, "quorum 2 ") != NULL &&
       strncmp(finding_of("2 of 3"),
               "2 of 3 members answer, 2 are needed; 0 were restarted too recently to count; ",
               77) == 0);
    for (int i = 0; i < SERVERS_MAX; i++)
        server_stop(&server[i]);
}

#define ROLE "*3\r\n$6\r\nmaster\r\n:9\r\n*0\r\n"
/* The replies of a Sentinel to SENTINEL GET-MASTER-ADDR-BY-NAME and to SENTINEL MASTER. */
#define ADDRESS "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n%05d\r\n"
#define WATCHED                                                                         \
    "*10\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$5\r\n%05d\r\n$5\r\nflags\r\n" \
    "$6\r\nmaster\r\n$19\r\nnum-other-sentinels\r\n$1\r\n2\r\n$6\r\nquorum\r\n$1\r\n2\r\n"

/*
 * A Sentinel names a primary to clients. In its reply to SENTINEL MASTER it names the same server,
 * or, if `other_port` is not 0, another.
 */
static void test_sentinel(int other_port)
{
    struct server primary = {.answers = {[ASKED_OTHER] = ANSWERS(ROLE, NOW, GOOD_INFO, SETTINGS,
                                                                 ALL_RIGHTS, TIMES(NOW), NO_LOCKS),
                                         [ASKED_WAKE] = ANSWERS(NOT_WOKEN)}};
    char address[100];
    char watched[300];
    struct server sentinel = {.answers = {[ASKED_OTHER] = ANSWERS(address, watched)}};
    char url[200];
    const char *const urls[] = {url};
    struct rlock_config config = usual;
    struct rlock *lock = NULL;
    int port;

    need(server_start(&primary) && server_start(&sentinel), "a server and a Sentinel start");
    port = atoi(strrchr(primary.url, ':') + 1);
    snprintf(address, sizeof address, ADDRESS, port);
    snprintf(watched, sizeof watched, WATCHED, other_port != 0 ? other_port : port);
    /* a name of the Sentinel that is too long for messages to show it whole */
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.%0120d%.6s/main", 1,
             strrchr(sentinel.url, ':'));
    config.size = sizeof config;
    config.urls = urls;
    config.n_urls = 1;
    config.connect_ms = 5000;
    is_int(rlock_open(&lock, &config, NULL), RLOCK_OK);
    is_int(examine(lock, NULL, NULL), RLOCK_OK);
    rlock_close(lock);
    if (other_port == 0)
        ok(strstr(told.found, "\n3 Sentinels agree, and replace a primary that is down for 0 ms") !=
           NULL);
    else
        ok(strstr(told.found, "\nthe Sentinels disagree: 127.0.0.00") != NULL &&
           strstr(told.found, " says that the primary is 127.0.0.1:1, not 127.0.0.1:") != NULL);
    server_stop(&primary);
    server_stop(&sentinel);
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        RUN_AS(rows[i].what, test_row(&rows[i], NULL, false, NULL));
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++)
        RUN_AS(users[i].what, test_user(i));
    RUN_ALL(test_clocks, test_quorum);
    RUN(test_sentinel(0));
    RUN(test_sentinel(1));
    return done_testing();
}
