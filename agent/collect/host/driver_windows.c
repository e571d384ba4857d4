/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/host/driver_windows.h"

#include <string.h>

#include "agent/collect/host/driver_signers.h"
#include "agent/shared/program/interrupt.h"
#include "agent/shared/program/log.h"
#include "driver-interface/winpmem.h"
#include "driver-interface/winpmem_built_in.h"

/* What is loaded; a struct of its own, so that the header needs none of Windows. */
struct driver_session {
	struct winpmem_service *service;
};

/* Of what is built in the path is no file's. */
static json_t *signers_json(const struct winpmem_file *f)
{
	json_t *ret = driver_signers_of_file(f->path, f->sha256);

	if (!json_is_null(ret) || !winpmem_is_built_in())
		return ret;
	return driver_signers_json(winpmem_built_in, winpmem_built_in_size, f->sha256);
}

static json_t *driver_file_json(const struct winpmem_file *f)
{
	json_t *o = json_pack(
		"{s:o, s:s, s:o, s:o, s:o}", "path", json_text(f->path), "sha256", f->sha256,
		"signer", json_text(f->signer), "signers", signers_json(f), "trust",
		f->trust ? json_sprintf("0x%08x", (unsigned)f->trust) : json_string("trusted"));

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
	if (o->file)
		log_warning("driver-present",
			    "a memory driver is already loaded: it is used and left loaded, and %s "
			    "is not loaded",
			    o->file);
	else
		log_info("driver-present",
			 "a memory driver is already loaded: it is used and left loaded");
	return ST_OK;
}

json_t *driver_session_json(const struct driver_session *s)
{
	return s ? driver_service_json(s->service) : json_null();
}

void driver_session_end(struct driver_session *s)
{
	struct err e = ERR_INIT;
	char name[64];

	if (!s)
		return;
	snprintf(name, sizeof(name), "%s", winpmem_service_name(s->service));
	if (winpmem_service_unload(s->service, &e))
		log_warning_with(JSON_FIELDS(field_text("service", name)), "driver-left",
				 "%s; \"ramseal driver cleanup\" tries again", e.message);
	else
		log_info_with(JSON_FIELDS(field_text("service", name)), "driver-unloaded",
			      "%s is unloaded; its service and its copy are removed", name);
	free(s);
}
