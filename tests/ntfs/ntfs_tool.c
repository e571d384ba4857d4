/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library as a program, for the scripts in this folder.
 *
 *	ntfs_tool volumes IMAGE...
 *	ntfs_tool info    OFFSET PATH IMAGE...        one line per extent
 *	ntfs_tool cat     OFFSET PATH IMAGE...        the content; states to stderr
 *	ntfs_tool changed OFFSET PATH IMAGE COMMAND   copies to stdout, runs COMMAND midway, checks
 *
 * OFFSET is in sectors, or "-" for the only NTFS volume. Exit codes are the agent's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/shared/program/startup.h"
#include "tsk-extract/extract.h"

static int fail(enum status st, const struct err *e)
{
	fprintf(stderr, "ntfs_tool: %s\n", e->message[0] ? e->message : status_text(st));
	return (int)status_exit_code(st);
}

static int show_volumes(const struct disk *d)
{
	size_t n;
	const struct volume *v = disk_volumes(d, &n);

	for (size_t i = 0; i < n; i++)
		printf("%zu offset=%" PRIu64 " length=%" PRIu64 " kind=%s readable=%d guid=%d "
		       "cluster=%u record=%u serial=%016" PRIx64 " label=%s%s%s%s%s\n",
		       v[i].number, v[i].offset, v[i].length, volume_kind_text(v[i].kind),
		       v[i].readable, v[i].has_guid, v[i].boot.cluster, v[i].boot.record,
		       v[i].boot.serial, v[i].label, v[i].problem.message[0] ? " problem=" : "",
		       v[i].problem.message, v[i].note.message[0] ? " note=" : "",
		       v[i].note.message);
	return 0;
}

static int show_info(const struct extract *x)
{
	const struct extract_state *s = extract_now(x);

	printf("record=%" PRIu64 " sequence=%u size=%" PRIu64 " allocated=%" PRIu64
	       " initialised=%" PRIu64 " resident=%d compressed=%d sparse=%d fragments=%zu "
	       "records=%zu lost=%zu%s%s%s%s\n",
	       s->record, s->sequence, s->size, s->allocated, s->initialised, s->resident,
	       s->compressed, s->sparse, s->fragments, s->n_records, s->lost_records,
	       s->problem.message[0] ? " problem=" : "", s->problem.message,
	       s->note.message[0] ? " note=" : "", s->note.message);
	for (size_t i = 0; i < s->extents.count; i++)
		printf("%" PRIu64 " %" PRIu64 " %s %" PRIu64 "\n", s->extents.at[i].file,
		       s->extents.at[i].length, extent_kind_name(s->extents.at[i].kind),
		       s->extents.at[i].disk);
	return 0;
}

struct counts {
	uint64_t pages[PAGE_STATES + 1];
};

static void report(const struct extract *x, const struct counts *c)
{
	size_t n;
	const struct extract_bad *bad = extract_bad(x, &n);

	for (uint32_t s = 0; s <= PAGE_STATES; s++)
		if (c->pages[s])
			fprintf(stderr, "%s=%" PRIu64 " ", page_state_name(s), c->pages[s]);
	fputs("\n", stderr);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "bad %" PRIu64 "+%" PRIu64 " error=%u\n", bad[i].offset,
			bad[i].length, bad[i].error);
}

/* Copies up to `limit` bytes to stdout. */
static int copy(struct extract *x, uint64_t limit, struct counts *c)
{
	static _Alignas(EXTRACT_ALIGNMENT) uint8_t buf[EXTRACT_BUFFER];
	static struct page_status status[EXTRACT_BUFFER / PAGE_SIZE];
	struct extract_piece piece;
	struct err e = ERR_INIT;
	uint64_t done = 0;
	enum status st = ST_OK;

	while (done < limit) {
		st = extract_next(x, buf, (size_t)MIN(limit - done, sizeof(buf)), status, &piece,
				  &e);
		if (st)
			break;
		if (piece.offset % PAGE_SIZE ||
		    fwrite(buf, 1, piece.length, stdout) != piece.length)
			return fail(ST_OUTPUT, &e);
		for (size_t i = 0; i * PAGE_SIZE < piece.length; i++)
			c->pages[MIN(status[i].state, (uint32_t)PAGE_STATES)]++;
		done += piece.length;
	}
	return st && st != ST_END ? fail(st, &e) : 0;
}

