/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's tables, and the only devices in use: interrupt controllers and a serial port. */
#include "cpu.h"

#define TASK_ENTRY             (TASK_SELECTOR / 8)
#define VECTORS                48

#define FIRST_STACK_OF_ITS_OWN 1 /* IST number */

struct kpcr kpcr __attribute__((aligned(PAGE_SIZE)));

static uint64_t gdt[TASK_ENTRY + 2] = {
	[CODE_SELECTOR / 8] = 0x00af9b000000ffff, /* 64-bit, ring 0 */
	[DATA_SELECTOR / 8] = 0x00cf93000000ffff,
};

/* SDM vol. 3, figure 8-11 */
static struct __attribute__((packed)) {
	uint32_t reserved;
	uint64_t rsp[3];
	uint64_t reserved2;
	uint64_t ist[7];
	uint64_t reserved3;
	uint16_t reserved4, io_map;
} task;

/* SDM vol. 3, figure 6-8 */
static struct gate {
	uint16_t offset_low, selector;
	uint8_t ist, type;
	uint16_t offset_middle;
	uint32_t offset_high, reserved;
} idt[VECTORS];

static uint8_t fault_stack[2 * PAGE_SIZE] __attribute__((aligned(16)));

extern uint8_t trap_stubs[]; /* 16 bytes each */

struct __attribute__((packed)) table_pointer {
	uint16_t limit;
	uint64_t base;
};

static void set_gate(unsigned vector, unsigned ist)
{
	const uint64_t at = (uint64_t)trap_stubs + 16 * vector;

	idt[vector] = (struct gate){
		.offset_low = (uint16_t)at,
		.selector = CODE_SELECTOR,
		.ist = (uint8_t)ist,
		.type = 0x8e, /* present, interrupt gate */
		.offset_middle = (uint16_t)(at >> 16),
		.offset_high = (uint32_t)(at >> 32),
	};
}

static void load_tables(void)
{
	const struct table_pointer g = { sizeof(gdt) - 1, (uint64_t)gdt };
	const struct table_pointer i = { sizeof(idt) - 1, (uint64_t)idt };
	const uint64_t base = (uint64_t)&task;

	/* An available 64-bit TSS (SDM vol. 3, figure 8-4). */
	gdt[TASK_ENTRY] = (sizeof(task) - 1) | (base & 0xffffff) << 16 | (uint64_t)0x89 << 40 |
			  (base >> 24 & 0xff) << 56;
	gdt[TASK_ENTRY + 1] = base >> 32;
	task.ist[FIRST_STACK_OF_ITS_OWN - 1] = (uint64_t)fault_stack + sizeof(fault_stack);
	task.io_map = sizeof(task);
	for (unsigned v = 0; v < VECTORS; v++)
		set_gate(v, v == TRAP_DOUBLE || v == TRAP_MACHINE ? FIRST_STACK_OF_ITS_OWN : 0);
	__asm__ volatile("lgdt %0\n\tlidt %1\n\tltr %w2" ::"m"(g), "m"(i), "r"(TASK_SELECTOR));
}

#define PIC1 0x20
#define PIC2 0xa0

/* Masks every line of both interrupt controllers but the serial port's, IRQ 4. */
static void interrupt_controllers_init(void)
{
	out_byte(PIC1, 0x11);
	out_byte(PIC2, 0x11);
	out_byte(PIC1 + 1, TRAPS);
	out_byte(PIC2 + 1, TRAPS + 8);
	out_byte(PIC1 + 1, 4);
	out_byte(PIC2 + 1, 2);
	out_byte(PIC1 + 1, 1);
	out_byte(PIC2 + 1, 1);
	out_byte(PIC1 + 1, (uint8_t)~(1u << (VECTOR_SERIAL - TRAPS)));
	out_byte(PIC2 + 1, 0xff);
}

#define SERIAL          0x3f8
#define SERIAL_ENABLE   (SERIAL + 1)
#define SERIAL_LINE     (SERIAL + 3)
#define SERIAL_MODEM    (SERIAL + 4)
#define SERIAL_STATUS   (SERIAL + 5)
#define SERIAL_HAS_BYTE 0x01

void cpu_init(void)
{
	load_tables();
	interrupt_controllers_init();
	out_byte(SERIAL_LINE, 0x03);   /* 8 bits */
	out_byte(SERIAL_ENABLE, 0x01); /* interrupt when a byte has arrived */
	out_byte(SERIAL_MODEM, 0x0b);  /* OUT2 lets the interrupt out */
	write_cr0((read_cr0() | CR0_MP | CR0_WP) & ~(uint64_t)CR0_EM);
	write_cr4(read_cr4() | CR4_OSFXSR | CR4_OSXMMEXCPT);
	write_msr(MSR_EFER, read_msr(MSR_EFER) | EFER_NXE);
	kpcr.self = &kpcr;
	kpcr.current_prcb = (uint8_t *)&kpcr + 0x180;
	write_msr(MSR_GS_BASE, (uint64_t)&kpcr);
}

/* sti takes effect after the next instruction, so no byte can slip in between the two. */
uint8_t cpu_wait_for_byte(void)
{
	while (!(in_byte(SERIAL_STATUS) & SERIAL_HAS_BYTE))
		__asm__ volatile("sti\n\thlt\n\tcli" ::: "memory");
	return in_byte(SERIAL);
}

uint64_t *context_register(struct context *c, unsigned number)
{
	uint64_t *const registers[] = { &c->rax, &c->rcx, &c->rdx, &c->rbx, &c->rsp, &c->rbp,
					&c->rsi, &c->rdi, &c->r8,  &c->r9,  &c->r10, &c->r11,
					&c->r12, &c->r13, &c->r14, &c->r15 };

	return registers[number & 15];
}
