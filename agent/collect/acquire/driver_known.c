/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/acquire/driver_known.h"

#include <string.h>

#include "agent/collect/host/ci_host.h"
#include "agent/shared/program/text.h"

#define WINPMEM        "https://github.com/Velocidex/WinPmem"
#define C_AFF4         "https://github.com/Velocidex/c-aff4"

#define SIGNATURES     2
#define WHCP_PUBLISHER "Microsoft Windows Hardware Compatibility Publisher"

struct known_signature {
	const char *name, *class;
	bool whql;
	const char *time;
};

struct known_driver {
	const char *version, *name, *sha256, *repository, *path, *commit;
	struct known_signature signatures[SIGNATURES];
};

/* The newest that Windows takes without test signing comes first. */
static const struct known_driver known[] = {
	{ "2.0.1",
	  "winpmem_x64.sys",
	  "b1b866f7cf86bd2bbbd8beca081e9df836911d938fd129cd615cfcb04399212b",
	  WINPMEM,
	  "src/binaries/winpmem_x64.sys",
	  "1385e105",
	  { { "Binalyze LLC", "cross-signed", false, "2020-10-09T08:48:53Z" },
	    { WHCP_PUBLISHER, "attested", true, "2020-10-09T09:01:48Z" } } },
	{ "1.6.3",
	  "att_winpmem_64.sys",
	  "30d79c358cf1375e94a67a637a3bfeb80aba1fb85d2dda26cb169f5640d04397",
	  C_AFF4,
	  "tools/pmem/resources/winpmem/att_winpmem_64.sys",
	  "63c9b2c3",
	  { { "Binalyze LLC", "cross-signed", false, "2018-09-10T23:53:04Z" },
	    { WHCP_PUBLISHER, "attested", true, "2018-09-11T00:08:01Z" } } },
	{ "1.6.3",
	  "winpmem_64.sys",
	  "e23d488877ef3dfeccaff7700e59f9d51305df5b8e2e570b72f3d52f3c179ef4",
	  C_AFF4,
	  "tools/pmem/resources/winpmem/winpmem_64.sys",
	  "63c9b2c3",
	  { { "Binalyze LLC", "cross-signed", false, "2018-09-10T23:53:04Z" } } },
	{ "4.1.0",
	  "winpmem_x64_test.sys",
	  "edc00ee0f3cff3fa4adb6ba357d8fb964ce2ffa376ab7c25c8106f00d198c154",
	  WINPMEM,
	  "src/binaries/winpmem_x64_test.sys",
	  "1385e105",
	  { { "WDKTestCert Administrator,133758963446503213", "test", false, NULL } } },
};

static json_t *known_driver_json(const struct known_driver *k)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "version", k->version, "name", k->name,
			 "sha256", k->sha256, "repository", k->repository, "path", k->path,
			 "commit", k->commit);
}

json_t *driver_known_json(const char *sha256)
{
	for (size_t i = 0; sha256 && i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].sha256, sha256))
			return known_driver_json(&known[i]);
	return json_null();
}

/* As driver_signers_json() has them. */
static json_t *known_signers_json(const struct known_driver *k)
{
	json_t *ret = json_array();

	for (size_t i = 0; i < SIGNATURES && k->signatures[i].name; i++) {
		const struct known_signature *s = &k->signatures[i];

		json_array_append_new(ret, json_pack("{s:s, s:s, s:b, s:b, s:b, s:s?, s:b}", "name",
						     s->name, "class", s->class, "nested", i > 0,
						     "whql", s->whql, "attestation", s->whql,
						     "time", s->time, "covers_file", 1));
	}
	return ret;
}

static bool add_known_driver(json_t *list, const struct known_driver *k,
			     const struct forecast_input *host)
{
	json_t *one = known_driver_json(k), *signers = known_signers_json(k), *forecast = NULL;
	json_t *driver = json_pack("{s:s, s:s, s:o}", "sha256", k->sha256, "version", k->version,
				   "signers", signers);
	struct forecast_input in = *host;

	in.driver = driver;
	if (in.facts && driver)
		forecast = driver_forecast_json(&in);
	if (one && forecast)
		json_object_set(one, "forecast", forecast);
	json_decref(driver);
	if (in.facts && !forecast) {
		json_decref(one);
		return false;
	}
	json_decref(forecast);
	return json_array_append_new(list, one) == 0;
}

json_t *driver_known_list(const struct forecast_input *in)
{
	struct forecast_input host = *in;
	json_t *ret = json_array(), *ci = json_deep_copy(in->ci);
	bool ok = ret && (ci || !in->ci);

	ci_forget_driver(ci);
	host.ci = ci;
	for (size_t i = 0; i < ARRAY_SIZE(known) && ok; i++)
		ok = add_known_driver(ret, &known[i], &host);
	json_decref(ci);
	if (!ok) {
		json_decref(ret);
		return NULL;
	}
	return ret;
}

static const char *known_text(const json_t *one, const char *key)
{
	const char *ret = json_string_value(json_object_get(one, key));

	return ret ? ret : "";
}

/* The first that will load, else the first that may; NULL: all will certainly be blocked. */
static const json_t *best_known(const json_t *list)
{
	const json_t *one, *ret = NULL;
	unsigned best = 2 * FORECASTS;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const json_t *f = json_object_get(one, "forecast");
		const enum forecast is =
			json_is_object(f) ? driver_forecast_verdict(f) : FORECAST_UNKNOWN;
		const bool certain = json_is_true(json_object_get(f, "certain"));

		if ((is != FORECAST_BLOCKED || !certain) && (unsigned)is < best) {
			best = (unsigned)is;
			ret = one;
		}
	}
	return ret;
}

void driver_known_check(const json_t *list, struct findings *to)
{
	const json_t *one = best_known(list);
	struct err text = ERR_INIT;

	if (!one) {
		findings_add(to, ST_OK, "driver-file",
			     "Windows will block each WinPmem driver that its authors publish "
			     "('driver files' says why); if this is a virtual machine, take its "
			     "memory from the hypervisor");
		return;
	}
	driver_forecast_text(json_object_get(one, "forecast"), &text);
	findings_add(to, ST_OK, "driver-file",
		     "the driver file to try first here is WinPmem %s, %s (%s of %s, SHA-256 "
		     "%s): it %s",
		     known_text(one, "version"), known_text(one, "name"), known_text(one, "path"),
		     known_text(one, "repository"), known_text(one, "sha256"), text.message);
}

void driver_known_print(const json_t *list, FILE *out)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const json_t *f = json_object_get(one, "forecast");
		struct err text = ERR_INIT;

		fprintf(out, "WinPmem %s, %s\n  from: %s\n        %s at %s\n  SHA-256:\n  %s\n",
			known_text(one, "version"), known_text(one, "name"),
			known_text(one, "repository"), known_text(one, "path"),
			known_text(one, "commit"), known_text(one, "sha256"));
		if (!json_is_object(f))
			continue;
		driver_forecast_text(f, &text);
		fprintf(out, "  forecast: %s\n", text.message);
	}
}
