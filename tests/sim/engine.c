/* SPDX-License-Identifier: MIT */
/* engine: virtual time, the events that are due in it, coroutines. */
#include "engine.h"

#include "process.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (256 * 1024) /* as in lib/base/thread.c; only pages that are used take memory */

struct event {
    int64_t at_us;
    uint64_t order; /* of events at the same time, the one with the lowest order comes first */
    engine_action *run;
    void *arg;
    uint64_t tag;
};

struct task {
    ucontext_t context;
    struct process *process;
    void *(*body)(void *);
    void *arg;
    uint64_t n_waits; /* number of the present wait; a wake-up whose tag is another does nothing */
    bool has_ended;
    void *stack;
};

static struct {
    int64_t now_us;
    bool is_stopping;
    uint64_t n_events;
    struct event *heap;
    size_t n;
    size_t room;
    struct task *current;
    ucontext_t context; /* where engine_run() goes on when a coroutine waits or ends */
    void *free_stack[1024];
    size_t n_free_stacks;
} engine;

/* ---- the queue of events, and virtual time ---- */

int64_t engine_now(void)
{
    return engine.now_us;
}

static bool is_before(const struct event *one, const struct event *other)
{
    return one->at_us < other->at_us || (one->at_us == other->at_us && one->order < other->order);
}

static void swap(struct event *one, struct event *other)
{
    struct event kept = *one;

    *one = *other;
    *other = kept;
}

void engine_at(int64_t at_us, engine_action *run, void *arg, uint64_t tag)
{
    size_t i = engine.n;

    if (at_us == ENGINE_NEVER)
        return;
    if (engine.n == engine.room) {
        engine.room = engine.room == 0 ? 1024 : engine.room * 2;
        engine.heap = realloc(engine.heap, engine.room * sizeof *engine.heap);
        if (engine.heap == NULL)
            abort();
    }
    engine.heap[engine.n++] = (struct event){.at_us = at_us < engine.now_us ? engine.now_us : at_us,
                                             .order = engine.n_events++,
                                             .run = run,
                                             .arg = arg,
                                             .tag = tag};
    for (; i > 0 && is_before(&engine.heap[i], &engine.heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&engine.heap[i], &engine.heap[(i - 1) / 2]);
}

static struct event take_first(void)
{
    struct event first = engine.heap[0];
    size_t i = 0;

    engine.heap[0] = engine.heap[--engine.n];
    for (;;) {
        size_t least = i;
        size_t child;

        for (child = 2 * i + 1; child <= 2 * i + 2 && child < engine.n; child++)
            if (is_before(&engine.heap[child], &engine.heap[least]))
                least = child;
        if (least == i)
            return first;
        swap(&engine.heap[i], &engine.heap[least]);
        i = least;
    }
}

void engine_run(int64_t end_us)
{
    engine.is_stopping = false;
    while (!engine.is_stopping && engine.n > 0 && engine.heap[0].at_us <= end_us) {
        struct event event = take_first();

        engine.now_us = event.at_us;
        event.run(event.arg, event.tag);
    }
}

void engine_stop(void)
{
    engine.is_stopping = true;
}

/* ---- running coroutines ---- */

static void *take_stack(void)
{
    void *stack;

    if (engine.n_free_stacks > 0)
        return engine.free_stack[--engine.n_free_stacks];
    stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        abort();
    return stack;
}

static void give_stack_back(struct task *task)
{
    if (engine.n_free_stacks < sizeof engine.free_stack / sizeof engine.free_stack[0])
        engine.free_stack[engine.n_free_stacks++] = task->stack;
    else
        munmap(task->stack, STACK_BYTES);
    task->stack = NULL;
}

static void run_body(void)
{
    struct task *task = engine.current;

    task->body(task->arg);
    task->has_ended = true;
    swapcontext(&task->context, &engine.context);
}

/* Lets a task run on when its wait with the number `tag` has ended, unless it has begun another. */
static void resume(void *arg, uint64_t tag)
{
    struct task *task = arg;

    if (task->has_ended || tag != task->n_waits)
        return;
    if (task->process->is_dead) {
        task->has_ended = true;
        give_stack_back(task);
        return;
    }
    if (task->process->stopped_until_us > engine.now_us) {
        engine_at(task->process->stopped_until_us, resume, task, tag);
        return;
    }
    task->n_waits++;
    engine.current = task;
    swapcontext(&engine.context, &task->context);
    engine.current = NULL;
    if (task->has_ended)
        give_stack_back(task);
}

struct task *task_start(struct process *process, void *(*body)(void *), void *arg)
{
    struct task *task = calloc(1, sizeof *task);

    if (task == NULL)
        abort();
    task->process = process;
    task->body = body;
    task->arg = arg;
    task->stack = take_stack();
    getcontext(&task->context);
    task->context.uc_stack.ss_sp = task->stack;
    task->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&task->context, run_body, 0);
    engine_at(engine.now_us, resume, task, task->n_waits);
    return task;
}

struct task *task_current(void)
{
    return engine.current;
}

struct process *task_process(const struct task *task)
{
    return task->process;
}

void task_wait(int64_t until_us)
{
    struct task *task = engine.current;

    engine_at(until_us, resume, task, task->n_waits);
    swapcontext(&task->context, &engine.context);
}

void task_wake(struct task *task)
{
    if (task != NULL && task != engine.current)
        engine_at(engine.now_us, resume, task, task->n_waits);
}

/* ---- printing the trace ---- */

bool trace_is_on;

void trace(const char *format, ...)
{
    va_list args;

    if (!trace_is_on)
        return;
    printf("# %10.6f ", (double)engine.now_us / 1e6);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}
