/* SPDX-License-Identifier: MIT */
/*
 * syncshim: keeps a server from waiting for the disk: fsync(2) and fdatasync(2) do nothing.
 *
 * usage: LD_PRELOAD=syncshim.so COMMAND
 *
 * Nodes of a Cluster and Sentinels write each change of their configuration to the disk, and wait
 * until the disk has it. If the disk is busy, that takes seconds, and the other nodes take the
 * waiting node for dead. The tests don't need what is on the disk after a crash of the machine.
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
