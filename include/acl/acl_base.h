/* SPDX-License-Identifier: MIT */
/*
 * acl_base.h - the parts that runtime, models and operators share.
 *
 * Follows the public ACL runtime interface, version 1.17.
 */
#ifndef ACL_ACL_BASE_H
#define ACL_ACL_BASE_H

#include "acl_base_rt.h"
#include "acl_base_mdl.h"

#endif
