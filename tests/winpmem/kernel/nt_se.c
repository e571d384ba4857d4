/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Security descriptors. IoCreateDeviceSecure() makes one from the text that a driver gives it; it
 * is linked into each driver (wdmsec.lib) and calls these functions. Layouts: winnt.h and MS-DTYP
 * 2.4.
 */
#include "gate.h"
#include "handles.h"
#include "io.h"
#include "nt_strings.h"
#include "nt_variables.h"
#include "pool.h"

#define SE_DACL_PRESENT   0x0004
#define SE_DACL_DEFAULTED 0x0008
#define SE_SACL_PRESENT   0x0010
#define SE_SACL_DEFAULTED 0x0020
#define SE_SELF_RELATIVE  0x8000

#define TAG_SE            0x63536553u /* "SeSc" */

struct sid {
	uint8_t revision, count, authority[6];
	uint32_t sub[2];
};

struct ace {
	uint8_t type, flags;
	uint16_t size;
	uint32_t mask;
	uint8_t sid[];
};

struct acl {
	uint8_t revision, pad;
	uint16_t size, count, pad2;
	uint8_t aces[];
};

/* SECURITY_DESCRIPTOR, with pointers */
struct descriptor {
	uint8_t revision, pad;
	uint16_t control;
	uint32_t pad2;
	const void *owner, *group;
	const struct acl *sacl, *dacl;
};

_Static_assert(offsetof(struct descriptor, dacl) == 0x20, "SECURITY_DESCRIPTOR.Dacl");

/* SECURITY_DESCRIPTOR_RELATIVE: one block of memory, with four offsets after `control`. */
#define RELATIVE_OFFSETS 0x04
#define RELATIVE_SIZE    0x14

enum part { OWNER, GROUP, SACL, DACL, PARTS };

static const void *part_of(const struct descriptor *d, enum part p)
{
	const uint32_t *const offsets = (const uint32_t *)((const uint8_t *)d + RELATIVE_OFFSETS);
	const void *const pointers[] = { d->owner, d->group, d->sacl, d->dacl };

	if (!(d->control & SE_SELF_RELATIVE))
		return pointers[p];
	return offsets[p] ? (const uint8_t *)d + offsets[p] : NULL;
}

static uint32_t sid_len(const struct sid *s)
{
	return 8 + 4u * s->count;
}

static uint32_t part_len(const struct descriptor *d, enum part p)
{
	const void *const at = part_of(d, p);

	if (!at)
		return 0;
	return p < SACL ? sid_len(at) : ROUND_UP(((const struct acl *)at)->size, 4u);
}

static uint32_t relative_len(const struct descriptor *d)
{
	uint32_t len = RELATIVE_SIZE;

	for (enum part p = OWNER; p < PARTS; p++)
		len += part_len(d, p);
	return len;
}

static void make_relative(const struct descriptor *from, struct descriptor *to)
{
	uint32_t *const offsets = (uint32_t *)((uint8_t *)to + RELATIVE_OFFSETS);
	uint32_t at = RELATIVE_SIZE;

	to->revision = from->revision;
	to->pad = from->pad;
	to->control = from->control | SE_SELF_RELATIVE;
	for (enum part p = OWNER; p < PARTS; p++) {
		const uint32_t len = part_len(from, p);

		offsets[p] = len ? at : 0;
		memcpy((uint8_t *)to + at, part_of(from, p), len);
		at += len;
	}
}

/* --- Rtl --- */

static ntstatus NTAPI RtlCreateSecurityDescriptor(struct descriptor *d, uint32_t revision)
{
	if (revision != 1)
		return STATUS_REVISION_MISMATCH;
	memset(d, 0, sizeof(*d));
	d->revision = 1;
	return STATUS_SUCCESS;
}

static ntstatus NTAPI RtlSetDaclSecurityDescriptor(struct descriptor *d, bool present,
						   const struct acl *dacl, bool defaulted)
{
	if (d->control & SE_SELF_RELATIVE)
		return STATUS_INVALID_SECURITY_DESCR;
	d->control &= (uint16_t)~(SE_DACL_PRESENT | SE_DACL_DEFAULTED);
	if (!present)
		return STATUS_SUCCESS;
	d->control |= SE_DACL_PRESENT | (defaulted ? SE_DACL_DEFAULTED : 0);
	d->dacl = dacl;
	return STATUS_SUCCESS;
}

