# SPDX-License-Identifier: MIT
#
# rlock: run a command while holding a lock in Redis. GNU make; `make help` lists the targets.
#
#   PREFIX=/usr/local DESTDIR=   `make install` copies files to $DESTDIR$PREFIX
#   LIBDIR=lib                   the folder of the library below PREFIX (`make install-library`)
#   CC CFLAGS LDFLAGS            the compiler and your flags; the flags that rlock needs are added
#   V=1                          print each command before it runs, and all that tests print
#   WERROR=1                     the compiler treats warnings as errors
#   HARDENING=no                 leave out the compiler flags against exploits of memory errors
#   TLS=no                       build without TLS (rediss://); needs no headers of OpenSSL
#   HIREDIS=shared               link rlock with libhiredis.so, even if there is a libhiredis.a
#   HIREDIS_SRC=DIR              build hiredis from its sources in DIR (musl has no package of it)
#   FLAVOUR=plain|asan|tsan|...  build in build/FLAVOUR; asan and tsan add sanitizers, any other
#                                name builds with the same flags as plain
#   ARCH='ARCH ...'              the architectures of `make test-arch` and `make release`; default:
#                                all that tests/tools/arch.sh knows
#   SIGN_KEY=FILE                the private key by which `make release` and `make sign` sign
#   JOBS=N                       run N files of tests at the same time; default for bats files: two
#                                for each processor, or one with sanitizers

PREFIX  ?= /usr/local
LIBDIR  ?= lib
OBJCOPY ?= objcopy
CFLAGS  ?= -O2 -g
FLAVOUR ?= plain
Q       := $(if $(V),,@)
B       := build/$(FLAVOUR)

VERSION := $(shell sed -n 's/^\#define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)

MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.SUFFIXES:

# ---- compiler and linker flags -------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wswitch-enum -Wvla -pedantic \
            -Wno-overlength-strings \
            $(if $(WERROR),-Werror)

SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANITIZE_tsan := -fsanitize=thread
# Without trace-cmp, by which libFuzzer learns the words that a parser compares its input with: it
# takes a third of the time, and tests/fuzz/corpus already has these words.
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
                 -fno-sanitize-coverage=trace-cmp
SANITIZE_coverage := -fprofile-instr-generate -fcoverage-mapping
SANITIZE      := $(SANITIZE_$(FLAVOUR))

# The flavour of the static program, which is linked with -static and not with -static-pie: a
# program linked with -static-pie relocates itself at each start, which takes time.
STATIC         := static$(if $(findstring musl,$(CC)),-musl)
STATIC_LDFLAGS := $(if $(filter static%,$(FLAVOUR)),-static -s)

# The hardening flags that Debian builds packages with. A script asks the compiler which of these
# flags it knows: one shell for all flags, so that make starts fast. Flags that CFLAGS has already
# (dpkg-buildflags sets them) are not added twice. A build with a sanitizer has none of them:
# _FORTIFY_SOURCE replaces calls that the sanitizer checks itself.
WANTED_HARDENING := -fstack-protector-strong -fstack-clash-protection -fcf-protection \
                    -mbranch-protection=standard -fPIE -Wformat -Werror=format-security
WANTED_FORTIFY   := $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,3 2)
ifneq ($(SANITIZE)$(filter no,$(HARDENING)),)
HARDENING_FLAGS :=
else
HARDENING_FLAGS := $(shell try() { printf '\043include <stdio.h>\n' | \
    $(CC) -Werror $(CPPFLAGS) $(CFLAGS) "$$@" -x c -c -o /dev/null - 2>/dev/null; }; \
    for flag in $(filter-out $(CFLAGS),$(WANTED_HARDENING)); do \
        try -Wformat "$$flag" && echo "$$flag"; done; \
    for n in $(WANTED_FORTIFY); do \
        try -D_FORTIFY_SOURCE=$$n && echo -D_FORTIFY_SOURCE=$$n && break; done)
endif
HARDENING_LDFLAGS := $(if $(STATIC_LDFLAGS)$(filter -static -no-pie,$(CFLAGS) $(LDFLAGS)),,\
                          $(patsubst -fPIE,-pie,$(filter -fPIE,$(HARDENING_FLAGS))))

