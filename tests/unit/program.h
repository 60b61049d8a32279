/* SPDX-License-Identifier: MIT */
/*
 * program: runs rlock in a process of a test program, with a server that sends given replies.
 *
 *     static const char *const granted[] = {GRANT, NULL};
 *     struct program program;
 *     struct server *server = program_server(&program);
 *     server->answers[ASKED_ACQUIRE] = granted;
 *     program_start(&program, "-k job -- true", NULL);
 *     program_await(&program, "released");        ... the line of that message ...
 *     program_end(&program);                      ... the exit status ...
 *
 * rlock runs with --json and --verbose. The server runs in a process of its own, and not in a
 * thread: a process that is forked beside a thread can't start threads under ThreadSanitizer.
 *
 * The command of rlock can wait for program_go() by `read go <&8`, and tell its pid to
 * program_command() by `echo $$ >&9`.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "child.h"
#include "cmd.h"
#include "options/option_parser.h"
#include "refuse.h"
#include "server.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PROGRAM_PATIENCE_MS 30000 /* a busy machine runs processes late */
#define PROGRAM_WORDS 32
#define PROGRAM_GO_FD 8
#define PROGRAM_RUNS_FD 9
#define PROGRAM_NO_FILTER 98 /* exit status: the kernel doesn't let refuses_signals be so */

struct program {
    struct server *server; /* in memory that the server's process shares */
    pid_t server_pid;
    pid_t pid;            /* of rlock */
    int go[2];            /* program_go() writes to it */
    int runs_fd;          /* what the command writes to descriptor 9 */
    int out_fd;           /* rlock's stdout */
    int said_fd;          /* rlock's stderr */
    char said[32768];     /* what rlock has written to stderr */
    bool has_terminal;    /* rlock runs in a session of its own, in the foreground of terminal_fd */
    int terminal_fd;      /* the master of that terminal */
    bool refuses_signals; /* the kernel refuses all signals that rlock and its guard send */
};

/*
 * Returns the server, for which the test sets the answers, and in which it finds the requests, also
 * after program_end().
 */
static inline struct server *program_server(struct program *program)
{
    *program = (struct program){.server_pid = -1, .pid = -1};
    program->server = mmap(NULL, sizeof *program->server, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (program->server == MAP_FAILED)
        abort();
    return program->server;
}

static inline void program_serve(struct program *program)
{
    struct server *server = program->server;

    server->listener = server_listen(server->url);
    program->server_pid = server->listener < 0 ? -1 : fork();
    if (program->server_pid < 0)
        abort();
    if (program->server_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        server_body(server);
        _exit(0);
    }
    close(server->listener);
}

static inline void program_open_terminal(struct program *program)
{
    program->terminal_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (program->terminal_fd < 0 || grantpt(program->terminal_fd) != 0 ||
        unlockpt(program->terminal_fd) != 0)
        abort();
}

/* In the process of rlock: the first terminal that a session opens is its terminal. */
static inline void program_enter_terminal(const struct program *program)
{
    int fd;

    setsid();
    fd = open(ptsname(program->terminal_fd), O_RDWR);
    if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
        abort();
    close(fd);
    close(program->terminal_fd);
}

static inline _Noreturn void program_run(struct program *program, char **argv)
{
    static int (*const verbs[VERB_COUNT])(const struct options *) = {
        [VERB_RUN] = cmd_run, [VERB_ACQUIRE] = cmd_acquire, [VERB_HOLD] = cmd_hold};
    struct rlock_error err = {.status = RLOCK_OK};
    struct options options;
    int status;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "rlock");
    if (program->refuses_signals &&
        (!refuse(SYS_kill, EPERM) || !refuse(SYS_pidfd_send_signal, EPERM)))
        _exit(PROGRAM_NO_FILTER);
    if (option_parser_read(&options, argv, &err) != RLOCK_OK) {
        fprintf(stderr, "options: %s\n", err.text);
        _exit(99);
    }
    status = verbs[options.verb](&options);
    options_fini(&options);
    exit(status);
}

/* Makes a pipe whose descriptors are none of those that rlock gets. */
static inline void program_pipe(int pair[2])
{
    int low[2];
    int i;

    if (pipe(low) != 0)
        abort();
    for (i = 0; i < 2; i++) {
        pair[i] = fcntl(low[i], F_DUPFD_CLOEXEC, PROGRAM_RUNS_FD + 1);
        close(low[i]);
        if (pair[i] < 0)
            abort();
    }
}

/*
 * Starts rlock with a command line whose words are separated by single blanks; the first may be a
 * verb. If there is a script, "-- /bin/sh -c" and the script follow.
 */
