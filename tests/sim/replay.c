/* SPDX-License-Identifier: MIT */
/*
 * replay: does the simulated server answer as a real one does?
 *
 *     replay SHIM COMMANDS SEED
 *
 * Starts redis-server under SHIM (clockshim.so), whose clock moves only when replay sets it. replay
 * sends the same COMMANDS random commands to the model and to the server; some of them are scripts
 * of rlock with random arguments. Both must give the same replies, and after every COMPARE_EVERY
 * commands they must have the same keys. TAP.
 */
#include "chance.h"
#include "redis.h"
#include "scripts_embedded.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 64
#define START_US INT64_C(1795277769000000)
#define KEYS_PER_LOCK 6
#define KEYS_SENT 8
#define SECOND INT64_C(1000000) /* in microseconds */
#define N_LOCKS 3
#define N_TOKENS 5
#define COMPARE_EVERY 500

struct command {
    char text[WORDS_MAX][32768];
    struct text word[WORDS_MAX];
    size_t n;
};

static const char *const lock_key[] = {"", "queue", "waiters", "holders", "holder-info", "fence"};
static redisContext *real;
static volatile int64_t *real_clock_us;
static int64_t clock_us = START_US;
static char last_fence[32] = "1";
static char last_name[64] = "x";

/* ---- asking the real server ---- */

static pid_t start_server(const char *shim, const char *folder)
{
    char socket[300];
    char clock[300];
    pid_t pid;
    int fd;

    snprintf(socket, sizeof socket, "%s/socket", folder);
    snprintf(clock, sizeof clock, "%s/clock", folder);
    fd = open(clock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 8) != 0)
        return -1;
    real_clock_us = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *real_clock_us = clock_us;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("LD_PRELOAD", shim, 1);
        setenv("CLOCKSHIM", clock, 1);
        setenv("CLOCKSHIM_STILL", "1", 1);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
               "--logfile", "/dev/null", "--hash-max-listpack-entries", "100000",
               "--hash-max-listpack-value", "100000", (char *)NULL);
        _exit(127);
    }
    for (int tries = 0; tries < 500; tries++) {
        if (real != NULL)
            redisFree(real);
        real = redisConnectUnix(socket);
        if (real != NULL && real->err == 0)
            return pid;
        usleep(20000);
    }
    return -1;
}

static void append_reply(const redisReply *reply, struct buffer *out)
{
    switch (reply->type) {
    case REDIS_REPLY_STATUS:
        buffer_add_format(out, "+%s\r\n", reply->str);
        break;
    case REDIS_REPLY_ERROR:
        buffer_add_format(out, "-%.400s\r\n", reply->str);
        break;
    case REDIS_REPLY_INTEGER:
        buffer_add_format(out, ":%lld\r\n", reply->integer);
        break;
    case REDIS_REPLY_STRING:
        redis_bulk(out, (struct text){reply->str, reply->len});
        break;
    case REDIS_REPLY_ARRAY:
        buffer_add_format(out, "*%zu\r\n", reply->elements);
        for (size_t i = 0; i < reply->elements; i++)
            append_reply(reply->element[i], out);
        break;
    default:
        buffer_add_format(out, "$-1\r\n");
    }
}

/* Cuts an error at " script: ": the real server adds the line of the script, the model doesn't. */
static void cut(struct buffer *reply)
{
    char *at;

    buffer_add(reply, "", 1);
    at = reply->at[0] == '-' ? strstr(reply->at, " script: ") : NULL;
    if (at != NULL)
        reply->n = (size_t)(at - reply->at);
    else
        reply->n--;
}

/* ---- making random commands ---- */

