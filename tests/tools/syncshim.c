/* SPDX-License-Identifier: MIT */
/*
 * syncshim: keeps a server from waiting for the disk: fsync(2) and fdatasync(2) do nothing.
 *
 * usage: LD_PRELOAD=syncshim.so COMMAND
 *
 * Nodes of a Cluster and Sentinels wait until the disk has each change of their configuration. If
 * the disk is busy, that takes seconds, and other nodes take the waiting one for dead.
 */
int fsync(int fd);
int fdatasync(int fd);

int fsync(int fd)
{
    (void)fd;
    return 0;
}

int fdatasync(int fd)
{
    return fsync(fd);
}
