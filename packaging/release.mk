# SPDX-License-Identifier: MIT
#
# release.mk: what is published. The Makefile includes this file.
#
# Everything is made from the commit HEAD, never from the files of the work tree, and is the same,
# byte for byte, wherever and whenever it is made from that commit with the same compiler.

RELEASE := build/release
TARBALL := $(RELEASE)/rlock-$(VERSION).tar.gz
# The time of the commit, which tools write into packages instead of the time of the build.
EPOCH    = $(shell git log -1 --format=%ct)

.PHONY: dist deb rpm release check-tag check-names check-signature names sign publish abi \
        test-packages test-piuparts test-reproducible test-release
dist:  ## pack the sources of HEAD as build/release/rlock-VERSION.tar.gz
	$(Q)mkdir -p $(RELEASE) && \
	git archive --format=tar --prefix=rlock-$(VERSION)/ HEAD | gzip -9 -n >$(TARBALL)

# $(call unpack,DIR): empties DIR, and unpacks the sources of HEAD as DIR/rlock-VERSION.
unpack = rm -rf $(1) && mkdir -p $(1) && tar -xzf $(TARBALL) -C $(1)

deb: dist  ## build the Debian packages into build/release
	$(Q)tests/tools/deps.sh deb
	$(Q)$(call unpack,build/deb)
	$(Q)cp $(TARBALL) build/deb/rlock_$(VERSION).orig.tar.gz
	$(Q)cp -R build/deb/rlock-$(VERSION)/packaging/debian build/deb/rlock-$(VERSION)/debian
	$(Q)cd build/deb/rlock-$(VERSION) && SOURCE_DATE_EPOCH=$(EPOCH) dpkg-buildpackage -us -uc
	$(Q)cp build/deb/*.deb build/deb/*.dsc build/deb/*.debian.tar.xz build/deb/*.orig.tar.gz \
	    $(RELEASE)/

rpm: dist  ## build the RPM packages into build/release
	$(Q)tests/tools/deps.sh rpm
	$(Q)rm -rf build/rpm && mkdir -p build/rpm
	$(Q)SOURCE_DATE_EPOCH=$(EPOCH) rpmbuild -ba --define '_topdir $(CURDIR)/build/rpm' --nodeps \
	    --define '_sourcedir $(CURDIR)/$(RELEASE)' packaging/rlock.spec
	$(Q)rpmlint -r packaging/rpmlintrc build/rpm/RPMS/*/*.rpm build/rpm/SRPMS/*.rpm
	$(Q)cp build/rpm/RPMS/*/*.rpm build/rpm/SRPMS/*.rpm $(RELEASE)/

test-packages:  ## as root: build, install, test and remove the packages in clean Debian 12 and 13
	$(Q)tests/tools/deps.sh distros
	$(Q)tests/tools/distros.sh bookworm trixie -- tests/tools/deb.sh

test-release:  ## as root: after make release, install its .debs in clean Debian 12 and 13
	$(Q)tests/tools/deps.sh distros
	$(Q)tests/tools/distros.sh --deb "$$(echo $(RELEASE)/rlock_*.deb)" bookworm trixie

# Each release gets packages of its own, because they need the hiredis of the release on which they
# were built.
test-piuparts:  ## as root: piuparts installs and purges the packages in clean Debian 12 and 13
	$(Q)tests/tools/deps.sh distros
	$(Q)tests/tools/distros.sh bookworm trixie -- tests/tools/piuparts.sh

abi:  ## fail if librlock.so.0 breaks programs that use the last release's library
	$(Q)tests/tools/deps.sh abi
	$(Q)tests/tools/abi.sh CFLAGS='$(CFLAGS)' $(HARDENING:%=HARDENING=%)

test-reproducible:  ## check that clones at two paths, a day apart, build the same files
	$(Q)tests/tools/deps.sh reproducible
	$(Q)tests/tools/reproducible.sh

# Where the sources of HEAD are unpacked, and the programs are built. ARCH, RELEASE_DEBS: what is
# built; all that tests/tools/arch.sh knows.
STATIC_RELEASE = build/static-release/rlock-$(VERSION)
RELEASE_DEBS   = amd64 arm64

release:  ## build all that is published, in build/release; SIGN_KEY=FILE signs it
	$(Q)tests/tools/deps.sh release
	$(Q)rm -rf $(RELEASE)
	$(Q)$(MAKE) dist
	$(Q)$(call unpack,build/static-release)
	$(Q)MAKEFLAGS= $(STATIC_RELEASE)/tests/tools/arch.sh --release $(abspath $(RELEASE)) $(ARCH)
	$(Q)set -e; for arch in $(filter $(or $(ARCH),$(RELEASE_DEBS)),$(RELEASE_DEBS)); do \
	    SOURCE_DATE_EPOCH=$(EPOCH) $(STATIC_RELEASE)/packaging/static_deb.sh $$arch \
	        $(CURDIR)/$(RELEASE)/rlock-$(VERSION)-linux-$$arch $(CURDIR)/$(RELEASE); \
	    lintian --allow-root --fail-on error,warning $(RELEASE)/rlock_$(VERSION)_$$arch.deb; done
	$(Q)sed 's/@VERSION@/$(VERSION)/g; s/@DATE@/'"$$(date -u -d @$(EPOCH) +%Y-%m-%dT%H:%M:%SZ)/" \
	    packaging/rlock.spdx.in >$(RELEASE)/rlock-$(VERSION).spdx
	$(Q)awk -f packaging/libraries.awk $(STATIC_RELEASE)/build/static-*/rlock.libraries \
	    >>$(RELEASE)/rlock-$(VERSION).spdx
	$(Q)cp $(STATIC_RELEASE)/packaging/gitlab-ci.yml $(RELEASE)/rlock-gitlab-ci.yml
	$(Q)cd $(RELEASE) && sha256sum -- * >SHA256SUMS && cat SHA256SUMS
	$(Q)$(if $(SIGN_KEY),$(MAKE) sign,echo "release: nothing is signed, so make publish will \
	refuse it; sign by: make sign SIGN_KEY=FILE" >&2)