static ntstatus get_acl(const struct descriptor *d, enum part p, unsigned bit, uint8_t *present,
			const void **ret, uint8_t *defaulted)
{
	*present = (d->control & bit) != 0;
	if (*present) {
		*ret = part_of(d, p);
		*defaulted = (d->control & bit << 1) != 0;
	}
	return STATUS_SUCCESS;
}

static ntstatus NTAPI RtlGetDaclSecurityDescriptor(const struct descriptor *d, uint8_t *present,
						   const void **ret, uint8_t *defaulted)
{
	return get_acl(d, DACL, SE_DACL_PRESENT, present, ret, defaulted);
}

static ntstatus NTAPI RtlGetSaclSecurityDescriptor(const struct descriptor *d, uint8_t *present,
						   const void **ret, uint8_t *defaulted)
{
	return get_acl(d, SACL, SE_SACL_PRESENT, present, ret, defaulted);
}

static ntstatus NTAPI RtlGetOwnerSecurityDescriptor(const struct descriptor *d, const void **ret,
						    uint8_t *defaulted)
{
	*ret = part_of(d, OWNER);
	*defaulted = d->control & 1;
	return STATUS_SUCCESS;
}

static ntstatus NTAPI RtlGetGroupSecurityDescriptor(const struct descriptor *d, const void **ret,
						    uint8_t *defaulted)
{
	*ret = part_of(d, GROUP);
	*defaulted = (d->control & 2) != 0;
	return STATUS_SUCCESS;
}

static uint32_t NTAPI RtlLengthSecurityDescriptor(const struct descriptor *d)
{
	const uint32_t head = d->control & SE_SELF_RELATIVE ? RELATIVE_SIZE : sizeof(*d);

	return relative_len(d) - RELATIVE_SIZE + head;
}

static ntstatus NTAPI RtlAbsoluteToSelfRelativeSD(const struct descriptor *from,
						  struct descriptor *to, uint32_t *len)
{
	const uint32_t need = relative_len(from), room = *len;

	*len = need;
	if (room < need)
		return STATUS_BUFFER_TOO_SMALL;
	make_relative(from, to);
	return STATUS_SUCCESS;
}

static uint32_t NTAPI RtlLengthSid(const struct sid *s)
{
	return sid_len(s);
}

static ntstatus NTAPI RtlAddAccessAllowedAce(struct acl *a, uint32_t revision, uint32_t mask,
					     const struct sid *s)
{
	uint32_t at = sizeof(*a);
	struct ace *ace;

	(void)revision;
	for (unsigned i = 0; i < a->count; i++)
		at += ((const struct ace *)((const uint8_t *)a + at))->size;
	if (at + sizeof(*ace) + sid_len(s) > a->size)
		return STATUS_BUFFER_TOO_SMALL;
	ace = (struct ace *)((uint8_t *)a + at);
	*ace = (struct ace){ .size = (uint16_t)(sizeof(*ace) + sid_len(s)), .mask = mask };
	memcpy(ace->sid, s, sid_len(s));
	a->count++;
	return STATUS_SUCCESS;
}

/* --- Se and Ob --- */

static ntstatus NTAPI SeCaptureSecurityDescriptor(const struct descriptor *from, uint8_t mode,
						  uint32_t pool_type, bool force,
						  struct descriptor **ret)
{
	(void)mode;
	(void)pool_type;
	(void)force;
	*ret = pool_allocate(relative_len(from), TAG_SE);
	if (!*ret)
		return STATUS_INSUFFICIENT_RESOURCES;
	make_relative(from, *ret);
	return STATUS_SUCCESS;
}

/* SE_EXPORTS of ntifs.h: privileges and pointers to SIDs. It has grown with Windows. */
#define SE_EXPORTS_SIZE  576
#define SE_NULL_SID      184
#define SE_WORLD_SID     192
#define SE_LOCAL_SYSTEM  264
#define SE_ALIAS_ADMINS  272
#define SE_AUTHENTICATED 336
#define SE_RESTRICTED    344

