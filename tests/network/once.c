/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a server over TLS once, by its name: both it and the name server are in this program. */
#include <stdio.h>

#include "agent/collect/wire/http.h"
#include "agent/collect/wire/names.h"
#include "tests/unit/wire_server.h"

static void talk(struct peer *p, void *arg)
{
	char head[4096];

	peer_head(p, head, sizeof(head));
	peer_say(p, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

static enum status ask(const char *pin, unsigned port, struct err *e)
{
	struct http_answer a = { .body = NULL };
	struct http *h = NULL;
	bool again = false;
	char url[64];
	enum status st = http_create(&(struct http_options){ .pin = pin }, &h, e);

	snprintf(url, sizeof(url), "https://store.ramseal.test:%u/", port);
	if (!st)
		st = http_ask(h, &(struct http_request){ .method = "GET", .url = url }, &a, &again,
			      e);
	if (!st)
		printf("%u %s\n", a.status, a.body);
	http_answer_deinit(&a);
	http_destroy(h);
	return st;
}

int main(void)
{
	struct identity i = identity_make("store.ramseal.test", false);
	struct err e = ERR_INIT;
	struct name_server names;
	struct server s;
	enum status st;

	server_start(&s, &(struct server_options){ .talk = talk, .tls = &i });
	name_server_start(&names, name_server_loopback);
	names__servers = names.address;
	st = ask(i.pin, s.port, &e);
	if (st)
		fprintf(stderr, "%s\n", e.message);
	server_stop(&s);
	name_server_stop(&names);
	identity_free(&i);
	return st != ST_OK;
}
