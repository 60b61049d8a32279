#!/bin/sh
# selftest: breaks each rule of layers.awk, owners.awk and `only`, and checks that lint reports it.

set -u
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
failed=0

# caught WHAT REGEX: fails the selftest unless a line of the file `out` matches.
caught() {
    grep -Eq -- "$2" out && return
    echo "not caught: $1"
    sed 's/^/    /' out
    failed=1
}

mkdir -p lib/low lib/high
printf '# two folders\n%s\n%s\n' 'low a b gone' 'high c' >lib/LAYERS
echo '#include "high/c.h"' >lib/low/a.c
echo '#include "low/b.h"' >>lib/low/a.c
echo '#include "low/a.h"' >lib/low/b.c
printf '#include "%s.h"\n' low/b nowhere >lib/high/c.c
echo '#include "low/b.h"' >lib/high/d.c
awk -f "$here/layers.awk" lib/LAYERS lib/*/*.c >out
caught 'a folder below' 'low/a.c:1: low/a may not include high/c'
caught 'a file to the right' 'low/a.c:2: low/a may not include low/b'
caught 'a file without a layer' 'high/d.c:1: add high/d to its folder'
caught 'an unknown file' 'high/c.c:2: high/c may not include nowhere'
caught 'a layer without a file' 'low/gone has a layer and no file'
[ "$(wc -l <out)" -eq 5 ] || { echo 'reported without a reason:' && cat out && failed=1; }

cat >lib/low/a.h <<'END'
struct a {
    int x;
    char text[8];
};
struct free {
    struct a *a;
    int x;
};
END
cat >lib/low/a.c <<'END'
void mine(struct a *a)
{
    a->x = 1;
}
END
cat >lib/low/b.c <<'END'
int reads(const struct a *a, struct free *f)
{
    f->x = a->x == 1 && a->x <= 2 && a->x != 3;
    f->a = NULL;
    return a->text[0]; /* a->x = 1 */
}
int x(struct a *a)
{
    a->x = 1;
}
int y(struct free *f, int i)
{
    f[i].a[1].x += 1;
    f->a->text[i] = 'x';
    f->a->x++;
    --f->a->x;
    snprintf(f->a->text, 8, "");
    memset(&f->a->text, 0, 8);
}
int z(struct other *other,
      struct a *one)
{
    struct a first, *second = &first;

    *one = (struct a){0};
    first.x =
        1;
    second->x = 1;
}
END
echo 'free *' >owners
awk -f "$here/code.awk" -f "$here/owners.awk" owners lib/low/a.h lib/low/[ab].c >out
for line in 9 13 14 15 16 17 18 25 26 28; do
    caught "a write in line $line" "^lib/low/b.c:$line: .* is written here, and struct a belongs"
done
[ "$(wc -l <out)" -eq 10 ] || { echo 'reported without a reason:' && cat out && failed=1; }
echo 'a lib/low/other.c' >>owners
awk -f "$here/code.awk" -f "$here/owners.awk" owners lib/low/a.h lib/low/[ab].c >out
caught 'an exception without need' 'struct a: lib/low/other.c does not write it'

# stranger.c breaks every rule of the file `only`, which lists the C files that a pattern may occur
# in. only.awk must report at least one line of stranger.c for each rule.
cat >stranger.c <<'END'
#include <hiredis/hiredis.h>
#include <openssl/ssl.h>
dlopen(0); pthread_create(0); getaddrinfo(0); socket(0); clock_gettime(0); getrandom(0);
socketpair(0); timing_expires_ms(0);
pid = fork(); execv(0); waitpid(0); ptrace(0); setpgid(0); _exit (0); getenv(0); isatty(0);
 _exit(1); exit(1); printf("");
goto fail;
if (strcmp(err->text, "x") == 0 || strstr(probe->err.text, "y"))
if (strstr(reply, "NOAUTH") || strstr(reply, "LOADING") || strcmp(reply, "ASK ") == 0)
if (strstr(reply, "non local key"))
END
awk -f "$here/code.awk" -f "$here/only.awk" "$here/only" stranger.c >out
awk -F '\t' '/^[^#\t]/ { print $1 }' "$here/only" >rules
while IFS= read -r rule; do
    grep -qF -- ": $rule only in" out || { echo "not caught: $rule" && failed=1; }
done <rules
cat >stranger.c <<'END'
/* fork() and
 * printf("NOAUTH") */
puts("goto fail; getenv(1)");
if (strcmp(err->context, text) == 0)
END
awk -f "$here/code.awk" -f "$here/only.awk" "$here/only" stranger.c >out || { cat out && failed=1; }

exit $failed
