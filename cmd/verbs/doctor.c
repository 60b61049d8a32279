/* SPDX-License-Identifier: MIT */
/*
 * doctor: tell what makes locks unsafe, and what to change.
 *
 * Only what makes them unsafe as things are is a failure. What is weak is safe
 * until something breaks, and is not everybody's to change.
 */
#include "cmd.h"

#include "output/json.h"
#include "output/outbuf.h"
#include "output/terminal.h"
#include "session/session.h"

#include <stdio.h>
#include <string.h>

#define FINDING_JSON (2000 * JSON_BYTES_EACH)

struct visit {
    struct session session;
    struct terminal terminal;
    struct outbuf page;
    char unsafe[200]; /* the checks that found something so */
    char server[128]; /* that was told of last */
};

static const struct {
    const char *word;
    enum colour colour;
} grades[] = {
    [RLOCK_GRADE_GOOD] = {"good", COLOUR_GREEN},
    [RLOCK_GRADE_UNKNOWN] = {"unknown", COLOUR_YELLOW},
    [RLOCK_GRADE_WEAK] = {"weak", COLOUR_YELLOW},
    [RLOCK_GRADE_UNSAFE] = {"unsafe", COLOUR_RED},
};

/* Of several servers each has a paragraph. */
static void put_server(struct visit *visit, const char *server)
{
    if (visit->session.options->n_urls <= 1 || strcmp(server, visit->server) == 0)
        return;
    snprintf(visit->server, sizeof visit->server, "%s", server);
    outbuf_add(&visit->page, "%s%s:\n", visit->page.used > 0 ? "\n" : "", server);
}

static void put_text(struct visit *visit, const struct rlock_finding *finding)
{
    put_server(visit, finding->server);
    outbuf_add(&visit->page, "%s%-8s%s%s: %s%s%s\n",
               terminal_colour(&visit->terminal, grades[finding->grade].colour),
               grades[finding->grade].word, terminal_colour(&visit->terminal, COLOUR_NONE),
               finding->check, finding->found, finding->change != NULL ? "; " : "",
               finding->change != NULL ? finding->change : "");
}

static void put_json(struct visit *visit, const struct rlock_finding *finding)
{
    char text[FINDING_JSON];
    struct json json;

    json_begin(&json, text, sizeof text);
    json_string(&json, "check", finding->check);
    json_string(&json, "grade", grades[finding->grade].word);
    json_string(&json, "found", finding->found);
    if (finding->change != NULL)
        json_string(&json, "change", finding->change);
    json_string(&json, "server", finding->server);
    json_end(&json);
    outbuf_add(&visit->page, "%s", text);
}

/* The server of local: keeps nothing, and is not to: it goes with the last who uses it. */
static struct rlock_finding as_for(const struct visit *visit, const struct rlock_finding *found)
{
    struct rlock_finding finding = *found;

    if (visit->session.local.users_fd >= 0 && strcmp(finding.check, "persistence") == 0) {
        finding.grade = RLOCK_GRADE_GOOD;
        finding.found =
            "none, and none is needed: the private server and its locks end with their last user";
        finding.change = NULL;
    }
    return finding;
}

static void see(void *context, const struct rlock_finding *found)
{
    struct visit *visit = context;
    const struct rlock_finding local = as_for(visit, found);
    const struct rlock_finding *finding = &local;
    size_t used = strlen(visit->unsafe);

    if (finding->grade == RLOCK_GRADE_UNSAFE && strstr(visit->unsafe, finding->check) == NULL)
        snprintf(visit->unsafe + used, sizeof visit->unsafe - used, "%s%s", used > 0 ? ", " : "",
                 finding->check);
    if (finding->grade == RLOCK_GRADE_GOOD && visit->session.options->quiet)
        return;
    (visit->session.options->json ? put_json : put_text)(visit, finding);
}

static enum exit_reason examine(struct visit *visit)
{
    const struct options *options = visit->session.options;
    const char *key = options->n_keys > 0 ? options->keys[0] : NULL;
    struct rlock_examiner examiner = {.on_finding = see, .context = visit};
    struct rlock_deadline deadline = {RLOCK_NEVER, -1};
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason = session_open(&visit->session, "rlock");
    enum rlock_status st;
    char why[260];

    if (reason != REASON_GRANTED)
        return reason;
    st = rlock_examine(visit->session.lock, key, deadline, &examiner, &err);
    if (!outbuf_write(&visit->page)) /* also what was found until it failed */
        return report_fault(&visit->session.report, REASON_SYSTEM,
                            "standard output: it can't be written", 0);
    if (st != RLOCK_OK)
        return session_fault(&visit->session, &err);
    if (visit->unsafe[0] == '\0')
        return REASON_GRANTED;
    snprintf(why, sizeof why, "locks are not safe on this server: %s", visit->unsafe);
    return report_fault(&visit->session.report, REASON_MISCONFIGURED, why, 0);
}

int cmd_doctor(const struct options *options)
{
    struct visit visit = {.unsafe = ""};
    enum exit_reason reason;

    session_init(&visit.session, options);
    terminal_read_state(&visit.terminal);
    if (options->n_keys > 1)
        reason = report_fault(&visit.session.report, REASON_USAGE, "only one key may be given", 0);
    else
        reason = examine(&visit);
    outbuf_fini(&visit.page);
    session_close(&visit.session);
    return exit_reason_status(reason);
}
