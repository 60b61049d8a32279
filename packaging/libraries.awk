# libraries: writes the part of the release's list of software (SPDX) that is about the libraries in
# the static programs. Reads build/static-ARCH/rlock.libraries: lines of a Debian source package and
# its version, as tests/tools/arch.sh finds them in the linker's map.

BEGIN {
    license["gcc"] = "GPL-3.0-or-later WITH GCC-exception-3.1"
    license["glibc"] = "LGPL-2.1-or-later"
    license["hiredis"] = "BSD-3-Clause"
    license["libzstd"] = "BSD-3-Clause"
    license["openssl"] = "Apache-2.0"
    license["zlib"] = "Zlib"
}

FNR == 1 {
    arch = FILENAME
    sub(/.*static-/, "", arch)
    sub(/\/.*/, "", arch)
}

!($1 in license) || $2 == "unknown" {
    print FILENAME ": " $0 ": no license, or no version, is known" >"/dev/stderr"
    exit failed = 1
}

!($1 in seen_name) || !(($1, $2) in archs) { order[++n] = $1 SUBSEP $2 }

{
    seen_name[$1]
    archs[$1, $2] = archs[$1, $2] " " arch
}

END {
    if (failed || n == 0)
        exit 1
    for (i = 1; i <= n; i++) {
        split(order[i], part, SUBSEP)
        id = "SPDXRef-" part[1] "-" part[2]
        gsub(/[^A-Za-z0-9.-]/, "-", id)
        print ""
        print "PackageName: " part[1]
        print "SPDXID: " id
        print "PackageVersion: " part[2]
        print "PackageSupplier: Organization: Debian"
        print "PackageDownloadLocation: NOASSERTION"
        print "FilesAnalyzed: false"
        print "PackageLicenseConcluded: " license[part[1]]
        print "PackageLicenseDeclared: " license[part[1]]
        print "PackageCopyrightText: NOASSERTION"
        print "PackageComment: In the programs and packages for" archs[order[i]] "."
        print "Relationship: SPDXRef-rlock STATIC_LINK " id
    }
}
