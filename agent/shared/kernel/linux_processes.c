/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shared/kernel/process_list.h"

struct wanted_offset {
	const char *type, *member;
	uint32_t *to;
};

static bool take_offsets(const struct btf *b, const struct wanted_offset *w, size_t n)
{
	bool ret = true;

	for (size_t i = 0; i < n; i++)
		ret &= btf_offset(b, w[i].type, w[i].member, w[i].to);
	return ret;
}

/* Linux 5.10 to 6.17 (mm/swap_state.c, include/linux/xarray.h). */
static void tree_layout_from_btf(struct linux_swap_layout *l, const struct btf *b)
{
	const struct wanted_offset wanted[] = {
		{ "address_space", "a_ops", &l->ops }, { "address_space", "i_pages", &l->tree },
		{ "xarray", "xa_head", &l->head },     { "xa_node", "shift", &l->shift },
		{ "xa_node", "offset", &l->offset },   { "xa_node", "parent", &l->parent },
		{ "xa_node", "array", &l->array },     { "xa_node", "slots", &l->slots },
	};

	l->trees = btf_size(b, "address_space", &l->space) &&
		   take_offsets(b, wanted, ARRAY_SIZE(wanted));
	l->head += l->tree;
}

/*
 * Since 6.18 (mm/swap.h, mm/swap_table.h; include/linux/swap.h). How many slots a cluster has, the
 * size of any array of one entry for each tells.
 */
static void table_layout_from_btf(struct linux_swap_layout *l, const struct btf *b)
{
	const struct wanted_offset wanted[] = {
		{ "swap_info_struct", "cluster_info", &l->clusters },
		{ "swap_cluster_info", "table", &l->table },
	};
	uint32_t unused;

	l->areas = btf_offset(b, "swap_info_struct", "type", &l->area_type) &&
		   btf_offset(b, "swap_info_struct", "max", &l->area_max);
	l->has_zeromap = btf_offset(b, "swap_info_struct", "zeromap", &l->zeromap);
	l->tables = take_offsets(b, wanted, ARRAY_SIZE(wanted)) &&
		    btf_size(b, "swap_cluster_info", &l->cluster);
	if (!btf_elements(b, "swap_table", "entries", &l->cluster_slots) &&
	    !btf_elements(b, "swap_memcg_table", "id", &l->cluster_slots))
		l->cluster_slots = 0;
	l->has_zero_bitmap = btf_offset(b, "swap_cluster_info", "zero_bitmap", &unused);
}

static void swap_layout_from_btf(struct linux_swap_layout *l, const struct btf *b)
{
	l->pages = btf_size(b, "page", &l->page) && btf_offset(b, "page", "flags", &l->flags) &&
		   btf_offset(b, "page", "private", &l->private) &&
		   btf_enumerator(b, "PG_uptodate", &l->uptodate_bit) &&
		   btf_enumerator(b, "PG_head", &l->head_bit);
	if (!btf_enumerator(b, "PG_swapcache", &l->swapcache_bit))
		l->swapcache_bit = 64; /* none */
	tree_layout_from_btf(l, b);
	table_layout_from_btf(l, b);
}

bool linux_offsets_from_btf(struct linux_offsets *o, const struct btf *b)
{
	/* Since 6.6 what struct page says of tables has a type of its own, laid over it. */
	if (!btf_size(b, "page", &o->page) ||
	    !btf_offset(b, "mm_struct", "mm_users", &o->mm_users) ||
	    (!btf_offset(b, "page", "pt_mm", &o->pt_mm) &&
	     !btf_offset(b, "ptdesc", "pt_mm", &o->pt_mm)))
		o->page = 0;
	o->threads = btf_offset(b, "task_struct", "signal", &o->signal) &&
		     btf_offset(b, "task_struct", "thread_node", &o->thread_node) &&
		     btf_offset(b, "signal_struct", "thread_head", &o->thread_head);
	swap_layout_from_btf(&o->swap, b);
	return btf_offset(b, "task_struct", "tasks", &o->tasks) &&
	       btf_offset(b, "task_struct", "pid", &o->pid) &&
	       btf_offset(b, "task_struct", "comm", &o->comm) &&
	       btf_offset(b, "task_struct", "mm", &o->mm) &&
	       btf_offset(b, "mm_struct", "pgd", &o->pgd);
}

