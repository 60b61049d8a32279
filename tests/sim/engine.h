/* SPDX-License-Identifier: MIT */
/*
 * engine: virtual time, the events that are due in it, and coroutines.
 *
 * All of a simulated world runs in one thread. Time stands still while code runs, and jumps to the
 * next event when no code can go on. So one seed gives one history, to the microsecond.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "chance.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENGINE_NEVER INT64_MAX
#define MS INT64_C(1000) /* in microseconds, as all times of the engine are */
#define SECOND INT64_C(1000000)

/* ---- time and events ---- */

/* engine_now: the true time, in microseconds since the world began. No client's clock shows it. */
int64_t engine_now(void);

/* engine_at: call run(arg, tag) at `at_us`. Actions for the same time run in the order of the
 * calls of engine_at(). */
typedef void engine_action(void *arg, uint64_t tag);
void engine_at(int64_t at_us, engine_action *run, void *arg, uint64_t tag);

/* engine_run: carry out all events until `end_us`, or until engine_stop() is called. */
void engine_run(int64_t end_us);
void engine_stop(void);

/* ---- running coroutines ---- */

struct process;
struct task;

/* task_start: start a coroutine of the process (process.h), which calls body(arg) now. */
struct task *task_start(struct process *process, void *(*body)(void *), void *arg);

/* task_current: the coroutine that runs; NULL: the engine carries out an event. */
struct task *task_current(void);
struct process *task_process(const struct task *task);

/*
 * task_wait: let other coroutines run until task_wake() or `until_us`. A wake-up may come for
 * another reason, so the caller checks whether what it waits for has happened. In a stopped
 * process a coroutine goes on when the process does; in a killed one never.
 */
void task_wait(int64_t until_us);
void task_wake(struct task *task);

/* ---- printing the trace ---- */

/* trace: if `trace_is_on`, print a line that begins with the virtual time. */
extern bool trace_is_on;
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
