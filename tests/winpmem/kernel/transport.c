/* SPDX-License-Identifier: Apache-2.0 */
#include "transport.h"

#include "cpu.h"

#define SERIAL        0x3f8
#define SERIAL_STATUS (SERIAL + 5)
#define SERIAL_EMPTY  0x20

struct mailbox mailbox __attribute__((section(".mailbox")));

void transport_ring(void)
{
	__asm__ volatile("" ::: "memory");
	while (!(in_byte(SERIAL_STATUS) & SERIAL_EMPTY))
		;
	out_byte(SERIAL, '!');
}

void transport_wait(void)
{
	cpu_wait_for_byte();
	__asm__ volatile("" ::: "memory");
}

void log_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		mailbox.log[mailbox.log_len++ % LOG_SIZE] = text[i];
}

static void say_line(const char *prefix, const char *fmt, const uint64_t *args)
{
	char line[512];
	const size_t len = format(line, sizeof(line), fmt, args, LONG_64);

	log_text(prefix, strlen(prefix));
	log_text(line, len);
	log_text("\n", 1);
}

void NTAPI say(const char *fmt, ...)
{
	__builtin_ms_va_list args;

	__builtin_ms_va_start(args, fmt);
	say_line("", fmt, (const uint64_t *)args);
	__builtin_ms_va_end(args);
}

void NTAPI complain(const char *fmt, ...)
{
	__builtin_ms_va_list args;

	mailbox.counters.complaints++;
	__builtin_ms_va_start(args, fmt);
	say_line("! ", fmt, (const uint64_t *)args);
	__builtin_ms_va_end(args);
}
