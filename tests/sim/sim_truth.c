/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a container of a simulated machine is true: for every page that the image's own page
 * tables show in a process, whether what lies there belongs there. The pages say it themselves
 * (agent/simulator/page.h). Roots, seed and the form of entries are from the machine's own
 * account (`truth=FILE`, agent/simulator/truth.c); walk and decoding are done here, and not by
 * what is to be tested.
 *
 * Usage: sim_truth CONTAINER TRUTH [PID]
 *
 * One JSON object; with a PID, CSV of that process, va,state,place,file,verdict,captures, and on
 * stderr the object, which then has every process, too: [PID, pages, pages that are not right]. The
 * file is the number of a slot's page file, and 0 for everything else. The verdict is of the newest
 * capture of a page, as a flat image has it; the captures are START:VERDICT of all of them, the
 * newest first, for whoever takes another one for this mapping.
 *
 * Counted are processes that lived from before the acquisition until after it. A page is `right` if
 * it has the process's PID, or is of the section that all share, and the address, or if it is one
 * whose bytes the account has a hash of, and these are its bytes. Otherwise it
 * holds what is another process's (`foreign`), the kernel's (`kernel`), the same process's but of
 * another address (`moved`), zeros (`zero`), a page table or the like (`other`), or was not
 * captured (`missing`). Slots count only if the container has page files; the streams' order is
 * taken for their numbers.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/simulator/page.h"
#include "formats/base/array.h"
#include "formats/base/bytes.h"
#include "formats/rsz/rsz_reader.h"

#define FRAME_MAX ((uint64_t)24 << 18) /* pages: 24 GiB of addresses */
#define FILES_MAX 2
#define SYSTEM    4
#define PROCESSES 65536

enum content { NOT_CAPTURED, ZEROS, MARKED, OTHER };

struct content_of {
	uint8_t kind;
	struct sim_mark mark;
	uint8_t *bytes;           /* OTHER */
	uint64_t start;           /* monotonic ns */
	struct content_of *older; /* an earlier capture; NULL: there is none */
};

#define VERDICT_MAP(X)                                                                             \
	X(RIGHT, "right")                                                                          \
	X(FOREIGN, "foreign")                                                                      \
	X(KERNEL, "kernel")                                                                        \
	X(MOVED, "moved")                                                                          \
	X(ZERO, "zero")                                                                            \
	X(STRANGE, "other")                                                                        \
	X(MISSING, "missing")

enum verdict {
#define X(name, text) name,
	VERDICT_MAP(X)
#undef X
		VERDICTS
};

static const char *const verdicts[] = {
#define X(name, text) text,
	VERDICT_MAP(X)
#undef X
};

enum state { VALID, TRANSITION, SLOT, STATES };
static const char *const states[] = { "valid", "transition", "page-file" };

struct process {
	uint32_t pid;
	uint64_t root;
	bool lived;
	uint64_t pages, wrong; /* judged, and not right */
};

/* A page whose bytes the machine has made, with their hash. */
struct made {
	uint32_t pid;
	uint64_t va, hash;
};

static struct {
	uint64_t seed, windows, mask;
	struct made *made;
	size_t made_count, made_room;
	struct process at[PROCESSES];
	size_t count;
	uint32_t main;
} truth;

static struct content_of *frames;
static struct content_of *slots[FILES_MAX];
static uint64_t slot_count[FILES_MAX];
static size_t files;
static uint64_t sums[2][STATES][VERDICTS]; /* of all, and of the main process */
static uint64_t tables_lost;               /* entries that name a table which is none */
static long only = -1;

static void die(const char *what, const struct err *e)
{
	fprintf(stderr, "sim_truth: %s%s%s\n", what, e ? ": " : "", e ? e->message : "");
	exit(1);
}

/*
 * The machine's account
 */

static void note_made(const struct made *one)
{
	if (truth.made_count == truth.made_room) {
		struct made *more = array_grow(truth.made, &truth.made_room, sizeof(*more));

		if (!more)
			die("out of memory", NULL);
		truth.made = more;
	}
	truth.made[truth.made_count++] = *one;
}

