/* The system calls that an emulated kernel image makes, from its first instruction to its exit.
 *
 * SPDX-License-Identifier: MIT
 *
 * The same for all three builds. A launcher allows these, and execve once, and kills for all
 * others; tests/emu/drive.c does so for every test. Use: define EMU_CALL(name), include.
 * EMU_CALL_X86 are those that only x86-64 has. The image opens no file and makes no socket,
 * process or thread.
 */
/* start of a static glibc program */
EMU_CALL(brk)
EMU_CALL(set_tid_address)
EMU_CALL(set_robust_list)
EMU_CALL(rseq)
EMU_CALL(prlimit64)
EMU_CALL(readlinkat)
EMU_CALL(getrandom)
EMU_CALL_X86(arch_prctl)
EMU_CALL_X86(readlink)
/* memory */
EMU_CALL(mmap)
EMU_CALL(munmap)
EMU_CALL(mprotect)
EMU_CALL(madvise)
/* commands, the script, replies */
EMU_CALL(read)
EMU_CALL(pread64)
EMU_CALL(write)
/* faults and preemption */
EMU_CALL(rt_sigaction)
EMU_CALL(rt_sigprocmask)
EMU_CALL(rt_sigreturn)
EMU_CALL(restart_syscall)
EMU_CALL(sigaltstack)
EMU_CALL(setitimer)
/* where the vdso does not answer */
EMU_CALL(clock_gettime)
EMU_CALL(exit_group)
