/* SPDX-License-Identifier: MIT */
/*
 * test_lua: runs the scripts of lib/lua on a real server, and checks what each of them replies, and
 * which keys it changes. The server is RLOCK_TEST_SERVER, by default redis-server or valkey-server.
 *
 * tests/unit/scripts.txt is a list of cases. A title, which begins with #, begins a case, which is
 * one result: the server then has no keys. Each step of a case is a command, and behind it
 * "-> REPLY" and each key that differs after the step: "; KEY=VALUE MS", where MS are the ms until
 * the key expires (-1: never), or "; KEY=" if the key is gone. In a reply ... stands for any text,
 * such as the words of an error, which differ between releases of Redis.
 *
 * A step `given COMMAND; ...` only brings about what the steps behind it need. The list doesn't say
 * what its commands do, but an error of the server fails the case. A line `let NAME COMMAND` at the
 * head of the list gives a command a name for such steps.
 *
 * A case whose title ends with "(Redis 7)." is left out on older servers, which refuse fewer writes
 * of scripts. Commands are those of Redis, and these:
 *
 *     acquire LOCKS ARGV...   runs a script of lib/lua; each letter of LOCKS is a lock: "jk" stands
 *                             for two
 *     wait MS                 moves the server's clock, which otherwise stands still
 *     nobody wakes            from here to the end of the case, the server refuses that a script
 *                             uses another owner's list, which isn't in KEYS
 *     u: COMMAND...           runs the command as the user `u`, who has all rights until a step
 *                             takes some away by ACL SETUSER
 *
 * A script that uses any other key than those in KEYS, and the lists of waiters, fails.
 *
 * The list uses these abbreviations:
 *
 *     <a>       a token: 32 times the digit a; (a): its first 12 digits
 *     a#1       the first attempt of the owner <a>: "<a> v1 try=1 ttl=30000 n=a"
 *     T         the digits 17000000, with which each time begins: T00000 is the first time of each
 *               case in ms, T00000000 the same time in microseconds; T-500 is 500 ms earlier
 *     7d, 30d   days in ms: for how long a fence and a history are kept
 *     j~queue   the helper key {j}:rlock:queue of the lock j
 *
 * `test_lua --write` prints the list with what the scripts do now. To add a case: write its
 * commands into the list, replace the list by that output, and check that the new lines are what
 * the scripts should do.
 */
#include "lock/scripts.h"
#include "tap.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_US INT64_C(1700000000000000)
#define DAY_MS INT64_C(86400000)
#define WORDS_MAX 60
#define WORD_BYTES 1024
#define SHOWN_BYTES 16384 /* a reply and all keys, as text */
#define LINE_BYTES 4096   /* room for a line of the list */
#define KEYS_MAX 64
#define CASES "tests/unit/scripts.txt"
#define GIVEN "given "
#define LETS_MAX 16
#define COLUMNS 100
#define PART "   " /* begins a further line of results that are too long for one line */
#define ANY "..."  /* in the list: any text within a line */
#define TOKEN_DIGITS 32
#define SHORT_DIGITS 12
#define ATTEMPT " v1 try=%c ttl=30000 n=%c"

static const struct {
    const char *name;
    enum script script;
} scripts[] = {
    {"acquire", SCRIPT_ACQUIRE},
    {"confirm", SCRIPT_CONFIRM},
    {"renew", SCRIPT_RENEW},
    {"release", SCRIPT_RELEASE},
    {"timestamp_acquire", SCRIPT_TIMESTAMP_LOCK_ACQUIRE},
    {"timestamp_renew", SCRIPT_TIMESTAMP_LOCK_RENEW},
    {"timestamp_release", SCRIPT_TIMESTAMP_LOCK_RELEASE},
    {"inspect", SCRIPT_INSPECT},
    {"break", SCRIPT_BREAK},
    {"history", SCRIPT_HISTORY},
    {"rights", SCRIPT_RIGHTS},
};

/* Of each script the digest behind the text `declared`; [1]: where nobody wakes. */
static char sha1s[sizeof scripts / sizeof scripts[0]][2][41];

/*
 * Stands in front of each script, on the same line: `redis` of the script looks at the keys before
 * the server gets the command, as a server that refuses undeclared keys does. %s: does it refuse
 * the lists of waiters as well? DEL and EXISTS take several keys.
 */
