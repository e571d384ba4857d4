/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bench_cores.sh needs and no shell has; static, so that it runs where nothing is installed.
 *
 *	cores make FILE MIB [HEAD]     memory-like data, 30 % zero pages; HEAD's bytes come first
 *	cores bare FILE OUT THREADS    the least that an acquisition does
 *	cores run SECONDS COMMAND...   runs it; prints what it took, thread by thread
 *
 * bare: each thread reads a MiB, drops its zero pages, compresses the rest with zstd -1, hashes it
 * with SHA-256 and writes it where it likes: no container, no times, nothing durable.
 *
 * run prints "STATUS WALL CPU SERIAL PEAK NAMES": seconds, the largest CPU time of a thread that is
 * no worker, MiB, and for each name of threads how many there were and what the longest took. A
 * program whose workers have no name of their own has "-" for SERIAL.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "formats/base/page.h"
#include "formats/base/sha256.h"

#define CHUNK       ((size_t)1 << 20)
#define THREADS_MAX 256

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned cpus(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (unsigned)n;
}

static void run_threads(unsigned n, void *(*fn)(void *), void *arg)
{
	pthread_t thread[THREADS_MAX];

	for (unsigned i = 0; i < n; i++)
		if ((errno = pthread_create(&thread[i], NULL, fn, arg)))
			die("thread");
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

/* --- make ---------------------------------------------------------------------------------- */

struct make {
	int fd;
	uint64_t first, chunks; /* chunks before `first` are the head's */
	atomic_ullong next;
	const uint8_t *code; /* this program's own: what executables look like */
	size_t code_pages;
};

/* splitmix64 (Steele, Lea, Flood 2014): the same image on every machine. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void make_text(uint8_t *page, uint64_t *state)
{
	static const char *const words[] = { "page ",   "table ", "error: ", "the ",
					     "return ", "\n",     "memory ", "0x",
					     "struct ", "const ", "<div>",   "/usr/lib/",
					     "= ",      "1024",   "of ",     "value=" };
	size_t at = 0;

	while (at < PAGE_SIZE) {
		const uint64_t r = draw(state);
		const char *word = words[r % 16];
		const size_t n = strlen(word);

		memcpy(page + at, word, n < PAGE_SIZE - at ? n : PAGE_SIZE - at);
		at += n;
		if (r >> 60 < 3 && at < PAGE_SIZE)
			page[at++] = (uint8_t)('a' + (r >> 32) % 26);
	}
}

/* Structures: pointers into one heap, counts, and fields that nobody uses. */
static void make_heap(uint8_t *page, uint64_t *state)
{
	uint64_t *at = (uint64_t *)(void *)page;
	const uint64_t heap = UINT64_C(0x00007f0000000000) + (draw(state) % 4096 << 21);

	for (size_t i = 0; i < PAGE_SIZE / 8; i++) {
		const uint64_t r = draw(state);

		at[i] = i % 4 == 0   ? heap + (r & 0x1ffff0)
			: i % 4 == 1 ? r % 64
			: i % 4 == 2 ? 0
				     : r & 0xffff;
	}
}

static void make_random(uint8_t *page, uint64_t *state)
{
	uint64_t *at = (uint64_t *)(void *)page;

	for (size_t i = 0; i < PAGE_SIZE / 8; i++)
		at[i] = draw(state);
}

/* Kinds come in runs of 8 pages: memory is handed out in pieces. */
static void make_page(const struct make *m, uint8_t *page, uint64_t number)
{
	uint64_t run = number / 8, state = number;
	const uint64_t kind = draw(&run) % 100;

	if (kind < 30)
		memset(page, 0, PAGE_SIZE);
	else if (kind < 55)
		memcpy(page, m->code + draw(&state) % m->code_pages * PAGE_SIZE, PAGE_SIZE);
	else if (kind < 70)
		make_text(page, &state);
	else if (kind < 90)
		make_heap(page, &state);
	else
		make_random(page, &state);
}

static void *make_thread(void *arg)
{
	struct make *m = arg;
	uint8_t *buf = aligned_alloc(PAGE_SIZE, CHUNK);
	uint64_t chunk;

	while ((chunk = atomic_fetch_add(&m->next, 1)) < m->chunks) {
		for (size_t i = 0; i < CHUNK / PAGE_SIZE; i++)
			make_page(m, buf + i * PAGE_SIZE, chunk * (CHUNK / PAGE_SIZE) + i);
		if (pwrite(m->fd, buf, CHUNK, (off_t)(chunk * CHUNK)) != (ssize_t)CHUNK)
			die("write");
	}
	free(buf);
	return NULL;
}

static uint64_t copy_head(int to, const char *path)
{
	uint8_t *buf = malloc(CHUNK);
	uint64_t at = 0;
	ssize_t n;
	const int fd = open(path, O_RDONLY);

	if (fd < 0)
		die(path);
	while ((n = read(fd, buf, CHUNK)) > 0) {
		if (pwrite(to, buf, (size_t)n, (off_t)at) != n)
			die("write");
		at += (uint64_t)n;
	}
	close(fd);
	free(buf);
	return at / CHUNK;
}

static int make_file(int argc, char **argv)
{
	struct make m = { .fd = open(argv[0], O_RDWR | O_CREAT | O_TRUNC, 0600),
			  .chunks = strtoull(argv[1], NULL, 10) };
	const int self = open("/proc/self/exe", O_RDONLY);
	struct stat sb;

	if (m.fd < 0 || self < 0 || fstat(self, &sb))
		die(argv[0]);
	m.code_pages = (size_t)sb.st_size / PAGE_SIZE;
	m.code = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, self, 0);
	if (m.code == MAP_FAILED)
		die("map");
	m.first = argc > 2 ? copy_head(m.fd, argv[2]) : 0;
	atomic_init(&m.next, m.first);
	run_threads(cpus(), make_thread, &m);
	return 0;
}

