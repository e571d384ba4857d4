/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three physical-memory devices that a stock kernel does not have, for the tests. They speak the
 * interfaces of the real drivers, warts included, and give the real RAM of the machine:
 *
 *	linpmem  major 42, make the node by hand; ioctls only, a page at a time
 *	         (Velocidex/Linpmem 09b23bc, userspace_interface/linpmem_shared.h, src/linpmem.c)
 *	pmem     /dev/pmem; read and seek, silent zeros where it cannot read, and the kernel's own
 *	         address of a page given to copy_to_user(), which hardened usercopy answers with a
 *	         BUG (google/rekall 55d1925, tools/linux/pmem.c)
 *	crash    /dev/crash; reads within one page, for who has CAP_SYS_RAWIO (crash-utility/crash
 *	         abcb45e, memory_driver/crash.c)
 *
 * Like the originals it asks nobody whether a page is poisoned or unplugged.
 *
 * Parameters: device=NAME (which of them to offer; one at a time), bounce=1 (pmem copies through a
 * page of its own, as no original does), bad=PFN,... (pages that cannot be read), die_after=N (the
 * device is gone after N good pages; 0: never), hang_after=N (who reads on hangs in the kernel and
 * cannot be killed, until somebody writes 0 to it), opened and given (to be read: how often it was
 * opened, and how many pages it has given).
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
#include <linux/pid.h>
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
static unsigned long hang_after;
module_param(hang_after, ulong, 0644);
static bool bounce;
module_param(bounce, bool, 0444);
static unsigned long given;
module_param(given, ulong, 0444);
static unsigned long opened;
module_param(opened, ulong, 0444);

/* Guards the page that content goes through, and the count of pages that were given out. */
static DEFINE_MUTEX(lock);
static u8 *page;

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

	while (hang_after && given >= hang_after)
		schedule_timeout_uninterruptible(HZ / 10);
	mutex_lock(&lock);
	if (die_after && given >= die_after)
		ret = -ENODEV;
	else if (!pfn_valid(pfn) || is_bad(pfn) ||
		 copy_from_kernel_nofault(page, __va(address), len))
		ret = -EIO;
	else if (copy_to_user(to, page, len))
		ret = -EFAULT;
	else
		given++;
	mutex_unlock(&lock);
	return ret;
}

static int count_open(struct inode *inode, struct file *f)
{
	opened++;
	return 0;
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

/* Of the caller, or of any process. */
static long linpmem_cr3(struct linpmem_cr3 __user *user)
{
	struct linpmem_cr3 c;
	struct pid *pid;
	struct task_struct *task;
	struct mm_struct *mm;

	if (copy_from_user(&c, user, sizeof(c)))
		return -EFAULT;
	pid = c.pid ? find_get_pid(c.pid) : get_task_pid(current, PIDTYPE_PID);
	task = get_pid_task(pid, PIDTYPE_PID);
	mm = task ? get_task_mm(task) : NULL;
	if (mm) {
		c.cr3 = __pa(mm->pgd);
		mmput(mm);
	}
	if (task)
		put_task_struct(task);
	put_pid(pid);
	if (!mm)
		return -ESRCH;
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
	.open = count_open,
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

/* Straight from the kernel's map, as in the real driver. */
static int pmem_give(char __user *to, u64 address, size_t len)
{
	if (bounce)
		return give(to, address, len);
	if (copy_to_user(to, __va(address), len))
		return -EIO;
	given++;
	return 0;
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
		const int ret = pmem_valid(*pos) ? pmem_give(to + done, *pos, part) : -EIO;

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
	.open = count_open,
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

static int crash_open(struct inode *inode, struct file *f)
{
	return capable(CAP_SYS_RAWIO) ? count_open(inode, f) : -EPERM;
}

static const struct file_operations crash_ops = {
	.owner = THIS_MODULE,
	.open = crash_open,
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

	page = (u8 *)__get_free_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	ret = offer();
	if (ret)
		free_page((unsigned long)page);
	return ret;
}

static void __exit fakemem_exit(void)
{
	if (is_linpmem)
		unregister_chrdev(LINPMEM_MAJOR, "linpmem");
	else
		misc_deregister(&misc);
	free_page((unsigned long)page);
}

module_init(fakemem_init);
module_exit(fakemem_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("physical-memory devices with failures on demand, for ramseal's tests");
