/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef _WIN32
#include <sys/socket.h>
#endif

#include "agent/collect/wire/http.h"
#include "agent/collect/wire/names.h"
#include "tests/unit/wire_server.h"

#define SECRET "s3cr3t-t0k3n"

static struct identity here, expired, elsewhere;

/* What a server has seen, and what it is to say. */
struct seen {
	char head[8][4096];
	unsigned n;
	uint8_t *body;
	size_t body_len;
	const char *answer;
};

static void answer_all(struct peer *p, void *arg)
{
	struct seen *s = arg;

	while (s->n < 8) {
		const char *length;

		peer_head(p, s->head[s->n], sizeof(s->head[0]));
		if (!s->head[s->n][0])
			return;
		length = strstr(s->head[s->n], "Content-Length: ");
		s->n++;
		if (length) {
			s->body_len = strtoul(length + strlen("Content-Length: "), NULL, 10);
			s->body = realloc(s->body, s->body_len + 1);
			if (!peer_body(p, s->body, s->body_len))
				return;
		}
		peer_say(p, s->answer);
	}
}

/* Says something to the first request, and closes. */
static void answer_and_close(struct peer *p, void *arg)
{
	struct seen *s = arg;

	peer_head(p, s->head[0], sizeof(s->head[0]));
	peer_say(p, s->answer);
}

static void say_first(struct peer *p, void *arg)
{
	peer_say(p, ((struct seen *)arg)->answer);
	peer_wait(p);
}

static void say_nothing(struct peer *p, void *arg)
{
	peer_wait(p);
}

static struct http *client(const struct http_options *o)
{
	struct err e = ERR_INIT;
	struct http *h;

	CHECK_OK(http_create(o, &h, &e), &e);
	return h;
}

struct asked {
	enum status st;
	bool again;
	struct http_answer answer;
	struct err e;
};

/* Whatever happens, no message may have more of the URL than scheme, host and port. */
static struct asked ask(struct http *h, const struct http_request *r)
{
	struct asked ret = { .e = ERR_INIT };

	ret.st = http_ask(h, r, &ret.answer, &ret.again, &ret.e);
	if (ret.st && !ret.e.message[0])
		fail_msg("it failed without a word");
	if (strstr(ret.e.message, SECRET) || strchr(ret.e.message, '?'))
		fail_msg("a secret in \"%s\"", ret.e.message);
	return ret;
}

static struct asked get_from(struct http *h, const char *scheme, unsigned port)
{
	char url[128];

	snprintf(url, sizeof(url), "%s://127.0.0.1:%u/" SECRET "?sig=" SECRET, scheme, port);
	return ask(h, &(struct http_request){ .method = "GET", .url = url });
}

static struct asked get_once(const struct http_options *o, const char *scheme, unsigned port)
{
	struct http *h = client(o);
	const struct asked ret = get_from(h, scheme, port);

	http_destroy(h);
	return ret;
}

/* A server without TLS that answers one request like this. */
static struct asked answered_by(const char *text, const struct http_options *o)
{
	struct seen seen = { .answer = text };
	struct server s;
	struct asked ret;

	server_start(&s, &(struct server_options){ .talk = answer_and_close, .arg = &seen });
	ret = get_once(o, "http", s.port);
	server_stop(&s);
	return ret;
}

static const struct http_options plain;

TEST(answer_comes_with_headers_body_and_times)
{
	struct asked a = answered_by("HTTP/1.1 503 Busy\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
				     "ETag: \"abc\"  \r\nRETRY-AFTER: 120\r\nX-Empty:\r\n"
				     "X-Folded: one\r\n\ttwo\r\nContent-Length: 5\r\n\r\nhello",
				     &plain);
	size_t len;

	CHECK_OK(a.st, &a.e);
	assert_int_equal(a.answer.status, 503);
	assert_true(http_status_is_passing(a.answer.status));
	assert_int_equal(a.answer.len, 5);
	assert_string_equal(a.answer.body, "hello");
	assert_int_equal(a.answer.date, 784111777);
	assert_int_equal(a.answer.retry_after_s, 120);
	assert_memory_equal(http_answer_header(&a.answer, "etag", &len), "\"abc\"\n", 6);
	assert_int_equal(len, 5);
	assert_non_null(http_answer_header(&a.answer, "x-empty", &len));
	assert_int_equal(len, 0);
	assert_memory_equal(http_answer_header(&a.answer, "x-folded", &len), "one two\n", 8);
	assert_null(http_answer_header(&a.answer, "x-other", &len));
	http_answer_deinit(&a.answer);
}

