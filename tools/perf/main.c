// SPDX-License-Identifier: MIT
/* npuemu-perf: how fast the emulated engines are on this machine, and whether
 * they move the right bytes.
 */
#include "../common/cli.h"
#include "perf.h"

int main(int argc, char **argv)
{
	static struct npuemu_perf_opts o;
	int rc;

	npuemu_cli_init("npuemu-perf");
	rc = npuemu_perf_options(argc, argv, &o);
	if (rc >= 0)
		return rc;
	return npuemu_perf_run(&o, npuemu_ticks_init());
}