/* --- bare ---------------------------------------------------------------------------------- */

struct bare {
	int in, out;
	atomic_ullong next, written;
};

static void *bare_thread(void *arg)
{
	struct bare *b = arg;
	const size_t room = ZSTD_compressBound(CHUNK);
	uint8_t *buf = aligned_alloc(PAGE_SIZE, CHUNK), *packed = malloc(room), digest[SHA256_SIZE];
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	struct sha256 *sha = NULL;
	ssize_t n;

	if (sha256_create(&sha, NULL))
		die("sha256");
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, 1);
	while ((n = pread(b->in, buf, CHUNK, (off_t)(atomic_fetch_add(&b->next, 1) * CHUNK))) > 0) {
		size_t len = 0;

		for (size_t at = 0; at + PAGE_SIZE <= (size_t)n; at += PAGE_SIZE) {
			if (bytes_are_zero(buf + at, PAGE_SIZE))
				continue;
			if (at != len)
				memmove(buf + len, buf + at, PAGE_SIZE);
			len += PAGE_SIZE;
		}
		if (!len)
			continue;
		sha256_of(sha, buf, len, digest);
		len = ZSTD_compress2(zstd, packed, room, buf, len);
		if (pwrite(b->out, packed, len, (off_t)atomic_fetch_add(&b->written, len)) !=
		    (ssize_t)len)
			die("write");
	}
	sha256_destroy(sha);
	ZSTD_freeCCtx(zstd);
	free(packed);
	free(buf);
	return NULL;
}

static int bare(char **argv)
{
	const unsigned threads = (unsigned)strtoul(argv[2], NULL, 10);
	struct bare b = { .in = open(argv[0], O_RDONLY),
			  .out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) };

	if (b.in < 0 || b.out < 0)
		die(argv[b.in < 0 ? 0 : 1]);
	run_threads(threads < 1             ? 1
		    : threads > THREADS_MAX ? THREADS_MAX
					    : threads,
		    bare_thread, &b);
	return 0;
}

/* --- run ----------------------------------------------------------------------------------- */

/* A thread's time is gone when it ends: they are looked at so often. */
#define LOOK_NS      10000000
#define THREADS_SEEN 4096

struct seen {
	int tid;
	char name[32];
	double cpu;
};

static struct seen seen[THREADS_SEEN];
static size_t n_seen;

