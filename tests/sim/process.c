/* SPDX-License-Identifier: MIT */
/* process: a client's process on a machine of its own, whose clock may run too fast or too slow. */
#include "process.h"

#include "kernel.h"

#define WALL_START_US INT64_C(1795277769000000) /* 2026 */

void process_start(struct process *process, int id, int64_t rate_ppm)
{
    process->id = id;
    process->rate_ppm = rate_ppm;
    process->boot_offset_us = random_range(SECOND, 1000000 * SECOND);
    process->wall_offset_us = WALL_START_US + random_range(-5 * SECOND, 5 * SECOND);
    process->stopped_until_us = -1;
    process->troubled_us = -1;
}

static int64_t elapsed_us(const struct process *process)
{
    return engine_now() + engine_now() / 1000 * process->rate_ppm / 1000;
}

int64_t process_boot_us(const struct process *process)
{
    return process->boot_offset_us + elapsed_us(process);
}

int64_t process_wall_us(const struct process *process)
{
    return process->wall_offset_us + elapsed_us(process);
}

/* The inverse of process_boot_us(), with an error of less than a millisecond. */
int64_t process_true_us(const struct process *process, int64_t boot_ms)
{
    double elapsed = (double)(boot_ms * MS - process->boot_offset_us);

    return (int64_t)(elapsed / (1 + (double)process->rate_ppm / 1e6));
}

void process_stop(struct process *process, int64_t for_us)
{
    trace("client %d: stopped for %.3f s", process->id, (double)for_us / 1e6);
    process->stopped_until_us = engine_now() + for_us;
    process_note_trouble(process, process->stopped_until_us);
}

void process_kill(struct process *process)
{
    trace("client %d: killed", process->id);
    process->is_dead = true;
    kernel_close_all(process);
    process->on_killed(process);
}

void process_note_trouble(struct process *process, int64_t until_us)
{
    if (until_us > process->troubled_us)
        process->troubled_us = until_us;
}

void process_count_call(void)
{
    struct process *process = task_process(task_current());

    if (process->calls_to_fault > 0 && --process->calls_to_fault == 0)
        process->on_fault(process);
    while (process->is_dead || process->stopped_until_us > engine_now())
        task_wait(process->is_dead ? ENGINE_NEVER : process->stopped_until_us);
}
