# rlock.bash: completion of rlock(1) for bash 4.3 and later, with or without the bash-completion
# package.
#
# The program tells what it accepts, in lines of columns with tabs between them; "-" stands for none.
# Keys come from the server.

# _rlock_own VERB: prints the options that the verb accepts, separated by commas; fails if there is
# no such verb. "-" stands for a run without a verb.
_rlock_own() {
    local name own _
    while IFS=$'\t' read -r name _ _ own; do
        [[ $name != "$1" ]] || { echo "$own"; return; }
    done <<<"$verbs"
    return 1
}

# _rlock_names VERB: prints the options that the verb accepts, as they are typed, short and long.
_rlock_names() {
    local letter name own _
    own=$(_rlock_own "$1")
    while IFS=$'\t' read -r letter name _; do
        [[ ,$own, == *,"$name",* ]] || continue
        [[ $letter == - ]] || printf '%s\n' "-$letter"
        printf '%s\n' "--$name"
    done <<<"$options"
}

# _rlock_option WORD: sets `option` and `argument` ("-": none) from the option's row; fails if there
# is no such option.
_rlock_option() {
    local letter _
    while IFS=$'\t' read -r letter option argument _; do
        [[ $1 == "-$letter" || $1 == "--$option" ]] && return
    done <<<"$options"
    return 1
}

# _rlock_takes_next WORD: succeeds if WORD is an option and the word behind it is its argument. Sets
# is_shell if the option is -c: then rlock takes no command; and has_key if the option is -k.
_rlock_takes_next() {
    local letters=${1#-} name
    case $1 in
        --command | --command=*) is_shell=yes ;;
        --key | --key=*) has_key=yes ;;
    esac
    case $1 in
        --*=*) return 1 ;;
        --*) _rlock_option "$1" && [[ $argument != - ]] && return ;;
        *)
            while [[ -n $letters ]]; do # in -nk KEY: -n, then -k, which has an argument
                name=-${letters:0:1} letters=${letters:1}
                [[ $name == -c ]] && is_shell=yes
                [[ $name == -k ]] && has_key=yes
                _rlock_option "$name" || return
                [[ $argument == - ]] || { [[ -z $letters ]] && return; return 1; }
            done
            ;;
    esac
    return 1
}