# What a signature is for; `ssh-keygen -Y verify -n` asks for the same word.
SIGNED := rlock-release

sign:  ## sign build/release/SHA256SUMS by the private key in SIGN_KEY=FILE or $SIGN_KEY_TEXT
	$(Q)test -n "$(SIGN_KEY)$${SIGN_KEY_TEXT:-}" || { \
	echo "sign: no key: name its file by SIGN_KEY=FILE" >&2; exit 1; }
	$(Q)umask 077; rm -f $(RELEASE)/SHA256SUMS.sig; file='$(SIGN_KEY)'; \
	test -n "$$file" || { file=build/sign_key; printf '%s\n' "$$SIGN_KEY_TEXT" >$$file; }; \
	ssh-keygen -q -Y sign -n $(SIGNED) -f "$$file" $(RELEASE)/SHA256SUMS; \
	status=$$?; rm -f build/sign_key; chmod 644 $(RELEASE)/SHA256SUMS.sig && exit $$status

check-signature:  ## fail unless SHA256SUMS is signed by the key of packaging/names, and is right
	$(Q)cd $(RELEASE) && { test -e SHA256SUMS.sig || { \
	echo "release: nothing is signed; sign by: make sign SIGN_KEY=FILE" >&2; exit 1; }; }
	$(Q)sed -n 's/^KEY *= */rlock /p' packaging/names >build/signers
	$(Q)ssh-keygen -Y verify -f build/signers -I rlock -n $(SIGNED) \
	    -s $(RELEASE)/SHA256SUMS.sig <$(RELEASE)/SHA256SUMS >build/signature.log 2>&1 || { \
	cat build/signature.log >&2; \
	echo "release: SHA256SUMS is not signed by the KEY of packaging/names" >&2; exit 1; }
	$(Q)cd $(RELEASE) && sha256sum --check --strict --quiet SHA256SUMS

check-tag:  ## fail unless HEAD has the tag vVERSION
	$(Q)test -n "$$(git tag --points-at HEAD --list v$(VERSION))" || { \
	echo "release: HEAD does not have the tag v$(VERSION), the version of lib/rlock.h" >&2; exit 1; }

# The name of a placeholder is the same everywhere, and no name of anybody else's.
PLACEHOLDER := placeholder.example

check-names:  ## fail if packaging/names, or a file that has its values, has a placeholder
	$(Q)! git grep -nIF $(PLACEHOLDER) -- . ':!tests' ':!$(lastword $(MAKEFILE_LIST))' || { \
	echo "release: these are placeholders: edit packaging/names, run make names, and commit" >&2; \
	exit 1; }

names:  ## after packaging/names was edited: write its values into all files that have them
	$(Q)packaging/carry_names.pl

publish: check-tag check-names check-signature  ## after make release: upload build/release to GitHub as release vVERSION
	$(Q)tests/tools/deps.sh publish
	$(Q)gh release create v$(VERSION) --verify-tag --title 'rlock $(VERSION)' \
	    --notes 'CHANGELOG.md says what is new.' $(RELEASE)/SHA256SUMS $(RELEASE)/SHA256SUMS.sig \
	    $$(sed 's,^[^ ]*  ,$(RELEASE)/,' $(RELEASE)/SHA256SUMS)
