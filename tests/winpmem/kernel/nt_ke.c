/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ke and Ex: IRQL, affinity, events, fast mutexes, pool, and probing. Also everything about this
 * Windows that can be chosen.
 */
#include "cpu.h"
#include "gate.h"
#include "memory.h"
#include "nt_variables.h"
#include "ntoskrnl.h"
#include "paging.h"
#include "pool.h"
#include "seh.h"
#include "thread.h"
#include "vbs.h"

uint64_t nt_processors = 1;
uint32_t NtBuildNumber = 0xf0004a61; /* 19041, free build */
bool nt_has_secure_device;
bool nt_is_lenient;

ntstatus variable_set(uint64_t setting, uint64_t value)
{
	switch (setting) {
	case SET_FAIL_AT:
		allocation_fail_at(value);
		break;
	case SET_JUNK:
		pool_set_junk(value);
		break;
	case SET_IOSPACE:
		memory_set_iospace(value);
		break;
	case SET_SECURE:
		nt_has_secure_device = value;
		break;
	case SET_MODULES:
		nt_modules = value;
		break;
	case SET_BUILD:
		NtBuildNumber = (uint32_t)value;
		break;
	case SET_PROCESSORS:
		nt_processors = value;
		break;
	case SET_TRACE:
		gate_set_trace(value);
		break;
	case SET_TRIGGER:
		gate_set_trigger(value);
		break;
	case SET_VBS_EVENT:
		vbs_set_event(value);
		break;
	case SET_LENIENT:
		nt_is_lenient = value;
		break;
	case SET_FAR:
		ntoskrnl_show(!value);
		break;
	default:
		return STATUS_INVALID_PARAMETER;
	}
	return STATUS_SUCCESS;
}

/* --- Ke --- */

static uint8_t NTAPI KeGetCurrentIrql(void)
{
	return (uint8_t)irql();
}

static uint64_t NTAPI KeQueryActiveProcessors(void)
{
	return nt_processors;
}

/* There is only one processor. What matters is whether the affinity is restored. */
static void NTAPI KeSetSystemAffinityThread(uint64_t affinity)
{
	thread_current()->affinity = affinity;
	mailbox.counters.affinity = affinity;
}

static uint64_t NTAPI KeSetSystemAffinityThreadEx(uint64_t affinity)
{
	const uint64_t before = thread_current()->affinity;

	KeSetSystemAffinityThread(affinity);
	return before;
}

static void NTAPI KeRevertToUserAffinityThread(void)
{
	KeSetSystemAffinityThread(0);
}

static void NTAPI KeInitializeEvent(struct kevent *e, uint32_t type, bool state)
{
	*e = (struct kevent){
		.type = (uint8_t)type,
		.size = sizeof(*e) / 4,
		.signal_state = state,
		.wait_list = { &e->wait_list, &e->wait_list },
	};
}

static void NTAPI KeBugCheckEx(uint32_t code, uint64_t p1, uint64_t p2, uint64_t p3, uint64_t p4)
{
	bug_check(NULL, code, p1, p2, p3, p4);
}

/* --- Ex --- */

/* Count is 1 while the mutex is free. Otherwise the thread waits for the event. */
static void NTAPI ExAcquireFastMutex(struct fast_mutex *m)
{
	const unsigned level = irql();

	if (level > APC_LEVEL)
		complain("ExAcquireFastMutex() at IRQL %u", level);
	set_irql(APC_LEVEL);
	if (m->count == 1) {
		m->count = 0;
	} else {
		if (m->owner == thread_current())
			complain("a fast mutex is acquired again by the thread that has it");
		m->contention++;
		event_wait(&m->event);
	}
	m->owner = thread_current();
	m->old_irql = level;
}

/* If a thread is waiting, it gets the mutex. */
static void NTAPI ExReleaseFastMutex(struct fast_mutex *m)
{
	const unsigned level = m->old_irql;

	if (m->owner != thread_current())
		complain("a fast mutex is released that another thread has");
	m->owner = NULL;
	if (m->event.wait_list.flink != &m->event.wait_list)
		event_set(&m->event);
	else
		m->count = 1;
	set_irql(level);
}

static void *NTAPI ExAllocatePoolWithTag(uint32_t type, uint64_t size, uint32_t tag)
{
	(void)type;
	if (!tag || !size)
		complain("ExAllocatePoolWithTag(%lu bytes, tag %x)", size, tag);
	return pool_allocate(size, tag);
}

static void NTAPI ExFreePoolWithTag(void *block, uint32_t tag)
{
	pool_free(block, tag);
}

static bool in_user_range(uint64_t va, uint64_t len)
{
	return va < USER_PROBE_LIMIT && len <= USER_PROBE_LIMIT - va;
}

/* Looks at nothing but the numbers. */
static void NTAPI ProbeForRead(const void *address, uint64_t len, uint32_t alignment)
{
	if (len && (uint64_t)address & (alignment - 1))
		seh_raise_from_export(STATUS_DATATYPE_MISALIGNMENT);
	if (len && !in_user_range((uint64_t)address, len))
		seh_raise_from_export(STATUS_ACCESS_VIOLATION);
}

/* Writes to each page. */
static void NTAPI ProbeForWrite(void *address, uint64_t len, uint32_t alignment)
{
	if (len && (uint64_t)address & (alignment - 1))
		seh_raise_from_export(STATUS_DATATYPE_MISALIGNMENT);
	if (len && !is_user_memory((uint64_t)address, len, true))
		seh_raise_from_export(STATUS_ACCESS_VIOLATION);
}

const struct export nt_ke_exports[] = {
	EXPORT(KeBugCheckEx),
	EXPORT(KeGetCurrentIrql),
	EXPORT(KeInitializeEvent),
	EXPORT(KeQueryActiveProcessors),
	EXPORT(KeRevertToUserAffinityThread),
	EXPORT(KeSetSystemAffinityThread),
	EXPORT(KeSetSystemAffinityThreadEx),
	EXPORT_VARIABLE(NtBuildNumber),
	{ 0 },
};

const struct export nt_ex_exports[] = {
	EXPORT(ExAcquireFastMutex),
	EXPORT(ExAllocatePoolWithTag),
	EXPORT(ExFreePoolWithTag),
	EXPORT(ExReleaseFastMutex),
	EXPORT(ProbeForRead),
	EXPORT(ProbeForWrite),
	{ 0 },
};