# rlock links libhiredis.a if there is one: a start takes 80 us less than with the shared library.
# pkg-config, if installed, knows where hiredis is; otherwise cc searches its own directories.
PKG_CONFIG     ?= pkg-config
HIREDIS_CFLAGS := $(shell $(PKG_CONFIG) --cflags hiredis 2>/dev/null)
HIREDIS_DIR    := $(shell $(PKG_CONFIG) --variable=libdir hiredis 2>/dev/null)
HIREDIS_A      := $(firstword $(wildcard $(HIREDIS_DIR:%=%/libhiredis.a) \
                                         $(shell $(CC) -print-file-name=libhiredis.a 2>/dev/null)))
HIREDIS_SO     := $(or $(shell $(PKG_CONFIG) --libs hiredis 2>/dev/null),-lhiredis)
HIREDIS_LIBS   := $(if $(filter shared,$(HIREDIS)),$(HIREDIS_SO),$(or $(HIREDIS_A),$(HIREDIS_SO)))

ifneq ($(HIREDIS_SRC),)
HIREDIS_CFLAGS := -isystem $(B)/include
HIREDIS_OBJ    := $(patsubst %,$(B)/hiredis/%.o,alloc hiredis net read sds)
HIREDIS_LIBS   :=
endif

# TLS is yes, linked, no or not-found. A build with TLS needs only the headers of OpenSSL 3: rlock
# loads the library with dlopen when a URL asks for TLS. A static program can't load libraries, so
# OpenSSL is linked into it.
ifneq ($(origin TLS),undefined)
else ifneq ($(STATIC_LDFLAGS),)
TLS := linked
else
OPENSSL_3 := \043include <openssl/ssl.h>\n\043if OPENSSL_VERSION_MAJOR < 3\n\043error\n\043endif\n
TLS := $(shell printf '$(OPENSSL_3)' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 && echo yes || \
               echo not-found)
endif

# What a program that is linked with OpenSSL statically needs besides, as OpenSSL's own file for
# pkg-config says: that of Debian 13 needs zlib and zstd.
ifeq ($(TLS),linked)
OPENSSL_LIBS := $(or $(shell $(PKG_CONFIG) --static --libs openssl 2>/dev/null),-lssl -lcrypto)
endif

# musl-gcc doesn't search /usr/include for the kernel's headers. Search it after musl's own headers.
MUSL_CPPFLAGS := $(if $(findstring musl-gcc,$(CC)),\
                   $(patsubst %,-idirafter /usr/include%,/ /$(shell gcc -print-multiarch)))

# On 32-bit systems glibc's time_t has 32 bits, and overflows in 2038, unless _TIME_BITS=64 asks for
# 64 bits. hiredis and OpenSSL may have been built with 32 bits; rlock passes no time_t to them.
ALL_CPPFLAGS := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 \
                $(if $(STATIC_LDFLAGS),-DRLOCK_STATIC) $(HIREDIS_CFLAGS) \
                $(MUSL_CPPFLAGS) $(CPPFLAGS)
ALL_CFLAGS   := -std=c11 $(WARNINGS) -pthread -ffunction-sections -fdata-sections \
                -ffile-prefix-map=$(CURDIR)=. $(HARDENING_FLAGS) $(CFLAGS)
ALL_LDFLAGS  := -pthread -Wl,-O1 -Wl,--gc-sections -Wl,--as-needed -Wl,--hash-style=gnu \
                -Wl,-z,relro,-z,now $(HARDENING_LDFLAGS) \
                $(STATIC_LDFLAGS) $(LDFLAGS)

comma := ,

compile = $(Q)$(if $(V),,echo "  CC    $@" &&) mkdir -p $(@D) && \
          $(CC) $(ALL_CPPFLAGS) $(1) $(ALL_CFLAGS) $(SANITIZE) -MMD -MP -c -o $@ $<
# The scripts' texts, last, stand behind all constants that a run reads: it needs no text if the
# server knows the scripts, and the kernel maps 64 kB and more around each byte that is read. A
# holder takes 120 kB less than with the texts among the constants.
TEXTS   = %/lib/lock/scripts.o
link    = $(Q)$(if $(V),,echo "  LINK  $@" &&) mkdir -p $(@D) && \
          $(CC) $(ALL_CFLAGS) $(SANITIZE) $(ALL_LDFLAGS) $(WRAPS) -o $@ \
          $(filter-out $(TEXTS),$(filter %.o,$^)) $(filter %.a,$^) $(HIREDIS_LIBS) \
          $(filter $(TEXTS),$^) \
          $(if $(OPENSSL_LIBS),-Wl$(comma)--wrap=OPENSSL_cpuid_setup $(OPENSSL_LIBS)) -ldl

