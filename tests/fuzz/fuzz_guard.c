/* SPDX-License-Identifier: MIT */
/*
 * fuzz_guard: passes any events with any deadlines to the guard's table of states, and messages of
 * any length to the guard's client. Whatever the events were: when the time for KILL has come, no
 * process of the command's tree may run on.
 */
#include "fuzz.h"
#include "supervise/guard_client.h"
#include "supervise/guard_state.h"

#include <sys/socket.h>
#include <unistd.h>

/*
 * The input has this many bytes for each event: the event's number; the time since the event before
 * it, in units of 2 ms; the time until TERM, and from TERM until KILL, both in units of UNIT_MS.
 */
#define EVENT_BYTES 4
#define UNIT_MS 16
#define CLOCK_EVENTS_MAX 16

static void obey_clock(struct guard_machine *machine, int64_t now_ms)
{
    struct guard_input in = {.now_ms = now_ms, .n_processes = 1};
    enum guard_event due;
    int n = 0;

    while ((due = guard_state_due(machine, now_ms)) != GUARD_EVENTS) {
        must(++n <= CLOCK_EVENTS_MAX && guard_state_can_happen(machine->state, due));
        guard_state_handle(machine, due, in);
    }
}

static void check(const struct guard_machine *machine, int64_t now_ms)
{
    bool kills = machine->state == GUARD_STATE_KILLING;
    bool is_stopped = machine->frozen_since_ms != 0 || machine->state == GUARD_STATE_DONE;

    must(machine->state < GUARD_STATES);
    must(now_ms < machine->due.kill_ms || kills || is_stopped);
    must(machine->due.kill_ms <= machine->lease.kill_ms);
    must(machine->due.term_ms <= machine->due.kill_ms || machine->state != GUARD_STATE_RUNNING);
    must(machine->state == GUARD_STATE_DONE || guard_state_next_ms(machine, now_ms) >= now_ms);
    must(!kills || (guard_state_work(machine) & GUARD_ACTION_KILL));
}

static void run_guard(const uint8_t *data, size_t n)
{
    struct guard_rules rules = {
        .pauses = data[0] & 1, .wait_all = data[0] & 2, .grace_ms = 1 + data[0] * UNIT_MS};
    struct deadlines lease = {.term_ms = 1000, .kill_ms = 2000};
    struct guard_machine machine;
    int64_t now_ms = 1;

    guard_state_start(&machine, rules, lease, now_ms);
    for (size_t at = 1; at + EVENT_BYTES <= n; at += EVENT_BYTES) {
        enum guard_event event = (enum guard_event)(data[at] % GUARD_EVENTS);
        struct guard_input in = {.n_processes = data[at + 2] * (size_t)UNIT_MS};

        now_ms += data[at + 1] * UNIT_MS / 8;
        obey_clock(&machine, now_ms);
        check(&machine, now_ms);
        in.now_ms = now_ms;
        in.lease.term_ms = now_ms + data[at + 2] * UNIT_MS;
        in.lease.kill_ms = in.lease.term_ms + data[at + 3] * UNIT_MS;
        in.kill_ms = now_ms + data[at + 3] * UNIT_MS;
        guard_state_handle(&machine, event, in);
        obey_clock(&machine, now_ms);
        check(&machine, now_ms);
    }
}

static void hear(const uint8_t *data, size_t n)
{
    struct guard_client client = {.pid = 0};
    struct guard_news news;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        exit(1);
    client.fd = ends[0];
    (void)!write(ends[1], data, n);
    must(guard_client_hear(&client, &news) == (n >= sizeof news ? 1 : -1));
    must(client.is_gone == (n < sizeof news));
    close(ends[0]);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] == 0xff && n > 1)
        hear(data + 1, n - 1);
    else
        run_guard(data, n);
    return 0;
}
