// SPDX-License-Identifier: MIT
/*
 * The checker: where a call came from.
 *
 * backtrace() of the C library finds the addresses.  Names come from the dynamic
 * symbols, and of static functions and programs without -rdynamic from the symbol
 * table of the file, if it was not stripped.  It is used in a signal handler, so
 * it allocates nothing.
 */
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"

void npuacl_site_take(struct npuacl_site *site)
{
	int n = backtrace(site->pc, NPUACL_SITE_DEPTH);

	site->n = n > 0 ? (u32)n : 0;
}

/* The first one loads the unwinder, which allocates. */
void npuacl_site_init(void)
{
	struct npuacl_site site;

	npuacl_site_take(&site);
}

/* ---- Names ------------------------------------------------------------------------------ */

struct object {
	const u8 *p;
	u64 bytes;
};

static bool object_open(const char *path, struct object *o)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && st.st_size >= (off_t)sizeof(ElfW(Ehdr)))
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return false;
	o->p = p;
	o->bytes = (u64)st.st_size;
	return true;
}

/* NULL: not all of it is in the file. */
static const void *object_at(const struct object *o, u64 off, u64 len)
{
	return off <= o->bytes && len <= o->bytes - off ? o->p + off : NULL;
}

static bool symbol_in(const struct object *o, const ElfW(Shdr) *table, const ElfW(Shdr) *strings, u64 at,
		      char *name, size_t size, u64 *from)
{
	const ElfW(Sym) *sym = object_at(o, table->sh_offset, table->sh_size);
	const char *text = object_at(o, strings->sh_offset, strings->sh_size);
	u64 i;

	for (i = 0; sym && text && i < table->sh_size / sizeof(*sym); i++) {
		if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC || at - sym[i].st_value >= sym[i].st_size ||
		    sym[i].st_name >= strings->sh_size)
			continue;
		snprintf(name, size, "%.*s", (int)strnlen(text + sym[i].st_name, strings->sh_size - sym[i].st_name),
			 text + sym[i].st_name);
		*from = sym[i].st_value;
		return true;
	}
	return false;
}

/* The function around @at, as the file counts, from its symbol table. */
static bool symbol_of(const char *path, u64 at, char *name, size_t size, u64 *from)
{
	const ElfW(Ehdr) *head;
	const ElfW(Shdr) *sec;
	struct object o;
	bool found = false;
	u32 i;

	if (!object_open(path, &o))
		return false;
	head = object_at(&o, 0, sizeof(*head));
	if (!memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64) {
		sec = object_at(&o, head->e_shoff, head->e_shnum * sizeof(*sec));
		for (i = 0; sec && i < head->e_shnum && !found; i++)
			if (sec[i].sh_type == SHT_SYMTAB && sec[i].sh_link < head->e_shnum)
				found = symbol_in(&o, &sec[i], &sec[sec[i].sh_link], at, name, size, from);
	}
	munmap((void *)(uintptr_t)o.p, o.bytes);
	return found;
}

/* What it is called, and how far into it; the address may be one to return to. */
static bool look_up(const void *pc, char *name, size_t size, u64 *into, Dl_info *info)
{
	struct link_map *map = NULL;
	u64 va = (u64)(uintptr_t)pc - 1, at, from = 0;

	if (!dladdr1((void *)(uintptr_t)va, info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return false;
	at = va - map->l_addr;
	*into = at + 1;
	if (symbol_of(*map->l_name ? map->l_name : "/proc/self/exe", at, name, size, &from)) {
		*into = at + 1 - from;
		return true;
	}
	if (info->dli_sname) {
		snprintf(name, size, "%s", info->dli_sname);
		*into = va + 1 - (u64)(uintptr_t)info->dli_saddr;
		return true;
	}
	snprintf(name, size, "?");
	return true;
}

const char *npuacl_site_name(const void *pc, char *buf, size_t size)
{
	Dl_info info = { .dli_fname = NULL };
	char name[128];
	u64 into = 0;

	if (!look_up(pc, name, sizeof(name), &into, &info)) {
		snprintf(buf, size, "%p", pc);
		return buf;
	}
	/* without a name: what addr2line -e FILE takes */
	snprintf(buf, size, "%s+%#llx (%s)", strcmp(name, "?") ? name : "", (unsigned long long)into,
		 info.dli_fname ? info.dli_fname : "?");
	return buf;
}

/*
 * Up to the public function that the program called, which stays.  It may be missing
 * (a tail call): then all that lies in this library's file, if that is another than
 * the program's, goes.
 */
u32 npuacl_site_skip(const struct npuacl_site *site)
{
	struct link_map *map = NULL;
	Dl_info own, info;
	char name[128];
	u32 i, skip = 0;
	bool shared;
	u64 into;

	if (!dladdr1((void *)(uintptr_t)npuacl_site_skip, &own, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return 0;
	shared = *map->l_name;
	for (i = 0; i < site->n; i++) {
		if (!look_up(site->pc[i], name, sizeof(name), &into, &info))
			continue;
		if (!strncmp(name, "aclrt", 5) || !strncmp(name, "aclmdl", 6) || !strncmp(name, "aclInit", 7) ||
		    !strncmp(name, "aclFinalize", 11))
			skip = i;
		else if (!strncmp(name, "npuacl_", 7) || !strncmp(name, "npuemu_", 7) ||
			 (shared && info.dli_fbase == own.dli_fbase))
			skip = i + 1;
	}
	return skip;
}
