# rlock.fish: completion of rlock(1) for fish 3.4 and later.
#
# What it knows of rlock is in the two lists at the end: one line an option, one line a verb. The keys come from the
# server.
# tests/cli/docs.bats compares them with the program's own.

# Print the verb behind which the cursor is, "-" if none.
function __rlock_verb_there
    set -l words (commandline -opc)
    set -q words[2]; and set -q __rlock_of_$words[2]; and echo $words[2]; or echo -
end

# __rlock_wants OPTION: can it stand where the cursor is?
function __rlock_wants -a option
    set -l verb (__rlock_verb_there)
    set -l own __rlock_of_(string replace -- - run $verb)
    contains -- $option $$own
    and begin
        test $verb != -
        or not __rlock_command >/dev/null
    end
end

# The keys that are locked; none if the server does not answer within 0.3 s.
function __rlock_keys
    set -l words (commandline -opc)
    set -l server
    for i in (seq (count $words))
        switch $words[$i]
            case --url --password-file --sentinel-user --sentinel-password-file -u
                set -a server $words[$i] $words[(math $i + 1)]
            case '--url=*' '--password-file=*' '--sentinel-user=*' '--sentinel-password-file=*' '-u*'
                set -a server $words[$i]
        end
    end
    timeout 0.3 rlock list --json --connect-timeout 0.2 $server 2>/dev/null </dev/null |
        LC_ALL=C sed -n 's/^{"key":"\([A-Za-z0-9_.:/@%+{}-]*\)".*/\1/p'
end

# Print the command behind rlock's options and its arguments, up to the cursor; fail while the cursor
# is still on an option, or on the argument of one.
function __rlock_command
    test (__rlock_verb_there) = -; or return
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
        case KEY
            set spec $spec=
            set -a flags -x -k -a '(__rlock_keys)'
        case '*'
            set spec $spec=
            set -a flags -x -a "$suggestions"
    end
    set -ga __rlock_specs $spec
    complete -c rlock -n "__rlock_wants $long" $flags
end

# __rlock_verb VERB OPTIONS HELP    "-": without a verb
function __rlock_verb -a verb options help
    set -g __rlock_of_(string replace -- - run $verb) (string split , $options)
    test $verb = -
    or complete -c rlock -n 'test (count (commandline -opc)) -eq 1' -f -a $verb -d $help
end

set -g __rlock_specs
complete -c rlock -f
complete -c rlock -n 'test (__rlock_verb_there) = list' -x -a '(__rlock_keys)'
complete -c rlock -n '__rlock_command >/dev/null' -x -a '(__rlock_complete_command)'

__rlock_option k key KEY 'name of the lock'
__rlock_option t ttl DURATION 'length of the lease' '10s 30s 1m 5m'
__rlock_option n nonblock - 'don\'t wait'
__rlock_option w wait DURATION 'wait at most this long' '0 10s 1m 10m 1h'
__rlock_option E conflict-exit-code N 'exit status when the lock is not granted in time' '0 75'
__rlock_option - queue 'fifo|none|newest' 'how to wait' 'fifo none newest'
__rlock_option s shared - 'shared lock: any number of holders that use -s'
__rlock_option x exclusive - 'exclusive lock (default)'
__rlock_option - slots N 'at most N holders at the same time' '2 4 8'
__rlock_option - protocol 'token|timestamp' 'what the key holds' 'token timestamp'
__rlock_option - timestamp-unit 's|ms' 'unit of the time in the key' 's ms'
__rlock_option - min-hold DURATION 'keep the lock at least this long' '1s 10s 1m'
__rlock_option - once DURATION 'after success mark the work as done for this long' '1h 12h 1d'
__rlock_option c command STRING 'run STRING with /bin/sh -c'
__rlock_option - on-lost 'kill|pause|ignore' 'what to do with the command when the lock is lost' 'kill pause ignore'
__rlock_option - kill-after DURATION 'grace period from TERM to KILL' '1s 2s 5s 10s'
__rlock_option - max-hold DURATION 'end the command after this time' '1m 10m 1h 6h'
__rlock_option - wait-all - 'keep the lock until every descendant of the command has ended'
__rlock_option - cgroup - 'run the command in a control group of its own, which is killed as a whole'
__rlock_option - nested - 'run only under a lock of an outer rlock'
__rlock_option - replicas N 'a grant counts only when N replicas have it' '0 1 2'
__rlock_option - label TEXT 'text that is shown to those who wait'
__rlock_option u url URL 'the server' 'redis:// rediss:// redis+sentinel:// rediss+sentinel:// unix:// local:'
__rlock_option - tls-ca FILE 'CAs that may certify a rediss:// server'
__rlock_option - tls-cert FILE 'client certificate for a rediss:// server'
__rlock_option - tls-key FILE 'private key of the client certificate'
__rlock_option - tls-name NAME 'name that the certificate of a rediss:// server must be for'
__rlock_option - password-file FILE 'file whose first line is the password'
__rlock_option - password-command COMMAND 'command that prints the password'
__rlock_option - sentinel-user NAME 'user name for the Sentinels'
__rlock_option - sentinel-password-file FILE 'file whose first line is the password for the Sentinels'
__rlock_option - pass-credentials - 'leave passwords in the command\'s environment'
__rlock_option - connect-timeout DURATION 'limit for each attempt to connect' '1s 5s 30s'
__rlock_option q quiet - 'report failures only'
__rlock_option v verbose - 'report every step'
__rlock_option - json - 'messages as JSON, one object a line'
__rlock_option - report FILE 'write the outcome to a file, as JSON'
__rlock_option - report-append FILE 'append the outcome to a file, as a line of JSON'
__rlock_option - bind-pid PID 'renew the lock until a process ends' '(__fish_complete_pids)'
__rlock_option - log 'FILE|syslog' 'where the process of --bind-pid says why it ended PID'
__rlock_option - token-file FILE 'file whose first line is the token'
__rlock_option - quiet-if-gone - 'no failure if the lock is gone already'
__rlock_option - watch - 'show it again each second'
__rlock_option - yes - 'don\'t ask'
__rlock_option h help - 'show help'
__rlock_option V version - 'show the version'

__rlock_verb - key,ttl,nonblock,wait,conflict-exit-code,queue,shared,exclusive,slots,command,on-lost,kill-after,max-hold,protocol,timestamp-unit,min-hold,once,wait-all,cgroup,nested,replicas,label,url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,pass-credentials,connect-timeout,quiet,verbose,json,report,report-append,help,version 'run a command while holding a lock in Redis'
__rlock_verb acquire key,ttl,nonblock,wait,conflict-exit-code,queue,shared,exclusive,slots,on-lost,kill-after,replicas,label,url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,connect-timeout,quiet,verbose,json,bind-pid,log,help,version 'take a lock without a command, and print its token'
__rlock_verb renew key,ttl,replicas,url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,connect-timeout,quiet,verbose,json,token-file,help,version 'renew a lock by its token'
__rlock_verb release key,url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,connect-timeout,quiet,verbose,json,token-file,quiet-if-gone,help,version 'release a lock by its token'
__rlock_verb status key,url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,connect-timeout,quiet,verbose,json,watch,help,version 'show who holds a lock, and who waits for it'
__rlock_verb list url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,connect-timeout,quiet,verbose,json,help,version 'list the locks of the server, one per line'
__rlock_verb break key,url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,connect-timeout,quiet,verbose,json,yes,help,version 'take a lock away from whoever holds it'
__rlock_verb doctor key,ttl,replicas,url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,connect-timeout,quiet,verbose,json,help,version 'check the server: what makes locks unsafe, and what to change'
