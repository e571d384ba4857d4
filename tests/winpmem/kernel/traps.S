/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exceptions and interrupts. Each vector pushes all registers in the order of struct context
 * (cpu.h) and calls trap(). If trap() returns, the processor resumes where it was.
 */
#include "layout.h"
#include "registers.inc"

#define CONTEXT_RIP 136
#define CONTEXT_FX  176

	.text
	.code64

	/* Vectors for which the processor pushes an error code (SDM vol. 3, table 6-1). */
#define HAS_ERROR(v) ((v) == 8 || ((v) >= 10 && (v) <= 14) || (v) == 17 || (v) == 21 || (v) == 30)

	.globl trap_stubs
	.balign 16
trap_stubs:
	.set	vector, 0
	.rept	48
	.balign 16
	.if	!HAS_ERROR(vector)
	pushq	$0
	.endif
	pushq	$vector
	jmp	trap_common
	.set	vector, vector + 1
	.endr

trap_common:
	push_registers
	pushq	%rax
	cld
	movq	%rsp, %rdi
	call	trap
	popq	%rax
	pop_registers
	addq	$16, %rsp
	iretq

	/* void context_restore(const struct context *): does not return. */
	.globl context_restore
context_restore:
	fxrstor	CONTEXT_FX(%rdi)
	pushq	CONTEXT_RIP + 32(%rdi)	/* ss */
	pushq	CONTEXT_RIP + 24(%rdi)	/* rsp */
	pushq	CONTEXT_RIP + 16(%rdi)	/* rflags */
	pushq	CONTEXT_RIP + 8(%rdi)	/* cs */
	pushq	CONTEXT_RIP(%rdi)
	movq	(%rdi), %rax
	movq	8(%rdi), %rcx
	movq	16(%rdi), %rdx
	movq	24(%rdi), %rbx
	movq	32(%rdi), %rbp
	movq	40(%rdi), %rsi
	movq	56(%rdi), %r8
	movq	64(%rdi), %r9
	movq	72(%rdi), %r10
	movq	80(%rdi), %r11
	movq	88(%rdi), %r12
	movq	96(%rdi), %r13
	movq	104(%rdi), %r14
	movq	112(%rdi), %r15
	movq	48(%rdi), %rdi
	iretq

	.section .note.GNU-stack, "", @progbits