/* False: it is gone. */
static bool read_text(const char *path, char *buf, size_t size)
{
	const int fd = open(path, O_RDONLY);
	const ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* By schedstat, or where the kernel has none, in ticks. */
static double thread_cpu(const char *task)
{
	char path[120], text[1024], *at;
	unsigned long long user, system;

	snprintf(path, sizeof(path), "%.80s/schedstat", task);
	if (read_text(path, text, sizeof(text)) && strtoull(text, NULL, 10))
		return (double)strtoull(text, NULL, 10) / 1e9;
	snprintf(path, sizeof(path), "%.80s/stat", task);
	if (!read_text(path, text, sizeof(text)) || !(at = strrchr(text, ')')) ||
	    sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
		   &system) != 2)
		return 0;
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static struct seen *find_seen(int tid)
{
	for (size_t i = 0; i < n_seen; i++)
		if (seen[i].tid == tid)
			return &seen[i];
	if (n_seen == THREADS_SEEN)
		return NULL;
	seen[n_seen].tid = tid;
	return &seen[n_seen++];
}

static void look_at_threads(pid_t pid)
{
	char folder[40], task[80], path[120];
	struct dirent *entry;
	DIR *d;

	snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
	d = opendir(folder);
	while (d && (entry = readdir(d))) {
		struct seen *s = *entry->d_name == '.' ? NULL : find_seen(atoi(entry->d_name));
		double cpu;

		if (!s)
			continue;
		snprintf(task, sizeof(task), "%s/%.20s", folder, entry->d_name);
		cpu = thread_cpu(task);
		s->cpu = cpu > s->cpu ? cpu : s->cpu;
		snprintf(path, sizeof(path), "%.80s/comm", task);
		if (read_text(path, task, sizeof(task)))
			snprintf(s->name, sizeof(s->name), "%.*s", (int)strcspn(task, "\n"), task);
	}
	if (d)
		closedir(d);
}

static bool is_worker(const char *name)
{
	return !strcmp(name, "ramseal-pack");
}

/* "name 3x1.23": how many there were, and the longest; those of no weight are left out. */
static void print_names(void)
{
	for (size_t i = 0; i < n_seen; i++) {
		size_t n = 0;
		double most = 0;
		bool first = true;

		for (size_t k = 0; k < n_seen; k++) {
			if (strcmp(seen[k].name, seen[i].name))
				continue;
			first = first && k >= i;
			n++;
			most = seen[k].cpu > most ? seen[k].cpu : most;
		}
		if (first && most >= 0.005)
			printf(" %s %zux%.2f", seen[i].name, n, most);
	}
}

static void print_run(int status, double wall, const struct rusage *use)
{
	const double cpu = (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
			   (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) / 1e6;
	bool workers = false;
	double serial = 0;

	for (size_t i = 0; i < n_seen; i++) {
		workers = workers || is_worker(seen[i].name);
		if (!is_worker(seen[i].name) && seen[i].cpu > serial)
			serial = seen[i].cpu;
	}
	printf("%d %.2f %.2f ", status, wall, cpu);
	if (workers)
		printf("%.2f", serial);
	else
		printf("-");
	printf(" %ld", use->ru_maxrss / 1024);
	print_names();
	printf("\n");
}

static int run(char **argv)
{
	const double begin = now_s(), limit = strtod(argv[0], NULL);
	struct rusage use;
	int status;
	bool ended = false;
	const pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		const int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	while (!wait4(pid, &status, WNOHANG, &use)) {
		look_at_threads(pid);
		if (!ended && limit > 0 && now_s() - begin > limit) {
			ended = true;
			kill(pid, SIGKILL);
		}
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	print_run(ended               ? 124
		  : WIFEXITED(status) ? WEXITSTATUS(status)
				      : 128 + WTERMSIG(status),
		  now_s() - begin, &use);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "make") && (argc == 4 || argc == 5))
		return make_file(argc - 2, argv + 2);
	if (!strcmp(what, "bare") && argc == 5)
		return bare(argv + 2);
	if (!strcmp(what, "run") && argc > 3)
		return run(argv + 2);
	fprintf(stderr, "usage: cores make FILE MIB [HEAD] | bare FILE OUT THREADS | run SECONDS "
			"COMMAND...\n");
	return 2;
}
