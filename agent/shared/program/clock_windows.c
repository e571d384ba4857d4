/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/program/clock.h"

#include "formats/base/win32.h"

/* 1601 to 1970 in the 100 ns of a FILETIME. */
#define FILETIME_1970 UINT64_C(116444736000000000)

/*
 * The finest that there is. It does not follow the wall clock, but where it comes from a counter of
 * each processor, their agreeing is up to hardware and hypervisor.
 */
uint64_t clock__counter_ns(void)
{
	LARGE_INTEGER now, per_second;

	/* Neither can fail from Windows XP on. */
	QueryPerformanceFrequency(&per_second);
	QueryPerformanceCounter(&now);
	/* In two parts: the product would not fit 64 bits after half an hour at 10 MHz. */
	return (uint64_t)(now.QuadPart / per_second.QuadPart) * NS_PER_SECOND +
	       (uint64_t)(now.QuadPart % per_second.QuadPart) * NS_PER_SECOND /
		       (uint64_t)per_second.QuadPart;
}

/*
 * By the timer interrupt: one for all processors. Like the performance counter it goes on in sleep.
 */
uint64_t clock__tick_ns(void)
{
	return GetTickCount64() * 1000000;
}

uint64_t clock__wall_ns(void)
{
	/* Windows 8 and later; the other one moves on with the timer tick, every 15 ms. */
	static void(WINAPI * precise)(FILETIME *);
	static LONG looked;
	FILETIME t;

	if (!InterlockedCompareExchange(&looked, 1, 0))
		precise = (void(WINAPI *)(FILETIME *))(void (*)(void))win32_function(
			L"kernel32.dll", "GetSystemTimePreciseAsFileTime");
	if (precise)
		precise(&t);
	else
		GetSystemTimeAsFileTime(&t);
	return (((uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime) - FILETIME_1970) * 100;
}

/*
 * QueryInterruptTime() counts sleep and QueryUnbiasedInterruptTime() does not (realtimeapiset.h,
 * Microsoft Learn). The first is of Windows 10; before, GetTickCount64() does, in steps of 10 to 16
 * ms.
 */
uint64_t clock__slept_ns(void)
{
	static void(WINAPI * biased)(ULONGLONG *);
	static LONG looked;
	ULONGLONG all = 0, awake = 0;

	if (!InterlockedCompareExchange(&looked, 1, 0))
		biased = (void(WINAPI *)(ULONGLONG *))(void (*)(void))win32_function(
			L"kernelbase.dll", "QueryInterruptTime");
	if (!QueryUnbiasedInterruptTime(&awake))
		return 0;
	if (biased)
		biased(&all);
	else
		all = GetTickCount64() * 10000;
	return all > awake ? (all - awake) * 100 : 0;
}
