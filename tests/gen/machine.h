/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines made for tests: sparse physical memory, page tables in it, and the structures by which
 * Windows and Linux keep their processes. Nothing here comes from agent/: layouts are written down
 * a second time, from the same sources.
 */
#ifndef RAMSEAL_TESTS_GEN_MACHINE_H
#define RAMSEAL_TESTS_GEN_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/gen/images.h"

#define MACHINE_PAGE 4096

struct machine_page {
	uint64_t pa;
	uint8_t *bytes;
};

struct machine {
	struct machine_page *pages; /* sorted by pa */
	size_t count;
	size_t room;
	uint64_t next;   /* where machine_alloc() goes on; set it before the first */
	unsigned levels; /* 3: PAE */
};

void machine_free(struct machine *m);

/* The bytes of the page at `pa`, made of zeros if it is new. Valid until the next new page. */
uint8_t *machine_page(struct machine *m, uint64_t pa);
/* Takes a page away again: unreadable memory. */
void machine_forget(struct machine *m, uint64_t pa);
uint64_t machine_alloc(struct machine *m);
void machine_u64(struct machine *m, uint64_t pa, uint64_t v);
uint64_t machine_get(struct machine *m, uint64_t pa);
void machine_put(struct machine *m, uint64_t pa, const void *p, size_t len);

/*
 * Where the entry of `level` for `va` stands in the tables at `root`; the tables above it are made
 * if they are missing.
 */
uint64_t machine_entry(struct machine *m, uint64_t root, uint64_t va, unsigned level);
/* Maps 4 KiB (level 1), 2 MiB (2) or 1 GiB (3). */
void machine_map(struct machine *m, uint64_t root, uint64_t va, uint64_t pa, unsigned level);
/* The same for `len` bytes in fresh 4 KiB pages; then puts bytes there. */
void machine_map_fresh(struct machine *m, uint64_t root, uint64_t va, size_t len);
uint64_t machine_pa(struct machine *m, uint64_t root, uint64_t va);
void machine_put_va(struct machine *m, uint64_t root, uint64_t va, const void *p, size_t len);
void machine_u64_va(struct machine *m, uint64_t root, uint64_t va, uint64_t v);
uint64_t machine_get_va(struct machine *m, uint64_t root, uint64_t va);

#define MACHINE_PROCESSES_MAX 32

struct machine_process {
	const char *name;
	uint32_t pid;
	bool unlinked;    /* not in the list */
	bool ending;      /* Linux: nobody uses its memory any more */
	bool no_memory;   /* Linux: a kernel thread */
	bool first_ended; /* Linux: its first thread, and another lives */
	/* Set by the generator. */
	uint64_t object;
	uint64_t second; /* the task_struct of that other thread */
	uint64_t dtb;
	uint64_t user_dtb;
};

enum machine_kdbg { MACHINE_NO_KDBG, MACHINE_KDBG_PLAIN, MACHINE_KDBG_ENCODED };

/* Windows: where the fields are, which version that is, and what is there. */
struct machine_windows {
	uint32_t pid, name, user_dtb; /* offsets; links follow pid */
	bool kva_shadow;
	bool low_stub;
	bool shared_data; /* KUSER_SHARED_DATA, of MACHINE_BUILD */
	enum machine_kdbg kdbg;
	unsigned paging_layout; /* 0: no table of paging files; 1507, 1703 or 2409 */
	struct machine_paging_file {
		const char *name; /* NULL: the compression store */
		unsigned flags;   /* beside the number: 0x10 apps, 0x40 store */
	} files[16];
	size_t n_files;
	uint64_t kdbg_keys[3]; /* KiWaitNever, KiWaitAlways, address of KdpDataBlockEncoded */
	uint32_t self_index;
	struct machine_process p[MACHINE_PROCESSES_MAX]; /* p[0] is System */
	size_t count;
	/* Set by the generator. */
	uint64_t base; /* of ntoskrnl */
	uint64_t head; /* PsActiveProcessHead */
	uint64_t kdbg_va;
	uint64_t partition;       /* _MI_VISIBLE_PARTITION */
	uint64_t file_object[16]; /* _MMPAGING_FILE of each */
};

/* What its kernel says of itself. */
#define MACHINE_BUILD      19045
#define MACHINE_LAB        "19041.1.amd64fre.vb_release.191206-1406"
#define MACHINE_ROOT       "C:\\Windows"

/* Where parts of its image are. */
#define MACHINE_AT_EXPORTS 0x1000 /* two pages, with what they lead to */
#define MACHINE_AT_DEBUG   0x3000 /* and the record of its PDB, whose name ends on the next page */
#define MACHINE_AT_DATA    0x5000

