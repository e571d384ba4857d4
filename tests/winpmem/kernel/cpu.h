/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor: registers, tables (GDT, IDT, TSS) and exceptions (traps.S). Bits and layouts are
 * from the Intel SDM, vol. 3.
 */
#ifndef WINPMEM_KERNEL_CPU_H
#define WINPMEM_KERNEL_CPU_H

#include "kernel.h"

#define CR0_MP             (1u << 1)
#define CR0_EM             (1u << 2)
#define CR0_WP             (1u << 16)
#define CR4_OSFXSR         (1u << 9)
#define CR4_OSXMMEXCPT     (1u << 10)
#define CR4_LA57           (1u << 12)

#define MSR_EFER           0xc0000080
#define EFER_NXE           (1u << 11)
#define EFER_SVME          (1u << 12)
#define MSR_GS_BASE        0xc0000101

#define TRAP_DIVIDE        0
#define TRAP_DEBUG         1
#define TRAP_BREAKPOINT    3
#define TRAP_INVALID       6
#define TRAP_DOUBLE        8
#define TRAP_GENERAL       13
#define TRAP_PAGE          14
#define TRAP_MACHINE       18
#define TRAPS              32

/* The two PICs' interrupts follow the processor's own vectors. */
#define VECTOR_SERIAL      (TRAPS + 4)

#define PAGE_FAULT_PRESENT 0x1
#define PAGE_FAULT_WRITE   0x2

#define READ_REGISTER(name)                                                                        \
	static inline uint64_t read_##name(void)                                                   \
	{                                                                                          \
		uint64_t value;                                                                    \
		__asm__ volatile("mov %%" #name ", %0" : "=r"(value)::"memory");                   \
		return value;                                                                      \
	}
#define WRITE_REGISTER(name)                                                                       \
	static inline void write_##name(uint64_t value)                                            \
	{                                                                                          \
		__asm__ volatile("mov %0, %%" #name ::"r"(value) : "memory");                      \
	}

READ_REGISTER(cr0)
READ_REGISTER(cr2)
READ_REGISTER(cr3)
READ_REGISTER(cr4)
READ_REGISTER(cr8)
WRITE_REGISTER(cr0)
WRITE_REGISTER(cr3)
WRITE_REGISTER(cr4)
WRITE_REGISTER(cr8)

static inline uint64_t read_msr(uint32_t number)
{
	uint32_t low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number));
	return (uint64_t)high << 32 | low;
}

static inline void write_msr(uint32_t number, uint64_t value)
{
	__asm__ volatile("wrmsr" ::"c"(number), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}

static inline void flush_tlb_page(uint64_t va)
{
	__asm__ volatile("invlpg (%0)" ::"r"(va) : "memory");
}

static inline uint8_t in_byte(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static inline void out_byte(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port));
}

static inline uint64_t ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* On x64 the IRQL is the task priority register, CR8. */
static inline unsigned irql(void)
{
	return (unsigned)read_cr8();
}

static inline void set_irql(unsigned level)
{
	write_cr8(level);
}

/*
 * All registers; the SSE ones as FXSAVE writes them. traps.S pushes the first part in this order
 * and knows the offsets. context_restore() resumes at such a context.
 */
struct context {
	uint64_t rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t vector, error;
	uint64_t rip, cs, rflags, rsp, ss; /* as the processor pushes them */
	uint8_t fx[512] __attribute__((aligned(16)));
};

/* What traps.S pushes. */
#define TRAP_FRAME_SIZE offsetof(struct context, fx)

#define FX_XMM(number)  (160 + 16 * (number)) /* SDM vol. 1, table 10-2 */

_Noreturn void context_restore(const struct context *c);

static inline void save_fx(struct context *c)
{
	__asm__ volatile("fxsave (%0)" ::"r"(c->fx) : "memory");
}

/* The general register with that number in UNWIND_INFO (and in ModRM). */
uint64_t *context_register(struct context *c, unsigned number);

/*
 * KPCR with its KPRCB, as far as drivers read it through gs: KPCR.Self at 0x18, and the PRCB's
 * CurrentThread at 0x188.
 */
struct kpcr {
	uint8_t opaque[0x18];
	struct kpcr *self;
	void *current_prcb;
	uint8_t opaque2[0x188 - 0x28];
	void *current_thread;
	uint8_t opaque3[PAGE_SIZE - 0x190];
};

extern struct kpcr kpcr;

/* Sets up GDT, IDT, TSS, gs, and the serial port's interrupt. */
void cpu_init(void);

/* Halts until the serial port has a byte, and takes it. */
uint8_t cpu_wait_for_byte(void);

#endif
