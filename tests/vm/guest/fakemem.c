/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three physical-memory devices that a stock kernel does not have, for the tests. They speak the
 * interfaces of the real drivers, warts included, and give the real RAM of the machine:
 *
 *	linpmem  major 42, make the node by hand; ioctls only, a page at a time
 *	         (Velocidex/Linpmem 09b23bc, userspace_interface/linpmem_shared.h, src/linpmem.c)
 *	pmem     /dev/pmem; read and seek, silent zeros where it cannot read
 *	         (google/rekall 14ea403, tools/linux/pmem.c)
 *	crash    /dev/crash; reads within one page
 *	         (crash-utility/crash 03e3937, memory_driver/crash.c)
 *
 * Parameters: device=NAME (which of them to offer; one at a time), bad=PFN,... (pages that
 * cannot be read), die_after=N (the device is gone after N good pages; 0: never).
 *
 * Unlike the rest of ramseal this file is GPL-2.0-only: page_is_ram() and
 * copy_from_kernel_nofault() are exported to GPL modules alone. It is loaded into a test guest
 * and is not part of any program of ours.
 */
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/ioport.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <asm/io.h>

#define BAD_MAX 64

static char *device = "linpmem";
module_param(device, charp, 0444);
static unsigned long bad[BAD_MAX];
static unsigned int n_bad;
module_param_array(bad, ulong, &n_bad, 0444);
static unsigned long die_after;
module_param(die_after, ulong, 0444);

/* The bounce page and the count of pages that were given out. */
static DEFINE_MUTEX(lock);
static u8 *bounce;
static unsigned long given;

static bool is_bad(unsigned long pfn)
{
	for (unsigned int i = 0; i < n_bad; i++)
		if (bad[i] == pfn)
			return true;
	return false;
}

/*
 * Copies from within one page to user space. -ENODEV: the device has died; -EIO: this page cannot
 * be read. The real drivers map any valid PFN; the direct map has a hole where firmware keeps
 * memory to itself, hence "nofault".
 */
static int give(char __user *to, u64 address, size_t len)
{
	const unsigned long pfn = address >> PAGE_SHIFT;
	int ret = 0;

	mutex_lock(&lock);
	if (die_after && given >= die_after)
		ret = -ENODEV;
	else if (!pfn_valid(pfn) || is_bad(pfn) ||
		 copy_from_kernel_nofault(bounce, __va(address), len))
		ret = -EIO;
	else if (copy_to_user(to, bounce, len))
		ret = -EFAULT;
	else
		given++;
	mutex_unlock(&lock);
	return ret;
}

/* --- linpmem --- */

#define LINPMEM_MAJOR 42

enum { LINPMEM_BUFFER_READ = 9 }; /* 1, 2, 4 and 8 read integers into out_value */

struct linpmem_read {
	u64 address;
	u64 out_value;
	u64 buffer;
	u64 size; /* in: wanted; out: read, 0 if the page cannot be */
	u8 access_type;
	u8 unused[7];
};

struct linpmem_vtop {
	u64 virt;
	u64 cr3;
	u64 phys;
	u64 pte;
};

struct linpmem_cr3 {
	u64 pid;
	u64 cr3;
};

#define LINPMEM_READ _IOWR('a', 'a', struct linpmem_read)
#define LINPMEM_VTOP _IOWR('a', 'b', struct linpmem_vtop)
#define LINPMEM_CR3  _IOWR('a', 'c', struct linpmem_cr3)
static_assert(LINPMEM_READ == 0xC0286161);
static_assert(LINPMEM_VTOP == 0xC0206162);
static_assert(LINPMEM_CR3 == 0xC0106163);

static long linpmem_read(struct linpmem_read __user *user)
{
	struct linpmem_read r;
	int ret;

	if (copy_from_user(&r, user, sizeof(r)))
		return -EFAULT;
	/* Integer reads are for device registers; nobody images memory with them. */
	if (r.access_type != LINPMEM_BUFFER_READ || !r.size || r.size > PAGE_SIZE || !r.buffer)
		return -EINVAL;
	r.size = min_t(u64, r.size, PAGE_SIZE - offset_in_page(r.address));
	ret = give(u64_to_user_ptr(r.buffer), r.address, r.size);
	if (ret == -ENODEV)
		return ret;
	/* A page that cannot be read is not an error there: 0 bytes were read, that is all. */
	if (ret)
		r.size = 0;
	r.out_value = 0;
	return copy_to_user(user, &r, sizeof(r)) ? -EFAULT : 0;
}

/* Of the caller: the test needs no other, and so does ramseal. */
static long linpmem_cr3(struct linpmem_cr3 __user *user)
{
	struct linpmem_cr3 c;

	if (copy_from_user(&c, user, sizeof(c)))
		return -EFAULT;
	if (c.pid && c.pid != task_tgid_vnr(current))
		return -ESRCH;
	c.cr3 = __pa(current->mm->pgd);
	return copy_to_user(user, &c, sizeof(c)) ? -EFAULT : 0;
}

