/* SPDX-License-Identifier: Apache-2.0 */
/*
 * void vbs_run(struct control_block *block, uint64_t block_phys, void *host_stack_top)
 *
 * The call returns as a guest. Each exit of that guest comes back here, on the other stack. VMRUN
 * keeps the guest's rax, rsp, rip and flags in the block; the other registers are saved here around
 * the handler. fs, gs, tr and the like are the same for both.
 */
#include "registers.inc"

#define BLOCK_RIP 0x578
#define BLOCK_RSP 0x5d8

	.text
	.code64
	.globl vbs_run
vbs_run:
	popq	%rax			/* where the guest goes on, */
	movq	%rax, BLOCK_RIP(%rdi)
	movq	%rsp, BLOCK_RSP(%rdi)	/* with the stack that it has then */
	movq	%rdx, %rsp
	pushq	%rdi			/* for the handler */
	pushq	%rsi			/* for VMRUN */
1:	movq	(%rsp), %rax
	vmrun	%rax
	push_registers
	movq	15 * 8(%rsp), %rdi
	call	vbs_exit
	pop_registers
	jmp	1b

	.section .note.GNU-stack, "", @progbits