static const char declared[] =
    "local real, refuses_all, is_declared = redis, %s, {} "
    "for _, key in ipairs(KEYS) do is_declared[key] = true end "
    "local function refusal(command, ...) "
    "if command == 'TIME' or command == 'SCAN' or command == 'ACL' then return nil end "
    "local keys = {...} "
    "for i = 1, (command == 'DEL' or command == 'EXISTS') and #keys or 1 do "
    "local is_list = string.find(keys[i], ':rlock:wake:', 1, true) "
    "if not is_declared[keys[i]] and (refuses_all or not is_list) then "
    "return 'ERR script tried accessing undeclared key ' .. keys[i] end end end "
    "local redis = setmetatable({call = function(...) local why = refusal(...) "
    "if why then error(why, 0) end return real.call(...) end, "
    "pcall = function(...) local why = refusal(...) "
    "return why and {err = why} or real.pcall(...) end}, {__index = real}) ";

/* Returns all keys, sorted: for each its name, its value and for how many ms it lasts. */
static const char dump[] =
    "local keys, all = redis.call('KEYS', '*'), {}\n"
    "table.sort(keys)\n"
    "for _, key in ipairs(keys) do\n"
    "  local kind, value = redis.call('TYPE', key).ok, nil\n"
    "  if kind == 'string' then value = redis.call('GET', key) end\n"
    "  if kind == 'list' then value = redis.call('LRANGE', key, 0, -1) end\n"
    "  if kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end\n"
    "  if kind == 'hash' then\n"
    "    local fields = redis.call('HKEYS', key)\n"
    "    table.sort(fields)\n"
    "    value = {}\n"
    "    for _, field in ipairs(fields) do\n"
    "      value[#value + 1] = field\n"
    "      value[#value + 1] = redis.call('HGET', key, field)\n"
    "    end\n"
    "  end\n"
    "  all[#all + 1] = {key, value, redis.call('PTTL', key)}\n"
    "end\n"
    "return all\n";

static char folder[] = "/tmp/test_lua.XXXXXX";
static volatile int64_t *clock_us; /* what the server's clock shows */
static pid_t server_pid;
static redisContext *admin; /* the connection of a user with all rights */
static redisContext *user;  /* the connection of the user `u` */
static bool nobody_wakes;   /* the rest of the case is where the server refuses lists of waiters */

/* ---- the server ---- */

/* Redis 6.0 allows DEBUG, and refuses to start with an option that it doesn't know. */
static void run_server(const char *shim, bool allows_debug)
{
    const char *programs[] = {getenv("RLOCK_TEST_SERVER"), "redis-server", "valkey-server"};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(folder) != 0)
        _exit(127);
    setenv("LD_PRELOAD", shim, 1);
    setenv("CLOCKSHIM", "clock", 1);
    setenv("CLOCKSHIM_STILL", "1", 1);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (programs[i] != NULL)
            execlp(programs[i], programs[i], "--port", "0", "--unixsocket", "socket", "--save", "",
                   "--logfile", "/dev/null", allows_debug ? "--enable-debug-command" : NULL, "yes",
                   (char *)NULL);
    _exit(127);
}

/* Connects to the server as soon as it listens. Returns NULL if its process has ended. */
static redisContext *connect_to_server(void)
{
    char path[sizeof folder + 8];
    redisContext *made = NULL;

    snprintf(path, sizeof path, "%s/socket", folder);
    while (waitpid(server_pid, NULL, WNOHANG) == 0) {
        made = redisConnectUnix(path);
        if (made != NULL && made->err == 0)
            return made;
        redisFree(made);
        poll(NULL, 0, 10);
    }
    server_pid = 0;
    return NULL;
}

static bool make_clock(void)
{
    char path[sizeof folder + 8];
    int fd;

    snprintf(path, sizeof path, "%s/clock", folder);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *clock_us) != 0)
        return false;
    clock_us = mmap(NULL, sizeof *clock_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (clock_us == MAP_FAILED)
        return false;
    *clock_us = START_US;
    return true;
}

/* Returns whether the server's clock shows the time that clock_us says. */
static bool has_our_clock(void)
{
    redisReply *time = redisCommand(admin, "TIME");
    bool is_ours = time != NULL && time->type == REDIS_REPLY_ARRAY &&
                   strtoll(time->element[0]->str, NULL, 10) == START_US / 1000000;

    freeReplyObject(time);
    return is_ours;
}

/* Returns the number in the reply, and frees the reply; -1: it is no number. */
static long long number_in(redisReply *reply)
{
    long long n = reply != NULL && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;

    freeReplyObject(reply);
    return n;
}

/* Returns whether the reply is no error, and frees it. */
static bool is_well(redisReply *reply)
{
    bool is = reply != NULL && reply->type != REDIS_REPLY_ERROR;

    freeReplyObject(reply);
    return is;
}

static bool is_redis_7(void)
{
    return number_in(redisCommand(admin, "EVAL %s 0", "return redis.acl_check_cmd and 1 or 0")) ==
           1;
}