/* Direct-map addresses only: enough to tell that the answer is the module's. */
static long linpmem_vtop(struct linpmem_vtop __user *user)
{
	struct linpmem_vtop v;

	if (copy_from_user(&v, user, sizeof(v)))
		return -EFAULT;
	if (!v.virt)
		return -EINVAL;
	if (!virt_addr_valid((void *)v.virt))
		return -EIO;
	v.phys = __pa(v.virt);
	v.pte = 0;
	return copy_to_user(user, &v, sizeof(v)) ? -EFAULT : 0;
}

static long linpmem_ioctl(struct file *f, unsigned int request, unsigned long argument)
{
	void __user *user = (void __user *)argument;

	switch (request) {
	case LINPMEM_READ:
		return linpmem_read(user);
	case LINPMEM_VTOP:
		return linpmem_vtop(user);
	case LINPMEM_CR3:
		return linpmem_cr3(user);
	default:
		return -ENOSYS;
	}
}

static const struct file_operations linpmem_ops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = linpmem_ioctl,
};

/* --- pmem --- */

static bool is_ram(const struct resource *r)
{
	return !strcmp(r->name, "System RAM");
}

/* The end of the last System RAM, inclusive, and so one byte short. As in the real driver. */
static u64 pmem_size(void)
{
	u64 size = 0;

	for (const struct resource *r = iomem_resource.child; r; r = r->sibling)
		if (is_ram(r))
			size = r->end;
	return size;
}

/* `start < address` loses the first page of every range. As in the real driver. */
static bool pmem_valid(u64 address)
{
	for (const struct resource *r = iomem_resource.child; r; r = r->sibling)
		if (r->start < address && r->end > address)
			return is_ram(r);
	return false;
}

static loff_t pmem_llseek(struct file *f, loff_t offset, int whence)
{
	return generic_file_llseek_size(f, offset, whence, MAX_LFS_FILESIZE, pmem_size());
}

static ssize_t pmem_read(struct file *f, char __user *to, size_t count, loff_t *pos)
{
	const u64 size = pmem_size();
	size_t done = 0;

	if (*pos >= size)
		return 0;
	count = min_t(u64, count, size - *pos);
	while (done < count) {
		const size_t part = min_t(size_t, count - done, PAGE_SIZE - offset_in_page(*pos));
		const int ret = pmem_valid(*pos) ? give(to + done, *pos, part) : -EIO;

		if (ret == -ENODEV)
			return done ?: ret;
		if (ret && clear_user(to + done, part))
			return -EFAULT;
		*pos += part;
		done += part;
	}
	return done;
}

static const struct file_operations pmem_ops = {
	.owner = THIS_MODULE,
	.llseek = pmem_llseek,
	.read = pmem_read,
};

/* --- crash --- */

static loff_t crash_llseek(struct file *f, loff_t offset, int whence)
{
	if (whence != SEEK_SET && whence != SEEK_CUR)
		return -EINVAL;
	f->f_pos = whence == SEEK_CUR ? f->f_pos + offset : offset;
	return f->f_pos;
}

static ssize_t crash_read(struct file *f, char __user *to, size_t count, loff_t *pos)
{
	int ret;

	if (!count || *pos >> PAGE_SHIFT != (*pos + count - 1) >> PAGE_SHIFT)
		return -EINVAL;
	ret = give(to, *pos, count);
	if (ret)
		return ret == -ENODEV ? ret : -EFAULT;
	*pos += count;
	return count;
}

static const struct file_operations crash_ops = {
	.owner = THIS_MODULE,
	.llseek = crash_llseek,
	.read = crash_read,
};

/* --- the module --- */

static struct miscdevice misc = { .minor = MISC_DYNAMIC_MINOR };
static bool is_linpmem;

static int offer(void)
{
	is_linpmem = !strcmp(device, "linpmem");
	if (is_linpmem)
		return register_chrdev(LINPMEM_MAJOR, "linpmem", &linpmem_ops);
	if (!strcmp(device, "pmem"))
		misc.fops = &pmem_ops;
	else if (!strcmp(device, "crash"))
		misc.fops = &crash_ops;
	else
		return -EINVAL;
	misc.name = device;
	return misc_register(&misc);
}

static int __init fakemem_init(void)
{
	int ret;

	bounce = (u8 *)__get_free_page(GFP_KERNEL);
	if (!bounce)
		return -ENOMEM;
	ret = offer();
	if (ret)
		free_page((unsigned long)bounce);
	return ret;
}

static void __exit fakemem_exit(void)
{
	if (is_linpmem)
		unregister_chrdev(LINPMEM_MAJOR, "linpmem");
	else
		misc_deregister(&misc);
	free_page((unsigned long)bounce);
}

module_init(fakemem_init);
module_exit(fakemem_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("physical-memory devices with failures on demand, for ramseal's tests");