static int by_page(const void *a, const void *b)
{
	const struct made *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->va < y->va ? -1 : x->va > y->va;
}

static const struct made *find_made(uint32_t pid, uint64_t va)
{
	const struct made key = { .pid = pid, .va = va };

	return truth.made_count ? bsearch(&key, truth.made, truth.made_count, sizeof(key), by_page)
				: NULL;
}

static void read_truth(const char *path)
{
	FILE *f = fopen(path, "r");
	bool ended = false;
	char line[8192];

	if (!f)
		die(path, NULL);
	while (fgets(line, sizeof(line), f)) {
		struct process *p = &truth.at[truth.count];
		struct made one;
		uint64_t begin, end;

		if (sscanf(line, "process,%" SCNu32 ",%*[^,],%" SCNx64 ",%" SCNu64 ",%" SCNu64,
			   &p->pid, &p->root, &begin, &end) == 4) {
			p->lived = !begin && !end;
			if (++truth.count == PROCESSES)
				die("too many processes", NULL);
		}
		if (sscanf(line, "made,%" SCNu32 ",%" SCNx64 ",%" SCNx64, &one.pid, &one.va,
			   &one.hash) == 3)
			note_made(&one);
		sscanf(line, "seed,%" SCNu64, &truth.seed);
		sscanf(line, "entries,%" SCNu64 ",%" SCNx64, &truth.windows, &truth.mask);
		sscanf(line, "main,%" SCNu32, &truth.main);
		ended |= !strncmp(line, "end,", 4);
	}
	fclose(f);
	array_sort(truth.made, truth.made_count, sizeof(*truth.made), by_page);
	if (!ended || !truth.count)
		die("the account has no end", NULL);
}

/*
 * The container: every chunk of a stream once, in the order in which they were captured, so that
 * the newest capture of a page is the one that comes first, with the others behind it.
 */

struct records {
	uint32_t stream;
	uint64_t *at; /* offsets */
	size_t count, room;
};

static enum status note_record(void *arg, const struct rsz_record *record,
			       const struct rsz_chunk *chunk, struct err *e)
{
	struct records *r = arg;

	(void)chunk;
	if (record->stream != r->stream)
		return ST_OK;
	if (r->count == r->room)
		r->at = array_grow(r->at, &r->room, sizeof(*r->at));
	if (!r->at)
		return err_nomem(e);
	r->at[r->count++] = record->offset;
	return ST_OK;
}

static void note_page(struct content_of *c, const struct page_status *status, const uint8_t *bytes,
		      uint64_t start)
{
	static const uint8_t zeros[PAGE_SIZE];
	struct content_of *older = NULL;

	if (c->start) {
		older = malloc(sizeof(*older));
		if (!older)
			die("out of memory", NULL);
		*older = *c;
	}
	*c = (struct content_of){ .kind = NOT_CAPTURED, .start = start, .older = older };
	if (status->state == PAGE_ZERO || !memcmp(bytes, zeros, PAGE_SIZE)) {
		c->kind = ZEROS;
	} else if (status->state == PAGE_DATA) {
		c->kind = sim_page_read(bytes, truth.seed, &c->mark) ? MARKED : OTHER;
		c->bytes = c->kind == OTHER ? malloc(PAGE_SIZE) : NULL;
		if (c->bytes)
			memcpy(c->bytes, bytes, PAGE_SIZE);
	}
}

static void note_chunk(const struct rsz_chunk *k, struct content_of *to, uint64_t most)
{
	const uint8_t *bytes = k->data;
	size_t page = 0;

	for (size_t i = 0; i < k->n_extents; i++) {
		const struct rsz_extent *x = &k->extents[i];

		for (size_t n = 0; n < rsz_extent_pages(x); n++, page++, bytes += PAGE_SIZE)
			if ((x->address >> PAGE_SHIFT) + n < most)
				note_page(&to[(x->address >> PAGE_SHIFT) + n], &k->pages[page],
					  bytes, x->start);
	}
}

