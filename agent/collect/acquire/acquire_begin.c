/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/collect/acquire/acquire_internal.h"
#include "agent/collect/acquire/preflight.h"
#include "agent/collect/capture/manifest.h"
#include "agent/collect/acquire/room.h"
#include "agent/collect/acquire/volume_remarks.h"
#include "agent/collect/host/context.h"
#include "agent/collect/host/host.h"
#include "agent/collect/stores/remote_sink.h"
#include "agent/shared/program/share.h"
#include "agent/shared/output/age_sink.h"
#include "agent/shared/program/clock.h"
#include "agent/shared/program/log.h"
#include "agent/shared/program/stay_awake.h"
#include "agent/shared/program/text.h"

/*
 * Of a simulated machine the container holds nothing that is not simulated: no host, no arguments,
 * no number of threads. The same machine, read in the same way, is the same container anywhere.
 */
static enum status describe_simulated(json_t **ret, struct err *e)
{
	json_t *clocks = manifest_clocks();

	if (clocks)
		json_object_set_new(clocks, "wall_minus_mono_ns",
				    json_integer((json_int_t)(clock_wall_ns() - clock_mono_ns())));
	*ret = json_pack("{s:b, s:o, s:{s:s, s:s}}", "simulated", true, "clocks", clocks, "tool",
			 "name", "ramseal", "version", RAMSEAL_VERSION);
	return *ret ? ST_OK : err_nomem(e);
}

/*
 * What the registry says of the machine whose memory this is: the live one, or that of the disk
 * image beside a memory image. The registry of a live disk is left alone: reading it would take
 * time, and memory, from what is to be acquired.
 */
static void put_registry_context(const struct acquisition *a, json_t *doc)
{
	const bool dead = a->base.source->info.image;
	json_t *context = NULL;
	struct err e = ERR_INIT;
	enum status st = ST_NO_SOURCE;

	if (!dead)
		st = context_of_host(&context, &e);
	else if (a->disk)
		st = context_of_disk(a->disk, &context, &e);
	if (!st)
		json_object_set_new(doc, "context", context);
	else if (st != ST_NO_SOURCE && st != ST_INPUT)
		log_warning("context-left-out", "the registry: %s", e.message);
}

/*
 * A live source's memory is of the machine that the line describes. An image's is of another one,
 * of which nothing is known here.
 */
static enum status describe_machine(struct acquisition *a, json_t **ret, struct err *e)
{
	const struct drv_info *info = &a->base.source->info;
	char untested[LINUX_UNTESTED_MAX];
	enum status st;

	if (info->simulated)
		return describe_simulated(ret, e);
	st = host_describe(a->cli->argc, a->cli->argv, ret, e);
	if (!st && info->image)
		st = manifest_move_machine(*ret, e);
	else if (!st && preflight_is_untested(*ret, untested))
		log_warning("kernel-untested", "%s", untested);
	return st;
}

static enum status write_begin(struct acquisition *a, struct err *e)
{
	const struct drv_info *info = &a->base.source->info;
	json_t *doc = NULL, *source = manifest_source(info);
	enum status st = describe_machine(a, &doc, e);

	if (st) {
		json_decref(source);
		json_decref(doc);
		return st;
	}
	if (info->image)
		json_object_set_new(source, "still", json_boolean(a->still));
	json_object_set_new(doc, "event", json_string("begin"));
	json_object_set_new(doc, "manifest", json_integer(MANIFEST_VERSION));
	json_object_set_new(doc, "container", json_string(sealer_id(a->sealer)));
	json_object_set_new(doc, "source", source);
	if (info->has_machine)
		json_object_set_new(doc, "machine", manifest_machine(info));
	json_object_set_new(doc, "maps", manifest_maps(info));
	if (!info->image && !info->simulated)
		json_object_set_new(doc, "withheld", changes_withheld_json(&a->base.changes));
	if (a->base.driver)
		json_object_set_new(doc, "driver", driver_session_json(a->base.driver));
	if (json_is_object(a->base.forecast))
		json_object_set(doc, "driver_forecast", a->base.forecast);
	if (json_is_object(a->base.code_integrity))
		json_object_set(doc, "code_integrity", a->base.code_integrity);
	if (a->files.list.n_remarks)
		json_object_set_new(doc, "volumes", volume_remarks_json(&a->files.list));
	json_object_set_new(doc, "level", json_integer(a->o->level.level));
	json_object_set_new(doc, "level_auto", json_boolean(a->o->level.automatic));
	if (!info->simulated) {
		json_object_set_new(doc, "threads", json_integer(a->base.threads));
		json_object_set_new(doc, "share", share_json());
		json_object_set_new(doc, "limits", host_limits_json(&a->base.limits));
		json_object_set_new(doc, "stays_awake", json_boolean(stay_awake_is_on()));
		put_registry_context(a, doc);
	}
	acquire__state_begin(a, doc);
	st = manifest_set_notes(doc, info->notes, info->notes_size, e);
	if (st) {
		json_decref(doc);
		return st;
	}
	return sealer_manifest(a->sealer, doc, e);
}

/* New files take free clusters, and those are what a later look at deleted data would want. */
static enum status check_target_disk(const struct acquisition *a, struct err *e)
{
	const char *to = a->base.output;

	if (!a->disk || a->network || !strcmp(to, "-"))
		return ST_OK;
	switch (reader_target_risk(disk_reader(a->disk), to)) {
	case TARGET_IS_SOURCE:
		return err_set(e, ST_OUTPUT, "%s: is the input that is being read", to);
	case TARGET_ON_SOURCE:
		log_warning("target-on-source",
			    "the output is on the volume that is being acquired");
		return ST_OK;
	case TARGET_SAFE:
		break;
	}
	return ST_OK;
}

enum status acquire__begin(struct acquisition *a, struct err *e)
{
	const uint64_t memory = range_list_bytes(&a->base.source->info.maps[0].ranges);
	struct output_options target = {
		.path = a->base.output,
		.force = a->o->force,
		.inputs = a->base.inputs,
		.need = room_need(memory, files_bytes(&a->files_plan, &a->files)),
		.reserve = room_reserve(memory),
		.paced = share_is_nice(),
		.lean = true,
		.open_address = remote_sink_open,
		.network = a->network,
	};
	enum status st = check_target_disk(a, e);

	if (a->network)
		a->network->uploader.log_apart = a->base.source->info.simulated;
	if (a->encrypted) {
		target.reserve += AGE_SINK_RESERVE;
		age_sink_need(&target.need);
	}
	if (!st)
		st = output_open(&target, &a->out, e);
	if (!st && a->encrypted)
		st = age_sink_put_on(&a->out, a->o->to, e);
	if (!st)
		st = sealer_create(
			a->out, a->base.source->info.simulated ? a->base.source->info.path : NULL,
			&a->sealer, e);
	if (!st)
		st = write_begin(a, e);
	return st;
}
