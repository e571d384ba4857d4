/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD64 Architecture Programmer's Manual vol. 2, chapter 15 ("Secure Virtual Machine"), 15.25 for
 * nested paging, and appendix B for the layout of the control block.
 */
#include "vbs.h"

#include "cpu.h"
#include "paging.h"

#define MSR_VM_HSAVE_PA    0xc0010117

#define CPUID_EXTENDED     0x80000001
#define CPUID_SVM          (1u << 2) /* ecx */
#define CPUID_SVM_LEAF     0x8000000a
#define CPUID_NPT          (1u << 0) /* edx */

#define INTERCEPT_SHUTDOWN (1u << 31)
#define INTERCEPT_VMRUN    (1u << 0)
#define INTERCEPT_VMMCALL  (1u << 1)

#define EXIT_SHUTDOWN      0x7f
#define EXIT_VMMCALL       0x81
#define EXIT_NPF           0x400

#define EVENT_VALID        (1u << 31)
#define EVENT_ERROR        (1u << 11)
#define EVENT_EXCEPTION    (3u << 8)

#define VMMCALL_LENGTH     3

struct segment {
	uint16_t selector, attributes;
	uint32_t limit;
	uint64_t base;
};

/* VMCB; what is not named stays 0. */
struct control_block {
	uint8_t opaque[0x0c];
	uint32_t intercepts, intercepts2;
	uint8_t opaque1[0x58 - 0x14];
	uint32_t asid, tlb_control;
	uint8_t opaque2[0x70 - 0x60];
	uint64_t exit_code, exit_info1, exit_info2, exit_interrupt;
	uint64_t nested_enable;
	uint8_t opaque3[0xa8 - 0x98];
	uint64_t event;
	uint64_t nested_cr3;
	uint8_t opaque4[0x400 - 0xb8];
	struct segment es, cs, ss, ds, fs, gs, gdtr, ldtr, idtr, tr;
	uint8_t opaque5[0x4cb - 0x4a0];
	uint8_t cpl;
	uint32_t reserved;
	uint64_t efer;
	uint8_t opaque6[0x548 - 0x4d8];
	uint64_t cr4, cr3, cr0, dr7, dr6, rflags, rip;
	uint8_t opaque7[0x5d8 - 0x580];
	uint64_t rsp;
	uint8_t opaque8[0x5f8 - 0x5e0];
	uint64_t rax;
	uint8_t opaque9[0x668 - 0x600];
	uint64_t pat;
	uint8_t opaque10[0x1000 - 0x670];
};

_Static_assert(offsetof(struct control_block, exit_code) == 0x70, "EXITCODE");
_Static_assert(offsetof(struct control_block, event) == 0xa8, "EVENTINJ");
_Static_assert(offsetof(struct control_block, es) == 0x400, "state save area");
_Static_assert(offsetof(struct control_block, efer) == 0x4d0, "EFER");
_Static_assert(offsetof(struct control_block, rip) == 0x578, "RIP");
_Static_assert(offsetof(struct control_block, rsp) == 0x5d8, "RSP");
_Static_assert(sizeof(struct control_block) == PAGE_SIZE, "VMCB");

