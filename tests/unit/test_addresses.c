/* SPDX-License-Identifier: MIT */
/* test_addresses: a list of addresses grows to its limit, without duplicates, and is reordered. */
#include "tap.h"
#include "wire/addresses.h"
#include "wire/resolve.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

/* Appends the addresses 127.0.0.A, 127.0.0.B, ... for the text "AB...". */
static void add(struct addresses *list, const char *ends)
{
    struct sockaddr_in at = {.sin_family = AF_INET};

    for (; *ends != '\0'; ends++) {
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (in_addr_t)(*ends - '0'));
        addresses_add(list, (const struct sockaddr *)&at, sizeof at);
    }
}

/* Checks that the list has the addresses that `wanted` stands for, as in add(). */
static void is_list(const struct addresses *list, const char *wanted, const char *name)
{
    char ends[ADDRESSES_MAX + 1] = "";

    for (size_t i = 0; i < list->n; i++) {
        struct sockaddr_in at;

        memcpy(&at, &list->address[i].storage, sizeof at);
        ends[i] = (char)('0' + (ntohl(at.sin_addr.s_addr) & 0xff));
    }
    is_str(ends, wanted, name);
}

static void test_limits(void)
{
    struct addresses list = {.n = 0};
    struct sockaddr_storage long_one[2] = {{.ss_family = AF_INET}};

    add(&list, "123456789");
    is_list(&list, "12345678", "a list has at most 8 addresses");
    addresses_clear(&list);
    is_int((int64_t)list.n, 0, "a list can be cleared");
    addresses_add(&list, (const struct sockaddr *)long_one, sizeof long_one);
    is_int((int64_t)list.n, 0, "an address that is too long is not added");
    addresses_add_unix(&list, "/run/redis.sock");
    is_int(list.address[0].storage.ss_family, AF_UNIX, "a path is the address of a Unix socket");
    is_str(((const struct sockaddr_un *)&list.address[0].storage)->sun_path, "/run/redis.sock");
}

static void test_append(void)
{
    struct addresses list = {.n = 0};
    struct addresses more = {.n = 0};

    add(&list, "12");
    add(&more, "5213");
    addresses_append(&list, &more, 1);
    is_list(&list, "123", "an append from index 1 adds what the list doesn't contain yet");
    add(&list, "6789");
    addresses_append(&list, &more, 0);
    is_list(&list, "12367895", "an append ends when the list has 8 addresses");
}

static void test_order(void)
{
    struct addresses list = {.n = 0};
    struct addresses other = {.n = 0};

    add(&list, "123");
    add(&other, "29");
    addresses_move(&list, &other.address[0], 0);
    is_list(&list, "213", "an address moves to the front");
    addresses_move(&list, &other.address[0], list.n - 1);
    is_list(&list, "132", "an address moves to the end");
    addresses_move(&list, &other.address[1], 0);
    addresses_move(&list, &other.address[1], list.n - 1);
    addresses_move(&list, &(struct address){.bytes = 0}, list.n - 1);
    is_list(&list, "132", "an address that the list doesn't contain moves nothing");
}

static void test_order_of_full_list(void)
{
    struct {
        struct addresses list;
        struct address behind[2];
    } full = {.behind = {{.bytes = 1}, {.bytes = 2}}};
    struct addresses other = {.n = 0};

    add(&full.list, "12345678");
    add(&other, "28");
    addresses_move(&full.list, &other.address[0], full.list.n - 1);
    is_list(&full.list, "13456782", "an address of a full list moves to the end");
    addresses_move(&full.list, &other.address[1], 0);
    is_list(&full.list, "81345672", "an address of a full list moves to the front");
    ok(full.behind[0].bytes == 1 && full.behind[1].bytes == 2);
}

static void test_lookup(void)
{
    struct addresses found;
    struct lookup *lookup;

    need(resolve_start(&lookup, "localhost", "7", NULL) == RLOCK_OK, "a lookup is started");
    ok(resolve_finish(lookup, &found, NULL) != RLOCK_OK || found.n > 0);
}

TESTS(test_lookup, test_limits, test_append, test_order, test_order_of_full_list)