/*
 * Lets keys expire only when they are read. Otherwise Redis 7.2 and later may delete a key in the
 * millisecond in which its TTL ends, though a script would still read it.
 */
static bool stop_active_expire(void)
{
    return is_well(redisCommand(admin, "DEBUG SET-ACTIVE-EXPIRE 0"));
}

/* Returns why the server can't run here, or NULL if it runs. */
static const char *start_server(char *program)
{
    char shim[4096];
    char *built = realpath(dirname(dirname(program)), NULL);

    snprintf(shim, sizeof shim, "%s/tools/clockshim.so", built != NULL ? built : "");
    free(built);
    if (mkdtemp(folder) == NULL || !make_clock())
        return "no folder in /tmp";
    for (int i = 0; i < 2 && admin == NULL; i++) {
        server_pid = fork();
        if (server_pid == 0)
            run_server(shim, i == 0);
        admin = connect_to_server();
    }
    if (admin == NULL)
        return "no redis-server";
    if (!stop_active_expire())
        return "this redis-server deletes keys by itself";
    user = connect_to_server();
    if (!has_our_clock())
        return "the clock of this redis-server can't be set";
    return NULL;
}

static void stop_server(void)
{
    static const char *const file[] = {"clock", "socket"};
    char path[sizeof folder + 8];

    if (server_pid > 0) {
        kill(server_pid, SIGKILL);
        waitpid(server_pid, NULL, 0);
    }
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, file[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* ---- text ---- */

static void append(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t room, const char *format, ...)
{
    size_t n = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + n, room - n, format, args);
    va_end(args);
}

/* Returns how many of the next characters are the digit `c`. */
static size_t run_of(const char *text, char c)
{
    size_t n = 0;

    while (text[n] == c)
        n++;
    return n;
}

/* Replaces the abbreviations of the table by what they stand for. */
static void expand(const char *text, char *out)
{
    char c[2] = "";

    for (out[0] = '\0'; *text != '\0'; text++) {
        c[0] = *text;
        if (text[0] == 'T' && text[1] >= '0' && text[1] <= '9') {
            append(out, WORD_BYTES, "17000000");
        } else if (text[0] != '\0' && text[1] == '#') {
            memset(out + strlen(out) + TOKEN_DIGITS, '\0', 1);
            memset(out + strlen(out), text[0], TOKEN_DIGITS);
            append(out, WORD_BYTES, ATTEMPT, text[2], text[0]);
            text += 2;
        } else if ((text[0] == '<' && text[1] != '\0' && text[2] == '>') ||
                   (text[0] == '(' && text[1] != '\0' && text[2] == ')')) {
            size_t n = strlen(out);
            size_t digits = text[0] == '<' ? TOKEN_DIGITS : SHORT_DIGITS;

            memset(out + n, text[1], digits);
            out[n + digits] = '\0';
            text += 2;
        } else if (*text >= 'a' && *text <= 'z' && text[1] == '~') {
            append(out, WORD_BYTES, "{%s}:rlock:", c);
            text++;
        } else {
            append(out, WORD_BYTES, "%s", c);
        }
    }
}

/* Returns the length of the attempt that the text begins with, or 0. */
static size_t attempt_length(const char *text)
{
    char attempt[TOKEN_DIGITS + sizeof ATTEMPT];

    if (run_of(text, *text) != TOKEN_DIGITS || strlen(text) < TOKEN_DIGITS + strlen(ATTEMPT) - 2)
        return 0;
    snprintf(attempt, sizeof attempt, ATTEMPT, text[TOKEN_DIGITS + 8], *text);
    return strncmp(text + TOKEN_DIGITS, attempt, strlen(attempt)) == 0
               ? TOKEN_DIGITS + strlen(attempt)
               : 0;
}

/* Appends the text with the abbreviations of the table. */
static void append_short(char *out, size_t room, const char *text)
{
    while (*text != '\0') {
        size_t n = run_of(text, *text);

        if (attempt_length(text) > 0) {
            append(out, room, "%c#%c", *text, text[TOKEN_DIGITS + 8]);
            text += attempt_length(text);
        } else if (n == TOKEN_DIGITS || (n == SHORT_DIGITS && *text != '0')) {
            append(out, room, n == TOKEN_DIGITS ? "<%c>" : "(%c)", *text);
            text += n;
        } else if (strncmp(text, "17000000", 8) == 0) {
            append(out, room, "T");
            text += 8;
        } else if (strncmp(text, "16999999", 8) == 0) {
            append(out, room, "T-%ld", 100000 - strtol(text + 8, NULL, 10));
            text += 13;
        } else if (text[0] == '{' && strncmp(text + 2, "}:rlock:", 8) == 0) {
            append(out, room, "%c~", text[1]);
            text += 10;
        } else {
            append(out, room, "%c", *text++);
        }
    }
}

/* Appends a reply: a text with blanks in quotes, the elements of an array in brackets. */
static void append_reply(char *out, size_t room, const redisReply *reply)
{
    bool is_quoted;
    char number[32];

    switch (reply->type) {
    case REDIS_REPLY_ARRAY:
        append(out, room, "[");
        for (size_t i = 0; i < reply->elements; i++) {
            append(out, room, "%s", i > 0 ? " " : "");
            append_reply(out, room, reply->element[i]);
        }
        append(out, room, "]");
        break;
    case REDIS_REPLY_INTEGER:
        snprintf(number, sizeof number, "%lld", reply->integer);
        append_short(out, room, number);
        break;
    case REDIS_REPLY_NIL:
        append(out, room, "nil");
        break;
    default:
        is_quoted = reply->len == 0 || strchr(reply->str, ' ') != NULL;
        append(out, room, "%s", is_quoted ? "'" : "");
        append_short(out, room, reply->str);
        append(out, room, "%s", is_quoted ? "'" : "");
    }
}

/* ---- the keys ---- */

struct shown_key {
    char name[WORD_BYTES];
    char value[LINE_BYTES];
    int64_t expires_ms; /* -1: never */
};

struct shown_keys {
    struct shown_key key[KEYS_MAX];
    size_t n;
};

static void read_keys(struct shown_keys *keys)
{
    redisReply *all = redisCommand(admin, "EVAL %s 0", dump);

    keys->n = 0;
    for (size_t i = 0; all != NULL && i < all->elements && i < KEYS_MAX; i++) {
        redisReply **part = all->element[i]->element;
        struct shown_key *key = &keys->key[keys->n++];
        long long left = part[2]->integer;

        key->name[0] = key->value[0] = '\0';
        append_short(key->name, sizeof key->name, part[0]->str);
        append_reply(key->value, sizeof key->value, part[1]);
        key->expires_ms = left < 0 ? left : *clock_us / 1000 + left;
    }
    freeReplyObject(all);
}

static const struct shown_key *find_key(const struct shown_keys *keys, const char *name)
{
    for (size_t i = 0; i < keys->n; i++)
        if (strcmp(keys->key[i].name, name) == 0)
            return &keys->key[i];
    return NULL;
}

static void append_key(char *out, const struct shown_key *key, int64_t left_ms)
{
    append(out, SHOWN_BYTES, "; %s=%s ", key->name, key->value);
    if (left_ms == 7 * DAY_MS || left_ms == 30 * DAY_MS)
        append(out, SHOWN_BYTES, "%dd", (int)(left_ms / DAY_MS));
    else
        append(out, SHOWN_BYTES, "%lld", (long long)left_ms);
}

/* Appends each key whose value or expiry the step has changed. */
static void append_changes(char *out, const struct shown_keys *before,
                           const struct shown_keys *after)
{
    for (size_t i = 0; i < before->n; i++)
        if (find_key(after, before->key[i].name) == NULL)
            append(out, SHOWN_BYTES, "; %s=", before->key[i].name);
    for (size_t i = 0; i < after->n; i++) {
        const struct shown_key *key = &after->key[i];
        const struct shown_key *was = find_key(before, key->name);
        int64_t left = key->expires_ms < 0 ? -1 : key->expires_ms - *clock_us / 1000;

        if (was == NULL || strcmp(was->value, key->value) != 0 ||
            was->expires_ms != key->expires_ms)
            append_key(out, key, left);
    }
    append(out, SHOWN_BYTES, "\n");
}

/* ---- the steps ---- */

struct command {
    char text[WORDS_MAX][WORD_BYTES];
    const char *word[WORDS_MAX];
    size_t bytes[WORDS_MAX];
    int n;
};

static void add(struct command *command, const char *word)
{
    snprintf(command->text[command->n], WORD_BYTES, "%s", word);
    command->word[command->n] = command->text[command->n];
    command->bytes[command->n] = strlen(command->text[command->n]);
    command->n++;
}

/* Cuts the next word from the text; '...' is one word. Returns false at the end of the text. */
static bool next_word(const char **text, char word[WORD_BYTES])
{
    char cut[WORD_BYTES];
    size_t n;

    *text += run_of(*text, ' ');
    if (**text == '\0')
        return false;
    if (**text == '\'') {
        n = strcspn(++*text, "'");
        snprintf(cut, sizeof cut, "%.*s", (int)n, *text);
        *text += n + 1;
    } else {
        n = strcspn(*text, " ");
        snprintf(cut, sizeof cut, "%.*s", (int)n, *text);
        *text += n;
    }
    expand(cut, word);
    return true;
}

/*
 * If `name` is that of a script, adds the words that run it, with the keys of the locks, with which
 * `text` begins.
 */
static bool add_script(struct command *command, const char *name, const char **text)
{
    static const char *const kinds[] = {"fence",   "queue",       "waiters",
                                        "holders", "holder-info", "history"};
    enum script script;
    const char *token;
    bool has_owner; /* KEYS has the list of the owner */
    char locks[WORD_BYTES], key[WORD_BYTES];
    const char *lock;
    size_t i = 0;

    while (i < sizeof scripts / sizeof scripts[0] && strcmp(scripts[i].name, name) != 0)
        i++;
    if (i == sizeof scripts / sizeof scripts[0] || !next_word(text, locks))
        return false;
    script = scripts[i].script;
    has_owner = script != SCRIPT_INSPECT && script != SCRIPT_BREAK && script != SCRIPT_HISTORY;
    token = strchr(*text, '<'); /* the owner's is the first one */
    add(command, "EVALSHA");
    add(command, sha1s[i][nobody_wakes]);
    snprintf(key, sizeof key, "%zu", (has_owner ? 8U : 7U) * strlen(locks));
    add(command, key);
    for (lock = locks; *lock != '\0'; lock++) {
        snprintf(key, sizeof key, "%c", *lock);
        add(command, key);
        for (size_t j = 0; j < sizeof kinds / sizeof kinds[0]; j++) {
            snprintf(key, sizeof key, "{%c}:rlock:%s", *lock, kinds[j]);
            add(command, key);
        }
        if (!has_owner)
            continue;
        snprintf(key, sizeof key, "{%c}:rlock:wake:", *lock);
        memset(key + strlen(key) + TOKEN_DIGITS, '\0', 1);
        memset(key + strlen(key), token != NULL ? token[1] : '0', TOKEN_DIGITS);
        add(command, key);
    }
    return true;
}

/* Carries out the command of a step, and appends its reply. Returns false if that is an error. */
static bool carry_out(const char *text, char out[SHOWN_BYTES])
{
    static struct command command;
    redisContext *server = admin;
    char word[WORD_BYTES];
    char *place;
    redisReply *reply;
    bool is_ok;

    next_word(&text, word);
    if (strcmp(word, "wait") == 0) {
        *clock_us += strtoll(text, NULL, 10) * 1000;
        return true;
    }
    if (strcmp(word, "nobody") == 0) {
        nobody_wakes = true;
        return true;
    }
    if (strcmp(word, "u:") == 0) {
        server = user;
        next_word(&text, word);
    }
    command.n = 0;
    if (!add_script(&command, word, &text))
        add(&command, word);
    while (command.n < WORDS_MAX && next_word(&text, word))
        add(&command, word);
    reply = redisCommandArgv(server, command.n, command.word, command.bytes);
    append(out, SHOWN_BYTES, "-> ");
    if (reply != NULL)
        append_reply(out, SHOWN_BYTES, reply);
    else
        append(out, SHOWN_BYTES, "no reply: %s", server->errstr);
    place = strstr(out, " script: "); /* its digest, except in Valkey 9, and the line in it */
    if (place != NULL && strstr(place, "on @user_script:") != NULL)
        *place = '\0';
    is_ok = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return is_ok;
}

/* The commands that have a name, as lines `let NAME COMMAND` of the list. */
static char lets[LETS_MAX][LINE_BYTES];
static size_t n_lets;

/* Returns the command that has this name, or else `name`. */
static const char *named_command(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < n_lets; i++)
        if (strncmp(lets[i] + 4, name, n) == 0 && lets[i][4 + n] == ' ')
            return lets[i] + 4 + n;
    return name;
}