static void read_stream(struct blob *in, const struct rsz_reader *r, uint32_t stream,
			struct content_of *to, uint64_t most)
{
	struct records records = { .stream = stream };
	struct err e = ERR_INIT;
	struct rsz_cursor *c;

	if (rsz_scan_chunks(in, note_record, &records, NULL, &e) || rsz_cursor_create(r, 1, &c, &e))
		die("records", &e);
	for (size_t i = 0; i < records.count; i++) {
		const struct rsz_chunk *k;

		if (rsz_cursor_load(c, records.at[i], &k, &e))
			die("chunk", &e);
		note_chunk(k, to, most);
	}
	rsz_cursor_destroy(c);
	free(records.at);
}

static uint64_t length_of(const struct rsz_reader *r, uint32_t stream)
{
	struct rsz_segment s = { 0 };
	uint64_t end = 0;

	while (rsz_reader_next(r, stream, end, &s))
		end = s.address + s.length;
	return end;
}

static void read_container(const char *path)
{
	struct err e = ERR_INIT;
	struct file_blob in;
	struct rsz_reader *r;

	if (file_blob_open(&in, path, &e) || rsz_reader_open(&in.blob, RSZ_TRUST_NOTHING, &r, &e))
		die(path, &e);
	frames = calloc(FRAME_MAX, sizeof(*frames));
	for (uint32_t i = 0; i < rsz_reader_streams(r); i++) {
		const uint32_t kind = rsz_reader_stream(r, i)->kind;

		if (kind == RSZ_KIND_MEMORY) {
			read_stream(&in.blob, r, i, frames, FRAME_MAX);
		} else if (kind == RSZ_KIND_PAGEFILE && files < FILES_MAX) {
			slot_count[files] = length_of(r, i) >> PAGE_SHIFT;
			slots[files] = calloc(slot_count[files] + 1, sizeof(**slots));
			read_stream(&in.blob, r, i, slots[files], slot_count[files]);
			files++;
		}
	}
	rsz_reader_close(r);
	file_blob_deinit(&in);
}

/*
 * The judgement
 */

/* FNV-1a of 64 bits; of zeros without their bytes. */
static uint64_t hash_of(const struct content_of *c)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < PAGE_SIZE; i++) {
		hash ^= c->kind == OTHER ? c->bytes[i] : 0;
		hash *= UINT64_C(0x100000001b3);
	}
	return hash;
}

static bool is_as_made(const struct content_of *c, const struct process *p, uint64_t va)
{
	const struct made *made;

	if (!c || (c->kind != OTHER && c->kind != ZEROS))
		return false;
	made = find_made(p->pid, va);
	return made && made->hash == hash_of(c);
}

static enum verdict judge(const struct content_of *c, const struct process *p, uint64_t va)
{
	if (is_as_made(c, p, va))
		return RIGHT;
	switch (c ? (enum content)c->kind : NOT_CAPTURED) {
	case NOT_CAPTURED:
		return MISSING;
	case ZEROS:
		return ZERO;
	case OTHER:
		return STRANGE;
	case MARKED:
		break;
	}
	if ((c->mark.pid == p->pid || !c->mark.pid) && c->mark.va == va)
		return RIGHT;
	if (c->mark.pid == SYSTEM)
		return KERNEL;
	return c->mark.pid == p->pid ? MOVED : FOREIGN;
}

static const struct content_of *frame_of(uint64_t raw)
{
	const uint64_t n = (raw & UINT64_C(0x000ffffffffff000)) >> PAGE_SHIFT;

	return n < FRAME_MAX ? &frames[n] : NULL;
}

static uint64_t file_of(uint64_t raw)
{
	return raw >> (truth.windows == 7 ? 1 : 12) & 0xf;
}

static const struct content_of *slot_of(uint64_t raw, uint64_t place)
{
	const uint64_t file = file_of(raw);

	return file < files && place < slot_count[file] ? &slots[file][place] : NULL;
}

struct row {
	const struct process *process;
	uint64_t va;
	enum state state;
	uint64_t place, file;
	const struct content_of *content;
};

