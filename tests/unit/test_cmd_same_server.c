/* SPDX-License-Identifier: MIT */
/* test_cmd_same_server: an rlock in the command finds the server, and tells it from another one. */
#include "session/same_server.h"
#include "tap.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define TOKEN "RLOCK_TOKEN=0123456789abcdef0123456789abcdef"

extern char **environ;

static char *nothing[] = {NULL};

/* The value of an entry; NULL: there is no such entry. */
static const char *value_of(const struct same_server *same, const char *name)
{
    for (size_t i = 0; i < same->n; i++)
        if (strncmp(same->entries[i], name, strlen(name)) == 0 &&
            same->entries[i][strlen(name)] == '=')
            return same->entries[i] + strlen(name) + 1;
    return NULL;
}

/* Services of different Sentinels may have the same name. Sentinels may come in any order. */
static void test_sentinels(void)
{
    char *one[] = {(char *)"redis+sentinel://b,a/main"};
    char *other[] = {(char *)"redis+sentinel://c/main/2"};
    char *names = same_server_names(one, 1);

    is_str(names, "a:26379/main/0");
    free(names);
    names = same_server_names(other, 1);
    is_str(names, "c:26379/main/2");
    free(names);
}

/* Which entries the command gets, with a server that is named by -u or elsewhere. */
static void test_entries(void)
{
    char *urls[] = {(char *)"redis://u:pw@h:7/3", (char *)"redis://a"};
    struct credentials credentials = {.url = urls, .n_urls = 2};
    struct options options = {.url_from = FROM_FILE, .sentinel_user = "watcher"};
    char *with_tls[] = {(char *)"RLOCK_TLS_NAME=theirs", (char *)"RLOCK_TLS_CA=/theirs", NULL};
    struct same_server same;
    char here[PATH_MAX];

    environ = nothing;
    same_server_init(&same, &options, &credentials);
    is_int((int64_t)same.n, 1, "if -u doesn't name the server, there is one entry");
    is_str(value_of(&same, PARENT_SERVER), "a:6379/0 h:7/3", "it has the names of the servers");
    is_str(value_of(&same, "RLOCK_TLS_KEY"), NULL, "the command gets no file that was not given");
    is_str(same.names, "a:6379/0 h:7/3", "the struct has them, too");
    same_server_fini(&same);
    ok(same.n == 0 && same.names == NULL, "same_server_fini() leaves an empty struct");

    options.url_from = FROM_COMMAND_LINE;
    options.tls_ca = ".";
    options.tls_cert = "/no/where";
    options.tls_key = "/no/key";
    options.tls_name = "name";
    environ = nothing;
    same_server_init(&same, &options, &credentials);
    is_str(value_of(&same, "RLOCK_URL"), "redis://u@h:7/3 redis://a");
    is_str(value_of(&same, "RLOCK_TLS_CA"), getcwd(here, sizeof here));
    is_str(value_of(&same, "RLOCK_TLS_CERT"), "/no/where");
    is_str(value_of(&same, "RLOCK_TLS_KEY"), "/no/key", "it gets the key, too");
    is_str(value_of(&same, "RLOCK_TLS_NAME"), "name", "it gets the name for TLS");
    is_str(value_of(&same, "RLOCK_SENTINEL_USER"), "watcher", "it gets the user of the Sentinels");
    ok(same.entries[same.n] == NULL, "the entries end with NULL");
    same_server_fini(&same);

    environ = with_tls;
    same_server_init(&same, &options, &credentials);
    is_str(value_of(&same, "RLOCK_TLS_NAME"), NULL, "an inherited name for TLS stays");
    is_str(value_of(&same, "RLOCK_TLS_CA"), NULL, "an inherited file stays");
    is_str(value_of(&same, "RLOCK_TLS_CERT"), "/no/where", "others are added");
    same_server_fini(&same);
}

/* An inherited RLOCK_URL, and whether an rlock with -u replaces it. */
static const struct {
    const char *url, *parent;
    bool is_replaced;
} inherited_urls[] = {
    {"RLOCK_URL=", "", true},
    {"RLOCK_URL=redis://other", "", false},
    {"RLOCK_URL=redis://u:pw@other", "", true},
    {"RLOCK_URL=redis://other", "RLOCK_PARENT_SERVER=other:6379/0", true},
    {"RLOCK_URL=redis://other redis://b/1", "RLOCK_PARENT_SERVER=b:6379/1 other:6379/0", true},
    {"RLOCK_URL=redis://other\tredis://b/1", "RLOCK_PARENT_SERVER=b:6379/1 other:6379/0", true},
    {"RLOCK_URL=redis://other redis://b", "RLOCK_PARENT_SERVER=b:6379/1 other:6379/0", false},
    {"RLOCK_URL=redis://other", "RLOCK_PARENT_SERVER=b:6379/1 other:6379/0", false},
    {"RLOCK_URL=redis://other redis://b/1", "RLOCK_PARENT_SERVER=other:6379/0", false},
    {"RLOCK_URL=local:", "RLOCK_PARENT_SERVER=local:", true},
    {"RLOCK_URL= ", "RLOCK_PARENT_SERVER=other:6379/0", false},
};

static void test_inherited(void)
{
    char *urls[] = {(char *)"redis://h"};
    struct credentials credentials = {.url = urls, .n_urls = 1};
    struct options options = {.url_from = FROM_COMMAND_LINE};
    struct same_server same;

    for (size_t i = 0; i < sizeof inherited_urls / sizeof inherited_urls[0]; i++) {
        char *inherited[] = {strdup(inherited_urls[i].url), strdup(inherited_urls[i].parent), NULL};

        environ = inherited;
        same_server_init(&same, &options, &credentials);
        okf((value_of(&same, "RLOCK_URL") != NULL) == inherited_urls[i].is_replaced,
            "under \"%s\", %s is %s", inherited_urls[i].parent, inherited_urls[i].url,
            inherited_urls[i].is_replaced ? "replaced" : "left as it is");
        is_str(value_of(&same, PARENT_SERVER), "h:6379/0", "the server is named in either case");
        same_server_fini(&same);
        environ = nothing;
        free(inherited[0]);
        free(inherited[1]);
    }
}

/* Names of servers that a parent has set, and whether they differ from "a:6379/1 h:6379/0". */
static const struct {
    const char *parent;
    bool differs;
} parents[] = {
    {"a:6379/1 h:6379/0", false},
    {"a:6379/1", true},
    {"h:6379/0", true},
    {"", false},
    {"a:6379/1 b:1/0 h:6379/0", true},
    {"a:6379/11 h:6379/0", true},
    {"h:6379/0 h:6379/0", true},
};

static void test_differs(void)
{
    char *urls[] = {(char *)"redis://h", (char *)"redis://a/1"};
    struct credentials credentials = {.url = urls, .n_urls = 2};
    struct options options = {.url_from = FROM_DEFAULT};
    struct same_server same;

    environ = nothing;
    same_server_init(&same, &options, &credentials);
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        char entry[100];
        char *under[] = {(char *)TOKEN, entry, NULL};
        char *outside[] = {entry, NULL};

        snprintf(entry, sizeof entry, PARENT_SERVER "=%s", parents[i].parent);
        environ = under;
        if (parents[i].differs)
            is_str(same_server_differs(&same), parents[i].parent, "another server is told");
        else
            okf(same_server_differs(&same) == NULL, "\"%s\" is no other server", parents[i].parent);
        environ = outside;
        ok(same_server_differs(&same) == NULL, "without a parent lock there is no other");
    }
    environ = nothing;
    same_server_fini(&same);
}

TESTS(test_sentinels, test_entries, test_inherited, test_differs)