/* Carries out the commands of a step `given COMMAND; ...`. */
static void carry_out_given(const char *text)
{
    char command[LINE_BYTES], got[SHOWN_BYTES];
    size_t n;

    for (; *text != '\0'; text += n + strspn(text + n, "; ")) {
        n = strcspn(text, ";");
        snprintf(command, sizeof command, "%.*s", (int)n, text);
        got[0] = '\0';
        okf(carry_out(named_command(command), got), "given %s %s", command, got);
    }
}

/* Removes all keys, gives the user `u` all rights, and sets the clock to the first time. */
static void begin_case(void)
{
    static const char *const commands[] = {"FLUSHALL", "CONFIG SET maxmemory 0",
                                           "CONFIG SET min-replicas-to-write 0",
                                           "ACL SETUSER u reset on nopass ~* +@all"};

    *clock_us = START_US;
    nobody_wakes = false;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        freeReplyObject(redisCommand(admin, commands[i]));
    freeReplyObject(redisCommand(user, "AUTH u x"));
}

static void load_scripts(void)
{
    static struct request request;
    char before[sizeof declared + 8];
    redisReply *sha1;

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        for (int j = 0; j < 2; j++) {
            script_request(&request, scripts[i].script, 0);
            snprintf(before, sizeof before, declared, j == 1 ? "true" : "false");
            sha1 = redisCommand(admin, "SCRIPT LOAD %s%s", before, request.script);
            snprintf(sha1s[i][j], sizeof sha1s[i][j], "%s",
                     sha1 != NULL && sha1->str != NULL ? sha1->str : "");
            freeReplyObject(sha1);
        }
}

