// SPDX-License-Identifier: MIT
/*
 * What a program sets for its process: communicators that are made from then on go by
 * it, unless their HcclCommConfig says otherwise.
 */
#include "comm.h"

#define NOT_SET	(-1)

static s32 deterministic = NOT_SET;

void hccl_process_config(struct hccl_config *cfg)
{
	s32 v = READ_ONCE(deterministic);

	if (v != NOT_SET)
		cfg->deterministic = (u8)v;
}

static HcclResult check(const char *what, HcclConfig config)
{
	if (config == HCCL_DETERMINISTIC)
		return HCCL_SUCCESS;
	return hccl_fail(HCCL_E_PARA, "EI0003", "%s: there is no configuration %d; HCCL_DETERMINISTIC (0)", what, (int)config);
}

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue)
{
	static const char what[] = "HcclSetConfig";
	HcclResult ret = check(what, config);

	if (ret)
		return ret;
	if (configValue.value < HCCL_DET_FALSE || configValue.value > HCCL_DET_STRICT)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: HCCL_DETERMINISTIC is %d; expected 0, 1 or 2 (strict)", what,
				 configValue.value);
	WRITE_ONCE(deterministic, configValue.value);
	return HCCL_SUCCESS;
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue)
{
	static const char what[] = "HcclGetConfig";
	struct hccl_config cfg;
	char why[300];
	HcclResult ret = check(what, config);

	if (ret)
		return ret;
	if (!configValue)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: configValue is NULL", what);
	ret = (HcclResult)hccl_config_load(&cfg, "", why, sizeof(why));
	if (ret)
		return hccl_fail_why(ret, what, why);
	hccl_process_config(&cfg);
	configValue->value = cfg.deterministic;
	return HCCL_SUCCESS;
}