TEST(retry_after_may_be_a_date_and_nonsense_is_none)
{
	static const struct {
		const char *text;
		int want;
	} cases[] = {
		{ "Sun, 06 Nov 1994 08:50:37 GMT", 60 },
		{ "Sun, 06 Nov 1994 08:00:00 GMT", 0 },
		{ "86399", 86399 },
		{ "4294967", 86400 },
		{ "Sun, 06 Nov 2094 08:49:37 GMT", 86400 },
		{ "99999999999999999999", 86400 },
		{ "0", 0 },
		{ "soon", -1 },
		{ "-5", -1 },
		{ "", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256];
		struct asked a;

		snprintf(text, sizeof(text),
			 "HTTP/1.1 429 Slow\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
			 "Retry-After: %s\r\nContent-Length: 0\r\n\r\n",
			 cases[i].text);
		a = answered_by(text, &plain);
		CHECK_OK(a.st, &a.e);
		assert_int_equal(a.answer.retry_after_s, cases[i].want);
		http_answer_deinit(&a.answer);
	}
}

static void count(void *arg, size_t len)
{
	*(size_t *)arg += len;
}

TEST(body_goes_out_whole_with_its_length_and_nothing_is_waited_for)
{
	const size_t len = 1500000; /* libcurl expects 100 Continue of 1 MiB and more */
	struct seen seen = { .answer = "HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n" };
	size_t counted = 0;
	struct server s;
	struct http *h = client(&(struct http_options){ .sent = count, .arg = &counted });
	const struct http_header headers[] = { { "X-Amz-Thing", "a b" }, { "X-Empty", "" } };
	uint8_t *body = malloc(len);
	char url[64];
	struct asked a;

	for (size_t i = 0; i < len; i++)
		body[i] = (uint8_t)(i * 7 >> 3);
	server_start(&s, &(struct server_options){ .talk = answer_all, .arg = &seen });
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/a%%2Fb/../c?x=%%20", s.port);
	a = ask(h, &(struct http_request){ .method = "PUT",
					   .url = url,
					   .headers = headers,
					   .n_headers = ARRAY_SIZE(headers),
					   .body = body,
					   .len = len });
	server_stop(&s);
	http_destroy(h);
	CHECK_OK(a.st, &a.e);
	assert_int_equal(a.answer.status, 201);
	assert_string_equal(a.answer.body, "");
	assert_int_equal(counted, len);
	assert_int_equal(seen.body_len, len);
	assert_memory_equal(seen.body, body, len);
	CHECK_HAS(seen.head[0], "PUT /a%2Fb/../c?x=%20 HTTP/1.1\r\n");
	CHECK_HAS(seen.head[0], "Content-Length: 1500000\r\n");
	CHECK_HAS(seen.head[0], "X-Amz-Thing: a b\r\n");
	CHECK_HAS(seen.head[0], "X-Empty:\r\n");
	assert_null(strstr(seen.head[0], "Expect"));
	assert_null(strstr(seen.head[0], "Transfer-Encoding"));
	http_answer_deinit(&a.answer);
	free(seen.body);
	free(body);
}

TEST(one_connection_serves_all_methods)
{
	static const char *const methods[] = { "POST", "GET", "HEAD", "DELETE", "PUT", "GET" };
	struct seen seen = { .answer = "HTTP/1.1 204 Done\r\n\r\n" };
	struct server s;
	struct http *h = client(&plain);

	server_start(&s, &(struct server_options){ .talk = answer_all, .arg = &seen });
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		char url[64];
		struct asked a;

		snprintf(url, sizeof(url), "http://127.0.0.1:%u/", s.port);
		a = ask(h, &(struct http_request){ .method = methods[i], .url = url });
		CHECK_OK(a.st, &a.e);
		assert_int_equal(a.answer.status, 204);
		http_answer_deinit(&a.answer);
	}
	http_destroy(h);
	server_stop(&s);
	assert_int_equal(s.accepted, 1);
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		const bool body = methods[i][0] == 'P';

		assert_memory_equal(seen.head[i], methods[i], strlen(methods[i]));
		assert_true(!strstr(seen.head[i], "Content-Length: 0\r\n") == !body);
		assert_null(strstr(seen.head[i], "Transfer-Encoding"));
	}
	free(seen.body);
}

TEST(redirects_are_answers_like_others)
{
	struct asked a = answered_by("HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:1/\r\n"
				     "Content-Length: 0\r\n\r\n",
				     &plain);

	CHECK_OK(a.st, &a.e);
	assert_int_equal(a.answer.status, 307);
	http_answer_deinit(&a.answer);
}

TEST(interim_answers_are_not_the_answer)
{
	struct asked a = answered_by("HTTP/1.1 103 Hints\r\nX-Early: yes\r\n\r\n"
				     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
				     &plain);
	size_t len;

	CHECK_OK(a.st, &a.e);
	assert_int_equal(a.answer.status, 200);
	assert_null(http_answer_header(&a.answer, "x-early", &len));
	http_answer_deinit(&a.answer);
}

