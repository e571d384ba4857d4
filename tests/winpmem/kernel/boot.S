/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From QEMU's entry point to 64-bit C.
 *
 * QEMU, like Xen, starts an ELF file that has this note in 32-bit protected mode: paging off, flat
 * segments, and the address of struct hvm_start_info in ebx (Xen's
 * public/arch-x86/hvm/start_info.h, "PVH"). The number of page-table levels must be chosen here,
 * because CR4.LA57 cannot be changed in long mode (Intel SDM vol. 3, 4.5). The word "la57" on the
 * command line asks for five.
 */
#include "layout.h"

#define PHYS(symbol) (symbol - KERNEL_VA + KERNEL_PHYS)

#define PRESENT_WRITE 0x3
#define LARGE         0x80
#define CR4_PAE       (1 << 5)
#define CR4_LA57      (1 << 12)
#define CR0_PG        (1 << 31)
#define MSR_EFER      0xc0000080
#define EFER_LME      (1 << 8)

#define START_INFO_CMDLINE 24

	.section .note.pvh, "a", @note
	.balign 4
	.long	2f - 1f
	.long	4f - 3f
	.long	18			/* XEN_ELFNOTE_PHYS32_ENTRY */
1:	.asciz	"Xen"
2:	.balign 4
3:	.quad	PHYS(boot_start)
4:

	.section .boot, "ax"
	.code32
	.globl boot_start
boot_start:
	cli
	movl	$PHYS(boot_stack_top), %esp
	call	wants_five_levels
	movl	%eax, %ebp

	/* Map the first 4 GiB at their own addresses, with four directories of large pages. */
	movl	$PHYS(early_low_directories), %edi
	movl	$(PRESENT_WRITE | LARGE), %eax
	movl	$2048, %ecx
1:	movl	%eax, (%edi)
	movl	$0, 4(%edi)
	addl	$LARGE_PAGE, %eax
	addl	$8, %edi
	loop	1b
	movl	$PHYS(early_low_directories) + PRESENT_WRITE, %eax
	movl	%eax, PHYS(early_low_pdpt)
	addl	$PAGE_SIZE, %eax
	movl	%eax, PHYS(early_low_pdpt) + 8
	addl	$PAGE_SIZE, %eax
	movl	%eax, PHYS(early_low_pdpt) + 16
	addl	$PAGE_SIZE, %eax
	movl	%eax, PHYS(early_low_pdpt) + 24
	movl	$PHYS(early_low_pdpt) + PRESENT_WRITE, PHYS(early_pml4)

	/* Map the kernel's image where it is linked. */
	movl	$PHYS(early_kernel_directory) + 8 * ((KERNEL_VA >> 21) & 511), %edi
	movl	$(KERNEL_PHYS + PRESENT_WRITE + LARGE), %eax
	movl	$(KERNEL_EARLY_SIZE / LARGE_PAGE), %ecx
1:	movl	%eax, (%edi)
	addl	$LARGE_PAGE, %eax
	addl	$8, %edi
	loop	1b
	movl	$PHYS(early_kernel_directory) + PRESENT_WRITE, \
		PHYS(early_kernel_pdpt) + 8 * ((KERNEL_VA >> 30) & 511)
	movl	$PHYS(early_kernel_pdpt) + PRESENT_WRITE, \
		PHYS(early_pml4) + 8 * ((KERNEL_VA >> 39) & 511)

	/* With five levels the same table serves both halves. */
	movl	$PHYS(early_pml4) + PRESENT_WRITE, PHYS(early_pml5)
	movl	$PHYS(early_pml4) + PRESENT_WRITE, PHYS(early_pml5) + 8 * 511

	movl	%cr4, %eax
	orl	$CR4_PAE, %eax
	movl	$PHYS(early_pml4), %edx
	testl	%ebp, %ebp
	jz	2f
	orl	$CR4_LA57, %eax
	movl	$PHYS(early_pml5), %edx
2:	movl	%eax, %cr4
	movl	%edx, %cr3
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_LME, %eax
	wrmsr
	movl	%cr0, %eax
	orl	$CR0_PG, %eax
	movl	%eax, %cr0
	lgdt	PHYS(boot_gdt_pointer)
	ljmp	$CODE_SELECTOR, $PHYS(long_mode)

/* Returns 1 in eax if "la57" is on the command line. Preserves ebx. */
wants_five_levels:
	movl	START_INFO_CMDLINE(%ebx), %esi
	xorl	%eax, %eax
	testl	%esi, %esi
	jz	2f
1:	cmpb	$0, (%esi)
	je	2f
	cmpl	$0x3735616c, (%esi)	/* "la57" */
	je	3f
	incl	%esi
	jmp	1b
2:	ret
3:	incl	%eax
	ret

	.code64
long_mode:
	movl	$DATA_SELECTOR, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %fs
	movl	%eax, %gs
	movl	%eax, %ss
	movabsq	$boot_stack_top, %rsp
	movl	%ebx, %edi
	movl	%ebp, %esi
	addl	$4, %esi		/* levels */
	testl	%ebp, %ebp
	xorl	%ebp, %ebp
	movabsq	$kernel_main, %rax
	callq	*%rax
1:	hlt
	jmp	1b

	.balign 8
boot_gdt:
	.quad	0, 0
	.quad	0x00af9b000000ffff	/* CODE_SELECTOR: 64-bit, ring 0 */
	.quad	0x00cf93000000ffff	/* DATA_SELECTOR */
boot_gdt_pointer:
	.word	. - boot_gdt - 1
	.long	PHYS(boot_gdt)

	.bss
	.balign PAGE_SIZE
early_pml5:
	.skip	PAGE_SIZE
early_pml4:
	.skip	PAGE_SIZE
early_low_pdpt:
	.skip	PAGE_SIZE
early_kernel_pdpt:
	.skip	PAGE_SIZE
early_kernel_directory:
	.skip	PAGE_SIZE
early_low_directories:
	.skip	4 * PAGE_SIZE
	.skip	8 * PAGE_SIZE
	.globl boot_stack_top
boot_stack_top:

	.section .note.GNU-stack, "", @progbits
