#!/usr/bin/env bats
# completions: each shell loads its file of completions/, and is asked what it offers for a command
# line.

load ../helpers/common

setup() {
    common_setup
    cd "$ROOT" || return
    # Makes rlock-test-command, a command with a completion of its own in each shell, and a file
    # whose name can be completed.
    mkdir -p "$DIR/bin" "$DIR/zsh"
    printf '#!/bin/sh\n' >"$DIR/bin/rlock-test-command"
    chmod +x "$DIR/bin/rlock-test-command"
    touch "$DIR/something"
    printf '%s\n' '#compdef rlock-test-command' \
        "_arguments '--kilo[a test]' '*:file:_files'" >"$DIR/zsh/_rlock-test-command"
    ln -s "$RLOCK" "$DIR/bin/rlock" # each file asks the program what it accepts
    PATH=$DIR/bin:$PATH
}

dump() { "$RLOCK" --dump="$1"; }

# words_of VERB: prints each option of the verb as the user types it; "-" stands for a run without a
# verb.
words_of() {
    local own
    own=$(dump verbs | awk -F '\t' -v verb="$1" '$1 == verb { print $4 }')
    dump options | awk -F '\t' -v own=",$own," 'index(own, "," $2 ",") {
        if ($1 != "-") print "-" $1; print "--" $2 }'
}
verbs() { dump verbs | cut -f1 | grep -v '^-$'; }
suggested() { dump options | awk -F '\t' '$2 == "on-lost" { gsub(/\|/, "\n", $3); print $3 }'; }

# complete SHELL LINE: prints what the shell offers at the end of the line, one word a line.
complete() { "${1}_complete" "$2" | sort -u; }

# offers SHELL LINE WORD...: the shell must offer exactly these words at the end of the line.
offers() {
    local shell=$1 line=$2
    shift 2
    assert_eq "$(complete "$shell" "$line")" "$(printf '%s\n' "$@" | sort -u)" "$shell: '$line'"
}

# completes SHELL: checks what every shell must offer.
completes() {
    assert_eq "$(complete "$1" 'rlock -k a -')" "$(words_of - | sort)"
    offers "$1" 'rlock --kil' --kill-after
    assert_eq "$(complete "$1" 'rlock --on-lost ')" "$(suggested | sort)"
    assert_match "$(complete "$1" 'rlock -u ')" redis:
    assert_match "$(complete "$1" "rlock --report $DIR/some")" something
    offers "$1" 'rlock -k a rlock-test-c' rlock-test-command
    offers "$1" 'rlock -nk a:b -t30 -- rlock-test-c' rlock-test-command
    assert_match "$(complete "$1" "rlock -k a -- rlock-test-command $DIR/some")" something
    offers "$1" 'rlock -k a rlock-test-command --kil' --kilo
    offers "$1" 'rlock -c true rlock-test-c' ""
    offers "$1" 'rlock -- rlock-test-c' rlock-test-command
    completes_urls "$1"
    completes_processes "$1"
    completes_verbs "$1"
    completes_keys "$1"
    completes_by_path "$1"
}

