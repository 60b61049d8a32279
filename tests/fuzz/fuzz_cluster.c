/* SPDX-License-Identifier: MIT */
/*
 * fuzz_cluster: reads any text as a reply to CLUSTER NODES, and its first line as the target of a
 * redirect. Every server that is found must have a host and a port.
 */
#include "fuzz.h"
#include "server/cluster.h"

static bool is_server(const struct url *url)
{
    return url->kind == URL_TCP && url->host[0] != '\0' && atoi(url->port) >= 1 &&
           atoi(url->port) <= 65535;
}

static void follow(struct cluster *cluster, const char *redirect, const struct url *by)
{
    struct rlock_error err = {.text = ""};
    enum rlock_status st;
    struct url to;

    if (strncmp(redirect, "MOVED ", 6) != 0 && strncmp(redirect, "ASK ", 4) != 0)
        return; /* error_reply_read() takes no other error reply for a redirect */
    st = cluster_redirect(cluster, redirect, by, &to, &err);
    must(st == RLOCK_OK || (st == RLOCK_E_PROTOCOL && err.text[0] != '\0'));
    if (st == RLOCK_OK) {
        must(is_server(&to) && strcmp(to.password, "pw") == 0 && cluster->n > 0);
        url_fini(&to);
    }
}

static void visit_all(const char *nodes, const struct url *by, enum cluster_endpoint endpoint)
{
    size_t lines = 1;
    struct url primary;
    const char *at;

    for (at = nodes; *at != '\0'; at++)
        lines += *at == '\n';
    for (at = nodes; cluster_next_primary(&at, by, endpoint, &primary); lines--) {
        must(lines > 0 && is_server(&primary));
        url_fini(&primary);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    struct cluster_health health;
    struct cluster cluster;
    struct url first;
    struct url to;
    char *line_end;

    must(url_parse(&first, "redis://user:pw@node.example:7000", NULL) == RLOCK_OK);
    cluster_init(&cluster, &first);
    cluster_set_nodes(&cluster, text, &first);
    must(cluster.n <= CLUSTER_NODES_MAX);
    for (size_t i = 0; i < cluster.n; i++)
        must(is_server(&cluster.node[i]));
    for (size_t i = 0; i < cluster.n + 2; i++) {
        must(cluster_locate(&cluster, &first, &to, NULL) == RLOCK_OK && is_server(&to));
        url_fini(&to);
    }
    visit_all(text, &first, CLUSTER_BY_ANY);
    visit_all(text, &first, CLUSTER_BY_NUMBER);
    visit_all(text, &first, CLUSTER_BY_NAME);
    visit_all(text, &first, CLUSTER_BY_PORT);
    cluster_examine(text, &health);
    must(health.n_slots <= SLOT_COUNT && health.n_alone <= health.n_primaries);
    line_end = strchr(text, '\n');
    if (line_end != NULL)
        *line_end = '\0';
    follow(&cluster, text, &first);
    if (line_end != NULL)
        follow(&cluster, line_end + 1, &first);
    must(cluster_is_known(&cluster) == (cluster.n > 0));
    cluster_clear_passwords(&cluster);
    cluster_fini(&cluster);
    url_fini(&first);
    free(text);
    return 0;
}