/* Returns whether a step did what the list says. */
static bool is_same(const char *got, const char *wanted)
{
    const char *any = strstr(wanted, ANY);
    const char *end;

    if (any == NULL)
        return strcmp(got, wanted) == 0;
    if (strncmp(got, wanted, (size_t)(any - wanted)) != 0)
        return false;
    got += any - wanted;
    for (end = got + strcspn(got, "\n"); got <= end; got++)
        if (is_same(got, any + strlen(ANY)))
            return true;
    return false;
}

/* Prints lines, and cuts those that are too long at blanks. append_line() joins the parts again. */
static void print_wrapped(const char *lines)
{
    const char *cut;
    int column = 0;

    for (; *lines != '\0'; lines++) {
        cut = *lines == ' ' ? lines + 1 + strcspn(lines + 1, " \n") : NULL;
        if (cut != NULL && column > (int)sizeof PART && column + (cut - lines) > COLUMNS) {
            printf("\n" PART);
            column = (int)sizeof PART - 1;
        } else {
            putchar(*lines);
            column = *lines == '\n' ? 0 : column + 1;
        }
    }
}

static void append_line(char *lines, size_t room, const char *line)
{
    size_t n = strlen(lines);

    if (n > 0 && strncmp(line, PART, sizeof PART - 1) == 0) {
        lines[n - 1] = ' ';
        line += sizeof PART - 1;
    }
    append(lines, room, "%s", line);
}