/* What its kernel's debug directory says. */
#define MACHINE_PDB        "ntkrnlmp.pdb"
#define MACHINE_PDB_GUID                                                                           \
	"0011223344556677"                                                                         \
	"8899AABBCCDDEE0F"
#define MACHINE_PDB_AGE 26

void machine_windows(struct machine *m, struct machine_windows *w);
/* A word as a kernel keeps it that was not started for a debugger. */
uint64_t machine_kdbg_encode(const struct machine_windows *w, uint64_t word);
/* The file that its kernel was loaded from; image_free() it. */
void machine_kernel_file(struct image *ret);

/* Linux: a 4- or 5-level machine (m->levels) with VMCOREINFO, kallsyms, BTF and tasks. */
struct machine_linux {
	bool pti;
	bool no_symbols;     /* VMCOREINFO does not name kallsyms, as before 6.0 */
	bool device_private; /* the symbols say that it has CONFIG_DEVICE_PRIVATE */
	bool owners;         /* there is a struct page for each root, which names its mm_struct */
	struct machine_process p[MACHINE_PROCESSES_MAX]; /* p[0] is swapper/0 */
	size_t count;
	/* Set by the generator. */
	uint64_t root;
	uint64_t init_task;
	uint64_t vmcoreinfo_pa;
	struct image vmcoreinfo; /* text */
	struct image kallsyms;   /* text of /proc/kallsyms */
	struct image btf;
};

/* What its kernel calls itself. */
#define MACHINE_RELEASE  "6.1.0-test"
#define MACHINE_NODENAME "gen-host"

/* Physical addresses: init_uts_ns, and _stext, in 4 KiB pages from there on. */
#define MACHINE_UTS_PA   UINT64_C(0x4000900)
#define MACHINE_STEXT_PA UINT64_C(0x4000000)

void machine_linux(struct machine *m, struct machine_linux *l);
void machine_linux_free(struct machine_linux *l);

/* A PT_NOTE segment with the machine's VMCOREINFO. */
void machine_linux_notes(const struct machine_linux *l, struct image *ret);

/* Offsets that the generated BTF states. */
#define MACHINE_TASK_SIZE    0xa00
#define MACHINE_TASK_TASKS   0x450
#define MACHINE_TASK_MM      0x4a0
#define MACHINE_TASK_PID     0x540
#define MACHINE_TASK_COMM    0x780
#define MACHINE_TASK_SIGNAL  0x650
#define MACHINE_TASK_THREAD  0x660
#define MACHINE_SIGNAL_HEAD  0x10 /* of threads, in signal_struct */
#define MACHINE_MM_PGD       0x48
#define MACHINE_MM_USERS     0x54
#define MACHINE_PAGE_SIZE    0x40 /* of struct page */
#define MACHINE_PAGE_PT_MM   0x20
#define MACHINE_PAGE_PRIVATE 0x28
#define MACHINE_PG_UPTODATE  2
#define MACHINE_PG_SWAPCACHE 10
#define MACHINE_PG_HEAD      16
#define MACHINE_SPACE_SIZE   0xc0 /* of struct address_space */
#define MACHINE_SPACE_PAGES  0x8
#define MACHINE_SPACE_OPS    0x98
#define MACHINE_XA_HEAD      0x8  /* in struct xarray */
#define MACHINE_NODE_SLOTS   0x28 /* in struct xa_node */

void machine_btf(struct image *ret);

/* What the BTF of later kernels has beside that: swap areas, bitmaps of zeros, and tables. */
#define MACHINE_BTF_AREAS     1u
#define MACHINE_BTF_ZEROMAP   2u
#define MACHINE_BTF_TABLES    4u
#define MACHINE_BTF_MEMCG     8u   /* struct swap_memcg_table, and no struct swap_table */
#define MACHINE_BTF_BITMAP    16u  /* of zeros, for each cluster */
#define MACHINE_AREA_TYPE     0x48 /* in struct swap_info_struct */
#define MACHINE_AREA_MAX      0x4c
#define MACHINE_AREA_ZEROMAP  0x58
#define MACHINE_AREA_TABLES   0x60 /* its cluster_info */
#define MACHINE_CLUSTER       0x20 /* size of struct swap_cluster_info */
#define MACHINE_CLUSTER_TABLE 8

/* `slots` of a cluster. */
void machine_btf_of_swap(struct image *ret, unsigned parts, uint32_t slots);

#endif
