/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WinPmem, the driver of Velocidex (before that Google's), in all its generations: what it is
 * asked, what it answers, and how to find out which of them answers. No word of Windows in here, so
 * that a fake device can play every one of them on any system; winpmem_windows.c is the real
 * device.
 *
 * Sources: github.com/Velocidex/WinPmem, by commit.
 *
 *              1.4 to 1.6.3      2.0.1, signed       3.0.1 to 4.0.1     4.1
 *              f4a2134           8b712ab             57f829b            7259a3a
 *   transfer   buffered          neither             neither            neither
 *   SET_MODE   0x22C404          0x22C407            0x22C407           0x22C407
 *   GET_INFO   0x22C40C          0x22C40F            0x22C40F           0x22C40F
 *   KPCR[]     32                64                  64                 64
 *   told       2376 + 16 n       2936 (20 ranges)    2936 (20 ranges)   7416 (300 ranges)*
 *   at first   PTE               PHYSICAL            IOSPACE            IOSPACE
 *   again      may               may                 ACCESS_DENIED      ACCESS_DENIED
 *   PHYSICAL:
 *    secure    stops Windows     stops Windows       fails              fails
 *    unmapped  fills with zeros  fills with zeros    fails              fails
 *   address 0  reads             reads               fails              fails
 *
 * (*) The test driver that was published as 4.1 has the 20 of 3.0.1.
 *
 * Of 1.x and 2.0.1 the mode, and what PHYSICAL reads through, belong to the device: another program
 * can choose another mode meanwhile, and when it closes its handle, a read in mode PHYSICAL that is
 * under way gets zeros for a page.
 *
 * Requests are CTL_CODE(0x22, 0x101 or 0x103, method, FILE_READ_DATA | FILE_WRITE_DATA). The
 * version is nowhere among the answers, and "4.1" names two sizes: all is told from the answers
 * themselves. "Secure" are pages that a secure kernel (VBS) keeps for itself, "unmapped" such as
 * Windows refuses to map. WINPMEM.md has what the binaries answered that could be run.
 */
#ifndef RAMSEAL_DRIVER_INTERFACE_WINPMEM_H
#define RAMSEAL_DRIVER_INTERFACE_WINPMEM_H

#include "driver-interface/nt.h"
#include "driver-interface/source.h"

#define WINPMEM_PATH "\\\\.\\pmem"

/* The numbers are the driver's (winpmem_shared.h, PMEM_MODE_...). */
enum winpmem_mode {
	/* MmMapIoSpace(): stops Windows (bug check 0x1A) at a page that is not locked (read.c). */
	WINPMEM_IOSPACE = 0,
	/*
	 * \Device\PhysicalMemory: what cannot be mapped comes as zeros, and secure memory stops
	 * Windows.
	 */
	WINPMEM_PHYSICAL = 1,
	/* An own page table entry, remapped for every page. */
	WINPMEM_PTE = 2,
	/* It was set before us, or could not be set. */
	WINPMEM_MODE_UNKNOWN = 3,
};

/*
 * Win32 error numbers (winerror.h, MS-ERREF 2.2) that mean something here. What a driver answers as
 * NTSTATUS arrives as one of them (RtlNtStatusToDosError()).
 */
#define WIN32_OK                   0
#define WIN32_INVALID_FUNCTION     1 /* STATUS_NOT_IMPLEMENTED, STATUS_INVALID_DEVICE_REQUEST */
#define WIN32_ACCESS_DENIED        5
#define WIN32_INVALID_HANDLE       6
#define WIN32_NOT_READY            21 /* STATUS_DEVICE_NOT_READY: from no WinPmem */
#define WIN32_BAD_LENGTH           24 /* STATUS_INFO_LENGTH_MISMATCH */
#define WIN32_GEN_FAILURE          31 /* STATUS_UNSUCCESSFUL */
#define WIN32_NOT_SUPPORTED        50
#define WIN32_DEV_NOT_EXIST        55
#define WIN32_INVALID_PARAMETER    87 /* an unknown request, for every WinPmem */
#define WIN32_NO_SUCH_DEVICE       433
#define WIN32_IO_DEVICE            1117 /* a page that cannot be read; out of memory, since 3.0 */
#define WIN32_DEVICE_NOT_CONNECTED 1167
#define WIN32_NO_SYSTEM_RESOURCES  1450 /* STATUS_INSUFFICIENT_RESOURCES */
#define WIN32_DEVICE_REMOVED       1617

/* What GET_INFO tells, as far as it makes sense. Zero-initialise. */
struct winpmem_info {
	uint64_t cr3;             /* of the system process, without PCID; 0: makes no sense */
	uint64_t kernel_base;     /* 0: makes no sense */
	uint32_t build;           /* of Windows */
	unsigned kpcrs;           /* length of KPCR[]: which layout it was */
	struct range_list ranges; /* as told: sorted, whole pages, no overlaps */
};

void winpmem_info_deinit(struct winpmem_info *i);

/*
 * Judges `len` bytes as they came. The layout is the one in which the ranges make sense: one to as
 * many as fit, whole pages, ascending, below 2^52. Where both do, the one whose sum is nearer to
 * `ram_bytes` (0: not known). ST_CORRUPT if none does.
 */
enum status winpmem_parse_info(const void *p, size_t len, uint64_t ram_bytes,
			       struct winpmem_info *ret, struct err *e);

enum winpmem_la57 { LA57_OFF, LA57_ON };

/* The device and the host that it is on. */
struct winpmem_host {
	const struct winpmem_host_ops *ops;
	struct nt *nt;      /* the Windows; NULL: nobody can be asked */
	bool file_is_known; /* whoever loaded the driver judged its version (driver_safety.h) */
};

struct winpmem_host_ops {
	/* One request. Returns a Win32 error number; *ret_len: bytes that came. */
	uint32_t (*request)(struct winpmem_host *h, uint32_t code, const void *in, size_t in_len,
			    void *out, size_t out_len, size_t *ret_len);
	/* The same for a read at a physical address. */
	uint32_t (*read)(struct winpmem_host *h, uint64_t addr, void *buf, size_t len,
			 size_t *ret_len);
	/*
	 * Sees to it that the calling thread stays on one CPU from now on; cheap when it does
	 * already. Returns the CPU's number, or -1 if that could not be done.
	 */
	int (*pin)(struct winpmem_host *h);
	/*
	 * The value that resource_list.h names; the caller frees it. ST_NO_SOURCE if there is none.
	 */
	enum status (*resources)(struct winpmem_host *h, uint8_t **ret, size_t *ret_len,
				 struct err *e);
	/* RAM that Windows uses, and that is installed, in bytes; 0: not known. */
	void (*memory_status)(struct winpmem_host *h, uint64_t *ret_used, uint64_t *ret_installed);
	/* Whether page tables have five levels. */
	enum winpmem_la57 (*la57)(struct winpmem_host *h);
	void (*close)(struct winpmem_host *h);
};

/*
 * The device of that path, on the system that this is built for (winpmem_windows.c; tests have
 * another). ST_NO_SOURCE if there is none, ST_NO_PRIVILEGE if it is not for us.
 */
enum status winpmem_open_device(const char *path, struct winpmem_host **ret, struct err *e);

/*
 * From now on what may stop Windows is done if the source that the user named wants it: a mode that
 * the secure kernel's pages are fatal to, a driver that does not know of five levels. Once it is,
 * the facts of the source have "risk_taken".
 */
void winpmem_take_risk(bool on);

/*
 * The source over a device that is open. `wanted` is WINPMEM_PTE for what is best here, or a mode
 * that the user named. `h` is taken, also when it fails. ST_NOT_MINE if what answers is not
 * WinPmem, ST_NO_SOURCE if it does not let its memory be read.
 */
enum status winpmem_open_host(const struct drv_ops *ops, const char *path, struct winpmem_host *h,
			      enum winpmem_mode wanted, struct drv **ret, struct err *e);

/* drv_ops of such a source. */
struct drv_result winpmem_read(struct drv *d, uint64_t addr, void *buf, size_t len);
enum status winpmem_maps_again(struct drv *d, struct drv_maps *ret, struct err *e);
void winpmem_close(struct drv *d);

/*
 * Read buffers of 1.x come from the kernel's pool, which a large one exhausts; the others gain
 * nothing from more.
 */
#define WINPMEM_READ_MAX ((size_t)1 << 20)

/* winpmem_modes.c, in the order in which "auto" asks them; all but the first must be named. */
extern const struct drv_ops winpmem_ops, winpmem_physical_ops, winpmem_iospace_ops;

#endif
