// SPDX-License-Identifier: MIT
/* npuemu-perf: how fast the emulated engines, and collectives over them, are on this
 * machine, and whether they move the right bytes.
 */
#include <string.h>

#include "../common/cli.h"
#include "coll.h"
#include "perf.h"

int main(int argc, char **argv)
{
	static struct npuemu_perf_opts o;
	int rc;

	npuemu_cli_init("npuemu-perf");
	if (argc > 1 && !strcmp(argv[1], "collectives")) {
		npuemu_cli_init("npuemu-perf collectives");
		return npuemu_coll_main(argc - 1, argv + 1);
	}
	rc = npuemu_perf_options(argc, argv, &o);
	if (rc >= 0)
		return rc;
	return npuemu_perf_run(&o, npuemu_ticks_init());
}
