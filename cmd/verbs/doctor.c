/* SPDX-License-Identifier: MIT */
/*
 * doctor: check the server: what makes locks unsafe, and what to change.
 *
 * Only the grade "unsafe" makes doctor fail (status 78). "weak" means that locks are safe until a
 * machine, a network or a clock fails, and often the user can't change that.
 */
#include "cmd.h"

#include "base/clock.h"
#include "output/json.h"
#include "output/outbuf.h"
#include "output/show.h"
#include "session/session.h"
#include "supervise/host.h"

#include <stdio.h>
#include <string.h>

#define FINDING_JSON (2000 * JSON_BYTES_EACH)

struct checkup {
    struct session session;
    struct terminal terminal;
    struct outbuf out;
    char unsafe[200]; /* names of the checks whose grade was "unsafe", separated by commas */
    char server[128]; /* the server of the finding that was printed last */
};

/* If several servers were given, print the server's name as a heading above its findings. */
static void put_server(struct checkup *checkup, const char *server)
{
    if (checkup->session.options->n_urls <= 1 || strcmp(server, checkup->server) == 0)
        return;
    snprintf(checkup->server, sizeof checkup->server, "%s", server);
    outbuf_add(&checkup->out, "%s%s:\n", checkup->out.used > 0 ? "\n" : "", server);
}

static void put_text(struct checkup *checkup, const struct rlock_finding *finding)
{
    put_server(checkup, finding->server);
    outbuf_add(&checkup->out, "%s%-8s%s%s: %s%s%s\n",
               terminal_colour(&checkup->terminal, grade_table[finding->grade].colour),
               grade_table[finding->grade].word, terminal_colour(&checkup->terminal, COLOUR_NONE),
               finding->check, finding->found, finding->change != NULL ? "; " : "",
               finding->change != NULL ? finding->change : "");
}

static void put_json(struct checkup *checkup, const struct rlock_finding *finding)
{
    char text[FINDING_JSON];
    struct json json;

    json_begin(&json, text, sizeof text);
    json_string(&json, "check", finding->check);
    json_string(&json, "grade", grade_table[finding->grade].word);
    json_string(&json, "found", finding->found);
    if (finding->change != NULL)
        json_string(&json, "change", finding->change);
    json_string(&json, "server", finding->server);
    json_end(&json);
    outbuf_add(&checkup->out, "%s", text);
}

/*
 * The private server (-u local:) keeps no data on disk, and need not, as the server ends only when
 * no process uses its locks. So replace the finding about persistence by a "good" one.
 */
static struct rlock_finding for_private_server(const struct checkup *checkup,
                                               const struct rlock_finding *found)
{
    struct rlock_finding finding = *found;

    if (checkup->session.private_server.users_fd >= 0 &&
        strcmp(finding.check, "persistence") == 0) {
        finding.grade = RLOCK_GRADE_GOOD;
        finding.found =
            "none, and none is needed: the private server and its locks end with their last user";
        finding.change = NULL;
    }
    return finding;
}

static void show_finding(void *context, const struct rlock_finding *found)
{
    struct checkup *checkup = context;
    const struct rlock_finding local = for_private_server(checkup, found);
    const struct rlock_finding *finding = &local;
    size_t used = strlen(checkup->unsafe);

    if (finding->grade == RLOCK_GRADE_UNSAFE && strstr(checkup->unsafe, finding->check) == NULL)
        snprintf(checkup->unsafe + used, sizeof checkup->unsafe - used, "%s%s",
                 used > 0 ? ", " : "", finding->check);
    if (finding->grade == RLOCK_GRADE_GOOD && checkup->session.options->quiet)
        return;
    (checkup->session.options->json ? put_json : put_text)(checkup, finding);
}

/* If the password comes from a file, show whether others than its owner may read that file. */
static void check_secret(struct checkup *checkup)
{
    const struct session *session = &checkup->session;
    bool is_exposed = session_secret_is_exposed(session);
    char found[400];
    const struct rlock_finding finding = {
        .server = "this machine",
        .check = "password",
        .grade = is_exposed ? RLOCK_GRADE_WEAK : RLOCK_GRADE_GOOD,
        .found = found,
        .change =
            is_exposed ? "take the rights of group and others away: chmod go= that file" : NULL};

    if (session->secret_file == NULL)
        return;
    snprintf(found, sizeof found, "%s may read it in %.300s",
             is_exposed ? "others than the owner" : "only its owner", session->secret_file);
    show_finding(checkup, &finding);
}

static void check_host(const struct rlock_examiner *examiner, const struct options *options)
{
    struct host host;

    host_look(&host, "");
    host_report(&host, options, examiner);
}

static enum exit_reason examine(struct checkup *checkup)
{
    const struct options *options = checkup->session.options;
    const char *key = options->n_keys > 0 ? options->keys[0] : NULL;
    struct rlock_examiner examiner = {.on_finding = show_finding, .context = checkup};
    struct rlock_error err = {.status = RLOCK_OK};
    enum exit_reason reason = session_open(&checkup->session, "rlock");
    enum rlock_status st;
    char why[260];
    bool is_denied;

    if (reason != REASON_GRANTED)
        return reason;
    st = rlock_examine(checkup->session.lock, key, deadline_never, &examiner, &err);
    check_secret(checkup);
    if (st == RLOCK_OK)
        check_host(&examiner, options);
    /* if the examination has failed, print the findings that were made before */
    reason = report_output(&checkup->session.report, NULL, &checkup->out);
    if (reason != REASON_GRANTED)
        return reason;
    if (st != RLOCK_OK)
        return session_fault(&checkup->session, &err);
    if (checkup->unsafe[0] == '\0')
        return REASON_GRANTED;
    /* rights and scripts: no lock can be acquired; other checks: a lock can be lost */
    is_denied = strcmp(checkup->unsafe, "rights") == 0 || strcmp(checkup->unsafe, "scripts") == 0;
    snprintf(why, sizeof why, "%s on this server: %s",
             is_denied ? "this user can take no such lock" : "locks are not safe", checkup->unsafe);
    return report_fault(&checkup->session.report, REASON_MISCONFIGURED, why, 0);
}

int cmd_doctor(const struct options *options)
{
    struct checkup checkup = {.unsafe = ""};
    enum exit_reason reason;

    session_init(&checkup.session, options);
    terminal_read_state(&checkup.terminal);
    reason = examine(&checkup);
    outbuf_fini(&checkup.out);
    session_close(&checkup.session);
    return exit_reason_status(reason);
}
