// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The module: parameters, the machine, device nodes, unplug and reset.
 *
 * All mappings of a device go through one inode of a file system of our own,
 * whatever node (mknod makes more) they were made by, so that one zap reaches
 * all of them.
 */
#include <linux/init.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include "npuemu.h"

#define CTL_MINOR	NPUEMU_MAX_DEVICES
#define FS_MAGIC	0x4e505545	/* "EUPN" */
#define POLL_US_MAX	1000000u

static unsigned int devices;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "number of NPUs, 1..64 (0: as the machine is described)");

static unsigned int hbm_mb;
module_param(hbm_mb, uint, 0444);
MODULE_PARM_DESC(hbm_mb, "HBM of a device in MiB (0: as the machine is described)");

static unsigned int budget_mb;
module_param(budget_mb, uint, 0444);
MODULE_PARM_DESC(budget_mb, "memory all devices together may take, in MiB (0: 60 % of RAM)");

static char *topology = "950";
module_param(topology, charp, 0444);
MODULE_PARM_DESC(topology, "machine description: 950, 950-2x8, 910b, 910c, small");

unsigned int npuemu_poll_us = 500;

static int poll_us_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, POLL_US_MAX);
}

static const struct kernel_param_ops poll_us_ops = {
	.set = poll_us_set,
	.get = param_get_uint,
};
module_param_cb(poll_us, &poll_us_ops, &npuemu_poll_us, 0644);
MODULE_PARM_DESC(poll_us, "an engine looks at an idle queue for so long before it parks it, 1..1000000 us");

static ulong chaos;
module_param(chaos, ulong, 0444);
MODULE_PARM_DESC(chaos, "seed of chaos mode: break what hardware does not promise (0: off)");

struct npuemu_dev *npuemu_devs;
struct npuemu_machine npuemu_machine;
struct npuemu_link_counters *npuemu_links;
u32 npuemu_board_id;
u64 npuemu_budget;
atomic64_t npuemu_backed_bytes;
atomic64_t npuemu_db_missed;
atomic_t npuemu_leaks[NPUEMU_LEAKS];

/* Addresses in devices' mappings: never given twice, so a stale one hits nothing. */
static atomic64_t next_range = ATOMIC64_INIT(1ll << 32);
static DEFINE_MUTEX(ctl_lock);		/* resets, one at a time */
static dev_t first_devt;
static struct cdev cdev;
static struct vfsmount *fs_mnt;
static int fs_pins;

static struct class npuemu_class = {
	.name = "npuemu",
};

u64 npuemu_chaos_seed(void)
{
	return chaos;
}

/* ---- The machine ------------------------------------------------------------------ */

NPUEMU_MACHINE(950, "950.txt");
NPUEMU_MACHINE(950_2x8, "950-2x8.txt");
NPUEMU_MACHINE(910b, "910b.txt");
NPUEMU_MACHINE(910c, "910c.txt");
NPUEMU_MACHINE(small, "small.txt");

static const struct {
	const char *name;
	const char *text;
	const char *end;
} machines[] = {
	{ "950", npuemu_machine_950, npuemu_machine_950_end },
	{ "950-2x8", npuemu_machine_950_2x8, npuemu_machine_950_2x8_end },
	{ "910b", npuemu_machine_910b, npuemu_machine_910b_end },
	{ "910c", npuemu_machine_910c, npuemu_machine_910c_end },
	{ "small", npuemu_machine_small, npuemu_machine_small_end },
};

