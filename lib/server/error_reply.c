/* SPDX-License-Identifier: MIT */
/*
 * error_reply: turns a server's error reply into a status, a reason and a text.
 *
 * Before Redis 7, if a command inside a script fails, the server puts text around its error ("ERR
 * Error running script (call to f_...): @user_script:9: -OOM command not ..."). So most words are
 * searched for in the whole reply. Source: the errors in redis/src and valkey/src.
 */
#include "server/error_reply.h"

#include "base/err.h"
#include "base/reason.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * What each error reply means. The first row whose `words` occur in the reply counts. Words after
 * '^' must be at the start of the reply. Words within the arguments that the server quotes don't
 * count, as a key may be any text. `words` is an array, as to a pointer the dynamic linker would
 * add an address at each start.
 */
static const struct {
    char words[40];
    enum rlock_status status;
    enum rlock_reason reason;
    enum error_reply kind;
} meanings[] = {
    /* the server did not execute the request; another node, or the same one later, may do so */
    {"^MOVED ", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_MOVED},
    {"^ASK ", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_ASK},
    {"^TRYAGAIN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_TRY_AGAIN},
    {"^CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_CLUSTER_DOWN, ERROR_REPLY_TRY_AGAIN},
    {"^NOSCRIPT", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE, ERROR_REPLY_NOSCRIPT},
    /* the server refuses the user, the password or the key */
    {"WRONGTYPE", RLOCK_E_REFUSED, RLOCK_REASON_KEY_TYPE, ERROR_REPLY_FINAL},
    {"NOAUTH", RLOCK_E_REFUSED, RLOCK_REASON_NO_PASSWORD, ERROR_REPLY_FINAL},
    {"unauthenticated ", RLOCK_E_REFUSED, RLOCK_REASON_NO_PASSWORD,
     ERROR_REPLY_FINAL}, /* sent instead of NOAUTH if the request is long */
    {"WRONGPASS", RLOCK_E_REFUSED, RLOCK_REASON_WRONG_PASSWORD, ERROR_REPLY_FINAL},
    {"run the 'eval'", RLOCK_E_REFUSED, RLOCK_REASON_SCRIPTS_DENIED, ERROR_REPLY_FINAL},
    {"unknown command 'EVAL'", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NO_SCRIPTS, ERROR_REPLY_FINAL},
    {"unknown command `EVAL`", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NO_SCRIPTS, ERROR_REPLY_FINAL},
    /* Envoy, and Alibaba's ApsaraDB */
    {"unsupported command 'EVAL'", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NO_SCRIPTS, ERROR_REPLY_FINAL},
    {"command eval not support", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NO_SCRIPTS, ERROR_REPLY_FINAL},
    /* servers that run only some scripts: ApsaraDB behind a proxy (two rows), serverless
     * ElastiCache, Dragonfly and Kvrocks (two rows), and servers that deny scripts a command */
    {"KEYS array", RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED, ERROR_REPLY_FINAL},
    {"single literal string", RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED,
     ERROR_REPLY_FINAL},
    {"without any input keys", RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED,
     ERROR_REPLY_FINAL},
    {"undeclared key", RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED, ERROR_REPLY_FINAL},
    {"script tried accessing", RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED,
     ERROR_REPLY_FINAL},
    {"not allowed from script", RLOCK_E_UNSUPPORTED, RLOCK_REASON_SCRIPTS_REJECTED,
     ERROR_REPLY_FINAL},
    {"NOPERM", RLOCK_E_REFUSED, RLOCK_REASON_NO_RIGHT, ERROR_REPLY_FINAL},
    {"DENIED", RLOCK_E_REFUSED, RLOCK_REASON_PROTECTED, ERROR_REPLY_FINAL},
    {"invalid password", RLOCK_E_REFUSED, RLOCK_REASON_WRONG_PASSWORD, ERROR_REPLY_FINAL},
    {"without any password configured", RLOCK_E_REFUSED, RLOCK_REASON_NEEDLESS_PASSWORD,
     ERROR_REPLY_FINAL},
    {"no password is set", RLOCK_E_REFUSED, RLOCK_REASON_NEEDLESS_PASSWORD, ERROR_REPLY_FINAL},
    /* the server denies a command inside a script: a row for Redis 8, then two for Redis 7 */
    {"ACL failure in script", RLOCK_E_REFUSED, RLOCK_REASON_NO_RIGHT, ERROR_REPLY_FINAL},
    {"can't run this command", RLOCK_E_REFUSED, RLOCK_REASON_NO_RIGHT, ERROR_REPLY_FINAL},
    {"can't access at least one of the keys", RLOCK_E_REFUSED, RLOCK_REASON_NO_RIGHT,
     ERROR_REPLY_FINAL},
    /* the server can't execute the request now */
    {"LOADING", RLOCK_E_SERVER, RLOCK_REASON_LOADING, ERROR_REPLY_FINAL},
    {"BUSY", RLOCK_E_SERVER, RLOCK_REASON_SCRIPT_RUNS, ERROR_REPLY_FINAL},
    {"OOM", RLOCK_E_SERVER, RLOCK_REASON_MEMORY_FULL, ERROR_REPLY_FINAL},
    {"MISCONF", RLOCK_E_SERVER, RLOCK_REASON_DISK, ERROR_REPLY_FINAL},
    {"READONLY", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"MASTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"UNBLOCKED", RLOCK_E_SERVER, RLOCK_REASON_NOT_PRIMARY, ERROR_REPLY_FINAL},
    {"NOREPLICAS", RLOCK_E_SERVER, RLOCK_REASON_FEW_REPLICAS, ERROR_REPLY_FINAL},
    {"max number of clients", RLOCK_E_SERVER, RLOCK_REASON_MANY_CLIENTS, ERROR_REPLY_FINAL},
    /* a script used a key that is being moved to another node; before, it may have written keys */
    {"non local key", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_PARTLY_EXECUTED},
    /* a command inside a script got a redirect: the script's error names no node to ask instead */
    {"MOVED", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"ASK", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"TRYAGAIN", RLOCK_E_SERVER, RLOCK_REASON_NONE, ERROR_REPLY_FINAL},
    {"CLUSTERDOWN", RLOCK_E_SERVER, RLOCK_REASON_CLUSTER_DOWN, ERROR_REPLY_FINAL},
    /* the server will never execute this request */
    {"CROSSSLOT", RLOCK_E_UNSUPPORTED, RLOCK_REASON_OTHER_SLOTS, ERROR_REPLY_FINAL},
    {"", RLOCK_E_UNSUPPORTED, RLOCK_REASON_NONE, ERROR_REPLY_FINAL}, /* every other error */
};

/* Our scripts reply FOREIGN if another program uses the key, see lib/lua/shared/fence.lua. */
#define FOREIGN "FOREIGN "
#define SHOWN_BYTES 160 /* error messages quote this much of a reply */
#define SHA1_DIGITS 40

/* Does the reply have words at `at`, before the quoted arguments of an unknown command? */
static bool is_in_front(const char *reply, const char *at)
{
    const char *args = strstr(reply, ", with args ");

    return at != NULL && (args == NULL || at <= args); /* the words "" also match at `args` */
}

static bool matches(const char *reply, const char *words)
{
    if (words[0] == '^')
        return strncmp(reply, words + 1, strlen(words + 1)) == 0;
    return is_in_front(reply, strstr(reply, words));
}

/*
 * Returns the part of the reply that is the error of a command. If a command fails in a script,
 * Redis before version 7 puts before that error "ERR Error running script (call to f_SHA1):
 * @user_script:9: ", and before version 6.2 also "@user_script: 9: -", which help no user.
 */
static const char *skip_script(const char *reply)
{
    static const char mark[] = "@user_script:";
    const char *at = reply;
    const char *found;

    if (!matches(reply, "^ERR Error running script"))
        return reply;
    while ((found = strstr(at, mark)) != NULL) {
        found += strlen(mark);
        found += strspn(found, " 0123456789");
        at = found + strspn(found, ": ");
    }
    return *at == '-' ? at + 1 : at;
}

/*
 * Cuts what a server puts after the error of a command in a script: Redis 7 " script: SHA1, on
 * @user_script:9.", Valkey 9 " script: on @user_script:9."
 */
static void cut_script(char *words)
{
    static const char mark[] = " script: ";
    char *at = strstr(words, mark);

    if (at != NULL && (strspn(at + strlen(mark), "0123456789abcdef") == SHA1_DIGITS ||
                       strncmp(at + strlen(mark), "on @", 4) == 0))
        *at = '\0';
}

/* Makes a text that was cut end after its last whole sentence or, if it has none, in "...". */
static void end_cut(char *words)
{
    char *dot = NULL;
    char *at;

    for (at = words; (at = strstr(at, ". ")) != NULL; at++)
        dot = at;
    if (dot != NULL)
        dot[1] = '\0';
    else
        memcpy(words + strlen(words) - 3, "...", 3);
}

/* Copies the part of the reply that is fit for people: printable, short, without the password. */
static void quote(char words[SHOWN_BYTES], const char *reply, const char *password)
{
    const char *error = skip_script(reply);
    size_t n;

    err_copy_masked(words, SHOWN_BYTES, error, password);
    n = strlen(words);
    err_make_printable(words);
    cut_script(words);
    if (n == SHOWN_BYTES - 1 && n == strlen(words) && error[n] != '\0')
        end_cut(words);
}

enum rlock_status error_reply_read(const char *reply, const char *password, enum error_reply *kind,
                                   struct rlock_error *err)
{
    enum rlock_reason reason;
    char words[SHOWN_BYTES];
    enum rlock_status st;
    size_t i = 0;

    quote(words, reply, password);
    *kind = ERROR_REPLY_FINAL;
    if (matches(reply, "^" FOREIGN))
        return err_set(err, RLOCK_E_REFUSED, 0,
                       "%s: another program uses this key; look at the key, and DEL it if it isn't "
                       "needed",
                       words + strlen(FOREIGN));
    while (!matches(reply, meanings[i].words))
        i++;
    st = meanings[i].status;
    reason = meanings[i].reason;
    *kind = meanings[i].kind;
    /* EVALSHA itself is denied, renamed, or unknown to a proxy: EVAL may still work */
    if (is_in_front(reply, strcasestr(reply, "evalsha")))
        *kind = ERROR_REPLY_NOSCRIPT;
    if (matches(reply, "unauthenticated "))
        snprintf(words, sizeof words, "NOAUTH Authentication required.");
    err_set(err, st, 0, "%s", reason_sentence(reason) != NULL ? reason_sentence(reason) : "");
    err_set_reason(err, reason);
    err_add_said(err, words);
    return st;
}