static int cat(struct extract *x)
{
	struct counts c = { { 0 } };
	int rc = copy(x, UINT64_MAX, &c);

	report(x, &c);
	if (!rc && c.pages[PAGE_UNREADABLE])
		rc = EXIT_GAPS;
	return rc;
}

static int changed(struct extract *x, const char *command)
{
	struct extract_changes ch = { 0 };
	struct counts c = { { 0 } };
	struct err e = ERR_INIT;
	enum status st;
	int rc = copy(x, extract_now(x)->size / 2 / PAGE_SIZE * PAGE_SIZE, &c);

	if (!rc && system(command))
		return fail(ST_SYSTEM, &e);
	if (!rc)
		rc = copy(x, UINT64_MAX, &c);
	if (rc)
		return rc;
	st = extract_check(x, &ch, &e);
	if (st)
		return fail(st, &e);
	fprintf(stderr,
		"any=%d gone=%d size=%d moved=%d records=%d first=%" PRIu64 " now=%" PRIu64 "\n",
		ch.any, ch.gone, ch.size_changed, ch.moved, ch.records_changed,
		extract_first(x)->size, extract_now(x)->size);
	for (size_t i = 0; i < ch.again.count; i++)
		fprintf(stderr, "again %" PRIu64 "+%" PRIu64 "\n", ch.again.at[i].file,
			ch.again.at[i].length);
	extract_changes_deinit(&ch);
	return 0;
}

static int with_file(const struct disk *d, int argc, char **argv)
{
	const struct volume *v = NULL;
	struct extract *x = NULL;
	struct err e = ERR_INIT;
	size_t n;
	enum status st = ST_OK;
	int rc;

	if (strcmp(argv[2], "-") == 0)
		st = disk_only_ntfs(d, &v, &e);
	else
		v = disk_volumes(d, &n);
	if (!st)
		st = extract_open(disk_reader(d), v, argv[3], 0, &x, &e);
	if (st)
		return fail(st, &e);
	if (strcmp(argv[1], "info") == 0)
		rc = show_info(x);
	else if (strcmp(argv[1], "cat") == 0)
		rc = cat(x);
	else
		rc = changed(x, argv[argc - 1]);
	extract_close(x);
	return rc;
}

static int run(int argc, char **argv)
{
	const bool volumes = argc > 2 && strcmp(argv[1], "volumes") == 0;
	const bool command = argc > 5 && strcmp(argv[1], "changed") == 0;
	const int first = volumes ? 2 : 4;
	const size_t images = (size_t)(argc - first - command);
	struct disk *d = NULL;
	struct err e = ERR_INIT;
	enum status st;
	int rc;

	if (argc <= first)
		return fail(ST_USAGE, &e);
	if (volumes || strcmp(argv[2], "-") == 0)
		st = disk_open((const char *const *)argv + first, images, &d, &e);
	else
		st = disk_open_at((const char *const *)argv + first, images,
				  strtoull(argv[2], NULL, 10) * 512, &d, &e);
	if (st)
		return fail(st, &e);
	if (disk_note(d)->message[0])
		fprintf(stderr, "note: %s\n", disk_note(d)->message);
	rc = volumes ? show_volumes(d) : with_file(d, argc, argv);
	disk_close(d);
	if (fclose(stdout))
		rc = EXIT_OUTPUT;
	return rc;
}

int main(int argc, char **argv)
{
	startup(&argc, &argv);
	return run(argc, argv);
}
