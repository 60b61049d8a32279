/* SPDX-License-Identifier: MIT */
/* test_cluster: redirects and CLUSTER NODES are read, and give the next node to ask. */
#include "server/cluster.h"
#include "tap.h"
#include "wire/resp.h"

static struct url seed; /* the URL that the user gave */
static struct cluster cluster;
static struct url to;

static const struct {
    const char *reply, *shown;
} redirects[] = {
    {"MOVED 3999 10.0.0.1:6381", "10.0.0.1:6381"},
    {"MOVED 3999 2001:db8::1:6381", "[2001:db8::1]:6381"},
    {"MOVED 3999 :6381", "seed:6381"},
    {"MOVED 3999 ?:6381", "seed:6381"},
    {"ASK 3999 10.0.0.1:6381", "10.0.0.1:6381"},
};

static const char *const nowhere[] = {
    "MOVED 3999",      "MOVED 3999 h",  "MOVED 3999 h:0", "MOVED 3999 h:65536",
    "MOVED 3999 h:1x", "ASK 3999 h: 1", "ASK :1",
};

static void test_redirects(void)
{
    struct rlock_error err;

    cluster_init(&cluster, &seed);
    for (size_t i = 0; i < sizeof redirects / sizeof redirects[0]; i++) {
        if (!okf(cluster_redirect(&cluster, redirects[i].reply, &seed, &to, &err) == RLOCK_OK, "%s",
                 redirects[i].reply))
            continue;
        is_str(to.shown, redirects[i].shown);
        ok(strcmp(to.password, "pw") == 0 && to.is_tls);
        url_fini(&to);
    }
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        okf(cluster_redirect(&cluster, nowhere[i], &seed, &to, &err) == RLOCK_E_PROTOCOL,
            "a redirect without a valid target is refused: %s", nowhere[i]);
    cluster_fini(&cluster);
}

static const char nodes[] =
    "aaa seed:6379@16379 myself,master - 0 0 1 connected 0-5460\n"
    "bbb 10.0.0.2:6379@16379,two.example,shard-id=x master - 0 1 2 connected 5461-10922\n"
    "ccc 10.0.0.3:6379@16379 slave aaa 0 1 3 connected\n"
    "ddd :0@0 master,noaddr - 0 1 4 disconnected\n"
    "eee 10.0.0.3:6379@16379 slave aaa 0 1 3 connected\n"
    "fff\n"
    "\n"
    "ggg 10.0.0.4 master - 0 1 3 connected";

static void locates(const struct url *lost, const char *shown)
{
    to = (struct url){.shown = ""};

    ok(cluster_locate(&cluster, lost, &to, NULL) == RLOCK_OK, "cluster_locate() returns a node");
    is_str(to.shown, shown, "cluster_locate() returns the next node in turn");
    url_fini(&to);
}

/* member_visit() forgets the nodes, and uses the cluster again. */
static void test_forgotten(void)
{
    struct rlock_error err = {.text = ""};

    cluster_init(&cluster, &seed);
    cluster_set_nodes(&cluster,
                      "a 10.0.0.1:7000@1 master - 0 1 1 connected 0-1\n"
                      "b 10.0.0.2:7000@1 master - 0 1 2 connected 2-3\n",
                      &seed);
    locates(&seed, "10.0.0.1:7000");
    locates(&seed, "10.0.0.2:7000");
    locates(&seed, "10.0.0.1:7000");
    cluster_fini(&cluster);
    if (ok(cluster_redirect(&cluster, "MOVED 1 10.0.0.3:7000", &seed, &to, &err) == RLOCK_OK))
        url_fini(&to);
    locates(&seed, "10.0.0.3:7000");
    locates(&seed, "10.0.0.3:7000");
    cluster_fini(&cluster);
}

static void test_nodes(void)
{
    cluster_init(&cluster, &seed);
    ok(!cluster_is_known(&cluster), "a new cluster knows no nodes");
    cluster_set_nodes(&cluster, "", &seed);
    cluster_set_nodes(&cluster, "no nodes at all", &seed);
    ok(!cluster_is_known(&cluster), "a reply without nodes adds no node");
    cluster_set_nodes(&cluster, nodes, &seed);
    locates(&seed, "two.example:6379");
    locates(&cluster.node[0], "10.0.0.3:6379");
    locates(&cluster.node[1], "seed:6379");
    locates(&cluster.node[0], "10.0.0.3:6379");
    cluster_fini(&cluster);
}