/*
 * Threads that are looked at, in all processes together. One is enough of each process whose first
 * thread has ended, unless others of it are ending at this moment; only a hostile list comes near.
 */
#define THREADS_MAX ((size_t)1 << 16)

struct task_reading {
	const struct linux_offsets *offsets;
	size_t *threads_left;
};

/* What a link of a ring of threads says. False if it makes no sense, or cannot be read. */
static bool follow_thread(const struct virt *v, uint64_t link, uint64_t *ret)
{
	uint64_t next, back;

	if (!virt_u64(v, link, &next) || !paging__is_pointer(v, next) ||
	    !virt_u64(v, next + 8, &back) || back != link)
		return false;
	*ret = next;
	return true;
}

/*
 * The first thread of a process may end before the others (pthread_exit() in main()). Its task
 * stays in the list of processes, without the mm (kernel/exit.c, exit_mm()), which the others still
 * have: threads of a process share it (kernel/fork.c, copy_process()). *mm stays 0 if none has one:
 * a kernel thread, or a process that is over. False if that cannot be known.
 */
static bool ask_threads(const struct virt *v, const struct task_reading *t, uint64_t task,
			uint64_t *mm)
{
	const struct linux_offsets *o = t->offsets;
	uint64_t signal, head, link, own;

	if (!o->threads)
		return true;
	if (!virt_u64(v, task + o->signal, &signal) || !paging__is_pointer(v, signal))
		return false;
	head = link = signal + o->thread_head;
	while (*t->threads_left && follow_thread(v, link, &link)) {
		if (link == head)
			return true;
		--*t->threads_left;
		if (!virt_u64(v, link - o->thread_node + o->signal, &own) || own != signal ||
		    !virt_u64(v, link - o->thread_node + o->mm, mm))
			return false;
		if (*mm)
			return true;
	}
	return false;
}

/*
 * A kernel thread has no mm and runs on whatever was there before. The root is a pointer into the
 * direct map, so that the kernel's own tables turn it into a physical address.
 */
static void read_root(const struct virt *v, const struct task_reading *t, struct process *p)
{
	const struct linux_offsets *o = t->offsets;
	uint64_t mm = 0, pgd;
	const bool known =
		virt_u64(v, p->object + o->mm, &mm) && (mm || ask_threads(v, t, p->object, &mm));

	if (known && !mm)
		return;
	p->has_dtb = paging__is_pointer(v, mm) && virt_u64(v, mm + o->pgd, &pgd) &&
		     virt_translate(v, pgd, &p->dtb) && p->dtb % PAGE_SIZE == 0;
	p->lost_dtb = !p->has_dtb;
}

static enum link_kind read_task(const struct process_ring *r, uint64_t link, struct process *ret)
{
	const struct task_reading *t = r->offsets;
	const struct linux_offsets *o = t->offsets;
	uint8_t comm[PROCESS_NAME_MAX];

	ret->object = link - o->tasks;
	if (!virt_u32(r->v, ret->object + o->pid, &ret->pid) ||
	    !virt_read(r->v, ret->object + o->comm, comm, sizeof(comm)))
		return LINK_BAD;
	paging__set_name(ret, comm);
	read_root(r->v, t, ret);
	return LINK_PROCESS;
}

enum status linux_processes(const struct virt *v, uint64_t init_task, const struct linux_offsets *o,
			    struct process_list *ret, struct err *e)
{
	size_t threads_left = THREADS_MAX;
	const struct task_reading t = { o, &threads_left };
	const struct process_ring r = {
		.v = v,
		.start = init_task + o->tasks,
		.read = read_task,
		.offsets = &t,
	};

	*ret = (struct process_list){ 0 };
	return paging__follow_ring(&r, ret, e);
}