static void check_failed(struct asked a, enum status want, bool again, const char *word)
{
	CHECK_STATUS(a.st, want, &a.e);
	CHECK_HAS(a.e.message, word);
	if (a.again != again)
		fail_msg("it may%s do better later: %s", a.again ? "" : " not", a.e.message);
	http_answer_deinit(&a.answer);
}

TEST(garbage_is_no_http)
{
	check_failed(answered_by("SSH-2.0-OpenSSH_9.2\r\n", &plain), ST_CORRUPT, false, "not HTTP");
	check_failed(answered_by("\x16\x03\x01 what", &plain), ST_CORRUPT, false, "not HTTP");
	check_failed(answered_by("HTTP/1.1 777 Odd\r\nContent-Length: 0\r\n\r\n", &plain),
		     ST_CORRUPT, false, "no status");
}

TEST(connection_that_ends_early_may_do_better_later)
{
	check_failed(answered_by("", &plain), ST_OUTPUT, true, "without an answer");
	check_failed(answered_by("HTTP/1.1 200 OK\r\nContent-Le", &plain), ST_OUTPUT, true, "");
	check_failed(answered_by("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", &plain), ST_OUTPUT,
		     true, "cut short");
	check_failed(answered_by("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", &plain),
		     ST_OUTPUT, true, "cut short");
	check_failed(
		answered_by("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha", &plain),
		ST_OUTPUT, true, "");
}

TEST(garbage_where_an_answer_came_before_may_be_the_way_to_it)
{
	struct seen seen = { .answer = "HTTP/1.1 204 Done\r\n\r\n" };
	struct seen other = { .answer = "nonsense\r\n" };
	struct server good, bad;
	struct http *h = client(&plain);
	struct asked a;

	server_start(&good, &(struct server_options){ .talk = answer_all, .arg = &seen });
	server_start(&bad, &(struct server_options){ .talk = answer_and_close, .arg = &other });
	a = get_from(h, "http", good.port);
	CHECK_OK(a.st, &a.e);
	http_answer_deinit(&a.answer);
	check_failed(get_from(h, "http", bad.port), ST_CORRUPT, true, "not HTTP");
	http_destroy(h);
	server_stop(&good);
	server_stop(&bad);
}

TEST(server_that_says_nothing_is_given_up)
{
	struct server s;

	server_start(&s, &(struct server_options){ .talk = say_nothing });
	check_failed(get_once(&(struct http_options){ .stall_s = 1 }, "http", s.port), ST_OUTPUT,
		     true, "no data in either direction for 1 s");
	server_stop(&s);
}