static struct control_block block __attribute__((aligned(PAGE_SIZE)));
static uint8_t host_save[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static uint8_t host_stack[2 * PAGE_SIZE] __attribute__((aligned(16)));
static uint64_t nested_root;
static uint64_t event_vector = TRAP_GENERAL;

/* vbs.S: returns as a guest. Its exits call vbs_exit(), on the other stack. */
void vbs_run(struct control_block *block, uint64_t block_phys, void *host_stack_top);
void vbs_exit(struct control_block *block);

static uint64_t phys_of(const void *kernel)
{
	return (uint64_t)kernel - KERNEL_VA + KERNEL_PHYS;
}

void vbs_set_event(uint64_t vector)
{
	event_vector = vector;
}

/* --- nested page tables: the first 512 GiB at their own addresses --- */

#define NESTED_FLAGS (PTE_PRESENT | PTE_WRITE | PTE_USER)

static void split(uint64_t *entry, uint64_t piece)
{
	const uint64_t table = frame_take(), from = *entry & PTE_FRAME;

	for (uint64_t i = 0; i < 512; i++)
		((uint64_t *)window(table))[i] =
			(from + i * piece) | NESTED_FLAGS | (piece > PAGE_SIZE ? PTE_LARGE : 0);
	*entry = table | NESTED_FLAGS;
}

static uint64_t *nested_entry(uint64_t pfn)
{
	const unsigned shifts[] = { 30, 21, 12 };
	uint64_t *e = (uint64_t *)window(nested_root);

	for (unsigned i = 0; i < 3; i++) {
		if (i && *e & PTE_LARGE)
			split(e, (uint64_t)1 << shifts[i]);
		e = (uint64_t *)window(*e & PTE_FRAME) + (pfn * PAGE_SIZE >> shifts[i] & 511);
	}
	return e;
}

static void make_nested_tables(void)
{
	const uint64_t directory = frame_take();

	nested_root = frame_take();
	memset(window(nested_root), 0, PAGE_SIZE);
	*(uint64_t *)window(nested_root) = directory | NESTED_FLAGS;
	for (uint64_t i = 0; i < 512; i++)
		((uint64_t *)window(directory))[i] = i << 30 | NESTED_FLAGS | PTE_LARGE;
}

/* --- the guest's exits --- */

/* As a fault of the reading instruction; it does not say which page. */
static void raise_in_guest(struct control_block *b)
{
	const bool has_error = event_vector != TRAP_MACHINE;

	b->event = event_vector | EVENT_EXCEPTION | EVENT_VALID | (has_error ? EVENT_ERROR : 0);
}

void vbs_exit(struct control_block *b)
{
	b->event = 0;
	b->tlb_control = 0;
	switch (b->exit_code) {
	case EXIT_NPF:
		raise_in_guest(b);
		break;
	case EXIT_VMMCALL:
		b->tlb_control = 1; /* nested tables have changed */
		b->rip += VMMCALL_LENGTH;
		break;
	default:
		bug_check(NULL, HOST_CANNOT, b->exit_code, b->exit_info1, b->exit_info2, b->rip);
	}
}

static void hypercall(void)
{
	__asm__ volatile("vmmcall" ::: "memory");
}

ntstatus vbs_hide(uint64_t pfn, uint64_t count, bool on)
{
	if (!mailbox.vbs)
		return STATUS_INVALID_DEVICE_REQUEST;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t *const e = nested_entry(pfn + i);

		*e = (pfn + i) * PAGE_SIZE | (on ? 0 : NESTED_FLAGS);
	}
	hypercall();
	return STATUS_SUCCESS;
}

/* --- becoming a guest --- */

static bool can_svm(void)
{
	uint32_t a = CPUID_EXTENDED, b, c = 0, d;

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (!(c & CPUID_SVM))
		return false;
	a = CPUID_SVM_LEAF;
	c = 0;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return d & CPUID_NPT;
}

static void copy_segments(struct control_block *b)
{
	struct __attribute__((packed)) {
		uint16_t limit;
		uint64_t base;
	} g, i;

	__asm__("sgdt %0\n\tsidt %1" : "=m"(g), "=m"(i));
	b->cs = (struct segment){ CODE_SELECTOR, 0xa9b, UINT32_MAX, 0 };
	b->ss = (struct segment){ DATA_SELECTOR, 0xc93, UINT32_MAX, 0 };
	b->ds = b->ss;
	b->es = b->ss;
	b->gdtr = (struct segment){ 0, 0, g.limit, g.base };
	b->idtr = (struct segment){ 0, 0, i.limit, i.base };
}

bool vbs_enter(void)
{
	if (!can_svm())
		return false;
	make_nested_tables();
	write_msr(MSR_EFER, read_msr(MSR_EFER) | EFER_SVME);
	write_msr(MSR_VM_HSAVE_PA, phys_of(host_save));
	copy_segments(&block);
	block.intercepts = INTERCEPT_SHUTDOWN;
	block.intercepts2 = INTERCEPT_VMRUN | INTERCEPT_VMMCALL;
	block.asid = 1;
	block.nested_enable = 1;
	block.nested_cr3 = nested_root;
	block.efer = read_msr(MSR_EFER);
	block.cr0 = read_cr0();
	block.cr3 = read_cr3();
	block.cr4 = read_cr4();
	block.rflags = 0x2;
	block.dr6 = 0xffff0ff0;
	block.dr7 = 0x400;
	block.pat = 0x0007040600070406;
	vbs_run(&block, phys_of(&block), host_stack + sizeof(host_stack));
	return true;
}
