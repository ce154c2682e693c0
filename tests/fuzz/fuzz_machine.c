// SPDX-License-Identifier: MIT
/*
 * Arbitrary bytes as a machine description.  What is taken is within its limits;
 * what is refused leaves nothing behind and says where and why; twice gives the
 * same.
 *
 * Input: a text; or a byte above 127, then a word of the language for each byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "machine.h"

#define require(cond)	do { if (!(cond)) broken(#cond, __LINE__); } while (0)

static void broken(const char *what, int line)
{
	fprintf(stderr, "fuzz: line %d: not so: %s\n", line, what);
	abort();
}

/* Lines that belong together, so that a good description is not hopeless. */
static const char * const words[] = {
	"\n", " ", "\t", "#", "\r\n", "0", "1", "2", "3", "8", "64", "65", "950", "1025", "65535",
	"4294967295", "4294967296", "18446744073709551616", "00", "-1", "GiB", "KiB", "MiB", "B",
	"TiB", "a", "b", "host", "name ", "soc ", "link ", "path ", "engine ", "self ", "net ",
	"latency_ns ", "mbytes_per_s ", "pair_mbytes_per_s ", "count ", "submit_ns ", "server ",
	"module ", "udma ", "\xc3\xa9", "\x80", "hbm 2 MiB\n",
	"name m\nsoc c\ngeneration 1\nservers 2\ndevices_per_server 4\ndevices_per_module 2\n",
	"hbm 64 GiB\nhbm_mbytes_per_s 7\ncube_cores 0\nvector_cores 1\nub 4 KiB\nl2 1 MiB\n",
	"engine udma count 1 submit_ns 2 mbytes_per_s 3\n",
	"link a latency_ns 1 mbytes_per_s 9\nlink b latency_ns 1 mbytes_per_s 9 pair_mbytes_per_s 3\n",
	"path self a\npath module a\npath server b\npath net b\npath host a\n",
	"path self b\n", "link c latency_ns 1 mbytes_per_s 2\n", "servers 16\n",
};

static bool is_name(const char *s, size_t room)
{
	size_t i;

	for (i = 0; i < room && s[i]; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return i > 0 && i < room;
}

static void check_taken(const struct npuemu_machine *m)
{
	const u8 *path[] = { &m->link_self, &m->link_module, &m->link_server, &m->link_net,
			     &m->link_host };
	u32 i, j, present = 0;

	require(is_name(m->name, sizeof(m->name)) && is_name(m->soc, sizeof(m->soc)));
	require(m->generation >= 1 && m->generation <= 65535);
	require(m->servers >= 1 && m->servers <= NPUEMU_MAX_SERVERS);
	require(m->devices_per_server >= 1 && m->devices == m->servers * m->devices_per_server);
	require(m->devices <= NPUEMU_MAX_DEVICES);
	require(m->devices_per_module && m->devices_per_server % m->devices_per_module == 0);
	require(m->hbm_bytes >= 2u << 20 && m->hbm_bytes <= 1ull << 40 &&
		m->hbm_bytes % (2u << 20) == 0);
	require(m->hbm_mbytes_per_s && m->vector_cores >= 1 && m->vector_cores <= 1024);
	require(m->cube_cores <= 1024 && m->ub_bytes >= 4096 && m->l2_bytes >= 1u << 20);
	require(m->links >= 1 && m->links <= NPUEMU_MAX_LINKS);
	for (i = 0; i < sizeof(path) / sizeof(path[0]); i++)
		require(*path[i] < m->links);
	for (i = 0; i < m->links; i++) {
		require(is_name(m->link[i].name, sizeof(m->link[i].name)));
		require(m->link[i].pair_mbytes_per_s &&
			m->link[i].pair_mbytes_per_s <= m->link[i].mbytes_per_s);
		for (j = 0; j < i; j++)
			require(strcmp(m->link[i].name, m->link[j].name));
	}
	for (i = 0; i < NPUEMU_ENGINE_KINDS; i++)
		present += m->engine[i].present;
	require(present);
	for (i = 0; i < m->devices; i++)
		for (j = 0; j < m->devices; j++) {
			const struct npuemu_link_class *l = npuemu_machine_link(m, i, j);

			require(l >= m->link && l < m->link + m->links);
		}
}

static void check_refused(const struct npuemu_machine *m, const struct npuemu_machine_error *err,
			  const char *text, size_t len)
{
	static const struct npuemu_machine zero;
	u32 lines = 1;
	size_t i;

	require(!memcmp(m, &zero, sizeof(zero)));
	require(memchr(err->what, 0, sizeof(err->what)));
	require(strlen(err->what) > 5);
	for (i = 0; err->what[i]; i++)
		require(err->what[i] >= ' ' && err->what[i] <= '~');
	for (i = 0; i < len; i++)
		lines += text[i] == '\n';
	require(err->line <= lines && !err->line == !err->column);
	require(err->column <= len + 1);
}

static void parse(const char *text, size_t len)
{
	struct npuemu_machine_error err, err2;
	struct npuemu_machine m, m2;
	int ret;

	memset(&m, 0xa5, sizeof(m));
	memset(&m2, 0x5a, sizeof(m2));
	memset(&err, 0xff, sizeof(err));
	memset(&err2, 0xff, sizeof(err2));
	ret = npuemu_machine_parse(text, len, &m, &err);
	require(ret == 0 || ret == -EINVAL);
	if (ret)
		check_refused(&m, &err, text, len);
	else
		check_taken(&m);
	require(npuemu_machine_parse(text, len, &m2, ret ? &err2 : NULL) == ret);
	require(!memcmp(&m, &m2, sizeof(m)));
	if (ret)
		require(err.line == err2.line && err.column == err2.column &&
			!strcmp(err.what, err2.what));
	require(npuemu_machine_parse(text, len, &m2, NULL) == ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t i, len = 0, n;
	char *text;

	if (!size || data[0] < 128) {
		parse((const char *)data, size);
		return 0;
	}
	for (i = 1; i < size; i++)
		len += strlen(words[data[i] % (sizeof(words) / sizeof(words[0]))]);
	/* of the exact size, so that ASan sees an overrun */
	text = malloc(len ? len : 1);
	require(text);
	for (i = 1, len = 0; i < size; i++, len += n) {
		const char *w = words[data[i] % (sizeof(words) / sizeof(words[0]))];

		n = strlen(w);
		memcpy(text + len, w, n);
	}
	parse(text, len);
	free(text);
	return 0;
}
