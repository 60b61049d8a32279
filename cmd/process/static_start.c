/* SPDX-License-Identifier: MIT */
/*
 * static_start: leaves out of the static program's start what rlock doesn't need.
 *
 * Before main(), glibc asks the kernel by readlink(2) in which folder the program is, as $ORIGIN in
 * a path of libraries would mean that folder. The kernel takes 20 us to tell. The static program
 * has no such path. So the linker (--wrap in the Makefile) replaces the function that asks by this
 * one, which returns what glibc's own returns if /proc is not mounted.
 */
const char *__wrap__dl_get_origin(void);

const char *__wrap__dl_get_origin(void)
{
    return (const char *)-1;
}
