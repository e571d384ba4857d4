/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/simulator/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/simulator/layout.h"
#include "formats/base/io.h"
#include "formats/base/words.h"

/* A file of settings is a page of text. */
#define FILE_MAX ((size_t)64 << 10)

/* What presets have alike: all of them; the three of papers; and those of which most is in use. */
#define EACH_PRESET                                                                                \
	.seed = 1, .slow_bandwidth = 1000000, .spool = 64 * SIM_MIB, .piece = 8 * SIM_MIB,         \
	.heap_lfh = 30
#define OLD_MACHINE                                                                                \
	.windows = 7, .dtb = 0x187000, .bandwidth = 80000000, .latency = 10000, .hot = 10,         \
	.low_tables = 1
#define MUCH_IN_USE                                                                                \
	.threads = 3, .heap_blocks = 4000, .heap_max = 4096, .region_transition = 15,              \
	.region_paged = 20

static const struct sim_spec presets[] = {
	{
		/*
		 * The experiment of "Forensic analysis of Windows user space applications through
		 * heap allocations" (Cohen, 2015), III.C: swapper.exe has written 800 MB, 347 MB of
		 * it are resident, within seconds of the acquisition's start 188 MB are, and the
		 * kernel's DTB is at 0x187000. The paper does not say how much memory there was,
		 * how fast it was read, or what else ran.
		 */
		.preset = "cohen2015",
		.process = "swapper.exe",
		EACH_PRESET,
		OLD_MACHINE,
		MUCH_IN_USE,
		.ram = SIM_GIB,
		.activity = 100,
		.touch = 1000,
		.write = 500,
		.alloc = 50,
		.free = 50,
		.start = 10,
		.exit = 10,
		.pressure = 100,
		.cache = 200 * SIM_MIB,
		.trim = 60 * SIM_MIB,
		.processes = 24,
		.allocated = 800 * SIM_MIB,
		.resident = 347 * SIM_MIB,
		.trimmed = 188 * SIM_MIB,
		.others = 180 * SIM_MIB,
		.pagefile0 = 2 * SIM_GIB,
		.pool_paged = 20,
		.before_main = 4,
	},
	{
		/*
		 * The resolver of the same paper, IV: svchost.exe with the PID 1148, its heaps and
		 * their pages (resolver.h). Nothing moves, so that an acquisition shows the paper's
		 * numbers; and the kernel's pool is in memory, so that the heaps are found without
		 * the page file.
		 */
		.preset = "cohen2015heaps",
		.process = "svchost.exe",
		EACH_PRESET,
		OLD_MACHINE,
		MUCH_IN_USE,
		.before_main = 25,
		.ram = SIM_GIB / 4,
		.cache = 32 * SIM_MIB,
		.processes = 27,
		.allocated = 4 * SIM_MIB,
		.resident = 2 * SIM_MIB,
		.trimmed = SIM_MIB,
		.others = 40 * SIM_MIB,
		.pagefile0 = 256 * SIM_MIB,
		.inside = 1,
		.heaps = 3,
		.resolver = 1,
	},
	{
		/*
		 * The program of "Leak Checking" (2010) whose leaks are listed (leaker.h). It was
		 * 7 as well; nothing moves, and all that it has is in memory.
		 */
		.preset = "leaks2010",
		.process = "app.exe",
		EACH_PRESET,
		OLD_MACHINE,
		.before_main = 9,
		.ram = SIM_GIB / 8,
		.cache = 16 * SIM_MIB,
		.processes = 12,
		.allocated = SIM_MIB,
		.resident = SIM_MIB,
		.trimmed = SIM_MIB,
		.others = 16 * SIM_MIB,
		.pagefile0 = 64 * SIM_MIB,
		.threads = 1,
		.heap_blocks = 2000,
		.inside = 1,
		.heaps = 2,
		.wow64 = 1,
		.leaker = 1,
	},
	{
		.preset = "server16g",
		.process = "sqlservr.exe",
		EACH_PRESET,
		MUCH_IN_USE,
		.before_main = 4,
		.ram = 16 * SIM_GIB,
		.windows = 10,
		.dtb = 0x1ad000,
		.bandwidth = 1000000000,
		.latency = 5000,
		.activity = 100,
		.touch = 60000,
		.write = 30000,
		.alloc = 4000,
		.free = 4000,
		.start = 240,
		.exit = 240,
		.hot = 20,
		.pressure = 60,
		.cache = 1536 * SIM_MIB,
		.trim = 400 * SIM_MIB,
		.processes = 120,
		.allocated = 9 * SIM_GIB,
		.resident = 7 * SIM_GIB,
		.trimmed = 6 * SIM_GIB,
		.others = 5 * SIM_GIB,
		.pagefile0 = 6 * SIM_GIB,
		.pool_paged = 20,
		.pagefile1 = 4 * SIM_GIB,
	},
	{
		.preset = "desktop",
		.process = "browser.exe",
		EACH_PRESET,
		MUCH_IN_USE,
		.before_main = 4,
		.ram = 2 * SIM_GIB,
		.windows = 10,
		.dtb = 0x1aa000,
		.bandwidth = 500000000,
		.latency = 5000,
		.activity = 100,
		.touch = 2000,
		.write = 500,
		.alloc = 200,
		.free = 200,
		.start = 10,
		.exit = 10,
		.hot = 10,
		.pressure = 30,
		.cache = 128 * SIM_MIB,
		.trim = 40 * SIM_MIB,
		.processes = 40,
		.allocated = 600 * SIM_MIB,
		.resident = 420 * SIM_MIB,
		.trimmed = 300 * SIM_MIB,
		.others = 380 * SIM_MIB,
		.pagefile0 = 512 * SIM_MIB,
		.pool_paged = 20,
		.pagefile1 = 256 * SIM_MIB,
	},
};

