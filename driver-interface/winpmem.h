/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WinPmem, the driver by Velocidex (before that Google), in all its generations: its requests and
 * answers, and how to tell the generations apart. No Windows API in here, so that a fake device can
 * play all of them on any system; winpmem_windows.c is the real device.
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
 * In 1.x and 2.0.1 the mode, and what PHYSICAL reads through, belong to the device: another program
 * can change the mode meanwhile, and when it closes its handle, a running read in mode PHYSICAL
 * gets zeros for a page.
 *
 * Requests are CTL_CODE(0x22, 0x101 or 0x103, method, FILE_READ_DATA | FILE_WRITE_DATA). No answer
 * has the version, and "4.1" has two sizes, so the version is inferred from the answers themselves.
 * "Secure" pages are those that a secure kernel (VBS) keeps for itself, "unmapped" ones those that
 * Windows refuses to map. WINPMEM.md has the answers of all binaries that could be run.
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
	 * \Device\PhysicalMemory: what cannot be mapped reads as zeros, and secure memory stops
	 * Windows.
	 */
	WINPMEM_PHYSICAL = 1,
	/* A page-table entry of its own, remapped for every page. */
	WINPMEM_PTE = 2,
	/* It was set before us, or could not be set. */
	WINPMEM_MODE_UNKNOWN = 3,
};

/*
 * Win32 error numbers (winerror.h, MS-ERREF 2.2) with a meaning here. A driver's NTSTATUS arrives
 * as one of them (RtlNtStatusToDosError()).
 */
#define WIN32_OK                   0
#define WIN32_INVALID_FUNCTION     1 /* STATUS_NOT_IMPLEMENTED, STATUS_INVALID_DEVICE_REQUEST */
#define WIN32_ACCESS_DENIED        5
#define WIN32_INVALID_HANDLE       6
#define WIN32_NOT_READY            21 /* STATUS_DEVICE_NOT_READY: not from any WinPmem */
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

/* The answer to GET_INFO, as far as it makes sense. Zero-initialise. */
struct winpmem_info {
	uint64_t cr3;             /* of the system process, without PCID; 0: makes no sense */
	uint64_t kernel_base;     /* 0: makes no sense */
	uint32_t build;           /* of Windows */
	unsigned kpcrs;           /* length of KPCR[], which shows the layout */
	struct range_list ranges; /* as answered: sorted, whole pages, no overlaps */
};

void winpmem_info_deinit(struct winpmem_info *i);

/*
 * Parses an answer of `len` bytes. The layout is the one in which the ranges make sense: one to as
 * many as fit, whole pages, ascending, below 2^52. If they do in both, the one whose sum is closer
 * to `ram_bytes` (0: not known). ST_CORRUPT if they do in neither.
 */
enum status winpmem_parse_info(const void *p, size_t len, uint64_t ram_bytes,
			       struct winpmem_info *ret, struct err *e);

enum winpmem_la57 { LA57_OFF, LA57_ON };

/* The device and the host that it is on. */
struct winpmem_host {
	const struct winpmem_host_ops *ops;
	struct nt *nt;      /* Windows; NULL: it cannot be asked */
	bool file_is_known; /* its version was checked when it was loaded (driver_safety.h) */
};

struct winpmem_host_ops {
	/* One request. Returns a Win32 error number; *ret_len: bytes returned. */
	uint32_t (*request)(struct winpmem_host *h, uint32_t code, const void *in, size_t in_len,
			    void *out, size_t out_len, size_t *ret_len);
	/* The same for a read at a physical address. */
	uint32_t (*read)(struct winpmem_host *h, uint64_t addr, void *buf, size_t len,
			 size_t *ret_len);
	/*
	 * Keeps the calling thread on one CPU from now on; cheap if it already is. Returns the
	 * CPU's number, or -1 on failure.
	 */
	int (*pin)(struct winpmem_host *h);
	/*
	 * The registry value of resource_list.h; the caller frees it. ST_NO_SOURCE if there is
	 * none.
	 */
	enum status (*resources)(struct winpmem_host *h, uint8_t **ret, size_t *ret_len,
				 struct err *e);
	/* RAM in use by Windows, and installed RAM, in bytes; 0: not known. */
	void (*memory_status)(struct winpmem_host *h, uint64_t *ret_used, uint64_t *ret_installed);
	/* Whether page tables have five levels. */
	enum winpmem_la57 (*la57)(struct winpmem_host *h);
	void (*close)(struct winpmem_host *h);
};

/*
 * The device at that path (winpmem_windows.c; tests have another). ST_NO_SOURCE if there is none,
 * ST_NO_PRIVILEGE if access is denied.
 */
enum status winpmem_open_device(const char *path, struct winpmem_host **ret, struct err *e);

/*
 * From now on, things that may stop Windows are done if the named source needs them: a mode in
 * which the secure kernel's pages are fatal, or a driver that does not support five levels. The
 * source then has the fact "risk_taken".
 */
void winpmem_take_risk(bool on);

/*
 * Makes a source from an open device. `wanted` is WINPMEM_PTE for the best mode here, or a mode
 * that the user named. Takes ownership of `h`, even on failure. ST_NOT_MINE if the device is not
 * WinPmem, ST_NO_SOURCE if memory cannot be read through it.
 */
enum status winpmem_open_host(const struct drv_ops *ops, const char *path, struct winpmem_host *h,
			      enum winpmem_mode wanted, struct drv **ret, struct err *e);

/* drv_ops of such a source. */
struct drv_result winpmem_read(struct drv *d, uint64_t addr, void *buf, size_t len);
enum status winpmem_maps_again(struct drv *d, struct drv_maps *ret, struct err *e);
void winpmem_close(struct drv *d);

/*
 * The read buffers of 1.x come from the kernel's pool, which a large one exhausts; the other
 * versions do not gain from larger reads.
 */
#define WINPMEM_READ_MAX ((size_t)1 << 20)

/* winpmem_modes.c, in the order of "auto"; all but the first must be named. */
extern const struct drv_ops winpmem_ops, winpmem_physical_ops, winpmem_iospace_ops;

#endif
