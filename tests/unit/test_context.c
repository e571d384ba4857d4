/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made of a registry, over one that is a table: so that keys can be refused and damaged.
 */
#include "tests/unit/test.h"

#include <string.h>

#include "agent/collect/host/context.h"
#include "agent/collect/host/context_flags.h"
#include "formats/base/bytes.h"

/* One value, or a key that answers with an error. A key is the length of its path in `rows`. */
struct row {
	const char *path; /* of the key, with backslashes around each name: "\\A\\B\\" */
	const char *value;
	uint32_t type;
	const void *at;
	size_t size;
	enum status st;
};

struct table {
	struct registry registry;
	const struct row *rows;
	size_t count;
	size_t open; /* keys that were opened and not closed */
};

#define KEYS_MAX 64

static char keys[KEYS_MAX][256];
static size_t n_keys;

static registry_key key_of(const char *path)
{
	size_t i = 0;

	while (i < n_keys && strcmp(keys[i], path) != 0)
		i++;
	if (i == n_keys) {
		assert_true(n_keys < KEYS_MAX);
		snprintf(keys[n_keys++], sizeof(keys[0]), "%s", path);
	}
	return i + 1;
}

static const char *path_of(registry_key key)
{
	return keys[key - 1];
}

static enum status table_open(struct registry *r, registry_key parent, const char *name,
			      registry_key *ret, struct err *e)
{
	struct table *t = (struct table *)r;
	char path[256];

	snprintf(path, sizeof(path), "%s%s\\", path_of(parent), name);
	for (size_t i = 0; i < t->count; i++) {
		if (strncmp(t->rows[i].path, path, strlen(path)) != 0)
			continue;
		if (t->rows[i].st && !t->rows[i].value && !strcmp(t->rows[i].path, path))
			return err_set(e, t->rows[i].st, "refused");
		*ret = key_of(path);
		t->open++;
		return ST_OK;
	}
	return err_set(e, ST_INPUT, "there is no key");
}

static void table_close(struct registry *r, registry_key key)
{
	struct table *t = (struct table *)r;

	(void)key;
	assert_true(t->open > 0);
	t->open--;
}

static enum status table_each(struct registry *r, registry_key key, registry_visitor fn, void *arg,
			      struct err *e)
{
	struct table *t = (struct table *)r;
	const size_t length = strlen(path_of(key));
	char last[256] = "";
	enum status st = ST_OK;

	for (size_t i = 0; i < t->count && !st; i++) {
		const char *rest = t->rows[i].path + length;
		char name[256], path[512];

		if (strncmp(t->rows[i].path, path_of(key), length) != 0 || !*rest)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(rest, "\\"), rest);
		if (!strcmp(name, last))
			continue;
		strcpy(last, name);
		snprintf(path, sizeof(path), "%s%s\\", path_of(key), name);
		st = fn(arg, name, key_of(path), e);
	}
	return st;
}

static enum status table_value(struct registry *r, registry_key key, const char *name,
			       struct registry_value *ret, struct err *e)
{
	struct table *t = (struct table *)r;

	for (size_t i = 0; i < t->count; i++) {
		const struct row *row = &t->rows[i];

		if (strcmp(row->path, path_of(key)) != 0 || !row->value ||
		    strcmp(row->value, name) != 0)
			continue;
		if (row->st)
			return err_set(e, row->st, "value %s is bad", name);
		ret->type = row->type;
		ret->size = row->size;
		ret->at = malloc(row->size);
		memcpy(ret->at, row->at, row->size);
		return ST_OK;
	}
	return err_set(e, ST_INPUT, "there is no value");
}

static const struct registry_ops table_ops = {
	.open = table_open,
	.close = table_close,
	.each = table_each,
	.value = table_value,
};

static void table_init(struct table *t, const struct row *rows, size_t count)
{
	n_keys = 0;
	*t = (struct table){ .rows = rows, .count = count };
	t->registry = (struct registry){ .ops = &table_ops, .root = key_of("\\"), .name = "table" };
}

#define NUMBER(path_, value_, bytes)                                                               \
	{ .path = (path_), .value = (value_), .type = REGISTRY_DWORD, .at = (bytes), .size = 4 }
#define TEXT(path_, value_, type_, units)                                                          \
	{ .path = (path_),                                                                         \
	  .value = (value_),                                                                       \
	  .type = (type_),                                                                         \
	  .at = (units),                                                                           \
	  .size = sizeof(units) }

static json_t *at(json_t *doc, const char *section, const char *key)
{
	return json_object_get(json_object_get(doc, section), key);
}

static const char *text_at(json_t *doc, const char *section, const char *key)
{
	const char *text = json_string_value(at(doc, section, key));

	return text ? text : "(none)";
}

static void check_number(const struct registry_value *v, bool ok, uint64_t want)
{
	uint64_t n = 0;

	assert_int_equal(registry_number(v, &n), ok);
	if (ok)
		assert_int_equal(n, want);
}