# _rlock_split: bash splits a command line also at ":" and "=", which URLs and --option=value
# contain. Sets `words` to the words up to the cursor as rlock would get them, and `at` to the index
# in COMP_WORDS where each of them begins.
_rlock_split() {
    local i blank word rest=${COMP_LINE:0:COMP_POINT}
    words=() at=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blank=${rest%%[![:space:]]*}
        rest=${rest#"$blank"}
        word=${COMP_WORDS[i]}
        [[ $rest == "$word"* ]] || word=$rest
        rest=${rest#"$word"}
        if [[ -n $blank || $i -eq 0 ]]; then
            words+=("$word") at+=("$i")
        else
            words[${#words[@]} - 1]+=$word
        fi
    done
}

# _rlock_reply VALUE LIST: offers the words of LIST that begin with VALUE, without the part up to
# the last colon, which bash takes for an earlier word.
_rlock_reply() {
    local value=$1 cut=
    mapfile -t COMPREPLY < <(compgen -W "$2" -- "$value")
    [[ $value == *:* && $COMP_WORDBREAKS == *:* ]] && cut=${value%"${value##*:}"}
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
}

# _rlock_keys: prints the keys that are locked and need no quotes; nothing if the server doesn't
# answer within 0.3 s.
_rlock_keys() {
    timeout 0.3 "$program" list --json --connect-timeout 0.2 "${server[@]}" 2>/dev/null </dev/null |
        LC_ALL=C sed -n 's/^{"key":"\([A-Za-z0-9_.:/@%+{}-]*\)".*/\1/p'
}

# _rlock_urls VALUE: prints URLs that begin with the value: schemes; behind a scheme the hosts that
# the shell knows, or files.
_rlock_urls() {
    if [[ $1 =~ ^(rediss?(\+sentinel)?://(.*[@,])?)([^:/@,]*)$ ]]; then
        compgen -A hostname -P "${BASH_REMATCH[1]}" -- "${BASH_REMATCH[4]}"
    elif [[ $1 == unix://* ]]; then
        compgen -f -P unix:// -- "${1#unix://}"
    else
        echo redis:// rediss:// redis+sentinel:// rediss+sentinel:// unix:// local:
    fi
}

# _rlock_processes: prints the processes to which `rlock acquire --bind-pid` may bind a lock: all
# except process 1 and threads of the kernel, whose virtual size is 0.
_rlock_processes() { ps -eo pid=,vsz= | awk '$1 != 1 && $2 > 0 { print $1 }'; }

# _rlock_verb_names: prints the verbs.
_rlock_verb_names() { cut -f 1 <<<"${verbs#*$'\n'}"; }

# _rlock_value VALUE: offers arguments for the option that _rlock_option has found.
_rlock_value() {
    case $argument in
        KEY) _rlock_reply "$1" "$(_rlock_keys)" ;;
        FILE | 'FILE|syslog')
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$1")
            ;;
        URL)
            compopt -o nospace 2>/dev/null
            _rlock_reply "$1" "$(_rlock_urls "$1")"
            ;;
        NAME) [[ $option != tls-name ]] || _rlock_reply "$1" "$(compgen -A hostname)" ;;
        PID) _rlock_reply "$1" "$(_rlock_processes)" ;;
        DURATION) _rlock_reply "$1" '1s 5s 10s 30s 1m 5m 10m 1h 12h 1d 7d' ;;
        *\|*) _rlock_reply "$1" "${argument//|/ }" ;;
    esac
}

# _rlock_command N: completes the command that begins at COMP_WORDS[N] as if it stood alone.
_rlock_command() {
    local complete
    # functions of the bash-completion package
    for complete in _comp_command_offset _command_offset; do
        declare -F "$complete" >/dev/null || continue
        "$complete" "$1"
        return
    done
    compopt -o default 2>/dev/null # offer files if there is nothing else to offer
    COMP_WORDS=("${COMP_WORDS[@]:$1}") COMP_CWORD=$((COMP_CWORD - $1))
    COMP_LINE=${COMP_WORDS[*]} COMP_POINT=${#COMP_LINE}
    if ((COMP_CWORD == 0)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[0]}" | sort -u)
    elif [[ $(complete -p -- "${COMP_WORDS[0]##*/}" 2>/dev/null) =~ \ -F\ ([^ ]+) ]]; then
        "${BASH_REMATCH[1]}" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    fi
}

_rlock() {
    local options verbs option argument cur i last is_shell='' has_key='' verb=-
    local -a words at server
    local program=${COMP_WORDS[0]} # as typed, if that is a path; else rlock in PATH
    [[ $program != \~/* ]] || program=$HOME${program:1}
    [[ $program == */* ]] || program=rlock
    # "command" calls no alias or function, such as "sudo rlock".
    options=$(command "$program" --dump=options 2>/dev/null)
    verbs=$(command "$program" --dump=verbs 2>/dev/null)
    COMPREPLY=()
    _rlock_split
    last=$((${#words[@]} - 1))
    cur=${words[last]}

    for ((i = 1; i < last; i++)); do
        case ${words[i]} in
            --url | --password-file | --sentinel-user | --sentinel-password-file | -u) server+=("${words[i]}" "${words[i + 1]}") ;;
            --url=* | --password-file=* | --sentinel-user=* | --sentinel-password-file=* | -u*) server+=("${words[i]}") ;;
            -- | [!-]* | - | '')
                [[ $verb == - ]] || continue # a key behind a verb
                if [[ -z $has_key && ${words[i]} != -* ]] && _rlock_own "${words[i]}" >/dev/null; then
                    verb=${words[i]}
                    continue
                fi
                [[ ${words[i]} == -- ]] && ((i++))
                [[ -n $is_shell ]] || _rlock_command "${at[i]}"
                return
                ;;
        esac
        _rlock_takes_next "${words[i]}" && ((i++))
    done
    if ((i > last)); then
        _rlock_value "$cur"
    elif [[ $cur == --*=* ]]; then
        _rlock_option "${cur%%=*}" && [[ $argument != - ]] && _rlock_value "${cur#*=}"
        [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/${cur%%=*}=}")
    elif [[ $cur == -* ]]; then
        _rlock_reply "$cur" "$(_rlock_names "$verb")"
    elif [[ $verb == help ]]; then
        _rlock_reply "$cur" "$(_rlock_verb_names)"
    elif [[ $verb != - ]]; then
        [[ $verb == doctor || $verb == version ]] || _rlock_reply "$cur" "$(_rlock_keys)"
    elif [[ -n $has_key && -z $is_shell ]]; then
        _rlock_command "${at[last]}"
    elif [[ -z $is_shell ]]; then
        _rlock_reply "$cur" "$(_rlock_verb_names)"
    fi
}

complete -F _rlock rlock