static void print_row(const struct row *r)
{
	printf("0x%" PRIx64 ",%s,0x%" PRIx64 ",%" PRIu64 ",%s,", r->va, states[r->state], r->place,
	       r->file, verdicts[judge(r->content, r->process, r->va)]);
	for (const struct content_of *c = r->content; c && c->start; c = c->older)
		printf("%s%" PRIu64 ":%s", c == r->content ? "" : " ", c->start,
		       verdicts[judge(c, r->process, r->va)]);
	printf("\n");
}

static void judge_entry(struct process *p, uint64_t va, uint64_t raw)
{
	const uint64_t plain = raw & 0x10 ? raw : raw & ~truth.mask; /* SwizzleBit */
	const struct content_of *c;
	enum verdict v;
	enum state s;

	if (raw & 1) {
		s = VALID;
		c = frame_of(raw);
	} else if (raw & 0x400) {
		return; /* prototype */
	} else if (raw & 0x800) {
		s = TRANSITION;
		c = frame_of(plain);
	} else if (plain >> 32 && files) {
		s = SLOT;
		c = slot_of(raw, plain >> 32);
	} else {
		return;
	}
	v = judge(c, p, va);
	sums[0][s][v]++;
	sums[1][s][v] += p->pid == truth.main;
	p->pages++;
	p->wrong += v != RIGHT;
	if (only == (long)p->pid)
		print_row(&(struct row){
			p, va, s, s == SLOT ? plain >> 32 : plain & UINT64_C(0x000ffffffffff000),
			s == SLOT ? file_of(raw) : 0, c });
}

static void walk(struct process *p, uint64_t table, unsigned level, uint64_t va)
{
	const struct content_of *c = frame_of(table);

	if (!c || c->kind != OTHER) {
		tables_lost += !c || c->kind != ZEROS;
		return;
	}
	for (uint64_t i = 0; i < (level == 4 ? 256 : 512); i++) {
		const uint64_t raw = get_le64(c->bytes + 8 * i);
		const uint64_t at = va + (i << (PAGE_SHIFT + 9 * (level - 1)));

		if (level == 1)
			judge_entry(p, at, raw);
		else if (raw & 1)
			walk(p, raw, level - 1, at);
	}
}

static void print_sums(const char *name, uint64_t of[STATES][VERDICTS], FILE *out)
{
	fprintf(out, "\"%s\": {", name);
	for (int s = 0; s < STATES; s++) {
		fprintf(out, "%s\"%s\": {", s ? ", " : "", states[s]);
		for (int v = 0; v < VERDICTS; v++)
			fprintf(out, "%s\"%s\": %" PRIu64, v ? ", " : "", verdicts[v], of[s][v]);
		fprintf(out, "}");
	}
	fprintf(out, "}, ");
}

static void print_processes(FILE *out)
{
	const char *comma = "";

	fprintf(out, "\"processes\": [");
	for (size_t i = 0; i < truth.count; i++) {
		const struct process *p = &truth.at[i];

		if (p->pages)
			fprintf(out, "%s[%" PRIu32 ", %" PRIu64 ", %" PRIu64 "]", comma, p->pid,
				p->pages, p->wrong);
		comma = p->pages ? ", " : comma;
	}
	fprintf(out, "], ");
}

int main(int argc, char **argv)
{
	FILE *out;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: sim_truth CONTAINER TRUTH [PID]\n");
		return 2;
	}
	if (argc == 4)
		only = strtol(argv[3], NULL, 10);
	read_truth(argv[2]);
	read_container(argv[1]);
	if (only >= 0)
		printf("va,state,place,file,verdict,captures\n");
	for (size_t i = 0; i < truth.count; i++)
		if (truth.at[i].lived && truth.at[i].pid != SYSTEM)
			walk(&truth.at[i], truth.at[i].root, 4, 0);
	out = only >= 0 ? stderr : stdout;
	fprintf(out, "{");
	print_sums("all", sums[0], out);
	print_sums("main", sums[1], out);
	if (only >= 0)
		print_processes(out);
	fprintf(out, "\"main_pid\": %" PRIu32 ", \"tables_lost\": %" PRIu64 "}\n", truth.main,
		tables_lost);
	return 0;
}
