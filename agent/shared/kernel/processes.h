/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the kernels' own lists of processes, without symbol files: field offsets come from
 * invariants (Windows) or from the kernel's own BTF (Linux).
 */
#ifndef RAMSEAL_AGENT_SHARED_KERNEL_PROCESSES_H
#define RAMSEAL_AGENT_SHARED_KERNEL_PROCESSES_H

#include "agent/shared/kernel/btf.h"
#include "agent/shared/kernel/linux_info.h"
#include "agent/shared/kernel/paging_files.h"
#include "agent/shared/kernel/pe.h"
#include "formats/base/io.h"

#define PROCESS_NAME_MAX 16

struct process {
	uint64_t object; /* virtual address of its EPROCESS or task_struct */
	uint32_t pid;
	char name[PROCESS_NAME_MAX]; /* untrusted raw bytes, NUL-terminated */
	bool has_dtb;                /* false: kernel threads of Linux, or */
	bool lost_dtb;               /* its root could not be read */
	uint64_t dtb;
	uint64_t user_dtb; /* KVA shadow or PTI: the root in user mode; 0: none */
};

/* How reading a list ended. Only a closed list is complete. */
#define LIST_END_MAP(X)                                                                            \
	X(LIST_NOT_FOUND, "not-found")   /* no head, or no offsets */                              \
	X(LIST_CLOSED, "closed")         /* came back to where it began */                         \
	X(LIST_UNREADABLE, "unreadable") /* led to memory that is not there */                     \
	X(LIST_TORN, "torn")             /* a neighbour does not point back */                     \
	X(LIST_TOO_LONG, "too-long")     /* more entries than there can be */                      \
	X(LIST_OUT_OF_BUDGET, "budget")  /* not enough time or reads */

enum list_end {
#define X(name, text) name,
	LIST_END_MAP(X)
#undef X
		LIST_ENDS
};

const char *list_end_name(enum list_end end);

/* More than any machine has: Linux's pid_max is 2^22 at most, Windows stays far below. */
#define PROCESSES_MAX ((size_t)1 << 18)

struct process_list {
	struct process *at;
	size_t count;
	size_t room;
	enum list_end end;       /* followed forwards */
	enum list_end backwards; /* if it did not close: walked backwards for the rest */
	size_t torn;             /* neighbours that did not point back */
};

/* It returned to its start, or both directions met: nothing is missing. */
bool process_list_is_whole(const struct process_list *l);
void process_list_deinit(struct process_list *l);

/*
 * Windows
 */

/* Offsets in EPROCESS, each with the invariant that it came from. */
struct windows_offsets {
	uint32_t dtb;      /* KPROCESS.DirectoryTableBase: 0x28 on every x64 version */
	uint32_t pid;      /* UniqueProcessId: 4 in System, a multiple of 4 in most */
	uint32_t links;    /* ActiveProcessLinks: right after it; the ring closes */
	uint32_t name;     /* ImageFileName: "System" in System, printable in most; 0: not known */
	uint32_t user_dtb; /* UserDirectoryTableBase; 0: none was recognised */
};

/* KDDEBUGGER_DATA64. Its addresses are virtual, within the kernel's image. */
struct kdbg {
	uint64_t va; /* 0: it was not found */
	bool encoded;
	uint32_t size;      /* as stated */
	uint64_t modules;   /* PsLoadedModuleList */
	uint64_t processes; /* PsActiveProcessHead */
	uint64_t lab;       /* NtBuildLab; 0: not readable */
	/* Decodes its words: kdbg_word(). 64: it is not encoded. */
	unsigned rotation;
	uint64_t mask;
};

#define WINDOWS_ROOT_MAX 64
#define WINDOWS_LAB_MAX  128

/* What Windows says about itself; zeros and empty texts: not known. */
struct windows_version {
	uint32_t major, minor, build;
	char lab[WINDOWS_LAB_MAX];   /* NtBuildLab, "19041.1.amd64fre.vb_release.191206-1406" */
	char root[WINDOWS_ROOT_MAX]; /* NtSystemRoot, "C:\Windows" */
};

struct windows_kernel {
	uint64_t base;           /* of ntoskrnl; 0: not known */
	uint32_t size;           /* SizeOfImage */
	uint64_t system_process; /* EPROCESS of System */
	uint64_t head;           /* PsActiveProcessHead, from the list; 0: not known */
	struct windows_offsets offsets;
	bool file_used;      /* some of it came from the file */
	bool has_pdb;        /* its debug directory, or a separate record, was readable */
	uint64_t pdb_record; /* virtual address of a record found without its image; or 0 */
	struct pe_pdb pdb;
	bool searched_for_kdbg;
	struct kdbg kdbg;
	struct paging_files paging_files;
	struct windows_version version;
};