static inline void program_start(struct program *program, const char *line, const char *script)
{
    static char *const shell[] = {(char *)"--", (char *)"/bin/sh", (char *)"-c"};
    char *argv[PROGRAM_WORDS] = {(char *)"rlock"};
    char words[512];
    char *rest = words;
    int runs[2];
    int out[2];
    int said[2];
    int n = 1;

    program_serve(program);
    if (program->has_terminal)
        program_open_terminal(program);
    snprintf(words, sizeof words, "%s", line);
    while (rest != NULL && n < PROGRAM_WORDS - 5)
        argv[n++] = strsep(&rest, " ");
    if (script != NULL) {
        memcpy(argv + n, shell, sizeof shell);
        argv[n + 3] = (char *)(uintptr_t)script;
    }
    program_pipe(program->go);
    program_pipe(runs);
    program_pipe(out);
    program_pipe(said);
    unsetenv("RLOCK_CONFIG");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    setenv("RLOCK_JSON", "yes", 1);
    setenv("RLOCK_VERBOSE", "yes", 1);
    setenv("RLOCK_URL", program->server->url, 1);
    program->pid = fork();
    if (program->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(said[1], STDERR_FILENO);
        if (dup2(program->go[0], PROGRAM_GO_FD) < 0 || dup2(runs[1], PROGRAM_RUNS_FD) < 0)
            abort();
        if (program->has_terminal)
            program_enter_terminal(program);
        close(runs[1]); /* rlock forks, so close-on-exec is not enough */
        close(out[1]);
        close(said[1]);
        program_run(program, argv);
    }
    close(runs[1]);
    close(out[1]);
    close(said[1]);
    program->runs_fd = runs[0];
    program->out_fd = out[0];
    program->said_fd = said[0];
}

/* Reads more of what rlock says. False: its stderr is at its end, or nothing came for too long. */
static inline bool program_listen(struct program *program)
{
    struct pollfd said = {.fd = program->said_fd, .events = POLLIN};
    size_t used = strlen(program->said);
    ssize_t n = 0;

    if (used < sizeof program->said - 1 && poll(&said, 1, PROGRAM_PATIENCE_MS) > 0)
        n = read(program->said_fd, program->said + used, sizeof program->said - 1 - used);
    return n > 0;
}

/* Returns the line of the nth message of an event, counted from 0; NULL: not said so far. */
static inline const char *program_find(const struct program *program, const char *event, int nth)
{
    static char line[4096];
    char start[64];
    const char *at = program->said;
    const char *end;

    snprintf(start, sizeof start, "{\"event\":\"%s\",", event);
    while ((at = strstr(at, start)) != NULL && nth-- > 0)
        at++;
    end = at != NULL ? strchr(at, '\n') : NULL;
    if (end == NULL || (size_t)(end - at) >= sizeof line)
        return NULL;
    memcpy(line, at, (size_t)(end - at));
    line[end - at] = '\0';
    return line;
}

/* Waits for the first message of an event. Returns its line; "": it doesn't come. */
static inline const char *program_await(struct program *program, const char *event)
{
    const char *line;

    while ((line = program_find(program, event, 0)) == NULL && program_listen(program))
        continue;
    return line != NULL ? line : "";
}

/* Tests whether the message of an event has come, and has these words. */
static inline bool program_has_said(const struct program *program, const char *event,
                                    const char *words)
{
    const char *line = program_find(program, event, 0);
    bool passed = okf(line != NULL && strstr(line, words) != NULL, "%s: %s", event, words);

    if (!passed)
        printf("# %s\n", line != NULL ? line : "not said");
    return passed;
}

static inline void program_go(const struct program *program)
{
    (void)!write(program->go[1], "go\n", 3);
}

/* Waits for the pid that the command writes by `echo $$ >&9`. Returns it; -1: it doesn't come. */
static inline pid_t program_command(const struct program *program)
{
    struct pollfd runs = {.fd = program->runs_fd, .events = POLLIN};
    char text[16] = "";

    if (poll(&runs, 1, PROGRAM_PATIENCE_MS) <= 0 || read(runs.fd, text, sizeof text - 1) <= 0)
        return -1;
    return (pid_t)atoi(text);
}

/* Waits until all processes have closed the other end of a pipe of the program. */
static inline bool program_is_closed(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};
    char c[256];

    while (poll(&end, 1, PROGRAM_PATIENCE_MS) > 0)
        if (read(fd, c, sizeof c) <= 0)
            return true;
    return false;
}

static inline bool program_is_gone(pid_t pid)
{
    int i;

    for (i = 0; i < PROGRAM_PATIENCE_MS && pid > 0 && kill(pid, 0) == 0; i++)
        poll(NULL, 0, 1);
    return pid > 0 && kill(pid, 0) != 0;
}

/* Waits for the end of rlock. Returns its status as child_status() does. */
static inline int program_status(struct program *program)
{
    int status = child_status(program->pid);

    program->pid = -1;
    return status;
}

/* Reads all that rlock and its processes say, and ends the server. Returns rlock's exit status. */
static inline int program_end(struct program *program)
{
    int status;

    while (program_listen(program))
        continue;
    status = program->pid > 0 ? program_status(program) : -1;
    kill(program->server_pid, SIGKILL);
    waitpid(program->server_pid, NULL, 0);
    close(program->go[0]);
    close(program->go[1]);
    close(program->runs_fd);
    close(program->out_fd);
    close(program->said_fd);
    if (program->has_terminal)
        close(program->terminal_fd);
    return status;
}

#endif