/* Runs the step `command`; `wanted` are the lines that the list has behind it. */
static void run_step(const char *command, const char *wanted, bool writes)
{
    static struct shown_keys before;
    static struct shown_keys after;
    static char got[SHOWN_BYTES];

    if (strncmp(command, GIVEN, strlen(GIVEN)) == 0) {
        if (writes)
            printf("%s\n", command);
        carry_out_given(command + strlen(GIVEN));
        return;
    }
    got[0] = '\0';
    read_keys(&before);
    carry_out(command, got);
    read_keys(&after);
    append_changes(got, &before, &after);
    if (writes) {
        printf("%s\n", command);
        print_wrapped(is_same(got, wanted) ? wanted : got);
    } else {
        okf(is_same(got, wanted), "%s\n# got:\n%s# wanted:\n%s", command, got, wanted);
    }
}

/* Runs the cases of the list. With `writes`, prints the list with what the scripts do now. */
static void run_cases(FILE *list, bool writes)
{
    static char wanted[SHOWN_BYTES];
    char title[LINE_BYTES] = "";
    char command[LINE_BYTES], line[LINE_BYTES];
    bool has_begun = false; /* the result of the case */
    char *next = fgets(line, sizeof line, list);
    bool is_left_out = false;

    while (next != NULL) {
        if (line[0] == '#') {
            if (has_begun)
                tap_end();
            has_begun = false;
            snprintf(title, sizeof title, "%.*s", (int)strcspn(line + 2, "\n"), line + 2);
            begin_case();
            is_left_out = strstr(title, "(Redis 7).") != NULL && !is_redis_7();
        }
        if (strncmp(line, "let ", 4) == 0 && n_lets < LETS_MAX)
            snprintf(lets[n_lets++], LINE_BYTES, "%.*s", (int)strcspn(line, "\n"), line);
        if (line[0] == '#' || line[0] == '\n' || strncmp(line, "let ", 4) == 0) {
            if (writes)
                fputs(line, stdout);
            next = fgets(line, sizeof line, list);
            continue;
        }
        snprintf(command, sizeof command, "%.*s", (int)strcspn(line, "\n"), line);
        wanted[0] = '\0';
        while ((next = fgets(line, sizeof line, list)) != NULL && strchr(" -", line[0]) != NULL)
            append_line(wanted, sizeof wanted, line);
        if (is_left_out)
            continue;
        if (!writes && !has_begun) {
            tap_begin(title);
            has_begun = true;
        }
        run_step(command, wanted, writes);
    }
    if (has_begun)
        tap_end();
}