static const struct {
	const char *name;
	size_t at;
	uint64_t min, max;
} numbers[] = {
#define X(name, min, max, text) { #name, offsetof(struct sim_spec, name), min, max },
	SIM_KEY_MAP(X)
#undef X
};

static const struct {
	const char *name;
	size_t at;
} texts[] = {
#define X(name, text) { #name, offsetof(struct sim_spec, name) },
	SIM_TEXT_MAP(X)
#undef X
};

static uint64_t *spec_number_at(struct sim_spec *s, size_t i)
{
	return (uint64_t *)((char *)s + numbers[i].at);
}

static uint64_t spec_number_of(const struct sim_spec *s, size_t i)
{
	return *(const uint64_t *)((const char *)s + numbers[i].at);
}

static char **spec_text_at(struct sim_spec *s, size_t i)
{
	return (char **)((char *)s + texts[i].at);
}

static bool parse_spec_number(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 0);
	if (errno || end == text)
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		const unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (*ret > UINT64_MAX >> shift)
			return false;
		*ret <<= shift;
		end++;
	}
	return !*end;
}

static const char *spec_key_at(const void *of, size_t i)
{
	if (i < ARRAY_SIZE(numbers))
		return numbers[i].name;
	i -= ARRAY_SIZE(numbers);
	return i < ARRAY_SIZE(texts) ? texts[i].name : NULL;
}

static enum status err_no_such_key(const char *key, struct err *e)
{
	char hint[WORDS_HINT_MAX];

	words_hint(spec_key_at, NULL, "", key, strlen(key), hint);
	return err_set(e, ST_USAGE, "there is no key \"%s\"%s", key, hint);
}

static enum status set_spec_value(struct sim_spec *s, const char *key, const char *value,
				  struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint64_t v;

		if (strcmp(key, numbers[i].name) != 0)
			continue;
		if (!parse_spec_number(value, &v) || v < numbers[i].min || v > numbers[i].max)
			return err_set(e, ST_USAGE, "%s=%s: takes %" PRIu64 " to %" PRIu64, key,
				       value, numbers[i].min, numbers[i].max);
		*spec_number_at(s, i) = v;
		return ST_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(key, texts[i].name) != 0)
			continue;
		free(*spec_text_at(s, i));
		*spec_text_at(s, i) = strdup(value);
		return *spec_text_at(s, i) ? ST_OK : err_nomem(e);
	}
	return err_no_such_key(key, e);
}

static const char *preset_at(const void *of, size_t i)
{
	return i < ARRAY_SIZE(presets) ? presets[i].preset : NULL;
}