static int __init machine_load(void)
{
	struct npuemu_machine *m = &npuemu_machine;
	struct npuemu_machine_error err;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(machines); i++)
		if (!strcmp(topology, machines[i].name))
			break;
	if (i == ARRAY_SIZE(machines)) {
		pr_err("npuemu: topology=%.40s: there are 950, 950-2x8, 910b, 910c, small\n",
		       topology);
		return -EINVAL;
	}
	if (npuemu_machine_parse(machines[i].text, machines[i].end - machines[i].text, m, &err)) {
		pr_err("npuemu: %s:%u:%u: %s\n", topology, err.line, err.column, err.what);
		return -EINVAL;
	}
	if (devices > NPUEMU_MAX_DEVICES ||
	    DIV_ROUND_UP(devices, m->devices_per_server) > NPUEMU_MAX_SERVERS) {
		pr_err("npuemu: devices=%u: 1 to %u of a %s\n", devices,
		       min_t(u32, NPUEMU_MAX_DEVICES, NPUEMU_MAX_SERVERS * m->devices_per_server),
		       m->name);
		return -EINVAL;
	}
	if (devices) {
		m->devices = devices;
		m->servers = DIV_ROUND_UP(devices, m->devices_per_server);
	}
	if (hbm_mb > NPUEMU_BO_MAX >> 20) {
		pr_err("npuemu: hbm_mb=%u: at most %llu\n", hbm_mb, NPUEMU_BO_MAX >> 20);
		return -EINVAL;
	}
	if (hbm_mb)
		m->hbm_bytes = (u64)hbm_mb << 20;
	npuemu_budget = budget_mb ? (u64)budget_mb << 20 :
		     div_u64((u64)totalram_pages() * 6, 10) << PAGE_SHIFT;
	return 0;
}

/* ---- Entries ------------------------------------------------------------------------- */

bool npuemu_dev_enter(struct npuemu_dev *dev, int *idx)
{
	*idx = srcu_read_lock(&dev->guard);
	if (!READ_ONCE(dev->dead))
		return true;
	srcu_read_unlock(&dev->guard, *idx);
	return false;
}

void npuemu_dev_exit(struct npuemu_dev *dev, int idx)
{
	srcu_read_unlock(&dev->guard, idx);
}

u64 npuemu_dev_range(struct npuemu_dev *dev, u64 bytes)
{
	bytes = round_up(bytes, NPUEMU_CHUNK_BYTES) + NPUEMU_CHUNK_BYTES;
	return atomic64_fetch_add(bytes, &next_range);
}

/*
 * What contexts have on the device is taken from them: first nobody may begin,
 * then who is inside leaves, then everything is found and revoked.
 */
int npuemu_dev_reset(struct npuemu_dev *dev, bool unplug)
{
	struct npuemu_ctx *ctx;
	u32 i;

	mutex_lock(&ctl_lock);
	if (dev->dead) {
		mutex_unlock(&ctl_lock);
		return -ENODEV;
	}
	WRITE_ONCE(dev->resets, dev->resets + 1);
	WRITE_ONCE(dev->dead, true);
	synchronize_srcu_expedited(&dev->guard);
	/* contexts before buffers: who waits is told of the reset, not of its effects */
	for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
		ctx = npuemu_ctx_get(i);
		if (!ctx)
			continue;
		if (ctx->home == dev)
			npuemu_ctx_break(ctx);
		else
			npuemu_queues_kill(ctx, dev);
		npuemu_ctx_put(ctx);
	}
	npuemu_bos_revoke(dev);
	npuemu_grace();
	if (!unplug)
		WRITE_ONCE(dev->dead, false);
	mutex_unlock(&ctl_lock);
	pr_info("npuemu%u: %s\n", dev->index, unplug ? "unplugged" : "reset");
	return 0;
}

/* ---- Devices ---------------------------------------------------------------------------- */

static int fs_init_context(struct fs_context *fc)
{
	return init_pseudo(fc, FS_MAGIC) ? 0 : -ENOMEM;
}

/* No owner: its one mount goes at module exit, and would else prevent that. */
static struct file_system_type npuemu_fs = {
	.name = "npuemu",
	.init_fs_context = fs_init_context,
	.kill_sb = kill_anon_super,
};

static int __init dev_init(struct npuemu_dev *dev, u32 index)
{
	static const char *const kinds[] = { "udma", "sdma" };
	int err;
	u32 i;

	dev->index = index;
	err = init_srcu_struct(&dev->guard);
	if (err)
		return err;
	dev->inode = alloc_anon_inode(fs_mnt->mnt_sb);
	if (IS_ERR(dev->inode)) {
		err = PTR_ERR(dev->inode);
		goto no_inode;
	}
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		err = npuemu_worker_start(&dev->worker[i], dev, kinds[i]);
		if (err)
			goto no_worker;
	}
	dev->dev = device_create_with_groups(&npuemu_class, NULL, first_devt + index, dev,
					     npuemu_dev_groups, "npuemu%u", index);
	if (IS_ERR(dev->dev)) {
		err = PTR_ERR(dev->dev);
		goto no_worker;
	}
	return 0;