/* The same for the kernel's image; all of it if its headers are missing. */
#define WINDOWS_SECTIONS_MAX 32
size_t windows_writable(const struct virt *v, const struct windows_kernel *k,
			struct range ret[static WINDOWS_SECTIONS_MAX]);
/*
 * Searches the kernel's half of an address space for ntoskrnl and sets k->base and k->size. If its
 * headers are missing, the record of its PDB may be found: then k->pdb and k->pdb_record are set.
 * False: neither.
 */
bool windows_find_kernel(const struct virt *v, struct pe_file *file, struct walk_set *set,
			 struct windows_kernel *k);

/*
 * From the page that the kernel shares with all processes. False if it is missing or makes no
 * sense.
 */
bool windows_shared_data(const struct virt *v, struct windows_version *ret);
/* Adds what the kernel's own image says to k->version; k->base is given. */
void windows_kernel_version(const struct virt *v, struct windows_kernel *k, struct pe_file *file);

/*
 * Searches the image at k->base, of k->size, for KDDEBUGGER_DATA64. `head` is PsActiveProcessHead,
 * which it must contain; 0: not known.
 */
bool kdbg_find(const struct virt *v, const struct windows_kernel *k, uint64_t head,
	       struct kdbg *ret);

/* Decodes a word of the block. */
uint64_t kdbg_word(const struct kdbg *k, uint64_t raw);

/*
 * KdpDataBlockEncoded, a byte that is 1 if the kernel's block is encoded. False: there is no such
 * byte, more than one, or a part could not be read.
 */
bool kdbg_find_flag(const struct virt *v, const struct windows_kernel *k, const struct kdbg *block,
		    uint64_t *ret);

/*
 * Fills `k` (k->base is given) and reads the list. System is found by the kernel's exports or,
 * without them, at the head that k->kdbg names. ST_OK even if nothing was found: the list says how
 * it ended. ST_NOMEM otherwise.
 */
enum status windows_processes(const struct virt *v, struct windows_kernel *k, struct pe_file *file,
			      struct process_list *ret, struct err *e);

/*
 * Linux
 */

/* Where Linux records which slots of a swap area have a page in memory: swap_cache.h. */
struct linux_swap_layout {
	bool pages;                      /* the fields of struct page are known */
	uint32_t page, flags, private;   /* its size, and offsets in it */
	uint32_t uptodate_bit, head_bit; /* of its flags, */
	uint32_t swapcache_bit;          /* and since 6.18 this one */

	bool trees;                    /* known: up to 6.17 */
	uint32_t space;                /* size of struct address_space */
	uint32_t ops, tree, head;      /* in it: a_ops, i_pages, i_pages.xa_head */
	uint32_t shift, offset;        /* in struct xa_node; both are bytes */
	uint32_t parent, array, slots; /* likewise */

	bool areas;                   /* known: struct swap_info_struct, and in it */
	uint32_t area_type, area_max; /* a byte, and an unsigned int */
	bool has_zeromap;             /* in it, since 6.12 */
	uint32_t zeromap;

	bool tables;            /* it has them: since 6.18 */
	uint32_t clusters;      /* in struct swap_info_struct: cluster_info */
	uint32_t cluster;       /* size of struct swap_cluster_info */
	uint32_t table;         /* in it */
	uint32_t cluster_slots; /* SWAPFILE_CLUSTER: entries of a table; 0: not known */
	bool has_zero_bitmap;   /* in struct swap_cluster_info, where entries have no room */
};

struct linux_offsets {
	uint32_t tasks, pid, comm, mm; /* in task_struct */
	uint32_t pgd;                  /* in mm_struct */
	/* The threads of a process, if all of these are known. */
	bool threads;
	uint32_t signal, thread_node; /* in task_struct */
	uint32_t thread_head;         /* in signal_struct */
	/* For the owner of a root; `page` is 0 unless all are known. */
	uint32_t page;     /* size of struct page */
	uint32_t pt_mm;    /* in it, of a root: its mm_struct */
	uint32_t mm_users; /* in mm_struct */
	struct linux_swap_layout swap;
};

/*
 * False if the BTF lacks one of them, except those for threads, swapping and the owner of a root.
 */
bool linux_offsets_from_btf(struct linux_offsets *o, const struct btf *b);

enum status linux_processes(const struct virt *v, uint64_t init_task, const struct linux_offsets *o,
			    struct process_list *ret, struct err *e);

#endif