/* ---- the list of commands in shared/commands.lua ---- */

/*
 * A row of the list is {USE, COMMAND, "1" if it makes a key else "0", "1" if the server can be
 * asked for the command with as many words and this key else "0", KEY, ARGUMENT...}.
 */
enum { ROW_USE, ROW_COMMAND, ROW_MAKES_KEY, ROW_MAY_BE_ASKED, ROW_KEY };

/* Follows the text of the list in a script that returns its rows; ARGV 1 is that text. */
static const char rows_of_list[] =
    "local lock, rows = {}, {}\n"
    "for _, key in ipairs({'fence', 'queue', 'waiters', 'holders', 'holder_info', 'wake',\n"
    "    'history'}) do\n"
    "  lock[key] = '{j}:rlock:' .. key\n"
    "end\n"
    "lock.key = 'j'\n"
    "for use in string.gmatch(ARGV[1], \"use == '([%a ]+)'\") do\n"
    "  may_all(use ~= 'all' and use, lock, function(command, key, ...)\n"
    "    local words = key and {command, key, ...} or {command, ...}\n"
    "    local info = redis.call('COMMAND', 'INFO', command)[1]\n"
    "    local may = (#words == info[2] or info[2] < 0 and #words >= -info[2]) and\n"
    "      info[4] == (key and 1 or 0) and\n"
    "      (not redis.acl_check_cmd or redis.acl_check_cmd(unpack(words)))\n"
    "    local row = {use, command, makes_key(command) and '1' or '0', may and '1' or '0', key or "
    "''}\n"
    "    for _, argument in ipairs({...}) do row[#row + 1] = tostring(argument) end\n"
    "    rows[#rows + 1] = row\n"
    "    return true\n"
    "  end)\n"
    "end\n"
    "return rows\n";

/* Appends the file to the text. */
static void read_file(const char *name, char *text, size_t room)
{
    FILE *file = fopen(name, "r");
    size_t n = strlen(text);

    if (file != NULL) {
        n += fread(text + n, 1, room - n - 1, file);
        text[n] = '\0';
        fclose(file);
    }
}

static redisReply *read_list(void)
{
    static char text[SHOWN_BYTES];
    static char script[SHOWN_BYTES + sizeof rows_of_list];

    text[0] = '\0';
    read_file("lib/lua/shared/commands.lua", text, sizeof text);
    read_file("lib/lua/shared/rights.lua", text, sizeof text);
    snprintf(script, sizeof script, "%s%s", text, rows_of_list);
    return redisCommand(admin, "EVAL %s 0 %s", script, text);
}

static const char *in_row(const redisReply *row, size_t i)
{
    return row->element[i]->str;
}

static bool is_set(const redisReply *row, size_t i)
{
    return *in_row(row, i) == '1';
}

/* Runs the command of the row. Returns whether the reply is no error. */
static bool call_row(const redisReply *row)
{
    const char *word[WORDS_MAX] = {in_row(row, ROW_COMMAND)};
    int n = 1;

    for (size_t i = ROW_KEY; i < row->elements; i++)
        if (i != ROW_KEY || *in_row(row, i) != '\0')
            word[n++] = in_row(row, i);
    return is_well(redisCommandArgv(admin, n, word, NULL));
}

static long long keys_on_server(void)
{
    return number_in(redisCommand(admin, "DBSIZE"));
}

static bool does_what_list_says(const redisReply *row)
{
    begin_case();
    return call_row(row) && keys_on_server() == is_set(row, ROW_MAKES_KEY);
}

static void deny(const redisReply *row, const char *more)
{
    begin_case();
    freeReplyObject(redisCommand(admin, "ACL SETUSER u -%s %s", in_row(row, ROW_COMMAND), more));
}

/* Returns whether `step` is refused for want of this command, and leaves no key. */
static bool is_refused(const redisReply *row, const char *step, const char *more)
{
    char wanted[64];
    char got[SHOWN_BYTES] = "";

    deny(row, more);
    carry_out(step, got);
    snprintf(wanted, sizeof wanted, "no right to %s for ", in_row(row, ROW_COMMAND));
    return keys_on_server() == 0 &&
           (strstr(got, wanted) != NULL || strstr(got, "NOPERM") != NULL ||
            strstr(got, "ACL failure") != NULL || strstr(got, "can't run this") != NULL);
}

