/* SPDX-License-Identifier: MIT */
/*
 * syncshim: a disk that is never waited for.
 *
 * usage: LD_PRELOAD=syncshim.so COMMAND
 *
 * Nodes of a Cluster and Sentinels write each change of theirs to the disk and
 * wait for it, for seconds on a machine whose disk is busy; by then the others
 * take them for dead. What is tested doesn't outlive a crash of the machine.
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