static void add(struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add(struct command *command, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(command->text[command->n], sizeof command->text[0], format, args);
    va_end(args);
    command->word[command->n] = (struct text){command->text[command->n], (size_t)n};
    command->n++;
}

static void add_script(struct command *command, const char *source)
{
    if (strlen(source) >= sizeof command->text[0])
        abort();
    add(command, "EVAL");
    add(command, "%s", source);
}

static const char *helper(int64_t lock, const char *kind)
{
    static char name[8][64];
    static int next;
    char *at = name[next++ % 8];

    if (kind[0] == '\0')
        snprintf(at, 64, "lock%d", (int)lock);
    else
        snprintf(at, 64, "{lock%d}:rlock:%s", (int)lock, kind);
    return at;
}

static const char *token(int64_t i)
{
    static char text[4][33];
    static int next;
    char *at = text[next++ % 4];

    snprintf(at, 33, "%032llx", (unsigned long long)(i + 1) * 0x1111);
    return at;
}

static void add_keys(struct command *command, int64_t first, int64_t n)
{
    static const char *const order[KEYS_SENT] = {"",        "fence",       "queue",   "waiters",
                                                 "holders", "holder-info", "history", "wake:"};
    int64_t i;

    add(command, "%d", (int)(n * KEYS_SENT));
    for (i = 0; i < n; i++)
        for (size_t j = 0; j < KEYS_SENT; j++)
            add(command, "%s", helper((first + i) % N_LOCKS, order[j]));
}

static const char *one_of(const char *const *words, int64_t n)
{
    return words[random_below(n)];
}
#define ONE_OF(...)                            \
    one_of((const char *const[]){__VA_ARGS__}, \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static const char *info(void)
{
    return ONE_OF("host=a pid=1", "host=b pid=2 kept=1 x=y", "host=c members=0123abcd");
}

static const char *mode(void)
{
    return ONE_OF("x", "x", "s", "2", "3");
}

static void make_acquire(struct command *command)
{
    int64_t n = random_one_in(4) ? 2 : 1;
    int ttl_ms = (int)random_range(1, 30) * 500;

    add_script(command, script_acquire);
    add_keys(command, random_below(N_LOCKS), n);
    add(command, "%s v1 try=%d ttl=%d %s", token(random_below(N_TOKENS)), (int)random_range(1, 4),
        ttl_ms, info());
    add(command, "%d", ttl_ms);
    add(command, "%s", ONE_OF("fifo", "fifo", "fifo", "fifo", "none", "try", "newest", "parents"));
    if (random_one_in(4))
        return;
    add(command, "%s", "");
    add(command, "%s", ONE_OF("0", "0", "1"));
    if (random_one_in(2))
        add(command, "%s", "");
    else
        add(command, "%lld", (long long)(clock_us - random_below(5 * SECOND)));
    add(command, "%s", mode());
    add(command, "%s", ONE_OF("", "1"));
    if (random_one_in(5))
        add(command, "%s", token(random_below(N_TOKENS)));
}

static void make_release(struct command *command)
{
    int64_t whose = random_below(N_TOKENS);
    bool stays = random_one_in(6);

    add_script(command, script_release);
    add_keys(command, random_below(N_LOCKS), random_one_in(4) ? 2 : 1);
    if (random_one_in(3))
        add(command, "%s v1 try=%d ", token(whose), (int)random_range(1, 4));
    else
        add(command, "%s ", token(whose));
    add(command, "%s", ONE_OF("", "0", last_fence));
    if (random_one_in(4))
        return;
    add(command, "%s", "");
    add(command, "%s", random_one_in(2) ? token(whose) : "");
    add(command, "%s", stays ? ONE_OF("rest", "done") : "");
    add(command, "%d", (int)random_range(1, 3000));
    add(command, "%s", info());
    if (random_one_in(5)) {
        add(command, "%lld", (long long)(clock_us - random_below(SECOND)));
        add(command, "%s", mode());
    }
}

static void make_renew(struct command *command)
{
    int64_t n = random_one_in(4) ? 2 : 1;

    add_script(command, script_renew);
    add_keys(command, random_below(N_LOCKS), n);
    add(command, "%s", ONE_OF("0", "0", "1"));
    add(command, "%s", info());
    add(command, "%s", mode());
    add(command, "%d", (int)random_below(3));
    while (n-- > 0) {
        add(command, "%s", token(random_below(N_TOKENS)));
        add(command, "%d", (int)random_range(0, 30) * 500);
        add(command, "%s", ONE_OF("0", last_fence, last_fence, "5"));
    }
}

static void make_confirm(struct command *command)
{
    add_script(command, script_confirm);
    add_keys(command, random_below(N_LOCKS), 1);
    add(command, "%s", token(random_below(N_TOKENS)));
    add(command, "%s", random_one_in(2) ? last_fence : "1795277769123456");
    add(command, "%d", (int)random_range(1, 30) * 500);
}

static void make_break_or_inspect(struct command *command)
{
    bool breaks = random_one_in(2);

    add_script(command, breaks ? script_break : script_inspect);
    add_keys(command, random_below(N_LOCKS), 1);
    if (breaks) {
        add(command, "%s", last_name);
    } else {
        add(command, "%s", random_one_in(2) ? "" : "1795277769000000");
        add(command, "%d", (int)random_range(1, 5));
    }
}

/* Makes a command of Redis itself on a key that rlock uses; the key may have another type. */
static void make_plain(struct command *command)
{
    static const char *const names[] = {
        "DEL",   "EXISTS", "GET",     "GETRANGE", "HDEL",   "HGET",          "HSET",
        "HVALS", "INCR",   "PEXPIRE", "PTTL",     "RPUSH",  "SET",           "STRLEN",
        "TYPE",  "ZADD",   "ZCARD",   "ZCOUNT",   "ZRANGE", "ZRANGEBYSCORE", "ZRANK",
        "ZREM",  "ZSCORE", "SET",     "PEXPIRE",  "DEL"};
    const char *name = names[random_below(sizeof names / sizeof names[0])];
    const char *key = helper(random_below(N_LOCKS), lock_key[random_below(KEYS_PER_LOCK)]);
    const char *number = ONE_OF("0", "1", "-1", "2", "-3", "5", "100", "2.5", "x", "");
    int64_t n;

    add(command, "%s", name);
    if (!random_one_in(50))
        add(command, "%s", key);
    if (strcmp(name, "SET") == 0) {
        add(command, "%s", ONE_OF("a", "17", "9223372036854775807", "", "1795277769000001"));
        if (random_one_in(2))
            add(command, "%s", ONE_OF("NX", "XX", "nx", "KEEP"));
        if (random_one_in(2)) {
            add(command, "%s", ONE_OF("PX", "EX"));
            add(command, "%s", ONE_OF("1000", "1", "0", "-5", "y"));
        }
    } else if (strcmp(name, "ZADD") == 0 || strcmp(name, "HSET") == 0) {
        for (n = random_range(1, 2); n > 0; n--) {
            add(command, "%s", strcmp(name, "ZADD") == 0 ? number : ONE_OF("a", "b", "newest"));
            add(command, "%s", token(random_below(N_TOKENS)));
        }
    } else if (strcmp(name, "ZRANGEBYSCORE") == 0 || strcmp(name, "ZCOUNT") == 0) {
        add(command, "%s", ONE_OF("-inf", "(1", "0", "2", "z"));
        add(command, "%s", ONE_OF("+inf", "(5", "3", "-1"));
        if (random_one_in(2))
            add(command, "WITHSCORES");
        if (random_one_in(2)) {
            add(command, "LIMIT");
            add(command, "%s", ONE_OF("0", "1", "9"));
            add(command, "%s", ONE_OF("1", "2", "-1", "0"));
        }
    } else if (strcmp(name, "ZRANGE") == 0 || strcmp(name, "GETRANGE") == 0) {
        add(command, "%s", number);
        add(command, "%s", ONE_OF("-1", "0", "1", "3", "-2", "-9"));
        if (name[0] == 'Z' && random_one_in(2))
            add(command, "WITHSCORES");
    } else if (strcmp(name, "PEXPIRE") == 0) {
        add(command, "%s", ONE_OF("1000", "1", "0", "-1", "500000", "q"));
    } else if (strcmp(name, "RPUSH") == 0) {
        add(command, "turn");
    } else if (strchr("HZ", name[0]) != NULL && strcmp(name, "HVALS") != 0 &&
               strcmp(name, "ZCARD") != 0) {
        add(command, "%s", random_one_in(3) ? "newest" : token(random_below(N_TOKENS)));
    }
}

static void make(struct command *command)
{
    command->n = 0;
    switch (random_below(10)) {
    case 0:
    case 1:
    case 2:
        make_acquire(command);
        break;
    case 3:
        make_release(command);
        break;
    case 4:
        make_renew(command);
        break;
    case 5:
        make_confirm(command);
        break;
    case 6:
        make_break_or_inspect(command);
        break;
    default:
        make_plain(command);
    }
}

/* ---- comparing the model with the real server ---- */

static void ask_model(const struct command *command, struct buffer *reply)
{
    if (!redis_ask("run", 0, clock_us, command->word, command->n, reply))
        abort();
}

static bool ask_real(const struct command *command, struct buffer *out)
{
    const char *word[WORDS_MAX];
    size_t bytes[WORDS_MAX];
    redisReply *reply;

    for (size_t i = 0; i < command->n; i++) {
        word[i] = command->word[i].at;
        bytes[i] = command->word[i].n;
    }
    reply = redisCommandArgv(real, (int)command->n, word, bytes);
    if (reply == NULL)
        return false;
    append_reply(reply, out);
    /* keep a fence or a lock's name of the reply: further commands have them as arguments */
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements >= 3) {
        const redisReply *third = reply->element[2];

        if (third->type == REDIS_REPLY_STRING && third->len < sizeof last_fence &&
            strspn(third->str, "0123456789") == third->len && third->len > 10)
            snprintf(last_fence, sizeof last_fence, "%s", third->str);
        else if (third->type == REDIS_REPLY_STRING && strchr(third->str, ':') != NULL)
            snprintf(last_name, sizeof last_name, "%s", third->str);
    }
    freeReplyObject(reply);
    return true;
}

static void show(const struct command *command, const struct buffer *model,
                 const struct buffer *other)
{
    printf("# command:");
    for (size_t i = 0; i < command->n; i++)
        printf(" %.*s", i == 1 && command->word[i].n > 500 ? 6 : (int)command->word[i].n,
               command->word[i].at);
    printf("\n# model: %.*s\n# real: %.*s\n", (int)model->n, model->at, (int)other->n, other->at);
}

static bool is_same(const struct command *command)
{
    struct buffer model = {.at = NULL};
    struct buffer other = {.at = NULL};
    bool same;

    ask_model(command, &model);
    same = ask_real(command, &other);
    cut(&model);
    if (same) {
        cut(&other);
        same = text_compare(buffer_text(&model), buffer_text(&other)) == 0;
    }
    if (!same)
        show(command, &model, &other);
    buffer_free(&model);
    buffer_free(&other);
    return same;
}

static bool are_keys_same(void)
{
    static const char *const asks[][4] = {
        {"TYPE"}, {"PTTL"}, {"GET"}, {"HVALS"}, {"ZRANGE", "0", "-1", "WITHSCORES"}};
    static struct command command;
    int64_t lock;

    for (lock = 0; lock < N_LOCKS; lock++)
        for (size_t i = 0; i < KEYS_PER_LOCK; i++)
            for (size_t j = 0; j < sizeof asks / sizeof asks[0]; j++) {
                command.n = 0;
                add(&command, "%s", asks[j][0]);
                add(&command, "%s", helper(lock, lock_key[i]));
                for (size_t k = 1; k < 4 && asks[j][k] != NULL; k++)
                    add(&command, "%s", asks[j][k]);
                if (!is_same(&command))
                    return false;
            }
    return true;
}

int main(int argc, char **argv)
{
    static struct command command;
    char folder[] = "/tmp/rlock-replay-XXXXXX";
    char remove[400];
    long n = argc == 4 ? atol(argv[2]) : 0;
    bool same = true;
    bool keys_same = true;
    pid_t pid;
    long i;

    if (argc != 4 || mkdtemp(folder) == NULL)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    chance_start(strtoull(argv[3], NULL, 10));
    pid = start_server(argv[1], folder);
    for (i = 0; pid > 0 && i < n && same && keys_same; i++) {
        if (random_one_in(3))
            clock_us += random_log(1, random_one_in(10) ? 40 * SECOND : SECOND);
        *real_clock_us = clock_us;
        make(&command);
        same = is_same(&command);
        if (same && i % COMPARE_EVERY == 0)
            keys_same = are_keys_same();
    }
    printf(
        "%sok 1 - replay: %ld commands of seed %s get the same replies from the model and from a "
        "real server\n",
        pid > 0 && same ? "" : "not ", i, argv[3]);
    printf("%sok 2 - replay: each key is the same on both\n1..2\n",
           keys_same && same && are_keys_same() ? "" : "not ");
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    snprintf(remove, sizeof remove, "rm -rf %s", folder);
    return system(remove) == 0 && pid > 0 && same && keys_same ? 0 : 1;
}