static void list_presets(char *ret, size_t size)
{
	words_join(preset_at, NULL, ", ", " or ", ret, size);
}

static const struct sim_spec *find_preset(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
		if (strlen(presets[i].preset) == len && !memcmp(presets[i].preset, name, len))
			return &presets[i];
	return NULL;
}

/* What texts were set so far would be lost: a preset is the first setting. */
static enum status begin_preset(struct sim_spec *s, const char *name, size_t len, struct err *e)
{
	const struct sim_spec *preset = find_preset(name, len);
	char all[100], hint[WORDS_HINT_MAX];

	list_presets(all, sizeof(all));
	words_hint(preset_at, NULL, "", name, len, hint);
	if (!preset)
		return err_set(e, ST_USAGE, "there is no preset \"%.*s\"%s; there are %s",
			       (int)MIN(len, 100), name, hint, all);
	if (s->preset)
		return err_set(e, ST_USAGE, "more than one preset");
	*s = *preset;
	return ST_OK;
}

static char *trim_spec_text(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	for (len = strlen(text); len && strchr(" \t\r", text[len - 1]); len--)
		;
	text[len] = '\0';
	return text;
}

static enum status parse_spec_line(struct sim_spec *s, char *line, struct err *e)
{
	char *value;

	line[strcspn(line, "#")] = '\0';
	line = trim_spec_text(line);
	if (!*line)
		return ST_OK;
	value = strchr(line, '=');
	if (!value)
		return err_set(e, ST_USAGE, "\"%s\" sets nothing", line);
	*value++ = '\0';
	line = trim_spec_text(line);
	value = trim_spec_text(value);
	if (!strcmp(line, "preset"))
		return begin_preset(s, value, strlen(value), e);
	if (!s->preset)
		return err_set(e, ST_USAGE, "the preset must come first");
	return set_spec_value(s, line, value, e);
}

static enum status parse_spec_lines(struct sim_spec *s, char *text, struct err *e)
{
	unsigned number = 0;
	enum status st = ST_OK;
	char *next;

	for (char *line = text; line && !st; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		st = parse_spec_line(s, line, e);
		if (st)
			return err_add(e, st == ST_USAGE ? ST_INPUT : st, "line %u", number);
	}
	return s->preset ? ST_OK : err_set(e, ST_INPUT, "names no preset");
}

static enum status load_spec(struct sim_spec *s, const char *path, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	struct file_blob file;
	enum status st = file_blob_open(&file, path, e);
	char all[100], hint[WORDS_HINT_MAX];

	list_presets(all, sizeof(all));
	words_hint(preset_at, NULL, "", path, strlen(path), hint);
	if (st)
		return err_add(e, st, "neither a preset (%s) nor a file%s", all, hint);
	if (file.blob.size > FILE_MAX) {
		st = err_set(e, ST_INPUT, "too long for a text of settings");
	} else {
		text = calloc(1, (size_t)file.blob.size + 1);
		st = text ? blob_read(&file.blob, 0, text, (size_t)file.blob.size, e)
			  : err_nomem(e);
	}
	file_blob_deinit(&file);
	return st ? st : parse_spec_lines(s, text, e);
}

