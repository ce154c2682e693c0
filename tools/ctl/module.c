// SPDX-License-Identifier: MIT
/* npuemu-ctl load, unload and unplug: the kernel module and its devices. */
#include <errno.h>
#include <fcntl.h>
#include <libkmod.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <npuemu/ioctl.h>

#include "../common/cli.h"
#include "../common/json.h"
#include "ctl.h"

#define MODULE	"npuemu"

struct load {
	const char *file;	/* NULL: the installed one */
	char params[1024];	/* as the kernel wants them */
};

enum { OPT_JSON = 256, OPT_VERSION, OPT_DEVICES, OPT_MACHINE, OPT_PARAM };

static const struct option load_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "devices", required_argument, NULL, OPT_DEVICES },
	{ "machine", required_argument, NULL, OPT_MACHINE },
	{ "param", required_argument, NULL, OPT_PARAM },
	{ NULL, 0, NULL, 0 }
};

/* One more "name=value"; a blank in it would be another parameter to the kernel. */
static int add_param(struct load *l, const char *opt, const char *name, const char *value)
{
	size_t n = strlen(l->params);
	int added;

	if (strpbrk(value, " \t\n\""))
		return npuemu_cli_usage("%s: '%s' has a blank or a quote in it", opt, value);
	added = snprintf(l->params + n, sizeof(l->params) - n, "%s%s%s", n ? " " : "", name,
			 value);
	if (added >= (int)(sizeof(l->params) - n))
		return npuemu_cli_usage("%s: more parameters than %zu characters hold", opt,
					sizeof(l->params));
	return 0;
}

static int load_option(struct load *l, int c, const char *a)
{
	uint32_t n;
	int rc;

	switch (c) {
	case OPT_DEVICES:
		rc = npuemu_cli_u32("--devices", a, 1, 64, &n);
		return rc ? rc : add_param(l, "--devices", "devices=", a);
	case OPT_MACHINE:
		return add_param(l, "--machine", "topology=", a);
	case OPT_PARAM:
		if (!strchr(a, '=') || a[0] == '=')
			return npuemu_cli_usage("--param: '%s' is not NAME=VALUE; 'modinfo npuemu' shows the names",
						a);
		return add_param(l, "--param", "", a);
	}
	return NPUEMU_EXIT_USAGE;
}

/* -1: go on; otherwise the exit code. */
static int load_parse(int argc, char **argv, struct npuemu_ctl_common *common, struct load *l)
{
	int c, rc = 0;

	memset(l, 0, sizeof(*l));
	while (!rc && (c = npuemu_cli_getopt(argc, argv, ":", load_options)) != -1) {
		if (c == '?')
			return NPUEMU_EXIT_USAGE;
		if (c == OPT_VERSION)
			return npuemu_cli_version();
		if (c == OPT_JSON)
			common->json = 1;
		else
			rc = load_option(l, c, optarg);
	}
	if (!rc && optind < argc)
		l->file = argv[optind++];
	if (!rc && optind < argc)
		rc = npuemu_cli_usage("load: '%s' is one module file too many", argv[optind]);
	return rc ? rc : -1;
}

static int insert_installed(struct kmod_ctx *kmod, const char *params)
{
	struct kmod_list *list = NULL;
	struct kmod_module *mod;
	int err = kmod_module_new_from_lookup(kmod, MODULE, &list);

	if (err < 0 || !list)
		return err < 0 ? err : -ENOENT;
	mod = kmod_module_get_module(list);
	err = kmod_module_probe_insert_module(mod, KMOD_PROBE_FAIL_ON_LOADED, params, NULL, NULL,
					      NULL);
	kmod_module_unref(mod);
	kmod_module_unref_list(list);
	return err;
}

static int insert_file(struct kmod_ctx *kmod, const char *file, const char *params)
{
	struct kmod_module *mod;
	int err = kmod_module_new_from_path(kmod, file, &mod);

	if (err < 0)
		return err;
	err = kmod_module_insert_module(mod, 0, params);
	kmod_module_unref(mod);
	return err;
}

static int load_failed(const struct load *l, int err)
{
	const char *what = l->file ? l->file : "module " MODULE;

	switch (err) {
	case -EEXIST:
		npuemu_cli_say("the module is loaded already: 'npuemu-ctl unload' first");
		break;
	case -EPERM:
	case -EACCES:
		npuemu_cli_say("cannot load %s: only root may (and not at all where modules must be signed, or in a container)",
			       what);
		break;
	case -ENOENT:
		if (!l->file)
			npuemu_cli_say("there is no module " MODULE " for this kernel under /lib/modules: build it (make modules), then give its file");
		else if (access(l->file, F_OK))
			npuemu_cli_say("%s: no such file", l->file);
		else
			npuemu_cli_say("cannot load %s: it wants symbols or parameters that are not there (dmesg says which)",
				       what);
		break;
	case -ENOEXEC:
		npuemu_cli_say("cannot load %s: it was built for another kernel than this one (dmesg says which)",
			       what);
		break;
	case -EINVAL:
		npuemu_cli_say("cannot load %s: the kernel refuses a parameter of '%s' (dmesg says which)",
			       what, l->params);
		break;
	default:
		npuemu_cli_say("cannot load %s: %s (dmesg may say more)", what, strerror(-err));
	}
	return NPUEMU_EXIT_RUNTIME;
}

static int kernel_observe(struct npuemu **ctx)
{
	struct npuemu_open_attr attr = {
		.size = sizeof(attr), .host = "kernel",
		.flags = NPUEMU_OPEN_OBSERVE | NPUEMU_OPEN_EXISTING,
	};

	return npuemu_open(&attr, ctx);
}

