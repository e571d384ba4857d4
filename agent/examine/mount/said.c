/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/examine/mount/said.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/shared/program/log.h"

#define TEXT_MAX   ((size_t)1 << 20)
#define CAUSES_MAX 1000

static struct {
	pthread_mutex_t lock;
	char *text;
	size_t len;
	pthread_mutex_t causes_lock;
	uint64_t causes[CAUSES_MAX];
	size_t n_causes;
} said = { .lock = PTHREAD_MUTEX_INITIALIZER, .causes_lock = PTHREAD_MUTEX_INITIALIZER };

/* What does not fit is left out whole. */
static void append_said_line(void *arg, const char *line, size_t len)
{
	char *text;

	pthread_mutex_lock(&said.lock);
	text = len <= TEXT_MAX - said.len ? realloc(said.text, said.len + len) : NULL;
	if (text) {
		memcpy(text + said.len, line, len);
		said.text = text;
		said.len += len;
	}
	pthread_mutex_unlock(&said.lock);
}

void said_begin(void)
{
	log_tee(append_said_line, NULL);
}

void said_end(void)
{
	log_tee(NULL, NULL);
	free(said.text);
	said.text = NULL;
	said.len = 0;
	said.n_causes = 0;
}

static enum status said_measure(struct node *n, struct node_facts *ret, struct err *e)
{
	pthread_mutex_lock(&said.lock);
	*ret = (struct node_facts){ said.len, said.len };
	pthread_mutex_unlock(&said.lock);
	return ST_OK;
}

static enum status said_read(struct node *n, uint64_t at, uint8_t *buf, size_t len, struct err *e)
{
	pthread_mutex_lock(&said.lock);
	memcpy(buf, said.text + at, len);
	pthread_mutex_unlock(&said.lock);
	return ST_OK;
}

static const struct node_ops said_ops = { .measure = said_measure,
					  .read = said_read,
					  .grows = true };

enum status said_add_file(struct node *root, struct err *e)
{
	return node_add_file(root, "mount.log", &said_ops, NULL, e);
}

/* FNV-1a (draft-eastlake-fnv): what is told twice does no harm. */
static uint64_t hash_text(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return h;
}

/* Which of all causes it is, from 1 on; 0: it was told before, or there are too many. */
static size_t new_cause(const char *text)
{
	const uint64_t h = hash_text(text);
	size_t i = 0;

	pthread_mutex_lock(&said.causes_lock);
	while (i < said.n_causes && said.causes[i] != h)
		i++;
	if (i == said.n_causes && i < CAUSES_MAX)
		said.causes[said.n_causes++] = h;
	else
		i = CAUSES_MAX;
	pthread_mutex_unlock(&said.causes_lock);
	return i == CAUSES_MAX ? 0 : i + 1;
}

void said_damage(const struct node *n, uint64_t at, const struct err *why)
{
	const size_t cause = new_cause(why->message);
	char path[NODE_PATH_MAX];

	if (!cause)
		return;
	node_path(n, path);
	log_warning_with(JSON_FIELDS(field_text("file", path), field_u64("offset", at)),
			 "cannot-read", "%s: at offset %" PRIu64 ": %s", path, at, why->message);
	if (cause == CAUSES_MAX)
		log_warning("cannot-read-more", "further damage is not reported");
}
