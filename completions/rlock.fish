# rlock.fish: completion of rlock(1) for fish 3.4 and later.
#
# What it knows of rlock is in the two lists at the end: one line an option, one line a verb.
# tests/cli/docs.bats compares them with the program's own.

# Print the command behind rlock's options and its arguments, up to the cursor; fail while the cursor
# is still on an option, or on the argument of one.
function __rlock_command
    argparse -s $__rlock_specs -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
    and set -q argv[1]
    and not string match -q -- '-*' $argv[1]
    and not set -q _flag_command
    and printf '%s\0' $argv
end

function __rlock_complete_command
    __fish_complete_subcommand --commandline (__rlock_command | string split0)
end

# __rlock_option SHORT LONG ARGUMENT HELP [SUGGESTIONS]    "-": none
function __rlock_option -a short long argument help suggestions
    set -l spec $long
    set -l flags -l $long -d $help
    if test "$short" != -
        set spec $short/$spec
        set -p flags -s $short
    end
    switch $argument
        case -
            set -a flags -f
        case FILE
            set spec $spec=
            set -a flags -r -F
        case '*'
            set spec $spec=
            set -a flags -x -a "$suggestions"
    end
    set -ga __rlock_specs $spec
    complete -c rlock -n 'not __rlock_command >/dev/null' $flags
end

# __rlock_verb VERB HELP
function __rlock_verb -a verb help
    complete -c rlock -n 'test (count (commandline -opc)) -eq 1' -f -a $verb -d $help
end

set -g __rlock_specs
complete -c rlock -f
complete -c rlock -n '__rlock_command >/dev/null' -x -a '(__rlock_complete_command)'

__rlock_option k key KEY 'what to lock'
__rlock_option t ttl DURATION 'length of the lease' '10s 30s 1m 5m'
__rlock_option n nonblock - 'don\'t wait'
__rlock_option w wait DURATION 'wait at most so long' '0 10s 1m 10m 1h'
__rlock_option E conflict-exit-code N 'status when the lock was not had in time' '0 75'
__rlock_option - queue 'fifo|none|newest' 'how to wait' 'fifo none newest'
__rlock_option s shared - 'together with others that want it shared'
__rlock_option x exclusive - 'together with nobody'
__rlock_option - slots N 'together with at most N - 1 others' '2 4 8'
__rlock_option - protocol 'token|timestamp' 'what stands in the key' 'token timestamp'
__rlock_option - timestamp-unit 's|ms' 'the unit of a timestamp' 's ms'
__rlock_option - min-hold DURATION 'the lock stays taken at least so long' '1s 10s 1m'
__rlock_option - once DURATION 'after success nobody runs it for so long' '1h 12h 1d'
__rlock_option c command STRING 'run a command line by /bin/sh'
__rlock_option - on-lost 'kill|ignore' 'what happens to the command when the lock is lost' 'kill ignore'
__rlock_option - kill-after DURATION 'time between TERM and KILL' '1s 2s 5s 10s'
__rlock_option - max-hold DURATION 'end the command after so long' '1m 10m 1h 6h'
__rlock_option - wait-all - 'keep the lock until every descendant of the command has ended'
__rlock_option - label TEXT 'text for those who see the lock'
__rlock_option u url URL 'which server' 'redis:// rediss:// unix:// local:'
__rlock_option - tls-ca FILE 'CAs that a rediss:// server may be certified by'
__rlock_option - tls-cert FILE 'certificate to show to a rediss:// server'
__rlock_option - tls-key FILE 'key of that certificate'
__rlock_option - password-file FILE 'file whose first line is the password'
__rlock_option - pass-credentials - 'leave passwords in the command\'s environment'
__rlock_option - connect-timeout DURATION 'longest time for a connection' '1s 5s 30s'
__rlock_option q quiet - 'say nothing but failures'
__rlock_option v verbose - 'say every step'
__rlock_option - json - 'messages as JSON, one object a line'
__rlock_option - report FILE 'write the outcome to a file, as JSON'
__rlock_option h help - 'show help'
__rlock_option V version - 'show the version'
