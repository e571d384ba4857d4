/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/driver_windows.h"

#include <string.h>

#include "agent/collect/host/driver_signers.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "driver-interface/winpmem.h"
#include "driver-interface/winpmem_built_in.h"
#include "driver-interface/winpmem_file.h"

/* What is loaded; a struct of its own, so that the header needs none of Windows. */
struct driver_session {
	struct winpmem_service *service; /* NULL: somebody loaded it before, and it stays: */
	json_t *before;
};

/* Of what is built in the path is no file's. */
static json_t *signers_json(const struct winpmem_file *f)
{
	json_t *ret = driver_signers_of_file(f->path, f->sha256);

	if (!json_is_null(ret) || !winpmem_is_built_in())
		return ret;
	return driver_signers_json(winpmem_built_in, winpmem_built_in_size, f->sha256);
}

enum status driver_session_subject(const struct driver_options *o, struct ci_subject *ret,
				   struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len = 0;
	enum status st;

	*ret = (struct ci_subject){ 0 };
	if (!o->file && !winpmem_is_built_in())
		return ST_OK;
	if (!o->file)
		return driver_subject(winpmem_built_in, winpmem_built_in_size, ret, e);
	st = driver_bytes_of_file(o->file, &bytes, &len, e);
	return st ? st : driver_subject(bytes, len, ret, e);
}

/* As events of code integrity name the file; null where it is not to be had any more. */
static json_t *image_hash_json(const struct winpmem_file *f)
{
	struct ci_subject s = { 0 };
	char hex[SHA256_HEX_SIZE];
	const struct driver_options o = { .file = strcmp(f->path, "built in") ? f->path : NULL };

	if (driver_session_subject(&o, &s, NULL) || !s.n_hashes)
		return json_null();
	sha256_hex(s.hashes[0].at, hex);
	return json_string(hex);
}

static json_t *trust_json(uint32_t trust)
{
	return trust ? json_sprintf("0x%08x", (unsigned)trust) : json_string("trusted");
}

json_t *driver_trust_json(const char *path)
{
	_cleanup_free_ wchar_t *wide = win32_path(path);

	return wide ? trust_json(driver_trust(wide, NULL)) : NULL;
}

static json_t *driver_file_json(const struct winpmem_file *f)
{
	json_t *o = json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "path", json_text(f->path),
			      "sha256", f->sha256, "authenticode_sha256", image_hash_json(f),
			      "signer", json_text(f->signer), "signers", signers_json(f), "trust",
			      trust_json(f->trust));

	if (o && f->risk)
		json_object_set_new(o, "risk", json_text(f->risk));
	return o;
}

json_t *driver_service_json(const struct winpmem_service *s)
{
	json_t *o = driver_file_json(winpmem_service_file(s));

	if (o)
		json_object_set_new(o, "service", json_string(winpmem_service_name(s)));
	return o;
}

/* A file that is gone, or is none of a driver, is named all the same. */
static json_t *loaded_json(const struct winpmem_loaded *x)
{
	_cleanup_winpmem_file_ struct winpmem_file f = { 0 };
	struct err why = ERR_INIT;
	json_t *o;

	if (x->path && !winpmem_file_judge(x->path, &f, &why))
		o = driver_file_json(&f);
	else
		o = json_pack("{s:o, s:o}", "path", json_text(x->path), "problem",
			      json_text(x->path ? why.message : "its path is not known"));
	if (o)
		json_object_set_new(o, "service", json_text(x->service));
	return o;
}

/* What was loaded before us. Where it cannot be told, that is said. */
static json_t *loaded_before_json(void)
{
	_cleanup_winpmem_loaded_ struct winpmem_loaded_list found = { 0 };
	struct err why = ERR_INIT;
	json_t *o = NULL, *all = NULL;

	if (!winpmem_loaded_find(&found, &why) && !found.count)
		err_set(&why, ST_SYSTEM, "no service that runs is a memory driver by its name");
	if (found.count == 1)
		o = loaded_json(&found.at[0]);
	if (!o)
		o = json_pack("{s:n}", "path");
	if (found.count > 1)
		all = json_array();
	for (size_t i = 0; all && i < found.count; i++)
		json_array_append_new(all, loaded_json(&found.at[i]));
	json_object_set_new(o, "loaded_before", json_true());
	if (all)
		json_object_set_new(o, "candidates", all);
	if (!found.count)
		json_object_set_new(o, "problem", json_text(why.message));
	return o;
}

/* "auto", or one of the sources that are this driver. */
bool driver_is_wanted(const char *source)
{
	return !strcmp(source, "auto") || !strncmp(source, "winpmem", strlen("winpmem"));
}

