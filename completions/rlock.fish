# rlock.fish: completion of rlock(1) for fish 3.4 and later.
#
# The two lists at the end tell what rlock accepts: one line for each option, one line for each
# verb. tests/cli/docs.bats compares them with the program's own tables. Keys come from the server.

# Prints the verb of the command line before the cursor; "-" if it has none.
function __rlock_verb_there
    argparse -s $__rlock_specs -- (commandline -opc)[2..] 2>/dev/null
    and string match -qr '^[a-z]+$' -- $argv[1]
    and not set -q _flag_key
    and set -q __rlock_of_$argv[1]
    and echo $argv[1]
    or echo -
end

# __rlock_wants_verb: succeeds if a verb may stand where the cursor is.
function __rlock_wants_verb
    argparse -s $__rlock_specs -- (commandline -opc)[2..] 2>/dev/null
    and not set -q argv[1]
    and not set -q _flag_key
    and not set -q _flag_command
    and not contains -- -- (commandline -opc)
end

# __rlock_wants OPTION: succeeds if the option may stand where the cursor is.
function __rlock_wants -a option
    set -l verb (__rlock_verb_there)
    set -l own __rlock_of_(string replace -- - run $verb)
    contains -- $option $$own
    and begin
        test $verb != -
        or not __rlock_command >/dev/null
    end
end

# Prints the keys that are locked; nothing if the server doesn't answer within 0.3 s.
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