/* Returns whether each attempt that needs the row's command is refused without it. */
static bool is_needed(const redisReply *row, bool has_acl_check)
{
    static const struct {
        const char *step;
        const char *uses;
    } attempts[] = {
        {"u: acquire j '<a> v1 try=1 ttl=30000 n=a' 30000 none", "hold, pass on"},
        {"u: acquire j '<a> v1 try=1 ttl=30000 n=a' 30000 none '' 0 '' s ''",
         "hold, pass on, several"},
        {"u: timestamp_acquire j '<a> v1 try=1 ttl=30000 n=a' 30000 none '' 0 '' ms ''",
         "timestamp"},
    };
    const char *use = in_row(row, ROW_USE);

    if (!has_acl_check && is_set(row, ROW_MAKES_KEY))
        return true; /* Redis 6 can't be asked */
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++)
        if (strstr(attempts[i].uses, use) != NULL &&
            (!is_refused(row, attempts[i].step, "-acl") ||
             (strcmp(use, "pass on") != 0 && !is_refused(row, attempts[i].step, "+acl"))))
            return false;
    return true;
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (; words != NULL && *words != '\0'; words += strcspn(words, " "), words += *words == ' ')
        if (strncmp(words, word, n) == 0 && (words[n] == ' ' || words[n] == '\0'))
            return true;
    return false;
}

/* Returns whether rights.lua names the command as that of its use, and leaves no key. */
static bool is_found(const redisReply *row)
{
    static const char *const pairs[] = {"hold, grant", "pass on, wait", "several", "inspect",
                                        "history"};
    const char *command = in_row(row, ROW_COMMAND);
    struct command words = {.n = 0};
    const char *lock = "j <e>";
    char token[WORD_BYTES];
    redisReply *found;
    bool is = false;

    if (strcmp(in_row(row, ROW_USE), "timestamp") == 0)
        return true; /* commands of the other uses */
    deny(row, "-acl");
    add_script(&words, "rights", &lock);
    next_word(&lock, token);
    add(&words, token);
    found = redisCommandArgv(user, words.n, words.word, words.bytes);
    for (size_t i = 0;
         found != NULL && i < sizeof pairs / sizeof pairs[0] && i * 2 + 1 < found->elements; i++) {
        is = is ||
             (has_word(found->element[i * 2]->str, command) && found->element[i * 2 + 1]->len > 0);
        if (strstr(pairs[i], in_row(row, ROW_USE)) != NULL)
            break;
        is = is && strcmp(in_row(row, ROW_USE), "history") != 0;
    }
    freeReplyObject(found);
    return is && keys_on_server() == 0;
}

/* Each command that a script calls must be in the list. */
static void check_calls(const redisReply *rows)
{
    static struct request request;
    const char *at;
    char name[32];
    size_t j;

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        script_request(&request, scripts[i].script, 0);
        for (at = request.script; (at = strstr(at, "call('")) != NULL;) {
            at += strlen("call('");
            snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "'"), at);
            for (j = 0; j < rows->elements; j++)
                if (strcmp(in_row(rows->element[j], ROW_COMMAND), name) == 0)
                    break;
            okf(j < rows->elements || strcmp(name, "TIME") == 0, "%s calls %s, which isn't listed",
                scripts[i].name, name);
        }
    }
}

static void check_rights(void)
{
    redisReply *rows = read_list();
    bool has_acl_check = is_redis_7();

    if (okf(rows != NULL && rows->type == REDIS_REPLY_ARRAY && rows->elements > 30,
            "the list of commands is read: %s", rows != NULL && rows->str != NULL ? rows->str : ""))
        check_calls(rows);
    for (size_t i = 0; rows != NULL && i < rows->elements; i++) {
        const redisReply *row = rows->element[i];

        if (!okf(is_set(row, ROW_MAY_BE_ASKED), "the server can be asked for the command") ||
            !okf(does_what_list_says(row), "a call makes a key if the list says so") ||
            !okf(is_needed(row, has_acl_check), "no lock is granted without the command") ||
            !okf(is_found(row), "rights.lua names the command if it is denied"))
            printf("# the command is %s for %s\n", in_row(row, ROW_COMMAND), in_row(row, ROW_USE));
    }
    freeReplyObject(rows);
}

int main(int argc, char **argv)
{
    bool writes = argc == 2 && strcmp(argv[1], "--write") == 0;
    FILE *list = fopen(CASES, "r");
    const char *obstacle = start_server(argv[0]);

    if (list == NULL) {
        ok(false, "the list of cases can be read: the test runs in the folder of the repository");
    } else if (obstacle != NULL) {
        skip("the replies of the scripts, and the keys that they change", obstacle);
    } else {
        load_scripts();
        run_cases(list, writes);
        if (!writes)
            RUN(check_rights());
    }
    if (list != NULL)
        fclose(list);
    redisFree(admin);
    redisFree(user);
    stop_server();
    return writes ? 0 : done_testing();
}