TEST(numbers_are_read_however_they_are_stored)
{
	uint8_t bytes[8] = { 0x78, 0x56, 0x34, 0x12, 1, 0, 0, 0 };

	check_number(&(struct registry_value){ REGISTRY_DWORD, bytes, 4 }, true, 0x12345678);
	check_number(&(struct registry_value){ REGISTRY_QWORD, bytes, 8 }, true, 0x112345678);
	check_number(&(struct registry_value){ REGISTRY_BINARY, bytes, 8 }, true, 0x112345678);
	check_number(&(struct registry_value){ REGISTRY_DWORD, bytes, 3 }, false, 0);
}

TEST(numbers_are_read_from_text)
{
	static uint16_t hex[] = { '0', 'x', '0', '2', 'F', 0 }, decimal[] = { '5', '1', '2', 0 },
			junk[] = { '5', 'x', 0 }, negative[] = { '-', '1', 0 };

	check_number(&(struct registry_value){ REGISTRY_SZ, (uint8_t *)hex, sizeof(hex) }, true,
		     0x2f);
	check_number(&(struct registry_value){ REGISTRY_SZ, (uint8_t *)decimal, sizeof(decimal) },
		     true, 512);
	check_number(&(struct registry_value){ REGISTRY_SZ, (uint8_t *)junk, sizeof(junk) }, false,
		     0);
	check_number(&(struct registry_value){ REGISTRY_SZ, (uint8_t *)negative, sizeof(negative) },
		     false, 0);
}

static void check_string(const struct registry_value *v, size_t i, const char *want)
{
	char *text = registry_string(v, i);

	if (!want)
		assert_null(text);
	else
		assert_string_equal(text, want);
	free(text);
}

TEST(strings_of_a_list_end_where_the_list_does)
{
	/* A pair, a lone surrogate, and no NUL behind the last string. */
	static uint16_t units[] = { 0xd83d, 0xde00, 0, 0xd800, 'b', 0, 0xe9, 0x20ac };
	const struct registry_value v = { REGISTRY_MULTI_SZ, (uint8_t *)units, sizeof(units) };
	const struct registry_value single = { REGISTRY_SZ, (uint8_t *)units, sizeof(units) };
	const struct registry_value odd = { REGISTRY_SZ, (uint8_t *)units, 1 };

	check_string(&v, 0, "\xf0\x9f\x98\x80");
	check_string(&v, 1,
		     "\xed\xa0\x80"
		     "b");
	check_string(&v, 2, "\xc3\xa9\xe2\x82\xac");
	check_string(&v, 3, NULL);
	check_string(&single, 0, "\xf0\x9f\x98\x80");
	check_string(&single, 1, NULL);
	check_string(&odd, 0, NULL);
}

TEST(filetimes_become_times_or_nothing)
{
	uint64_t ns = 0;

	assert_true(registry_time(UINT64_C(0x01cc6f049e57f314), &ns));
	assert_int_equal(ns, UINT64_C(1315581891401806800));
	assert_true(registry_time(UINT64_C(116444736000000000), &ns));
	assert_int_equal(ns, 0);
	assert_false(registry_time(UINT64_C(116444735999999999), &ns));
	assert_false(registry_time(0, &ns));
	assert_false(registry_time(UINT64_MAX, &ns));
}

TEST(flags_have_names_and_what_has_none_is_kept)
{
	json_t *l = context_flag_names(0x02001000, context_global_flags);

	assert_int_equal(json_array_size(l), 2);
	CHECK_HAS(json_string_value(json_array_get(l, 0)), "ust:");
	CHECK_HAS(json_string_value(json_array_get(l, 1)), "hpa:");
	json_decref(l);
	l = context_flag_names(9, context_shutdown_flags);
	assert_int_equal(json_array_size(l), 2);
	assert_string_equal(json_string_value(json_array_get(l, 1)), "0x8");
	json_decref(l);
	/* Every bit of GlobalFlag has one. */
	l = context_flag_names(UINT32_MAX, context_global_flags);
	assert_int_equal(json_array_size(l), 32);
	json_decref(l);
}

#define SET "\\CurrentControlSet\\"