/* What no single number can say. */
static enum status check_spec(const struct sim_spec *s, struct err *e)
{
	const struct sim_layout *layout = sim__layout(s);
	const struct {
		bool wrong;
		const char *text;
	} rules[] = {
		{ s->windows != 7 && s->windows != 10, "windows is 7 or 10" },
		{ !layout, "with windows=7 build is 7601, and with 10 10240, 10586, 17763, "
			   "18362, 19045, 22000, 22621, 22631 or 26100; moved=1 goes with "
			   "22000 alone" },
		{ s->region_transition + s->region_paged > 100,
		  "region_transition and region_paged are 100 at most" },
		{ (s->heaps || s->resolver) && !s->inside, "heaps and resolver take inside=1" },
		{ s->inside && layout && layout->early,
		  "inside takes a build from 17763 on, or 7601" },
		{ s->heap_ust && (!s->heaps || s->resolver),
		  "heap_ust takes heaps, and no resolver" },
		{ s->segment_heap &&
			  (!s->heaps || s->heap_ust || s->windows != 10 || s->build >= 26100),
		  "segment_heap takes heaps, windows=10 and a build below 26100, and "
		  "no heap_ust" },
		{ s->page_heap && (!s->heaps || s->heap_ust || s->segment_heap || s->resolver),
		  "page_heap takes heaps, and neither heap_ust, segment_heap nor "
		  "resolver" },
		{ s->stack_roots && (!s->heaps || s->resolver),
		  "stack_roots takes heaps, and no resolver" },
		{ s->wow64 && (!s->inside || s->resolver || s->heap_ust || s->moved ||
			       s->segment_heap || s->page_heap || s->stack_roots),
		  "wow64 takes inside=1, and none of resolver, heap_ust, "
		  "moved, segment_heap, page_heap and stack_roots" },
		{ s->heap_writes && (!s->heaps || s->resolver || s->compressed || s->heap_ust ||
				     s->page_heap || s->segment_heap || s->wow64),
		  "heap_writes takes heaps, and none of resolver, compressed, "
		  "heap_ust, page_heap, segment_heap and wow64" },
		{ s->leaker && (s->windows != 7 || !s->wow64 || !s->heaps),
		  "leaker takes windows=7, wow64 and heaps" },
		{ s->resolver && s->windows != 7, "resolver takes windows=7" },
		{ (s->process_truth || s->files || s->relocated || s->bare_files) && !s->inside,
		  "process_truth, files, relocated and bare_files take inside=1" },
		{ s->ram % (2 * SIM_MIB) || s->dtb % PAGE_SIZE,
		  "ram is in steps of 2 MiB, and dtb a page" },
		{ s->resident > s->allocated || s->trimmed > s->resident,
		  "trimmed, resident and allocated go up" },
		/* The kernel takes an eighth; what is left is the tables', the cache's and free. */
		{ s->resident > s->ram / 4 * 3 || s->others > s->ram / 4 * 3 ||
			  s->resident + s->others > s->ram / 4 * 3 || s->cache > s->ram / 4,
		  "resident and others take three quarters of ram at most, "
		  "cache one" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].wrong)
			return err_set(e, ST_USAGE, "%s", rules[i].text);
	return ST_OK;
}

static enum status parse_pairs(struct sim_spec *s, char *text, struct err *e)
{
	enum status st = ST_OK;
	char *next;

	for (char *at = text; at && !st; at = next) {
		char *value = strchr(at, '=');

		next = strchr(at, ',');
		if (next)
			*next++ = '\0';
		if (!value || (next && value >= next))
			return err_set(e, ST_USAGE, "\"%s\" sets nothing", at);
		*value++ = '\0';
		st = set_spec_value(s, at, value, e);
	}
	return st;
}

enum status sim_spec_parse(const char *text, struct sim_spec *ret, struct err *e)
{
	_cleanup_free_ char *copy = strdup(text);
	char *pairs;
	enum status st;

	*ret = (struct sim_spec){ 0 };
	if (!copy)
		return err_nomem(e);
	pairs = strchr(copy, ',');
	if (pairs)
		*pairs++ = '\0';
	if (find_preset(copy, strlen(copy)))
		st = begin_preset(ret, copy, strlen(copy), e);
	else
		st = load_spec(ret, copy, e);
	if (!st && pairs)
		st = parse_pairs(ret, pairs, e);
	return st ? st : check_spec(ret, e);
}

void sim_spec_deinit(struct sim_spec *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(*spec_text_at(s, i));
	*s = (struct sim_spec){ 0 };
}

char *sim_spec_text(const struct sim_spec *s)
{
	const struct sim_spec *preset = find_preset(s->preset, strlen(s->preset));
	const size_t room = 64 + ARRAY_SIZE(numbers) * 48;
	char *text = malloc(room);
	size_t len = 0;

	if (!text)
		return NULL;
	len = (size_t)snprintf(text, room, "%s", s->preset);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (spec_number_of(s, i) != spec_number_of(preset, i) ||
		    !strcmp(numbers[i].name, "seed"))
			len += (size_t)snprintf(text + len, room - len, ",%s=%" PRIu64,
						numbers[i].name, spec_number_of(s, i));
	return text;
}