/* What is there now. */
static int say_loaded(const struct npuemu_ctl_common *c)
{
	struct npuemu_info info = { .size = sizeof(info) };
	struct json_object *j;
	struct npuemu *ctx;
	int rc = kernel_observe(&ctx);

	if (rc)
		return npuemu_cli_failed(rc, "the module is loaded, but cannot be asked");
	rc = npuemu_query(ctx, &info);
	npuemu_close(ctx);
	if (rc)
		return npuemu_cli_failed(rc, "the module is loaded, but does not answer");
	if (!c->json) {
		printf("loaded " MODULE ": machine %s, %u device%s\n", info.machine, info.devices,
		       info.devices == 1 ? "" : "s");
		return 0;
	}
	j = json_object_new_object();
	npuemu_json_bool(j, "loaded", 1);
	npuemu_json_str(j, "machine", info.machine);
	npuemu_json_u64(j, "devices", info.devices);
	npuemu_json_print(j, 0);
	return 0;
}

static void quiet(void *data, int priority, const char *file, int line, const char *fn,
		  const char *format, va_list args)
{
	(void)data;
	(void)priority;
	(void)file;
	(void)line;
	(void)fn;
	(void)format;
	(void)args;
}

/* We say ourselves what went wrong. */
static struct kmod_ctx *kmod_open(void)
{
	struct kmod_ctx *kmod = kmod_new(NULL, NULL);

	if (kmod)
		kmod_set_log_fn(kmod, quiet, NULL);
	else
		npuemu_cli_say("cannot use libkmod: out of memory?");
	return kmod;
}

int npuemu_ctl_load(int argc, char **argv, const struct npuemu_ctl_common *common)
{
	struct npuemu_ctl_common c = *common;
	struct kmod_ctx *kmod;
	struct load l;
	int rc;

	rc = load_parse(argc, argv, &c, &l);
	if (rc >= 0)
		return rc;
	kmod = kmod_open();
	if (!kmod)
		return NPUEMU_EXIT_RUNTIME;
	rc = l.file ? insert_file(kmod, l.file, l.params) : insert_installed(kmod, l.params);
	kmod_unref(kmod);
	return rc ? load_failed(&l, rc) : say_loaded(&c);
}

/* Who keeps the module from going. */
static void say_users(void)
{
	struct npuemu_process_info list[16];
	struct npuemu *ctx;
	int n, i;

	if (kernel_observe(&ctx))
		return;
	n = npuemu_process_list(ctx, list, 16);
	for (i = 0; i < n && i < 16; i++)
		fprintf(stderr, "  %u %.16s\n", list[i].pid, list[i].comm);
	npuemu_close(ctx);
}

int npuemu_ctl_unload(const struct npuemu_ctl_common *c)
{
	struct kmod_ctx *kmod = kmod_open();
	struct kmod_module *mod;
	struct json_object *j;
	int err;

	if (!kmod)
		return NPUEMU_EXIT_RUNTIME;
	err = kmod_module_new_from_name(kmod, MODULE, &mod);
	if (!err) {
		err = kmod_module_remove_module(mod, KMOD_REMOVE_NOWAIT);
		kmod_module_unref(mod);
	}
	kmod_unref(kmod);
	switch (err) {
	case 0:
		break;
	case -ENOENT:
		npuemu_cli_say("the module is not loaded");
		return NPUEMU_EXIT_RUNTIME;
	case -EPERM:
		npuemu_cli_say("cannot unload the module: only root may");
		return NPUEMU_EXIT_RUNTIME;
	case -EAGAIN:
	case -EBUSY:
		npuemu_cli_say("cannot unload the module: somebody has a device, a mapping or a dma-buf of it:");
		say_users();
		return NPUEMU_EXIT_RUNTIME;
	default:
		npuemu_cli_say("cannot unload the module: %s", strerror(-err));
		return NPUEMU_EXIT_RUNTIME;
	}
	if (!c->json) {
		puts("unloaded " MODULE);
		return 0;
	}
	j = json_object_new_object();
	npuemu_json_bool(j, "unloaded", 1);
	npuemu_json_print(j, 0);
	return 0;
}

static int unplug(uint32_t device)
{
	struct npuemu_ioc_device_ctl a = { .device = device };
	const char *dir = getenv("NPUEMU_DEV");
	char path[512];
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/npuemu-ctl", dir && *dir ? dir : "/dev");
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, NPUEMU_IOC_DEVICE_UNPLUG, &a))
		err = errno;
	if (fd >= 0)
		close(fd);
	switch (err) {
	case 0:
		return 0;
	case ENOENT:
		npuemu_cli_say("there is no %s: only devices of the module can be unplugged ('npuemu-ctl load')",
			       path);
		break;
	case EPERM:
	case EACCES:
		npuemu_cli_say("cannot unplug device %u: only root may", device);
		break;
	case EINVAL:
		npuemu_cli_say("there is no device %u; 'npuemu-smi' shows those there are", device);
		break;
	case ENODEV:
		npuemu_cli_say("device %u is unplugged already", device);
		break;
	default:
		npuemu_cli_say("cannot unplug device %u: %s", device, strerror(err));
	}
	return NPUEMU_EXIT_RUNTIME;
}

int npuemu_ctl_unplug(const struct npuemu_ctl_common *c, const char *which)
{
	struct json_object *j;
	uint32_t device;
	int rc = npuemu_cli_u32("unplug", which, 0, UINT32_MAX - 1, &device);

	if (!rc)
		rc = unplug(device);
	if (rc)
		return rc;
	if (!c->json) {
		printf("device %u is unplugged; it comes back with 'npuemu-ctl unload' and 'load'\n",
		       device);
		return 0;
	}
	j = json_object_new_object();
	npuemu_json_u64(j, "unplugged", device);
	npuemu_json_print(j, 0);
	return 0;
}