no_worker:
	while (i--)
		npuemu_worker_stop(&dev->worker[i]);
	iput(dev->inode);
no_inode:
	cleanup_srcu_struct(&dev->guard);
	return err;
}

static void dev_exit(struct npuemu_dev *dev)
{
	u32 i;

	device_destroy(&npuemu_class, first_devt + dev->index);
	for (i = 0; i < ARRAY_SIZE(dev->worker); i++)
		npuemu_worker_stop(&dev->worker[i]);
	iput(dev->inode);
	cleanup_srcu_struct(&dev->guard);
}

static void devs_exit(u32 n)
{
	while (n--)
		dev_exit(&npuemu_devs[n]);
}

static int __init nodes_init(void)
{
	struct device *ctl;
	int err;

	/* cdev_add() comes last of all: an open file keeps no module whose init fails */
	cdev_init(&cdev, &npuemu_fops);
	cdev.owner = THIS_MODULE;
	err = alloc_chrdev_region(&first_devt, 0, CTL_MINOR + 1, "npuemu");
	if (err)
		return err;
	err = class_register(&npuemu_class);
	if (err)
		goto no_class;
	ctl = device_create(&npuemu_class, NULL, first_devt + CTL_MINOR, NULL, "npuemu-ctl");
	if (!IS_ERR(ctl))
		return 0;
	err = PTR_ERR(ctl);
	class_unregister(&npuemu_class);
no_class:
	unregister_chrdev_region(first_devt, CTL_MINOR + 1);
	return err;
}

static void nodes_exit(void)
{
	device_destroy(&npuemu_class, first_devt + CTL_MINOR);
	class_unregister(&npuemu_class);
	unregister_chrdev_region(first_devt, CTL_MINOR + 1);
}

static int __init npuemu_module_init(void)
{
	u32 n = 0;
	int err;

	err = machine_load();
	if (err)
		return err;
	npuemu_board_id = get_random_u32();
	npuemu_devs = kvcalloc(npuemu_machine.devices, sizeof(*npuemu_devs), GFP_KERNEL);
	npuemu_links = kvcalloc(NPUEMU_MAX_DEVICES * NPUEMU_MAX_DEVICES, sizeof(*npuemu_links),
				GFP_KERNEL);
	err = -ENOMEM;
	if (!npuemu_devs || !npuemu_links)
		goto no_memory;
	err = npuemu_bo_init();
	if (err)
		goto no_memory;
	err = simple_pin_fs(&npuemu_fs, &fs_mnt, &fs_pins);
	if (err)
		goto no_fs;
	err = nodes_init();
	if (err)
		goto no_nodes;
	for (; n < npuemu_machine.devices; n++) {
		err = dev_init(&npuemu_devs[n], n);
		if (err)
			goto no_dev;
	}
	npuemu_debugfs_init();
	npuemu_watchdog_start();
	err = cdev_add(&cdev, first_devt, CTL_MINOR + 1);
	if (err)
		goto no_cdev;
	pr_info("npuemu: %u devices of a %s, %llu MiB each\n", n, npuemu_machine.name,
		npuemu_machine.hbm_bytes >> 20);
	return 0;

no_cdev:
	npuemu_watchdog_stop();
	npuemu_debugfs_exit();
no_dev:
	devs_exit(n);
	nodes_exit();
no_nodes:
	simple_release_fs(&fs_mnt, &fs_pins);
no_fs:
	npuemu_bo_exit();
no_memory:
	kvfree(npuemu_links);
	kvfree(npuemu_devs);
	return err;
}

/* Files, mappings and dma-bufs hold the module: nobody is here any more. */
static void __exit npuemu_module_exit(void)
{
	cdev_del(&cdev);
	npuemu_watchdog_stop();
	npuemu_debugfs_exit();
	devs_exit(npuemu_machine.devices);
	nodes_exit();
	npuemu_bo_exit();
	simple_release_fs(&fs_mnt, &fs_pins);
	kvfree(npuemu_links);
	kvfree(npuemu_devs);
}

module_init(npuemu_module_init);
module_exit(npuemu_module_exit);
MODULE_DESCRIPTION("An emulated NPU: UDMA and SDMA queues over emulated HBM");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("0.1.0");
NPUEMU_IMPORT_DMA_BUF();