static struct winpmem_load what_to_load(const struct driver_options *o)
{
	return (struct winpmem_load){
		.path = o->file,
		.folder = o->folder,
		.risk = o->risk,
		.nt = nt_here(),
	};
}

static enum status load_session(const struct driver_options *o, struct driver_session **ret,
				struct err *e)
{
	const struct winpmem_load what = what_to_load(o);
	struct driver_session *s = calloc(1, sizeof(*s));
	enum status st;

	if (!s)
		return err_nomem(e);
	st = winpmem_service_load(&what, &s->service, e);
	if (st) {
		free(s);
		return st;
	}
	if (winpmem_service_file(s->service)->risk)
		log_warning("driver-risk", "%s", winpmem_service_file(s->service)->risk);
	log_info_with(JSON_FIELDS(field_json("driver", driver_service_json(s->service))),
		      "driver-loaded", "%s is loaded as %s (SHA-256 %s)",
		      winpmem_service_file(s->service)->path, winpmem_service_name(s->service),
		      winpmem_service_file(s->service)->sha256);
	*ret = s;
	return ST_OK;
}

/*
 * What counts the events once there is a driver (winpmem_service.c) knows of none before it: a
 * second Ctrl-C would be its first. So a driver that comes too late goes again, before anything
 * else.
 */
static enum status load_unless_interrupted(const struct driver_options *o,
					   struct driver_session **ret, struct err *e)
{
	const enum status st = interrupted() ? interrupt_status(e) : load_session(o, ret, e);

	if (st || !interrupted())
		return st;
	driver_session_end(*ret);
	*ret = NULL;
	return interrupt_status(e);
}

/* *ret: a session would load one, if there is none yet. */
static enum status check_wanted(const struct driver_options *o, const char *source, bool *ret,
				struct err *e)
{
	*ret = driver_is_wanted(source) && (o->file || winpmem_is_built_in());
	if (o->file && !*ret)
		return err_set(e, ST_USAGE, "--driver does not apply to --source %s", source);
	return ST_OK;
}

enum status driver_session_inspect(const struct driver_options *o, const char *source, json_t **ret,
				   struct err *e)
{
	_cleanup_winpmem_file_ struct winpmem_file file = { 0 };
	const struct winpmem_load what = what_to_load(o);
	bool wanted;
	enum status st = check_wanted(o, source, &wanted, e);

	*ret = NULL;
	winpmem_take_risk(o->risk);
	if (!st && wanted && !winpmem_is_loaded())
		st = winpmem_service_inspect(&what, &file, e);
	if (!st && file.path)
		*ret = driver_file_json(&file);
	return st;
}

/* Its device answers; which file it came from goes into the manifest. */
static enum status use_loaded(const struct driver_options *o, struct driver_session **ret,
			      struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e);
	(*ret)->before = loaded_before_json();
	if (o->file)
		log_warning_with(JSON_FIELDS(field_json("driver", driver_session_json(*ret))),
				 "driver-present",
				 "a memory driver is already loaded: it is used and left loaded, "
				 "and %s is not loaded",
				 o->file);
	else
		log_info_with(JSON_FIELDS(field_json("driver", driver_session_json(*ret))),
			      "driver-present",
			      "a memory driver is already loaded: it is used and left loaded");
	return ST_OK;
}

enum status driver_session_begin(const struct driver_options *o, const char *source,
				 struct driver_session **ret, struct err *e)
{
	bool wanted;
	const enum status st = check_wanted(o, source, &wanted, e);

	*ret = NULL;
	winpmem_take_risk(o->risk);
	if (st || !driver_is_wanted(source))
		return st;
	if (!winpmem_is_loaded())
		return wanted ? load_unless_interrupted(o, ret, e) : ST_OK;
	return use_loaded(o, ret, e);
}

json_t *driver_session_json(const struct driver_session *s)
{
	if (!s)
		return json_null();
	return s->service ? driver_service_json(s->service) : json_incref(s->before);
}

void driver_session_end(struct driver_session *s)
{
	struct err e = ERR_INIT;
	char name[64];

	if (!s)
		return;
	if (!s->service) {
		json_decref(s->before);
		free(s);
		return;
	}
	snprintf(name, sizeof(name), "%s", winpmem_service_name(s->service));
	if (winpmem_service_unload(s->service, &e))
		log_warning_with(JSON_FIELDS(field_text("service", name)), "driver-left",
				 "%s; \"ramseal driver cleanup\" tries again", e.message);
	else
		log_info_with(JSON_FIELDS(field_text("service", name)), "driver-unloaded",
			      "%s is unloaded; its service and its copy are removed", name);
	free(s);
}