static void test_primaries(void)
{
    static const char *const shown[] = {"seed:6379", "two.example:6379"};
    const char *rest = nodes;
    struct url primary;
    size_t n = 0;

    while (cluster_next_primary(&rest, &seed, CLUSTER_BY_ANY, &primary)) {
        is_str(primary.shown, n < 2 ? shown[n] : "no more");
        url_fini(&primary);
        n++;
    }
    is_int((int64_t)n, 2);
    rest = nodes;
    ok(cluster_next_primary(&rest, &seed, CLUSTER_BY_NUMBER, &primary));
    url_fini(&primary);
    ok(cluster_next_primary(&rest, &seed, CLUSTER_BY_NUMBER, &primary));
    is_str(primary.host, "10.0.0.2", "the host is the IP address with CLUSTER_BY_NUMBER");
    is_str(primary.alias, "two.example", "the alias is the host name with CLUSTER_BY_NUMBER");
    is_str(primary.given_host, "seed", "`given_host` is the host of the URL that the user gave");
    url_fini(&primary);
    rest = nodes;
    ok(cluster_next_primary(&rest, &seed, CLUSTER_BY_PORT, &primary));
    url_fini(&primary);
    ok(cluster_next_primary(&rest, &seed, CLUSTER_BY_PORT, &primary));
    is_str(primary.shown, "seed:6379");
    url_fini(&primary);
    rest = "ERR This instance has cluster support disabled";
    ok(!cluster_next_primary(&rest, &seed, CLUSTER_BY_ANY, &primary));
}

/*
 * A redirect may name a node by its IP address alone. The reply to CLUSTER NODES has both the
 * address and the host name, so the library can add the missing one as an alias.
 */
static void test_aliases(void)
{
    cluster_init(&cluster, &seed);
    ok(cluster_redirect(&cluster, "MOVED 1 10.0.0.2:6379", &seed, &to, NULL) == RLOCK_OK &&
       to.alias == NULL && cluster.called == CLUSTER_BY_NUMBER);
    url_fini(&to);
    cluster_set_nodes(&cluster, nodes, &seed);
    is_int((int64_t)cluster.n, 2, "CLUSTER NODES does not add the known node again");
    is_str(cluster.node[0].host, "10.0.0.2", "the known node is still named by its address");
    ok(cluster_redirect(&cluster, "MOVED 1 10.0.0.2:6379", &seed, &to, NULL) == RLOCK_OK);
    is_str(to.alias, "two.example");
    url_fini(&to);
    ok(cluster_redirect(&cluster, "MOVED 1 two.example:6379", &seed, &to, NULL) == RLOCK_OK &&
       cluster.called == CLUSTER_BY_NAME);
    is_str(to.alias, "10.0.0.2", "the target of that redirect has the address as an alias");
    url_fini(&to);
    ok(cluster_redirect(&cluster, "MOVED 1 two.example:1", &seed, &to, NULL) == RLOCK_OK &&
       to.alias == NULL);
    url_fini(&to);
    cluster_set_nodes(&cluster,
                      "b 10.0.0.2:1@2,all.example master - 0 1 2 connected 1\n"
                      "c 10.0.0.3:1@2,all.example master - 0 1 2 connected 2\n",
                      &seed);
    is_int((int64_t)cluster.n, 2, "two nodes with the same host name are both remembered");
    ok(cluster_redirect(&cluster, "MOVED 1 all.example:1", &seed, &to, NULL) == RLOCK_OK &&
       to.alias == NULL);
    url_fini(&to);
    cluster_set_nodes(&cluster,
                      "b 10.0.0.4:1@2 master,fail - 0 1 2 disconnected\n"
                      "c 10.0.0.4:1@2,four.example master - 0 1 3 connected 1\n",
                      &seed);
    ok(cluster_redirect(&cluster, "MOVED 1 10.0.0.4:1", &seed, &to, NULL) == RLOCK_OK);
    is_str(to.alias, "four.example", "the alias is that of the new node, as the old one had none");
    url_fini(&to);
    ok(cluster_redirect(&cluster, "MOVED 1 :1", &seed, &to, NULL) == RLOCK_OK &&
       cluster.called == CLUSTER_BY_PORT);
    url_fini(&to);
    cluster_fini(&cluster);
}