static const struct sid null_sid = { 1, 1, { 0, 0, 0, 0, 0, 0 }, { 0 } };
static const struct sid world_sid = { 1, 1, { 0, 0, 0, 0, 0, 1 }, { 0 } };
static const struct sid system_sid = { 1, 1, { 0, 0, 0, 0, 0, 5 }, { 18 } };
static const struct sid admins_sid = { 1, 2, { 0, 0, 0, 0, 0, 5 }, { 32, 544 } };
static const struct sid authenticated_sid = { 1, 1, { 0, 0, 0, 0, 0, 5 }, { 11 } };
static const struct sid restricted_sid = { 1, 1, { 0, 0, 0, 0, 0, 5 }, { 12 } };

static const void *se_table[SE_EXPORTS_SIZE / 8] = {
	[SE_NULL_SID / 8] = &null_sid,
	[SE_WORLD_SID / 8] = &world_sid,
	[SE_LOCAL_SYSTEM / 8] = &system_sid,
	[SE_ALIAS_ADMINS / 8] = &admins_sid,
	[SE_AUTHENTICATED / 8] = &authenticated_sid,
	[SE_RESTRICTED / 8] = &restricted_sid,
};

static const void *SeExports = se_table;

static ntstatus NTAPI ObOpenObjectByPointer(void *object, uint32_t attributes, void *state,
					    uint32_t access, const void *type, uint8_t mode,
					    uint64_t *ret)
{
	(void)attributes;
	(void)state;
	(void)access;
	(void)type;
	(void)mode;
	*ret = allocation_fails() ? 0 : handle_make(HANDLE_DEVICE, (uint64_t)object);
	return *ret ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

/* Logs who may open the device. */
static void log_dacl(const struct acl *a)
{
	uint32_t at = sizeof(*a);

	for (unsigned i = 0; a && i < a->count; i++) {
		const struct ace *const e = (const struct ace *)((const uint8_t *)a + at);
		const struct sid *const s = (const struct sid *)e->sid;

		say("device security: access %x for S-1-%u-%u%s", e->mask, s->authority[5],
		    s->sub[0], s->count > 1 ? "-..." : "");
		at += e->size;
	}
}

static ntstatus NTAPI ZwSetSecurityObject(uint64_t handle, uint32_t what,
					  const struct descriptor *d)
{
	uint64_t device;

	(void)what;
	if (!handle_get(handle, HANDLE_DEVICE, &device))
		return STATUS_INVALID_HANDLE;
	if (allocation_fails())
		return STATUS_INSUFFICIENT_RESOURCES;
	log_dacl(part_of(d, DACL));
	return STATUS_SUCCESS;
}

/* With SET_SECURE it is an export, and the drivers call it instead of their own copy. */
static ntstatus NTAPI IoCreateDeviceSecure(struct driver_object *driver, uint32_t extension_size,
					   const struct unicode_string *name, uint32_t type,
					   uint32_t characteristics, bool exclusive,
					   const struct unicode_string *sddl, const void *class,
					   struct device_object **ret)
{
	char text[80];

	(void)class;
	nt_to_ascii(sddl, text, sizeof(text));
	say("device security: %s, by the kernel", text);
	return IoCreateDevice(driver, extension_size, name, type, characteristics, exclusive, ret);
}

const struct export nt_se_exports[] = {
	EXPORT(IoCreateDeviceSecure),
	EXPORT(RtlAbsoluteToSelfRelativeSD),
	EXPORT(RtlAddAccessAllowedAce),
	EXPORT(RtlCreateSecurityDescriptor),
	EXPORT(RtlGetDaclSecurityDescriptor),
	EXPORT(RtlGetGroupSecurityDescriptor),
	EXPORT(RtlGetOwnerSecurityDescriptor),
	EXPORT(RtlGetSaclSecurityDescriptor),
	EXPORT(RtlLengthSecurityDescriptor),
	EXPORT(RtlLengthSid),
	EXPORT(RtlSetDaclSecurityDescriptor),
	EXPORT(SeCaptureSecurityDescriptor),
	EXPORT_VARIABLE(SeExports),
	{ 0 },
};

const struct export nt_ob_exports[] = {
	EXPORT(ObOpenObjectByPointer),
	EXPORT(ZwSetSecurityObject),
	{ 0 },
};
