# rlock.fish: completion of rlock(1) for fish 3.4 and later.
#
# The program tells what it accepts, in lines of columns with tabs between them; "-" stands for none.
# Keys come from the server.

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

# __rlock_option LETTER LONG ARGUMENT VARIABLE DEFAULT HELP: adds an option, from its row.
function __rlock_option -a letter long argument
    set -l spec $long
    set -l flags -l $long -d $argv[6]
    if test $letter != -
        set spec $letter/$spec
        set -p flags -s $letter
    end
    test $argument = -
    or set spec $spec=
    switch $long:$argument
        case '*:-'
            set -a flags -f
        case '*:FILE' '*:FILE|syslog'
            set -a flags -r -F
        case '*:KEY'
            set -a flags -x -k -a '(__rlock_keys)'
        case '*:URL'
            set -a flags -x -a '(__rlock_urls)'
        case '*:PID'
            set -a flags -x -a '(__rlock_processes)'
        case '*:DURATION'
            set -a flags -x -a '1s 5s 10s 30s 1m 5m 10m 1h 12h 1d 7d'
        case 'tls-name:*'
            set -a flags -x -a '(__fish_print_hostnames)'
        case '*|*'
            set -a flags -x -a (string replace -a '|' ' ' $argument)
        case '*'
            set -a flags -x
    end
    set -ga __rlock_specs $spec
    complete -c rlock -n "__rlock_wants $long" $flags
end

# __rlock_verb VERB WORDS HELP OPTIONS: adds a verb and the options that it accepts, from its row.
# "-" stands for a run without a verb.
function __rlock_verb -a verb words help options
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
# "command" calls no function, such as "sudo rlock". fish would report a program that isn't there.
if command -q rlock
    for row in (command rlock --dump=options 2>/dev/null)
        __rlock_option (string split \t -- $row)
    end
    for row in (command rlock --dump=verbs 2>/dev/null)
        __rlock_verb (string split \t -- $row)
    end
end
