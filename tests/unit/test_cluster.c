/* SPDX-License-Identifier: MIT */
/* test_cluster: where error replies send us, and whom to ask when nobody is left. */
#include "cluster.h"
#include "tap.h"

static const struct {
    const char *reply, *shown; /* NULL: nowhere */
    enum cluster_way way;
} ways[] = {
    {"MOVED 3999 10.0.0.1:6381", "10.0.0.1:6381", CLUSTER_MOVED},
    {"MOVED 3999 node-1.example:6381", "node-1.example:6381", CLUSTER_MOVED},
    {"MOVED 3999 2001:db8::1:6381", "[2001:db8::1]:6381", CLUSTER_MOVED},
    {"MOVED 3999 :6381", "seed:6381", CLUSTER_MOVED},
    {"MOVED 3999 ?:6381", "seed:6381", CLUSTER_MOVED},
    {"ASK 3999 10.0.0.1:6381", "10.0.0.1:6381", CLUSTER_ASK},
    {"TRYAGAIN Multiple keys request during rehashing of slot", NULL, CLUSTER_LATER},
    {"CLUSTERDOWN Hash slot not served", NULL, CLUSTER_LATER},
    {"CLUSTERDOWN", NULL, CLUSTER_LATER},
    {"CROSSSLOT Keys in request don't hash to the same slot", NULL, CLUSTER_HERE},
    {"ERR MOVED 3999 10.0.0.1:6381", NULL, CLUSTER_HERE},
    {"MOVED", NULL, CLUSTER_HERE},
    {"ASKING", NULL, CLUSTER_HERE},
    {"", NULL, CLUSTER_HERE},
};

static const char *const nowhere[] = {
    "MOVED ",         "MOVED 3999",         "MOVED 3999 ",     "MOVED 3999 h",  "MOVED 3999 h:",
    "MOVED 3999 h:0", "MOVED 3999 h:65536", "MOVED 3999 h:1x", "ASK 3999 h: 1", "ASK 3999:1",
    "ASK :1",
};

static void test_ways(const struct url *seed)
{
    struct cluster cluster;
    struct rlock_error err;
    enum cluster_way way;
    struct url to;
    size_t i;

    cluster_open(&cluster, seed);
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (!okf(cluster_redirect(&cluster, ways[i].reply, seed, &way, &to, &err) == RLOCK_OK &&
                     way == ways[i].way,
                 "way: %s", ways[i].reply) ||
            ways[i].shown == NULL)
            continue;
        is_str(to.shown, ways[i].shown, "to there");
        ok(strcmp(to.password, "pw") == 0 && to.is_tls, "with the same password, by TLS as before");
        url_fini(&to);
    }
    for (i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        okf(cluster_redirect(&cluster, nowhere[i], seed, &way, &to, &err) == RLOCK_E_PROTOCOL,
            "to nowhere: %s", nowhere[i]);
    cluster_close(&cluster);
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

static void asks(struct cluster *cluster, const struct url *lost, const char *shown)
{
    struct url to = {.shown = ""};

    ok(cluster_locate(cluster, lost, &to, NULL) == RLOCK_OK, "there is somebody to ask");
    is_str(to.shown, shown, "the next one");
    url_fini(&to);
}

static void test_nodes(const struct url *seed)
{
    struct cluster cluster;

    cluster_open(&cluster, seed);
    ok(!cluster_is_known(&cluster), "at first nothing is known");
    cluster_see(&cluster, "", seed);
    cluster_see(&cluster, "no nodes at all", seed);
    ok(!cluster_is_known(&cluster), "nor from a text that tells nothing");
    cluster_see(&cluster, nodes, seed);
    asks(&cluster, seed, "two.example:6379");
    asks(&cluster, &cluster.node[0], "10.0.0.3:6379");
    asks(&cluster, &cluster.node[1], "seed:6379");
    asks(&cluster, &cluster.node[0], "10.0.0.3:6379");
    cluster_close(&cluster);
}

static void test_primaries(const struct url *seed)
{
    static const char *const shown[] = {"seed:6379", "two.example:6379"};
    const char *rest = nodes;
    struct url primary;
    size_t n = 0;

    while (cluster_next_primary(&rest, seed, &primary)) {
        is_str(primary.shown, n < 2 ? shown[n] : "no more", "a primary that serves slots");
        url_fini(&primary);
        n++;
    }
    is_int((int64_t)n, 2, "replicas, the nameless and those without slots are passed over");
    rest = "ERR This instance has cluster support disabled";
    ok(!cluster_next_primary(&rest, seed, &primary), "a text that tells nothing has none");
}

static const struct {
    const char *nodes;
    size_t n_slots, n_primaries, n_alone;
} healths[] = {
    {"", 0, 0, 0},
    {"a b", 0, 0, 0},
    {"a h:1@2 master - 0 1 1 connected 0-16383", 16384, 1, 1},
    {"a h:1@2 master - 0 1 1 connected 0-5 7 9-10 [93-<-b] [94->-c]\n"
     "b h:2@3 master - 0 1 1 connected 11\n"
     "c h:3@4 slave a 0 1 1 connected\n",
     10, 2, 1},
    {"a h:1@2 master,fail - 0 1 1 connected 0-5\nb h:2@3 master,fail? - 0 1 1 connected 6-7\n"
     "c h:3@4 slave,fail b 0 1 1 connected\nd h:3@5 slave b 0 1 1 connected",
     2, 1, 0},
};

static void test_health(void)
{
    struct cluster_health health;
    size_t i;

    for (i = 0; i < sizeof healths / sizeof healths[0]; i++) {
        cluster_examine(healths[i].nodes, &health);
        okf(health.n_slots == healths[i].n_slots && health.n_primaries == healths[i].n_primaries &&
                health.n_alone == healths[i].n_alone,
            "%zu: %zu slots, %zu primaries, %zu alone", i, health.n_slots, health.n_primaries,
            health.n_alone);
    }
}

static void test_many(const struct url *seed)
{
    struct cluster cluster;
    char text[10000];
    size_t n = 0;
    int i;

    cluster_open(&cluster, seed);
    for (i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "id 10.0.0.%d:6379@16379 master - 0 1 2 connected\n", i);
    cluster_see(&cluster, text, seed);
    is_int((int64_t)cluster.n, CLUSTER_NODES_MAX, "no more are remembered than there is room for");
    cluster_see(&cluster, "id 10.0.1.1:6379@16379 master - 0 1 2 connected", seed);
    is_int((int64_t)cluster.n, 1, "those that are gone are forgotten");
    is_str(cluster.node[0].shown, "10.0.1.1:6379", "and new ones are not");
    cluster_see(&cluster, "", seed);
    is_int((int64_t)cluster.n, 1, "nothing is no news");
    cluster_close(&cluster);
}

int main(void)
{
    struct url seed;

    if (!ok(url_parse(&seed, "rediss://:pw@seed", NULL) == RLOCK_OK, "a seed"))
        return done_testing();
    test_ways(&seed);
    test_nodes(&seed);
    test_primaries(&seed);
    test_health();
    test_many(&seed);
    url_fini(&seed);
    return done_testing();
}