# Prints URLs: schemes; behind a scheme the hosts that the shell knows, or files.
function __rlock_urls
    set -l value (string replace -r -- '^(--url=|-u)' '' (commandline -ct))
    set -l before (string match -r '^rediss?(?:\+sentinel)?://(?:.*[@,])?' -- $value)
    and printf '%s\n' $before(__fish_print_hostnames)
    string match -q 'unix://*' -- $value
    and for file in (string replace unix:// '' -- $value)*
        echo unix://$file
    end
    printf '%s\n' redis:// rediss:// redis+sentinel:// rediss+sentinel:// unix:// local:
end

# Prints the processes to which `rlock acquire --bind-pid` may bind a lock: all except process 1 and
# threads of the kernel, whose virtual size is 0.
function __rlock_processes
    ps -eo pid=,vsz=,comm= | awk '$1 != 1 && $2 > 0 { sub(/^ *[0-9]+ +[0-9]+ /, $1 "\t"); print }'
end

# Prints the words behind rlock's options up to the cursor: the command and its arguments. Fails
# while the cursor is on an option or its argument.
function __rlock_command
    test (__rlock_verb_there) = -; or return
    argparse -s $__rlock_specs -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
    and set -q argv[1]
    and not string match -q -- '-*' $argv[1]
    and not set -q _flag_command
    and begin
        set -q _flag_key
        or contains -- -- (commandline -opc)
    end
    and printf '%s\0' $argv
end

function __rlock_complete_command
    __fish_complete_subcommand --commandline (__rlock_command | string split0)
end

# __rlock_option SHORT LONG ARGUMENT HELP [SUGGESTIONS]: adds an option. "-" stands for none.
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

# __rlock_verb VERB OPTIONS HELP: adds a verb and the options that it accepts. "-" stands for a run
# without a verb.
function __rlock_verb -a verb options help
    set -g __rlock_of_(string replace -- - run $verb) (string split , $options)
    test $verb = -
    or complete -c rlock -n __rlock_wants_verb -f -a $verb -d $help
    test $verb = -
    or complete -c rlock -n 'test (__rlock_verb_there) = help' -f -a $verb -d $help
end

set -g __rlock_specs
complete -c rlock -f
complete -c rlock -n 'contains (__rlock_verb_there) acquire hold renew release status list break' -x -a '(__rlock_keys)'
complete -c rlock -n '__rlock_command >/dev/null' -x -a '(__rlock_complete_command)'

__rlock_option k key KEY 'name of the lock; several -k: all together, or none'
__rlock_option t ttl DURATION 'length of a lease, 1s to 30d; rlock renews it' '10s 30s 1m 5m'
__rlock_option n nonblock - 'don\'t wait if the lock is taken'
__rlock_option w wait DURATION 'wait at most this long; 0 means -n' '0 10s 1m 10m 1h'
__rlock_option - warn-wait DURATION 'warn once, when rlock has waited this long' '1m 10m 1h'
__rlock_option E conflict-exit-code N 'exit status when the lock is taken, or not granted in time' '0 75'
__rlock_option - queue 'fifo|none|newest' 'who is next: fifo, the first waiter; none, whoever asks first; newest, the last to come' 'fifo none newest'
__rlock_option s shared - 'shared lock: any number of holders that use -s, and no other'
__rlock_option x exclusive - 'exclusive lock: a single holder (default)'
__rlock_option - slots N 'at most N holders at the same time, each with a slot number of its own' '2 4 8'
__rlock_option - protocol 'token|timestamp' 'what the key holds: the owner\'s token, or the time of expiry, as older programs write it' 'token timestamp'
__rlock_option - timestamp-unit 's|ms' 'unit of the time of expiry in the key, with --protocol timestamp' 's ms'
__rlock_option - scripts 'auto|yes|no' 'run scripts on the server (EVAL) or not; auto: not where the server refuses them' 'auto yes no'
__rlock_option - min-hold DURATION 'keep the lock at least this long, even if the command ends earlier' '1s 10s 1m'
__rlock_option - once DURATION 'after success mark the work as done for this long; other runs then exit with 0' '1h 12h 1d'
__rlock_option c command STRING 'run STRING with /bin/sh -c'
__rlock_option - on-lost 'kill|pause|ignore' 'what to do with the command when the lock is lost' 'kill pause ignore'
__rlock_option - kill-after DURATION 'grace period from TERM to KILL when the command has to end' '1s 2s 5s 10s'
__rlock_option - max-hold DURATION 'end the command after this time, with status 124' '1m 10m 1h 6h'
__rlock_option - wait-all - 'keep the lock until every descendant of the command has ended'
__rlock_option - cgroup - 'run the command in a control group of its own, which is killed as a whole'
__rlock_option - nested - 'run only under the lock of a parent rlock, else exit with 76'
__rlock_option - explain - 'say what would happen with these options and this server, and run nothing'
__rlock_option - replicas N 'a grant or renewal counts only when N replicas have confirmed it' '0 1 2'
__rlock_option - history N 'let the server keep the last N events of the lock: grants, ends, breaks' '0 100 1000'
__rlock_option - label TEXT 'text for those who find the lock taken; with break, for the former holder'
__rlock_option u url URL 'redis://, rediss://, redis+sentinel://, unix:// or local:; several -u: a quorum' '(__rlock_urls)'
__rlock_option - tls-ca FILE 'file or folder of the CAs that may certify a rediss:// server'
__rlock_option - tls-cert FILE 'client certificate for a rediss:// server'
__rlock_option - tls-key FILE 'private key of the client certificate'
__rlock_option - tls-name NAME 'name that the certificate of a rediss:// server must be for' '(__fish_print_hostnames)'
__rlock_option - password-file FILE 'file whose first line is the password'
__rlock_option - password-command COMMAND 'shell command whose first line of output is the password'
__rlock_option - sentinel-user NAME 'user name for the Sentinels'
__rlock_option - sentinel-password-file FILE 'file whose first line is the password for the Sentinels'
__rlock_option - pass-credentials - 'leave passwords in the command\'s environment'
__rlock_option - connect-timeout DURATION 'limit for the first contact with the server, and for each later attempt' '1s 5s 30s'
__rlock_option q quiet - 'report failures only'
__rlock_option v verbose - 'report every step, with its time'
__rlock_option - json - 'messages as JSON, one object per line'
__rlock_option - report FILE 'at the end write the outcome to FILE as a JSON object; - is stdout'
__rlock_option - report-append FILE 'at the end append the outcome to FILE as a line of JSON, with its time'
__rlock_option - on-event COMMAND 'run COMMAND by /bin/sh at the events granted, waiting-long, lost, busy and released'
__rlock_option - bind-pid PID 'leave a process behind that renews the lock until process PID ends' '(__rlock_processes)'
__rlock_option - log 'FILE|syslog' 'where the background process of --bind-pid or --renew writes its messages'
__rlock_option - for DURATION 'how long to hold the lock, 1s to 30d' '30m 2h 1d'
__rlock_option - renew - 'a process renews a lease of -t for all of --for; if the machine dies, the lock is soon free'
__rlock_option - token-file FILE 'file whose first line is the token, instead of RLOCK_TOKEN'
__rlock_option - quiet-if-gone - 'exit with 0, without a message, if nobody holds the lock any more'
__rlock_option - watch - 'show the lock again each second, until interrupted'
__rlock_option - since DURATION 'show only holds that ended at most this long ago, such as 1d' '1h 1d 7d'
__rlock_option - format 'text|json|prometheus' 'list the locks as a table, as JSON, or as metrics' 'text json prometheus'
__rlock_option - output FILE 'write the list to FILE; if that fails, FILE keeps its former content'
__rlock_option - yes - 'don\'t ask for confirmation'
__rlock_option - all - 'show all options of rlock, not only those of daily use'
__rlock_option h help - 'print this help and exit'
__rlock_option V version - 'print the version and exit'

# The options that every verb that needs a server accepts.
set -g __rlock_everywhere url,tls-ca,tls-cert,tls-key,tls-name,password-file,password-command,sentinel-user,sentinel-password-file,connect-timeout,scripts,quiet,verbose,json,help,version

__rlock_verb - key,ttl,nonblock,wait,warn-wait,conflict-exit-code,queue,shared,exclusive,slots,command,on-lost,kill-after,max-hold,protocol,timestamp-unit,min-hold,once,wait-all,cgroup,nested,explain,replicas,history,label,pass-credentials,report,report-append,on-event,$__rlock_everywhere 'run a command while holding a lock in Redis'
__rlock_verb acquire key,ttl,nonblock,wait,warn-wait,conflict-exit-code,queue,shared,exclusive,slots,on-lost,kill-after,replicas,history,label,bind-pid,log,$__rlock_everywhere 'take a lock without a command, and print its token'
__rlock_verb hold key,ttl,nonblock,wait,warn-wait,conflict-exit-code,queue,shared,exclusive,slots,for,renew,replicas,history,label,log,$__rlock_everywhere 'hold a lock by hand for some time, as for a deploy freeze'
__rlock_verb renew key,ttl,replicas,token-file,$__rlock_everywhere 'renew a lock by its token'
__rlock_verb release key,token-file,quiet-if-gone,$__rlock_everywhere 'release a lock by its token'
__rlock_verb status key,watch,$__rlock_everywhere 'show who holds a lock, and who waits for it'
__rlock_verb list format,output,$__rlock_everywhere 'list the locks of the server, one per line'
__rlock_verb history key,since,$__rlock_everywhere 'show who held a lock, and how each hold ended (--history)'
__rlock_verb break key,history,label,yes,$__rlock_everywhere 'take a lock away from whoever holds it'
__rlock_verb doctor key,ttl,replicas,history,$__rlock_everywhere 'check the server: what makes locks unsafe, and what to change'
__rlock_verb help all,help,version 'show the help of rlock, or of one verb'
__rlock_verb version help,version 'show the version of rlock'