static void test_endpoints(void)
{
    static const struct {
        const char *slots;
        enum cluster_endpoint endpoint;
    } rows[] = {
        {"-ERR no\r\n", CLUSTER_BY_ANY},
        {"*1\r\n:1\r\n", CLUSTER_BY_ANY},
        {"*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$7\r\n1.2.3.4\r\n:1\r\n", CLUSTER_BY_NUMBER},
        {"*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$4\r\nname\r\n:1\r\n", CLUSTER_BY_NAME},
        {"*1\r\n*3\r\n:0\r\n:9\r\n*2\r\n$-1\r\n:1\r\n", CLUSTER_BY_PORT},
        {"*2\r\n*3\r\n:0\r\n:8\r\n*2\r\n$1\r\n?\r\n:1\r\n"
         "*3\r\n:9\r\n:9\r\n*2\r\n$4\r\nname\r\n:1\r\n",
         CLUSTER_BY_NAME},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct resp_reader *resp = resp_reader_new();
        const struct resp_value *reply = NULL;

        if (resp_reader_feed(resp, rows[i].slots, strlen(rows[i].slots), NULL) == RLOCK_OK &&
            resp_reader_next(resp, &reply, NULL) == RLOCK_OK)
            okf(cluster_endpoint(reply) == rows[i].endpoint,
                "cluster_endpoint() returns the kind of endpoint in row %zu", i);
        else
            okf(false, "row %zu is a whole reply", i);
        resp_reader_free(resp);
    }
}

static const struct {
    const char *nodes;
    size_t n_slots, n_primaries, n_alone;
} healths[] = {
    {"", 0, 0, 0},
    {"a h:1@2 master - 0 1 1 connected 0-16383", 16384, 1, 1},
    {"a h:1@2 master - 0 1 1 connected 0-5 7 9-10 [93-<-b] [94->-c]\n"
     "b h:2@3 master - 0 1 1 connected 11\n"
     "c h:3@4 slave a 0 1 1 connected\n",
     10, 2, 1},
    {"a h:1@2 master,fail - 0 1 1 connected 0-5\nb h:2@3 master,fail? - 0 1 1 connected 6-7\n"
     "c h:3@4 slave,fail b 0 1 1 connected\nd h:3@5 slave b 0 1 1 connected",
     2, 1, 0},
    /* a line that ends behind its flags tells no primary: it isn't that of the line before */
    {"a h:1@2 master - 0 1 1 connected 0-5\nb h:2@3 slave,fail a 0 1 1 connected\nc h:3@4 slave", 6,
     1, 1},
    /* slots that two primaries name, a range from high to low, and slots that don't exist */
    {"a h:1@2 master - 0 1 1 connected 0-5 3\nb h:2@3 master - 0 1 1 connected 4-7 9-2 16383-99999",
     9, 2, 2},
};

static void test_health(void)
{
    struct cluster_health health;

    for (size_t i = 0; i < sizeof healths / sizeof healths[0]; i++) {
        cluster_examine(healths[i].nodes, &health);
        okf(health.n_slots == healths[i].n_slots && health.n_primaries == healths[i].n_primaries &&
                health.n_alone == healths[i].n_alone,
            "row %zu: %zu slots, %zu primaries, %zu without a replica", i, health.n_slots,
            health.n_primaries, health.n_alone);
    }
}

static void test_many(void)
{
    char text[10000];
    size_t n = 0;

    cluster_init(&cluster, &seed);
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "id 10.0.0.%d:6379@16379 master - 0 1 2 connected\n", i);
    cluster_set_nodes(&cluster, text, &seed);
    is_int((int64_t)cluster.n, CLUSTER_NODES_MAX, "at most CLUSTER_NODES_MAX nodes are remembered");
    cluster_set_nodes(&cluster, "id 10.0.1.1:6379@16379 master - 0 1 2 connected", &seed);
    is_int((int64_t)cluster.n, 1, "nodes that are not in the next reply are forgotten");
    is_str(cluster.node[0].shown, "10.0.1.1:6379", "the new node of that reply is remembered");
    cluster_set_nodes(&cluster, "", &seed);
    is_int((int64_t)cluster.n, 1, "an empty reply changes nothing");
    cluster_fini(&cluster);
}

int main(void)
{
    if (!ok(url_parse(&seed, "rediss://:pw@seed", NULL) == RLOCK_OK))
        return done_testing();
    RUN_ALL(test_redirects, test_nodes, test_forgotten, test_primaries, test_aliases,
            test_endpoints, test_health, test_many);
    url_fini(&seed);
    return done_testing();
}