TEST(a_live_registry_is_read_through_its_link)
{
	static const uint16_t options[] = u" noexecute=optin TestSigning";
	static const uint8_t one[] = { 1, 0, 0, 0 }, two[] = { 2, 0, 0, 0 };
	static const struct row rows[] = {
		NUMBER("\\Select\\", "Current", two),
		TEXT(SET "Control\\", "SystemStartOptions", REGISTRY_SZ, options),
		NUMBER(SET "Control\\Lsa\\", "LsaCfgFlags", two),
		NUMBER(SET "Control\\SecureBoot\\State\\", "UEFISecureBootEnabled", one),
		NUMBER(SET "Control\\CI\\Config\\", "VulnerableDriverBlocklistEnable", one),
		NUMBER("\\ControlSet002\\Control\\Lsa\\", "RunAsPPL", one),
	};
	struct err e = ERR_INIT;
	json_t *doc = NULL;
	struct table t;

	table_init(&t, rows, ARRAY_SIZE(rows));
	CHECK_OK(context_read(NULL, &t.registry, &doc, &e), &e);
	assert_int_equal(t.open, 0);
	assert_true(json_is_true(at(doc, "security", "test_signing")));
	assert_true(json_is_false(at(doc, "security", "kernel_debugger")));
	assert_true(json_is_true(at(doc, "security", "secure_boot")));
	assert_true(json_is_true(at(doc, "security", "vulnerable_driver_blocklist")));
	assert_int_equal(json_integer_value(at(doc, "security", "credential_guard")), 2);
	assert_null(at(doc, "security", "lsa_protection"));
	assert_null(at(doc, "windows", "control_set"));
	/* Asked for and not told. */
	assert_true(json_is_null(at(doc, "security", "vbs")));
	assert_int_equal(context_problems(doc), 0);
	json_decref(doc);
}

TEST(a_hive_is_read_in_its_current_control_set)
{
	static const uint8_t one[] = { 1, 0, 0, 0 }, two[] = { 2, 0, 0, 0 };
	static const struct row rows[] = {
		NUMBER("\\Select\\", "Current", two),
		NUMBER("\\ControlSet001\\Control\\Lsa\\", "RunAsPPL", one),
		NUMBER("\\ControlSet002\\Control\\Lsa\\", "RunAsPPL", two),
	};
	struct err e = ERR_INIT;
	json_t *doc = NULL;
	struct table t;

	table_init(&t, rows, ARRAY_SIZE(rows));
	CHECK_OK(context_read(NULL, &t.registry, &doc, &e), &e);
	assert_int_equal(json_integer_value(at(doc, "security", "lsa_protection")), 2);
	assert_int_equal(json_integer_value(at(doc, "windows", "control_set")), 2);
	assert_true(json_is_null(at(doc, "security", "test_signing")));
	json_decref(doc);
	table_init(&t, rows, 1);
	CHECK_OK(context_read(NULL, &t.registry, &doc, &e), &e);
	assert_int_equal(context_problems(doc), 1);
	json_decref(doc);
}

#define IFEO  "\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options\\"
#define RADAR "\\Microsoft\\RADAR\\HeapLeakDetection\\"

TEST(what_is_refused_or_damaged_is_a_problem_and_the_rest_is_there)
{
	static const uint16_t product[] = u"W", flag[] = u"0x20";
	static const uint8_t one[] = { 1, 0, 0, 0 };
	static const uint8_t time[] = { 0x14, 0xf3, 0x57, 0x9e, 0x04, 0x6f, 0xcc, 0x01 };
	static const struct row rows[] = {
		TEXT("\\Microsoft\\Windows NT\\CurrentVersion\\", "ProductName", REGISTRY_SZ,
		     product),
		TEXT(IFEO "a.exe\\", "GlobalFlag", REGISTRY_SZ, flag),
		{ .path = IFEO "b.exe\\", .value = "GlobalFlag", .st = ST_CORRUPT },
		NUMBER(IFEO "c.exe\\0\\", "ShutdownFlags", one),
		{ .path = "\\Policies\\Microsoft\\Windows\\DeviceGuard\\", .st = ST_NO_PRIVILEGE },
		{ .path = RADAR "DiagnosedApplications\\d.exe\\",
		  .value = "LastDetectionTime",
		  .type = REGISTRY_QWORD,
		  .at = time,
		  .size = 8 },
	};
	struct err e = ERR_INIT;
	json_t *doc = NULL, *images, *diagnosed;
	struct table t;

	table_init(&t, rows, ARRAY_SIZE(rows));
	CHECK_OK(context_read(&t.registry, NULL, &doc, &e), &e);
	assert_int_equal(t.open, 0);
	assert_string_equal(text_at(doc, "windows", "product"), "W");
	images = at(doc, "heap_debugging", "images");
	assert_int_equal(json_array_size(images), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(images, 0), "image")),
			    "a.exe");
	assert_string_equal(json_string_value(json_object_get(json_array_get(images, 1), "image")),
			    "c.exe");
	diagnosed = at(doc, "radar", "diagnosed");
	assert_int_equal(json_array_size(diagnosed), 1);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(diagnosed, 0), "last_detection")),
		"2011-09-09T15:24:51.401806800Z");
	/* The policy key once for each of its three values, and b.exe's value. */
	assert_int_equal(context_problems(doc), 4);
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_however_they_are_stored),
		cmocka_unit_test(numbers_are_read_from_text),
		cmocka_unit_test(strings_of_a_list_end_where_the_list_does),
		cmocka_unit_test(filetimes_become_times_or_nothing),
		cmocka_unit_test(flags_have_names_and_what_has_none_is_kept),
		cmocka_unit_test(a_live_registry_is_read_through_its_link),
		cmocka_unit_test(a_hive_is_read_in_its_current_control_set),
		cmocka_unit_test(what_is_refused_or_damaged_is_a_problem_and_the_rest_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
