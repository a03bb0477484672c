/* Saves one fiber's registers and loads another's: assembly for x86-64 and aarch64.
 *
 * SPDX-License-Identifier: MIT
 *
 * Only what a called function must preserve is kept. Elsewhere ucontext does the work, at
 * the price of two signal-mask system calls for each switch.
 */
#include "rt.h"

#if defined(__x86_64__) && !defined(EMU_UCONTEXT)
__asm__(
    ".text\n.globl emu_switch\n.type emu_switch,@function\n.p2align 5\nemu_switch:\n"
    "	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
    "	mov %rsp,(%rdi)\n	mov %rsi,%rsp\n"
    "	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
    "	ret\n.size emu_switch,.-emu_switch\n");

void *emu_stack_prepare(char *top, void (*entry)(void))
{
	/* at entry the stack pointer is 8 modulo 16, as after a call */
	uint64_t *sp = (uint64_t *)(void *)top - 2;
	sp[0] = (uint64_t)(uintptr_t)entry;
	sp[1] = 0;
	sp -= 6;
	for (int i = 0; i < 6; i++)
		sp[i] = 0;
	return sp;
}

#elif defined(__aarch64__) && !defined(EMU_UCONTEXT)
__asm__(".text\n.globl emu_switch\n.type emu_switch,%function\n.p2align 5\nemu_switch:\n"
	"	sub sp,sp,#160\n"
	"	stp x19,x20,[sp]\n	stp x21,x22,[sp,#16]\n	stp x23,x24,[sp,#32]\n"
	"	stp x25,x26,[sp,#48]\n	stp x27,x28,[sp,#64]\n	stp x29,x30,[sp,#80]\n"
	"	stp d8,d9,[sp,#96]\n	stp d10,d11,[sp,#112]\n	stp d12,d13,[sp,#128]\n"
	"	stp d14,d15,[sp,#144]\n"
	"	mov x9,sp\n	str x9,[x0]\n	mov sp,x1\n"
	"	ldp x19,x20,[sp]\n	ldp x21,x22,[sp,#16]\n	ldp x23,x24,[sp,#32]\n"
	"	ldp x25,x26,[sp,#48]\n	ldp x27,x28,[sp,#64]\n	ldp x29,x30,[sp,#80]\n"
	"	ldp d8,d9,[sp,#96]\n	ldp d10,d11,[sp,#112]\n	ldp d12,d13,[sp,#128]\n"
	"	ldp d14,d15,[sp,#144]\n"
	"	add sp,sp,#160\n	ret\n.size emu_switch,.-emu_switch\n");

void *emu_stack_prepare(char *top, void (*entry)(void))
{
	uint64_t *sp = (uint64_t *)(void *)top - 20;
	for (int i = 0; i < 20; i++)
		sp[i] = 0;
	sp[11] = (uint64_t)(uintptr_t)entry; /* x30 */
	return sp;
}

#else
#include <ucontext.h>

void emu_switch(void **save_sp, void *load_sp)
{
	ucontext_t here;
	*save_sp = &here;
	swapcontext(&here, load_sp);
}

void *emu_stack_prepare(char *top, void (*entry)(void))
{
	ucontext_t *u = (ucontext_t *)(void *)(top - sizeof *u - 64);
	getcontext(u);
	u->uc_stack.ss_sp = top - 56 * 1024;
	u->uc_stack.ss_size = 56 * 1024 - sizeof *u - 128;
	u->uc_link = NULL;
	makecontext(u, entry, 0);
	return u;
}
#endif
