// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A module that misbehaves on request, so that the self test can see npuemu-vm
 * notice: insmod splat.ko how=load warns at once, how=unload when it goes.
 */
#include <linux/module.h>

static char *how = "";
module_param(how, charp, 0444);
MODULE_PARM_DESC(how, "when to warn: load or unload");

static int __init splat_init(void)
{
	WARN(!strcmp(how, "load"), "splat: asked for\n");
	return 0;
}
module_init(splat_init);

static void __exit splat_exit(void)
{
	WARN(!strcmp(how, "unload"), "splat: asked for\n");
}
module_exit(splat_exit);

MODULE_DESCRIPTION("Warns on request");
MODULE_LICENSE("Dual MIT/GPL");