# completes_by_path SHELL: if rlock is not in PATH, its path may be typed, for which fish loads no
# file. An alias of that name, such as "sudo rlock", must not run.
completes_by_path() {
    [[ $1 == fish ]] || PATH=${PATH#*:} offers "$1" "$DIR/bin/rlock --kil" --kill-after
    PATH=${PATH#*:} offers "$1" 'rlock --kil' ""
    BEFORE='alias rlock="touch called"' offers "$1" 'rlock --kil' --kill-after
    [[ ! -e called ]] || fail "$1 runs an alias"
}

completes_verbs() {
    local verb
    for verb in status release hold; do # each file asks the program what a verb accepts
        assert_match "$(complete "$1" "rlock ${verb:0:4}")" "(^|"$'\n'")$verb($|"$'\n'")"
        assert_eq "$(complete "$1" "rlock $verb -")" "$(words_of "$verb" | sort)" "$1: $verb"
        assert_eq "$(complete "$1" "rlock -u local: -q $verb -")" "$(words_of "$verb" | sort)"
        offers "$1" "rlock $verb rlock-test-c" ""
    done
    # Before the key is given, the next word can be a verb, but not a command.
    assert_eq "$(complete "$1" 'rlock ')" "$(verbs | sort)" "$1: the first word"
    assert_eq "$(complete "$1" 'rlock -u local: ')" "$(verbs | sort)" "$1: a word behind options"
    offers "$1" 'rlock rlock-test-c' ""
    offers "$1" 'rlock help rel' release
}

# completes_urls SHELL: for -u the shell must offer the schemes of URLs, and behind a scheme the
# hosts that it knows, or files.
completes_urls() {
    local url
    known_host "$1"
    assert_match "$(complete "$1" 'rlock -u rediss+')" sentinel
    for url in redis:// rediss:// redis+sentinel:// redis://user@; do
        assert_match "$(complete "$1" "rlock -u ${url}kilo")" 'kilo-host' "$1: $url"
    done
    assert_match "$(complete "$1" "rlock --tls-name kilo")" 'kilo-host' "$1: --tls-name"
    assert_match "$(complete "$1" "rlock -u unix://$DIR/some")" something
}

# known_host SHELL: makes the shell know a host with the name kilo-host.
known_host() {
    mkdir -p "$DIR/.ssh"
    echo 'Host kilo-host' >"$DIR/.ssh/config"
    echo 'kilo-host ssh-ed25519 AAAA' >"$DIR/.ssh/known_hosts"
    echo '127.0.0.1 kilo-host' >"$DIR/hosts"
    export HOSTFILE=$DIR/hosts # bash offers the hosts of this file
}

# completes_processes SHELL: for --bind-pid the shell must offer this process, but neither process 1
# nor a thread of the kernel.
completes_processes() {
    local offered kernel
    offered=$(complete "$1" 'rlock acquire --bind-pid ')
    grep -qx "$BASHPID\|$$" <<<"$offered" || fail "$1 does not offer this process: $offered"
    for kernel in 1 $(ps -eo pid=,vsz= | awk '$2 == 0 { print $1 }' | head -n 20); do
        ! grep -qx "$kernel" <<<"$offered" || fail "$1 offers process $kernel"
    done
}

# completes_keys SHELL: for a key, the shell must offer the keys that are locked on the server. If
# the server doesn't answer, the shell must offer nothing, at once and without a message.
completes_keys() {
    local before at_once wanted=job:two
    redis_start "server-$1"
    export RLOCK_URL=redis://127.0.0.1:1
    redis_cli set job:one "$OURS" ex 100
    redis_cli set job:two "$OURS" ex 100
    redis_cli set job:none x ex 100
    redis_cli set 'job:$(touch pwned)' "$OURS" ex 100
    redis_cli set 'job:`touch pwned`;' "$OURS" ex 100
    offers "$1" "rlock -u unix://$REDIS_SOCKET -k jo" job:one job:two
    [[ $1 != bash ]] || wanted=two # bash splits a word at the colon
    offers "$1" "rlock list --url=unix://$REDIS_SOCKET job:t" "$wanted"
    [[ ! -e pwned ]]
    offers "$1" "rlock -k jo" ""
    RLOCK_URL=unix://$REDIS_SOCKET
    offers "$1" "rlock break -k jo" job:one job:two
    offers "$1" "rlock status jo" job:one job:two
    RLOCK_URL=redis://127.0.0.1:1 offers "$1" "rlock -u unix://$REDIS_SOCKET status jo" \
        job:one job:two
    redis_pause
    offers "$1" "rlock break -k jo" ""
    redis_continue
}
OURS='0123456789abcdef0123456789abcdef v1 try=1 host=h since=1'

# bash_complete LINE: splits the line as readline does, and calls the function that is registered
# for rlock.
bash_complete() {
    bash --norc --noprofile -s -- "$1" "$ROOT/completions/rlock.bash" <<'END' 2>"$DIR/err"
        shopt -s expand_aliases
        eval "$BEFORE"
        compopt() { :; } # the builtin compopt fails outside a completion
        _its() { COMPREPLY=($(compgen -W --kilo -- "$2") $(compgen -f -- "$2")); }
        complete -F _its rlock-test-command
        source "$2"
        [[ $(complete -p rlock) =~ -F\ ([^ ]+) ]] || exit
        COMP_LINE=$1 COMP_POINT=${#1}
        mapfile -t COMP_WORDS < <(grep -oE '[=:]+|[^=: ]+' <<<"$1")
        [[ $1 != *' ' ]] || COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        "${BASH_REMATCH[1]}"
        printf '%s\n' "${COMPREPLY[@]}"
END
    cat "$DIR/err" # a message of the shell would be taken for a word that is offered
}

@test "completions: bash completes options, arguments, verbs, keys and the command" {
    completes bash
    offers bash 'rlock -u redis:' //
    offers bash 'rlock --on-lost=ki' kill
    offers bash 'rlock -u redis://h:1 -k a:b rlock-test-command --kil' --kilo
}

fish_complete() {
    fish -c "$BEFORE
        complete -c rlock-test-command -l kilo
        source $ROOT/completions/rlock.fish; complete -C '$1'" 2>&1 | cut -f1
}

@test "completions: fish completes options, arguments, verbs, keys and the command" {
    need fish
    fish -n completions/rlock.fish
    completes fish
    offers fish 'rlock --on-lost=ki' --on-lost=kill
}

# zsh_complete LINE: types the line and a tab in an interactive zsh, whose `compadd` writes down the
# words that it gets.
zsh_complete() {
    rm -f "$DIR/ready" "$DIR/hits"
    cat >"$DIR/zshrc" <<END
        PS1= RPS1= fpath=($ROOT/completions $DIR/zsh \$fpath)
        autoload -Uz compinit && compinit -u -d "$DIR/zcompdump"
        setopt complete_aliases
        $BEFORE
        compadd() {
            [[ " \${@[1,(i)(-|--)]}" == *' -'[a-zA-Z]#[OAD]* ]] ||
                { local -a hits; builtin compadd -A hits "\$@"; print -rl -- \$hits >>$DIR/hits; }
            builtin compadd "\$@"
        }
        setopt extended_glob
        _done() { zle expand-or-complete; : >$DIR/done; }
        zle -N _done
        bindkey '^I' _done
        : >$DIR/ready
END
    timeout 30 zsh -f -s -- "$DIR" "$1" <<'END' >/dev/null
        zmodload zsh/zpty
        wait_for() { repeat 500; do [[ ! -e $1 ]] || return 0; sleep 0.02; done; return 1 }
        zpty child zsh -f -i
        zpty -w child "source $1/zshrc"
        wait_for $1/ready && zpty -w -n child "$2"$'\t' && wait_for $1/done
        zpty -d child
END
    rm -f "$DIR/done"
    grep . "$DIR/hits"
}

@test "completions: zsh completes options, arguments, verbs, keys and the command" {
    need zsh
    zsh -n completions/_rlock
    completes zsh
}
