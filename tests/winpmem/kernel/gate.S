/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the driver's calls into the kernel arrive (gate.h), and how threads switch.
 *
 * A driver's imports point at stubs here, not at the functions. A stub records where the caller
 * will resume and the registers that a function must preserve in Microsoft's x64 convention: rbx,
 * rbp, rsi, rdi, r12 to r15. So the kernel function can raise an exception at the caller, whatever
 * it has done to the registers since. Arguments stay where they are; only the return address is
 * replaced.
 */
#include "gate_offsets.h"

	.text
	.code64

	.globl gate_stubs
	.balign 16
gate_stubs:
	.set	number, 0
	.rept	GATE_STUBS
	.balign GATE_STUB_SIZE
	movl	$number, %r11d
	jmp	gate_entry
	.set	number, number + 1
	.endr

	.balign 16
gate_entry:
	movq	%gs:KPCR_THREAD, %r10
	movq	THREAD_TOP(%r10), %rax
	addq	$FRAME_SIZE, THREAD_TOP(%r10)
	movq	(%rsp), %r10
	movq	%r10, FRAME_RIP(%rax)
	leaq	8(%rsp), %r10
	movq	%r10, FRAME_RSP(%rax)
	movq	%rbx, FRAME_RBX(%rax)
	movq	%rbp, FRAME_RBP(%rax)
	movq	%rsi, FRAME_RSI(%rax)
	movq	%rdi, FRAME_RDI(%rax)
	movq	%r12, FRAME_R12(%rax)
	movq	%r13, FRAME_R13(%rax)
	movq	%r14, FRAME_R14(%rax)
	movq	%r15, FRAME_R15(%rax)
	movq	%rcx, FRAME_ARG(%rax)
	movq	%rdx, FRAME_ARG + 8(%rax)
	movq	%r8, FRAME_ARG + 16(%rax)
	movq	%r9, FRAME_ARG + 24(%rax)
	movq	%r11, FRAME_NUMBER(%rax)
	leaq	gate_return(%rip), %r10
	movq	%r10, (%rsp)

	/* rsp is 8 below a multiple of 16, as after any call */
	movq	%rax, %rcx
	subq	$0x28, %rsp
	call	gate_enter		/* rax: the function */
	addq	$0x28, %rsp
	movq	%gs:KPCR_THREAD, %r10
	movq	THREAD_TOP(%r10), %r10
	movq	FRAME_ARG - FRAME_SIZE(%r10), %rcx
	movq	FRAME_ARG + 8 - FRAME_SIZE(%r10), %rdx
	movq	FRAME_ARG + 16 - FRAME_SIZE(%r10), %r8
	movq	FRAME_ARG + 24 - FRAME_SIZE(%r10), %r9
	jmp	*%rax

gate_return:
	subq	$0x30, %rsp
	movq	%rax, 0x20(%rsp)
	movq	%rax, %rcx
	call	gate_leave		/* rax: where the caller resumes */
	movq	%rax, 0x28(%rsp)
	movq	0x20(%rsp), %rax
	addq	$0x28, %rsp
	ret

	/*
	 * void thread_switch(struct thread *from, struct thread *to): returns when `from` is
	 * switched to.
	 */
	.globl thread_switch
thread_switch:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, THREAD_RSP(%rdi)
	movq	THREAD_RSP(%rsi), %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret

	/* Where a new thread begins; rbx is the struct thread. thread_main() does not return. */
	.globl thread_start
thread_start:
	movq	%rbx, %rdi
	xorl	%ebp, %ebp
	call	thread_main
	ud2

	.section .note.GNU-stack, "", @progbits
