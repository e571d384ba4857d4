/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RtlVirtualUnwind(): from a function to its caller, by the tables in .pdata. Epilogues are not
 * recognised, because nothing in them faults and no call returns into them.
 */
#include "seh.h"

/* UNWIND_CODE operations */
enum {
	UWOP_PUSH_NONVOL,
	UWOP_ALLOC_LARGE,
	UWOP_ALLOC_SMALL,
	UWOP_SET_FPREG,
	UWOP_SAVE_NONVOL,
	UWOP_SAVE_NONVOL_FAR,
	UWOP_EPILOG,
	UWOP_SPARE,
	UWOP_SAVE_XMM128,
	UWOP_SAVE_XMM128_FAR,
	UWOP_PUSH_MACHFRAME,
};

#define UNW_EHANDLER  0x1
#define UNW_UHANDLER  0x2
#define UNW_CHAININFO 0x4

struct unwind_code {
	uint8_t offset, op_info; /* offset in the prologue; operation in the low half of op_info */
};

struct unwind_info {
	uint8_t version_flags, prologue, codes, frame; /* the frame register, and its offset / 16 */
	struct unwind_code code[];
};

static struct runtime_function *find_function(const struct image *image, uint64_t rip)
{
	const struct pe_directory *const d =
		&image->headers->optional.directory[PE_DIRECTORY_EXCEPTION];
	struct runtime_function *const table = image_rva(image, d->rva);

	for (size_t i = 0; i < d->size / sizeof(*table); i++)
		if (rip - image->base >= table[i].begin && rip - image->base < table[i].end)
			return &table[i];
	return NULL;
}

static uint16_t operand16(const struct unwind_code *c)
{
	return (uint16_t)(c[1].offset | c[1].op_info << 8);
}

static uint32_t operand32(const struct unwind_code *c)
{
	return operand16(c) | (uint32_t)operand16(c + 1) << 16;
}

/* How many array slots an operation takes. */
static unsigned slots(const struct unwind_code *c)
{
	switch (c->op_info & 15) {
	case UWOP_ALLOC_LARGE:
		return c->op_info >> 4 ? 3 : 2;
	case UWOP_SAVE_NONVOL:
	case UWOP_SAVE_XMM128:
		return 2;
	case UWOP_SAVE_NONVOL_FAR:
	case UWOP_SAVE_XMM128_FAR:
		return 3;
	default:
		return 1;
	}
}

static void pop_machine_frame(struct context *c, bool has_error)
{
	const uint64_t *const at = (const uint64_t *)c->rsp + has_error;

	c->rip = at[0];
	c->rsp = at[3];
}

/* Undoes one operation. true if it also gave rip, so that there is no return address to pop. */
static bool take_back(const struct unwind_code *u, uint64_t frame, const struct unwind_info *info,
		      struct context *c)
{
	const unsigned number = u->op_info >> 4;

	switch (u->op_info & 15) {
	case UWOP_PUSH_NONVOL:
		*context_register(c, number) = *(uint64_t *)c->rsp;
		c->rsp += 8;
		break;
	case UWOP_ALLOC_LARGE:
		c->rsp += number ? operand32(u) : operand16(u) * 8u;
		break;
	case UWOP_ALLOC_SMALL:
		c->rsp += number * 8 + 8;
		break;
	case UWOP_SET_FPREG:
		c->rsp = *context_register(c, info->frame & 15) - (info->frame >> 4) * 16u;
		break;
	case UWOP_SAVE_NONVOL:
		*context_register(c, number) = *(uint64_t *)(frame + operand16(u) * 8u);
		break;
	case UWOP_SAVE_NONVOL_FAR:
		*context_register(c, number) = *(uint64_t *)(frame + operand32(u));
		break;
	case UWOP_SAVE_XMM128:
		memcpy(c->fx + FX_XMM(number), (void *)(frame + operand16(u) * 16u), 16);
		break;
	case UWOP_SAVE_XMM128_FAR:
		memcpy(c->fx + FX_XMM(number), (void *)(frame + operand32(u)), 16);
		break;
	case UWOP_PUSH_MACHFRAME:
		pop_machine_frame(c, number);
		return true;
	default:
		break;
	}
	return false;
}

/* The frame register, once the prologue has set it, less its offset; otherwise rsp. */
static uint64_t establisher(const struct unwind_info *info, uint32_t offset, struct context *c)
{
	for (unsigned i = 0; info->frame & 15 && i < info->codes; i += slots(&info->code[i]))
		if ((info->code[i].op_info & 15) == UWOP_SET_FPREG &&
		    offset >= info->code[i].offset)
			return *context_register(c, info->frame & 15) - (info->frame >> 4) * 16u;
	return c->rsp;
}

static void *behind_codes(struct unwind_info *info)
{
	return &info->code[(info->codes + 1) & ~1];
}

static void fill_handler(const struct image *image, struct runtime_function *function,
			 struct unwind_info *info, uint32_t offset, struct frame_handler *ret)
{
	const uint32_t *const rva = behind_codes(info);
	const uint8_t flags = info->version_flags >> 3;

	ret->function = function;
	if (!(flags & (UNW_EHANDLER | UNW_UHANDLER)) || offset < info->prologue)
		return;
	ret->handler = (language_handler)image_rva(image, *rva);
	ret->data = rva + 1;
	ret->on_exception = flags & UNW_EHANDLER;
	ret->on_unwind = flags & UNW_UHANDLER;
}

bool unwind_frame(struct context *c, struct frame_handler *ret)
{
	const struct image *const image = image_at(c->rip);
	struct runtime_function *function = image ? find_function(image, c->rip) : NULL;
	struct frame_handler ignored;
	bool chained = false, has_rip = false;

	if (!ret)
		ret = &ignored;
	*ret = (struct frame_handler){ .establisher = c->rsp };
	while (function) {
		struct unwind_info *const info = image_rva(image, function->unwind);
		const uint32_t offset =
			chained ? UINT32_MAX : (uint32_t)(c->rip - image->base - function->begin);
		const uint64_t frame = establisher(info, offset, c);

		if ((info->version_flags & 7) > 2)
			return false;
		if (!chained) {
			ret->establisher = frame;
			fill_handler(image, function, info, offset, ret);
		}
		for (unsigned i = 0; i < info->codes; i += slots(&info->code[i]))
			if (offset >= info->code[i].offset)
				has_rip |= take_back(&info->code[i], frame, info, c);
		chained = true;
		function = info->version_flags >> 3 & UNW_CHAININFO ? behind_codes(info) : NULL;
	}
	/* A function without an entry is a leaf: it has not moved rsp. */
	if (!has_rip) {
		c->rip = *(uint64_t *)c->rsp;
		c->rsp += 8;
	}
	return true;
}
