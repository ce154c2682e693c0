/* SPDX-License-Identifier: MIT */
/*
 * acl_base_mdl.h - stands where programs include the base types of models and
 * operators.  The runtime has none of them; acl_base_rt.h holds what is there.
 *
 * Follows the public ACL runtime interface, version 1.17.
 */
#ifndef ACL_ACL_BASE_MDL_H
#define ACL_ACL_BASE_MDL_H

#include "acl_base_rt.h"

#endif