# ---- source and object files ---------------------------------------------------------------------

# The files that a build leaves out, by the value of TLS.
WITHOUT_yes    := lib/wire/tls_absent.c lib/wire/libssl_linked.c
WITHOUT_linked := lib/wire/tls_absent.c lib/wire/libssl.c
WITHOUT_no     := lib/wire/tls.c lib/wire/libssl.c lib/wire/libssl_linked.c

LIB_SRC  := $(filter-out $(or $(WITHOUT_$(TLS)),$(WITHOUT_no)),$(wildcard lib/*.c lib/*/*.c))
LIB_OBJ  := $(patsubst %.c,$(B)/%.o,$(LIB_SRC))
CMD_SRC  := $(wildcard cmd/*.c cmd/*/*.c)
CMD_OBJ  := $(patsubst %.c,$(B)/%.o,$(CMD_SRC))
C_FILES   = $(wildcard lib/*.[ch] lib/*/*.[ch] cmd/*.[ch] cmd/*/*.[ch] tests/*/*.[ch])

# What `make install` installs, as MODE:FILE:PLACE, with PLACE relative to PREFIX.
MAN := $(notdir $(filter-out %.3,$(wildcard man/*.[1-9])))
INSTALLED := 755:rlock:bin/rlock \
             $(foreach m,$(MAN),644:man/$m:share/man/man$(subst .,,$(suffix $m))/$m) \
             644:completions/rlock.bash:share/bash-completion/completions/rlock \
             644:completions/_rlock:share/zsh/site-functions/_rlock \
             644:completions/rlock.fish:share/fish/vendor_completions.d/rlock.fish

# ---- build ---------------------------------------------------------------------------------------

.PHONY: all
all: $(if $(filter plain,$(FLAVOUR)),rlock,$(B)/rlock)  ## build ./rlock (the default)

rlock: $(B)/rlock
	$(Q)cp -f $< $@

.PHONY: static
static:  ## install what is missing, build ./rlock-static, which needs no library, with TLS in it
	$(Q)tests/tools/deps.sh static || :
	$(Q)$(MAKE) FLAVOUR=$(STATIC)
	$(Q)cp -f build/$(STATIC)/rlock rlock-static

$(B)/rlock: $(CMD_OBJ) $(LIB_OBJ) $(HIREDIS_OBJ) $(B)/tls.$(TLS)
	$(link)

$(B)/librlock.a: $(LIB_OBJ) $(HIREDIS_OBJ) $(B)/tls.$(TLS)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ) $(HIREDIS_OBJ)

# An empty file whose name has the value of TLS. When TLS changes, make finds no file of the new
# name, makes one, and so rebuilds librlock.a, which depends on this file.
$(B)/tls.$(TLS):
	$(Q)mkdir -p $(@D) && rm -f $(B)/tls.* && touch $@
ifeq ($(TLS),not-found)
	$(Q)echo "rlock: built WITHOUT TLS, as the headers of OpenSSL 3 are not installed:" \
	     "it will refuse rediss:// URLs; install them by: make deps; or build with TLS=no" >&2
endif

$(B)/lib/%.o: lib/%.c | build/gen/scripts_embedded.h build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Ilib -Ibuild/gen)

$(B)/cmd/%.o: cmd/%.c | $(B)/hiredis.found
	$(call compile,-Icmd -Ilib)

LUA   := $(wildcard lib/lua/*.lua)
EMBED := lib/lua/embed.awk lib/lua/reply_codes.tsv

build/gen/scripts_embedded.h: $(EMBED) $(LUA) $(wildcard lib/lua/shared/*.lua)
	$(Q)mkdir -p $(@D) && awk -v form=c -f $(EMBED) $(LUA) >$@.new && mv $@.new $@

build/gen/reply_codes.h: $(EMBED)
	$(Q)mkdir -p $(@D) && awk -v form=enum -f $(EMBED) >$@.new && mv $@.new $@

# All object files depend on this check, so that a missing hiredis is reported in one sentence
# instead of as an error of each file that includes it.
$(B)/hiredis.found: $(if $(HIREDIS_SRC),$(B)/include/hiredis)
	$(Q)mkdir -p $(@D) && echo '#include <hiredis/hiredis.h>' | \
	$(CC) $(ALL_CPPFLAGS) -E -o $@ - 2>/dev/null || \
	{ echo "rlock: hiredis and its headers are needed to build; install them with: make deps" >&2; \
	  rm -f $@; exit 1; }

# The same for the libraries of the static program. static.log has what the linker says.
ifneq ($(STATIC_LDFLAGS),)
$(LIB_OBJ) $(CMD_OBJ): | $(B)/static.found
$(B)/static.found: | $(B)/hiredis.found
	$(Q)echo 'int main(void) { return 0; }' | \
	$(CC) -static $(if $(OPENSSL_LIBS),-Wl$(comma)-u$(comma)SSL_CTX_new) $(LDFLAGS) -o $@ -x c - \
	    -x none $(HIREDIS_LIBS) $(OPENSSL_LIBS) -ldl 2>$(B)/static.log || { rm -f $(B)/rlock; \
	echo "rlock: can't link a static program here, as it lacks libraries: see $(B)/static.log" >&2; \
	exit 1; }
endif

# rlock includes <hiredis/hiredis.h>, so a link with the name hiredis leads to HIREDIS_SRC.
$(B)/include/hiredis:
	$(Q)mkdir -p $(@D) && ln -sfn $(abspath $(HIREDIS_SRC)) $@

$(B)/hiredis/%.o: $(HIREDIS_SRC)/%.c
	$(Q)mkdir -p $(@D) && $(CC) -D_GNU_SOURCE -ffunction-sections -fdata-sections \
	$(HARDENING_FLAGS) $(CFLAGS) -c -o $@ $<

# ---- the library for other programs --------------------------------------------------------------

# $(B)/librlock.a, which the program and its tests are linked with, has the names of all functions
# of lib/. The files below have only the names of the public headers, so that a program may use a
# name like url_parse itself. These files have objects of their own, as a shared library needs
# -fPIC.
SOVERSION := 0
PIC_OBJ   := $(patsubst $(B)/lib/%,$(B)/pic/%,$(LIB_OBJ))

$(B)/pic/%.o: private ALL_CFLAGS := $(filter-out -fPIE,$(ALL_CFLAGS)) -fPIC
$(B)/pic/%.o: lib/%.c | build/gen/scripts_embedded.h build/gen/reply_codes.h $(B)/hiredis.found
	$(call compile,-Ilib -Ibuild/gen)

$(B)/shared/librlock.so.$(VERSION): $(PIC_OBJ) lib/librlock.map $(B)/tls.$(TLS)
	$(Q)$(if $(V),,echo "  LINK  $@" &&) mkdir -p $(@D) && \
	$(CC) -shared $(ALL_CFLAGS) $(SANITIZE) $(filter-out -pie,$(ALL_LDFLAGS)) -o $@ $(PIC_OBJ) \
	    -Wl,-soname,librlock.so.$(SOVERSION) -Wl,--version-script=lib/librlock.map -Wl,-z,defs \
	    $(HIREDIS_SO) -ldl
	$(Q)ln -sf $(@F) $(@D)/librlock.so.$(SOVERSION) && ln -sf $(@F) $(@D)/librlock.so

$(B)/shared/librlock.a: $(PIC_OBJ) $(B)/tls.$(TLS)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(CC) -r -nostdlib -o $(@D)/rlock.o $(PIC_OBJ) && \
	$(OBJCOPY) --wildcard --keep-global-symbol='rlock_*' $(@D)/rlock.o && \
	$(AR) rcs $@ $(@D)/rlock.o && rm -f $(@D)/rlock.o

# make writes this file each time, because PREFIX and LIBDIR may have changed since the last time.
.PHONY: $(B)/shared/rlock.pc
$(B)/shared/rlock.pc: lib/rlock.pc.in
	$(Q)mkdir -p $(@D) && sed -e 's,@PREFIX@,$(PREFIX),' \
	    -e 's,@LIBDIR@,$(LIBDIR),' -e 's,@VERSION@,$(VERSION),' $< >$@

LIBRARY := $(patsubst %,$(B)/shared/%,librlock.so.$(VERSION) librlock.a rlock.pc)

# What `make install-library` installs, in the form of INSTALLED, or as link:TARGET:PLACE. Each
# function has a link to rlock(3), so that `man 3 rlock_open` finds the page.
FUNCTIONS = $(shell sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \(rlock_[a-z_]*\).*/\1/p' man/rlock.3)
LIBRARY_INSTALLED = 644:lib/rlock.h:include/rlock.h 644:lib/rlock_admin.h:include/rlock_admin.h \
    644:$(B)/shared/librlock.so.$(VERSION):$(LIBDIR)/librlock.so.$(VERSION) \
    link:librlock.so.$(VERSION):$(LIBDIR)/librlock.so.$(SOVERSION) \
    link:librlock.so.$(SOVERSION):$(LIBDIR)/librlock.so \
    644:$(B)/shared/librlock.a:$(LIBDIR)/librlock.a \
    644:$(B)/shared/rlock.pc:$(LIBDIR)/pkgconfig/rlock.pc \
    644:man/rlock.3:share/man/man3/rlock.3 $(FUNCTIONS:%=link:rlock.3:share/man/man3/%.3)

.PHONY: library
library: $(LIBRARY)  ## build librlock.so.0, librlock.a and rlock.pc in build/plain/shared

-include $(wildcard $(B)/*/*.d $(B)/*/*/*.d)

# ---- demo, deps ----------------------------------------------------------------------------------

.PHONY: demo deps
demo:  ## install what is missing, build, show the main job
	$(Q)tests/tools/deps.sh demo
	$(Q)$(MAKE) all
	$(Q)tests/tools/demo.sh

deps:  ## install what building needs, nothing else
	$(Q)tests/tools/deps.sh build

# ---- tests ---------------------------------------------------------------------------------------

include tests/tests.mk

# ---- packages and releases -----------------------------------------------------------------------

include packaging/release.mk

# ---- format, install, clean ----------------------------------------------------------------

.PHONY: format format-check install install-library uninstall clean help
format:  ## format all C files with clang-format
	$(Q)clang-format -i $(C_FILES)

format-check:  ## fail if `make format` would change a file
	$(Q)for file in $(C_FILES); do clang-format "$$file" | cmp -s - "$$file" || \
	{ echo "$$file: not formatted; run: make format"; changed=1; }; done; test -z "$$changed"

# $(call copy_all,ROWS), $(call remove_all,ROWS): install or remove the files of ROWS, which have
# the form of INSTALLED. copy_all prints where it installs each file. remove_all also removes the
# folders that become empty, except share/man and the folders directly below PREFIX, such as bin.
copy_all = $(Q)set -e; for row in $(1); do IFS=:; set -- $$row; to="$(DESTDIR)$(PREFIX)/$$3"; \
           case $$1 in \
               link) mkdir -p "$${to%/*}" && ln -sf "$$2" "$$to" ;; \
               *) install -D -m "$$1" "$$2" "$$to" && echo "installed $$to" ;; \
           esac; done; \
           echo "to remove it: make uninstall PREFIX=$(PREFIX)$(if $(DESTDIR), DESTDIR=$(DESTDIR))"
remove_all = $(Q)set -e; for row in $(1); do IFS=:; set -- $$row; \
             rm -f "$(DESTDIR)$(PREFIX)/$$3"; \
             dir=$${3%/*}; while case $$dir in share/man) false ;; */*) ;; *) false ;; esac; do \
                 rmdir "$(DESTDIR)$(PREFIX)/$$dir" 2>/dev/null || :; dir=$${dir%/*}; done; done

install: all  ## install program, manual pages and completions under PREFIX
	$(call copy_all,$(INSTALLED))

install-library: $(LIBRARY)  ## install librlock, its headers, rlock.pc and rlock(3) under PREFIX
	$(call copy_all,$(LIBRARY_INSTALLED))

uninstall:  ## remove what `make install` and `make install-library` have installed
	$(call remove_all,$(INSTALLED) $(LIBRARY_INSTALLED))

clean:  ## remove build/ and ./rlock
	$(Q)rm -rf build rlock rlock-static

help:  ## print this list
	$(Q)awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / { printf "make %-17s %s\n", $$1, $$2 }' \
	    $(filter-out %.d,$(MAKEFILE_LIST))
