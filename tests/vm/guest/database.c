/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database at work: SQLite, with clients that do nothing but small transactions, each on a file
 * of its own.
 *
 *	database run FOLDER CLIENTS ROWS COUNTERS
 *	database count COUNTERS
 *
 * "run" fills the databases, prints "ready" and goes on until it is killed. "count" prints what the
 * clients have done so far: monotonic nanoseconds, transactions of all of them, and the longest of
 * them since the last "count", in nanoseconds. Linked statically: the guest has no libraries.
 *
 * A transaction changes four rows somewhere, reads a hundred in order, and is committed to the
 * write-ahead log, which is synced (PRAGMA synchronous = FULL).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct counters {
	atomic_uint_fast64_t done;
	atomic_uint_fast64_t longest_ns;
};

struct client {
	sqlite3 *db;
	sqlite3_stmt *change, *sum;
	uint64_t random; /* never 0 */
	int rows;
};

static void die(const char *what)
{
	fprintf(stderr, "database: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct counters *map_counters(const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT, 0600);
	struct counters *ret;

	if (fd < 0 || ftruncate(fd, sizeof(*ret)))
		die(path);
	ret = mmap(NULL, sizeof(*ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (ret == MAP_FAILED)
		die(path);
	return ret;
}

/* xorshift64 (Marsaglia, 2003) */
static int random_row(struct client *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (int)(c->random % (uint64_t)c->rows) + 1;
}

static void run_sql(struct client *c, const char *sql)
{
	if (sqlite3_exec(c->db, sql, NULL, NULL, NULL))
		die(sqlite3_errmsg(c->db));
}

static void run_step(struct client *c, sqlite3_stmt *s, int row)
{
	int result;

	sqlite3_bind_int(s, 1, row);
	do {
		result = sqlite3_step(s);
	} while (result == SQLITE_ROW);
	sqlite3_reset(s);
	if (result != SQLITE_DONE)
		die(sqlite3_errmsg(c->db));
}

static void open_database(struct client *c, const char *folder, int number, int rows)
{
	char path[256], fill[256];

	*c = (struct client){ .random = (uint64_t)number + 1, .rows = rows };
	snprintf(path, sizeof(path), "%s/%d.db", folder, number);
	snprintf(fill, sizeof(fill),
		 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
		 "INSERT INTO t SELECT i, i, hex(randomblob(40)) FROM n",
		 rows);
	if (sqlite3_open(path, &c->db))
		die(path);
	run_sql(c, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
		   "PRAGMA cache_size = -4096;"
		   "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, text TEXT)");
	run_sql(c, fill);
	if (sqlite3_prepare_v2(c->db, "UPDATE t SET n = n + 1 WHERE id = ?", -1, &c->change,
			       NULL) ||
	    sqlite3_prepare_v2(c->db,
			       "SELECT sum(n), max(text) FROM t WHERE id BETWEEN ?1 AND ?1 + 99",
			       -1, &c->sum, NULL))
		die(sqlite3_errmsg(c->db));
}

static void transact(struct client *c)
{
	run_sql(c, "BEGIN IMMEDIATE");
	for (int i = 0; i < 4; i++)
		run_step(c, c->change, random_row(c));
	run_step(c, c->sum, random_row(c));
	run_sql(c, "COMMIT");
}

static void work(struct client *c, struct counters *counters)
{
	for (;;) {
		const uint64_t begin = now_ns();
		uint64_t longest, took;

		transact(c);
		took = now_ns() - begin;
		longest = atomic_load(&counters->longest_ns);
		while (took > longest &&
		       !atomic_compare_exchange_weak(&counters->longest_ns, &longest, took))
			;
		atomic_fetch_add(&counters->done, 1);
	}
}

/* Each client is a process, and waits until all are filled. */
static void run(const char *folder, int clients, int rows, struct counters *counters)
{
	int filled[2], go[2];
	char byte = 0;

	if (pipe(filled) || pipe(go))
		die("pipe");
	for (int i = 0; i < clients; i++) {
		struct client c;

		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_database(&c, folder, i, rows);
		if (write(filled[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			die("pipe");
		work(&c, counters);
	}
	for (int i = 0; i < clients; i++)
		if (read(filled[0], &byte, 1) != 1)
			die("pipe");
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < clients; i++)
		if (write(go[1], &byte, 1) != 1)
			die("pipe");
	wait(NULL);
	die("a client has ended");
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "run")) {
		run(argv[2], atoi(argv[3]), atoi(argv[4]), map_counters(argv[5]));
	} else if (argc == 3 && !strcmp(argv[1], "count")) {
		struct counters *c = map_counters(argv[2]);
		const uint64_t longest = atomic_exchange(&c->longest_ns, 0);

		printf("%" PRIu64 " %" PRIuFAST64 " %" PRIu64 "\n", now_ns(), c->done, longest);
	} else {
		die("see the comment at its top");
	}
	return 0;
}
