/*
 * gpu_who.h - is a process that uses the GPU one of ours?
 *
 * Ours are the programs of this build: /proc/PID/exe is a file of our own folder, compared by inode,
 * so that it holds across mount namespaces; and what one of them runs as its child (an engine). Where that may not be looked at (another uid, not
 * dumpable: our confined workers without root) the answer is its parent's. Another build of
 * Touchstone on the same GPU is not ours: its lanes are not our lanes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GPU_WHO_H
#define TS_GPU_WHO_H

enum gpu_who { GPU_WHO_GONE = -1, GPU_WHO_FOREIGN, GPU_WHO_OURS };

/* `bin` is the folder of our programs, with a slash at its end. GONE: no such process here; it has
 * ended, or it lives outside our pid namespace. */
enum gpu_who gpu_who(long pid, const char *bin);
/* The folder of the running program, with a slash at its end; -1 when /proc does not tell. */
int gpu_who_bin(char *out, unsigned size);

#endif