/* A byte now and then, until the other end has enough of it. */
static void trickle(struct peer *p, void *arg)
{
	char head[1000];

	peer_head(p, head, sizeof(head));
	if (!peer_say(p, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"))
		return;
	for (unsigned i = 0; i < 200 && peer_say(p, "x"); i++)
		nanosleep(&(const struct timespec){ .tv_nsec = 300000000 }, NULL);
}

TEST(answer_that_trickles_is_given_up)
{
	struct server s;

	server_start(&s, &(struct server_options){ .talk = trickle });
	check_failed(get_once(&(struct http_options){ .stall_s = 1 }, "http", s.port), ST_OUTPUT,
		     true, "no data in either direction for 1 s, or hardly anything");
	server_stop(&s);
}

/* Has all of it, and does something with it first. */
static void answer_late(struct peer *p, void *arg)
{
	struct seen *s = arg;
	uint8_t body[5];

	peer_head(p, s->head[0], sizeof(s->head[0]));
	if (!peer_body(p, body, sizeof(body)))
		return;
	nanosleep(&(const struct timespec){ .tv_sec = 3 }, NULL);
	peer_say(p, s->answer);
}

static struct asked put_and_wait(unsigned answer_s)
{
	struct seen seen = { .answer = "HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n" };
	struct http *h = client(&(struct http_options){ .stall_s = 1 });
	struct server s;
	struct asked ret;
	char url[64];

	server_start(&s, &(struct server_options){ .talk = answer_late, .arg = &seen });
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", s.port);
	ret = ask(h, &(struct http_request){ .method = "PUT",
					     .url = url,
					     .body = "whole",
					     .len = 5,
					     .answer_s = answer_s });
	http_destroy(h);
	server_stop(&s);
	return ret;
}

TEST(server_that_has_it_all_may_take_its_time)
{
	struct asked a = put_and_wait(600);

	CHECK_OK(a.st, &a.e);
	assert_int_equal(a.answer.status, 201);
	http_answer_deinit(&a.answer);
	check_failed(put_and_wait(0), ST_OUTPUT, true, "no data in either direction for 1 s");
}

static bool at_once(void *arg)
{
	return true;
}

TEST(who_is_told_to_stop_stops)
{
	struct server s;

	server_start(&s, &(struct server_options){ .talk = say_nothing });
	check_failed(get_once(&(struct http_options){ .stop = at_once }, "http", s.port),
		     ST_INTERRUPTED, false, "interrupted");
	server_stop(&s);
}

TEST(nobody_there_may_come_later)
{
	check_failed(get_once(&plain, "http", port_of_nobody()), ST_OUTPUT, true, "cannot connect");
}

static void pour(struct peer *p, void *arg)
{
	static const char line[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct seen *s = arg;

	peer_head(p, s->head[0], sizeof(s->head[0]));
	peer_say(p, s->answer);
	for (int i = 0; i < 40000 && peer_say(p, line); i++)
		;
}

TEST(answer_that_does_not_end_is_refused)
{
	static const char *const begins[] = { "HTTP/1.1 200 OK\r\n\r\n",
					      "HTTP/1.1 200 OK\r\nX-Long: " };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		struct seen seen = { .answer = begins[i] };
		struct server s;

		server_start(&s, &(struct server_options){ .talk = pour, .arg = &seen });
		check_failed(get_once(&plain, "http", s.port), ST_CORRUPT, false, "too long");
		server_stop(&s);
	}
}

TEST(hundred_headers_are_kept_and_ten_thousand_refused)
{
	char *text = malloc(400000);
	struct asked a;
	size_t len;
	int at = sprintf(text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");

	for (int i = 0; i < 100; i++)
		at += sprintf(text + at, "X-Number-%d: %d\r\n", i, i);
	sprintf(text + at, "\r\n");
	a = answered_by(text, &plain);
	CHECK_OK(a.st, &a.e);
	assert_memory_equal(http_answer_header(&a.answer, "x-number-99", &len), "99\n", 3);
	http_answer_deinit(&a.answer);
	for (int i = 100; i < 10000; i++)
		at += sprintf(text + at, "X-Number-%d: %d\r\n", i, i);
	sprintf(text + at, "\r\n");
	check_failed(answered_by(text, &plain), ST_CORRUPT, false, "headers are too long");
	free(text);
}

TEST(header_that_would_become_two_is_refused)
{
	static const struct http_header bad[] = {
		{ "X-One", "1\r\nX-Two: 2" },
		{ "X-One", "1\n" },
		{ "X-One\r\nX-Two", "1" },
		{ "", "1" },
		{ "X One", "1" },
		{ "X:", "1" },
		{ "Content-Length", "5" },
		{ "expect", "100" },
		{ "Transfer-Encoding", "chunked" },
	};
	struct http *h = client(&plain);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_failed(ask(h, &(struct http_request){ .method = "GET",
							    .url = "http://127.0.0.1:1/",
							    .headers = &bad[i],
							    .n_headers = 1 }),
			     ST_USAGE, false, "header");
	http_destroy(h);
}

TEST(url_that_is_none_is_refused_without_being_shown)
{
	static const char *const bad[] = {
		"",
		SECRET,
		"ftp://host/" SECRET,
		"file:///etc/" SECRET,
		"http://user:" SECRET "@host/",
		"http://host/#" SECRET,
		"http://host/a b" SECRET,
		"http://host/\r\nX: " SECRET,
		"http:///" SECRET,
		"http://host:99999/" SECRET,
	};
	struct http *h = client(&plain);

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_failed(ask(h, &(struct http_request){ .method = "GET", .url = bad[i] }),
			     ST_USAGE, false, "");
	http_destroy(h);
}

/* --- TLS -------------------------------------------------------------------------------------- */

static struct asked over_tls(const struct identity *i, const struct http_options *o,
			     struct seen *seen, struct server_options more)
{
	struct server s;
	struct asked ret;

	seen->answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	more.talk = answer_all;
	more.arg = seen;
	more.tls = i;
	server_start(&s, &more);
	ret = get_once(o, "https", s.port);
	server_stop(&s);
	return ret;
}

static void check_talked(const struct identity *i, const struct http_options *o,
			 struct server_options more)
{
	struct seen seen = { .n = 0 };
	struct asked a = over_tls(i, o, &seen, more);

	CHECK_OK(a.st, &a.e);
	assert_string_equal(a.answer.body, "ok");
	assert_int_equal(seen.n, 1);
	http_answer_deinit(&a.answer);
}

static void check_refused(const struct identity *i, const struct http_options *o, const char *word)
{
	struct seen seen = { .n = 0 };

	check_failed(over_tls(i, o, &seen, (struct server_options){ .tls = NULL }), ST_OUTPUT,
		     false, word);
	/* Nothing of the request was said to whoever that is. */
	assert_int_equal(seen.n, 0);
	assert_string_equal(seen.head[0], "");
}

static const struct server_options usual;

TEST(the_pin_is_all_that_counts_without_a_ca)
{
	char both[128];

	check_talked(&here, &(struct http_options){ .pin = here.pin }, usual);
	check_talked(&expired, &(struct http_options){ .pin = expired.pin }, usual);
	check_talked(&elsewhere, &(struct http_options){ .pin = elsewhere.pin }, usual);
	snprintf(both, sizeof(both), "%s;%s", here.pin, expired.pin);
	check_talked(&expired, &(struct http_options){ .pin = both }, usual);
	check_talked(&here, &(struct http_options){ .pin = here.pin },
		     (struct server_options){ .only_tls12 = true });
}

TEST(another_key_than_the_pinned_one_is_told_nothing)
{
	check_refused(&here, &(struct http_options){ .pin = expired.pin }, "not the pinned one");
	check_refused(&here, &(struct http_options){ .pin = expired.pin, .ca = here.cert },
		      "not the pinned one");
}

TEST(with_a_ca_chain_name_and_expiry_count)
{
	check_talked(&here, &(struct http_options){ .ca = here.cert }, usual);
	check_talked(&here, &(struct http_options){ .ca = here.cert, .pin = here.pin }, usual);
	check_refused(&here, &(struct http_options){ .ca = elsewhere.cert }, "is not trusted");
	check_refused(&elsewhere, &(struct http_options){ .ca = elsewhere.cert }, "is not trusted");
	check_refused(&expired, &(struct http_options){ .ca = expired.cert }, "is not trusted");
	/* And not even the pin makes up for it. */
	check_refused(&expired, &(struct http_options){ .ca = expired.cert, .pin = expired.pin },
		      "is not trusted");
}

TEST(who_names_neither_pin_nor_ca_gets_no_tls)
{
	check_failed(get_once(&plain, "https", 1), ST_USAGE, false, "pin");
	check_failed(get_once(&(struct http_options){ .pin = here.pin }, "http", 1), ST_USAGE,
		     false, "does not use TLS");
	check_failed(get_once(&(struct http_options){ .ca = here.cert }, "http", 1), ST_USAGE,
		     false, "does not use TLS");
}

TEST(server_that_wants_a_certificate_gets_it)
{
	const struct server_options asks = { .client_ca = elsewhere.cert };
	struct seen seen = { .n = 0 };

	check_talked(&here,
		     &(struct http_options){ .pin = here.pin,
					     .client_cert = elsewhere.cert,
					     .client_key = elsewhere.key },
		     asks);
	/* In TLS 1.3 the server says so when the client has begun to talk already. */
	{
		struct asked a =
			over_tls(&here, &(struct http_options){ .pin = here.pin }, &seen, asks);

		CHECK_STATUS(a.st, ST_OUTPUT, &a.e);
		assert_int_equal(seen.n, 0);
	}
}

TEST(what_is_no_tls_is_not_tried_for_ever)
{
	struct seen seen = { .answer = "SSH-2.0-OpenSSH_9.2\r\n" };
	struct server s;

	server_start(&s, &(struct server_options){ .talk = say_first, .arg = &seen });
	check_failed(get_once(&(struct http_options){ .pin = here.pin }, "https", s.port),
		     ST_OUTPUT, false, "TLS failed");
	server_stop(&s);
}

static void hang_up(struct peer *p, void *arg)
{
	uint8_t hello[5];

	peer_body(p, hello, sizeof(hello));
}

static void break_off(struct peer *p, void *arg)
{
	uint8_t hello[5];

	peer_body(p, hello, sizeof(hello));
	peer_break(p);
}

TEST(handshake_that_is_cut_may_do_better_later)
{
	static void (*const talks[])(struct peer *, void *) = { hang_up, break_off };

	for (size_t i = 0; i < ARRAY_SIZE(talks); i++) {
		struct server s;

		server_start(&s, &(struct server_options){ .talk = talks[i] });
		check_failed(get_once(&(struct http_options){ .pin = here.pin }, "https", s.port),
			     ST_OUTPUT, true, "TLS failed");
		server_stop(&s);
	}
}

TEST(options_that_are_wrong_are_refused_at_once)
{
	static const char *const pins[] = {
		"",
		"sha256//",
		"/etc/passwd",
		("sha256//" SECRET),
		"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=;",
		"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	};
	static const char *const proxies[] = {
		"",
		"127.0.0.1:8080",
		"https://127.0.0.1:8080",
		"http://127.0.0.1",
		("http://user:" SECRET "@"),
		"socks4://127.0.0.1:1",
	};
	struct err e = ERR_INIT;
	struct http *h;

	for (size_t i = 0; i < ARRAY_SIZE(pins); i++)
		CHECK_STATUS(http_create(&(struct http_options){ .pin = pins[i] }, &h, &e),
			     ST_USAGE, &e);
	for (size_t i = 0; i < ARRAY_SIZE(proxies); i++) {
		CHECK_STATUS(http_create(&(struct http_options){ .proxy = proxies[i] }, &h, &e),
			     ST_USAGE, &e);
		assert_null(strstr(e.message, SECRET));
	}
	CHECK_STATUS(http_create(&(struct http_options){ .ca = "no PEM" }, &h, &e), ST_USAGE, &e);
	CHECK_STATUS(http_create(&(struct http_options){ .client_cert = here.cert }, &h, &e),
		     ST_USAGE, &e);
	CHECK_STATUS(http_create(&(struct http_options){ .client_cert = here.cert,
							 .client_key = SECRET },
				 &h, &e),
		     ST_USAGE, &e);
	assert_null(strstr(e.message, SECRET));
}

/* --- names and proxies ------------------------------------------------------------------------ */

static struct asked get_by_name(const struct http_options *o, unsigned port,
				size_t (*names)(const uint8_t *, size_t, uint8_t[512]))
{
	struct name_server n;
	struct http *h = client(o);
	char url[64];
	struct asked ret;

	name_server_start(&n, names);
	names__servers = n.address;
	snprintf(url, sizeof(url), "http://store.ramseal.test:%u/", port);
	ret = ask(h, &(struct http_request){ .method = "GET", .url = url });
	names__servers = NULL;
	name_server_stop(&n);
	http_destroy(h);
	return ret;
}

TEST(name_is_asked_of_the_name_server)
{
	struct seen seen = { .answer = "HTTP/1.1 204 Done\r\n\r\n" };
	struct server s;
	struct asked a;

	server_start(&s, &(struct server_options){ .talk = answer_all, .arg = &seen });
	a = get_by_name(&plain, s.port, name_server_loopback);
	server_stop(&s);
	CHECK_OK(a.st, &a.e);
	CHECK_HAS(seen.head[0], "Host: store.ramseal.test:");
	http_answer_deinit(&a.answer);
}

static bool environment_was_asked;

static size_t look_for_domain(const uint8_t *question, size_t len, uint8_t answer[512])
{
	static const char domain[] = "environment";

	for (size_t i = 0; i + sizeof(domain) - 1 <= len; i++)
		environment_was_asked |= !memcmp(question + i, domain, sizeof(domain) - 1);
	return name_server_no_such_name(question, len, answer);
}

/* A name that is to be looked for in the domain of LOCALDOMAIN first. */
TEST(environment_names_no_domain)
{
	static char set[2][32] = { "LOCALDOMAIN=environment.test", "RES_OPTIONS=ndots:9" };

	putenv(set[0]);
	putenv(set[1]);
	check_failed(get_by_name(&plain, 1, look_for_domain), ST_OUTPUT, false,
		     "store.ramseal.test: no such host");
	assert_false(environment_was_asked);
}

TEST(name_that_does_not_exist_will_not_exist_later)
{
	check_failed(get_by_name(&plain, 1, name_server_no_such_name), ST_OUTPUT, false,
		     "store.ramseal.test: no such host");
	check_failed(get_by_name(&plain, 1, name_server_out_of_order), ST_OUTPUT, true,
		     "name server");
}

TEST(names_of_the_host_itself_are_not_asked)
{
	struct err e = ERR_INIT;
	struct names n;
	bool again;

	CHECK_OK(names_resolve("localhost", &(struct names_options){ .arg = NULL }, &n, &again, &e),
		 &e);
	assert_int_equal(n.n, 2);
	assert_string_equal(n.at[0], "127.0.0.1");
	CHECK_OK(names_resolve("2001:DB8::1", &(struct names_options){ .arg = NULL }, &n, &again,
			       &e),
		 &e);
	assert_string_equal(n.at[0], "2001:db8::1");
}

struct relay {
	unsigned port;
	char head[4096];
	const char *refuse; /* NULL: it connects */
};

static void relay(struct peer *p, void *arg)
{
	static const char hello[] = "HTTP/1.1 200 Connected\r\nX-Of-The-Proxy: yes\r\n\r\n";
	struct relay *r = arg;

	peer_head(p, r->head, sizeof(r->head));
	if (r->refuse)
		peer_say(p, r->refuse);
	else
		peer_relay(p, r->port, hello, strlen(hello));
}

/* SOCKS 5 (RFC 1928) for names without a password; the name goes to `head`. */
static void relay_socks(struct peer *p, void *arg)
{
	static const uint8_t yes[] = { 5, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
	struct relay *r = arg;
	uint8_t buf[256];

	if (!peer_body(p, buf, 2) || !peer_body(p, buf + 2, buf[1]) || !peer_write(p, "\5\0", 2) ||
	    !peer_body(p, buf, 5) || buf[3] != 3)
		return;
	memset(r->head, 0, sizeof(r->head));
	if (peer_body(p, r->head, buf[4]) && peer_body(p, buf, 2))
		peer_relay(p, r->port, yes, sizeof(yes));
}

TEST(proxy_connects_and_is_told_no_secret)
{
	struct seen seen = { .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" };
	const struct http_header secret = { "Authorization", SECRET };
	struct relay r = { .refuse = NULL };
	struct server s, proxy;
	char address[64], url[64];
	struct http *h;
	struct asked a;
	size_t len;

	server_start(&s,
		     &(struct server_options){ .talk = answer_all, .arg = &seen, .tls = &here });
	r.port = s.port;
	server_start(&proxy, &(struct server_options){ .talk = relay, .arg = &r });
	snprintf(address, sizeof(address), "http://me:word@127.0.0.1:%u", proxy.port);
	snprintf(url, sizeof(url), "https://store.ramseal.test:%u/" SECRET, s.port);
	h = client(&(struct http_options){ .proxy = address, .pin = here.pin });
	a = ask(h, &(struct http_request){
			   .method = "GET", .url = url, .headers = &secret, .n_headers = 1 });
	http_destroy(h);
	server_stop(&proxy);
	server_stop(&s);
	CHECK_OK(a.st, &a.e);
	assert_string_equal(a.answer.body, "ok");
	CHECK_HAS(r.head, "CONNECT store.ramseal.test:");
	CHECK_HAS(r.head, "Proxy-Authorization: Basic bWU6d29yZA==");
	assert_null(strstr(r.head, SECRET));
	CHECK_HAS(seen.head[0], "Authorization: " SECRET);
	assert_null(http_answer_header(&a.answer, "x-of-the-proxy", &len));
	http_answer_deinit(&a.answer);
}

TEST(proxy_that_refuses_is_named)
{
	struct relay r = { .refuse = "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n" };
	struct server proxy;
	char address[64];

	server_start(&proxy, &(struct server_options){ .talk = relay, .arg = &r });
	snprintf(address, sizeof(address), "http://127.0.0.1:%u", proxy.port);
	check_failed(
		get_once(&(struct http_options){ .proxy = address, .pin = here.pin }, "https", 1),
		ST_OUTPUT, false, "proxy answered with status 407");
	r.refuse = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
	check_failed(
		get_once(&(struct http_options){ .proxy = address, .pin = here.pin }, "https", 1),
		ST_OUTPUT, true, "proxy answered with status 503");
	server_stop(&proxy);
}

TEST(name_is_left_to_a_socks_proxy)
{
	struct seen seen = { .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" };
	struct relay r = { .refuse = NULL };
	struct server s, proxy;
	char address[64], url[64];
	struct http *h;
	struct asked a;

	server_start(&s,
		     &(struct server_options){ .talk = answer_all, .arg = &seen, .tls = &here });
	r.port = s.port;
	server_start(&proxy, &(struct server_options){ .talk = relay_socks, .arg = &r });
	snprintf(address, sizeof(address), "socks5h://127.0.0.1:%u", proxy.port);
	snprintf(url, sizeof(url), "https://store.ramseal.test:%u/", s.port);
	h = client(&(struct http_options){ .proxy = address, .pin = here.pin });
	a = ask(h, &(struct http_request){ .method = "GET", .url = url });
	http_destroy(h);
	server_stop(&proxy);
	server_stop(&s);
	CHECK_OK(a.st, &a.e);
	assert_string_equal(a.answer.body, "ok");
	assert_string_equal(r.head, "store.ramseal.test");
	http_answer_deinit(&a.answer);
}

TEST(environment_names_no_proxy)
{
	static char set[2][64] = { "http_proxy=http://127.0.0.1:1",
				   "ALL_PROXY=http://127.0.0.1:1" };
	static char unset[2][16] = { "http_proxy=", "ALL_PROXY=" };
	struct seen seen = { .answer = "HTTP/1.1 204 Done\r\n\r\n" };
	struct server s;
	struct asked a;

	putenv(set[0]);
	putenv(set[1]);
	server_start(&s, &(struct server_options){ .talk = answer_all, .arg = &seen });
	a = get_once(&plain, "http", s.port);
	server_stop(&s);
	putenv(unset[0]);
	putenv(unset[1]);
	CHECK_OK(a.st, &a.e);
	http_answer_deinit(&a.answer);
}

static void echo(struct peer *p, void *arg)
{
	char buf[8];

	if (peer_body(p, buf, 4))
		peer_write(p, buf, 4);
	peer_wait(p);
}

static void check_echo(struct http *h, const char *host, unsigned port)
{
	struct err e = ERR_INIT;
	intptr_t socket;
	char buf[4];
	size_t got = 0;
	bool again;

	CHECK_OK(http_connect(h, host, port, &socket, &again, &e), &e);
	assert_int_equal(send((wire_socket)socket, "ping", 4, 0), 4);
	while (got < 4) {
		const int n = (int)recv((wire_socket)socket, buf + got, (int)(4 - got), 0);

		if (n == 0)
			fail_msg("the connection ended");
		got += n > 0 ? (size_t)n : 0; /* it does not block */
	}
	assert_memory_equal(buf, "ping", 4);
	http_disconnect(h);
}

TEST(connection_for_other_things_goes_the_same_way)
{
	struct relay r = { .refuse = NULL };
	struct server s, proxy;
	struct err e = ERR_INIT;
	char address[64];
	struct http *h = client(&plain);
	intptr_t socket;
	bool again;

	server_start(&s, &(struct server_options){ .talk = echo });
	check_echo(h, "127.0.0.1", s.port);
	check_echo(h, "localhost", s.port);
	CHECK_STATUS(http_connect(h, "127.0.0.1", port_of_nobody(), &socket, &again, &e), ST_OUTPUT,
		     &e);
	assert_true(again);
	CHECK_HAS(e.message, "127.0.0.1:");
	assert_null(strstr(e.message, "http"));
	CHECK_STATUS(http_connect(h, "no host/", 1, &socket, &again, &e), ST_USAGE, &e);
	http_destroy(h);
	r.port = s.port;
	server_start(&proxy, &(struct server_options){ .talk = relay, .arg = &r });
	snprintf(address, sizeof(address), "http://127.0.0.1:%u", proxy.port);
	h = client(&(struct http_options){ .proxy = address });
	check_echo(h, "store.ramseal.test", s.port);
	CHECK_HAS(r.head, "CONNECT store.ramseal.test:");
	http_destroy(h);
	server_stop(&proxy);
	server_stop(&s);
}

static int make_identities(void **state)
{
	here = identity_make("127.0.0.1", false);
	expired = identity_make("127.0.0.1", true);
	elsewhere = identity_make("elsewhere.test", false);
	return 0;
}

static int free_identities(void **state)
{
	identity_free(&here);
	identity_free(&expired);
	identity_free(&elsewhere);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answer_comes_with_headers_body_and_times),
		cmocka_unit_test(retry_after_may_be_a_date_and_nonsense_is_none),
		cmocka_unit_test(body_goes_out_whole_with_its_length_and_nothing_is_waited_for),
		cmocka_unit_test(one_connection_serves_all_methods),
		cmocka_unit_test(redirects_are_answers_like_others),
		cmocka_unit_test(interim_answers_are_not_the_answer),
		cmocka_unit_test(garbage_is_no_http),
		cmocka_unit_test(connection_that_ends_early_may_do_better_later),
		cmocka_unit_test(garbage_where_an_answer_came_before_may_be_the_way_to_it),
		cmocka_unit_test(server_that_says_nothing_is_given_up),
		cmocka_unit_test(answer_that_trickles_is_given_up),
		cmocka_unit_test(server_that_has_it_all_may_take_its_time),
		cmocka_unit_test(who_is_told_to_stop_stops),
		cmocka_unit_test(nobody_there_may_come_later),
		cmocka_unit_test(answer_that_does_not_end_is_refused),
		cmocka_unit_test(hundred_headers_are_kept_and_ten_thousand_refused),
		cmocka_unit_test(header_that_would_become_two_is_refused),
		cmocka_unit_test(url_that_is_none_is_refused_without_being_shown),
		cmocka_unit_test(the_pin_is_all_that_counts_without_a_ca),
		cmocka_unit_test(another_key_than_the_pinned_one_is_told_nothing),
		cmocka_unit_test(with_a_ca_chain_name_and_expiry_count),
		cmocka_unit_test(who_names_neither_pin_nor_ca_gets_no_tls),
		cmocka_unit_test(server_that_wants_a_certificate_gets_it),
		cmocka_unit_test(what_is_no_tls_is_not_tried_for_ever),
		cmocka_unit_test(handshake_that_is_cut_may_do_better_later),
		cmocka_unit_test(options_that_are_wrong_are_refused_at_once),
		cmocka_unit_test(name_is_asked_of_the_name_server),
		cmocka_unit_test(environment_names_no_domain),
		cmocka_unit_test(name_that_does_not_exist_will_not_exist_later),
		cmocka_unit_test(names_of_the_host_itself_are_not_asked),
		cmocka_unit_test(proxy_connects_and_is_told_no_secret),
		cmocka_unit_test(proxy_that_refuses_is_named),
		cmocka_unit_test(name_is_left_to_a_socks_proxy),
		cmocka_unit_test(environment_names_no_proxy),
		cmocka_unit_test(connection_for_other_things_goes_the_same_way),
	};

	return cmocka_run_group_tests(tests, make_identities, free_identities);
}
