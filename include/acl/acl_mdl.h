/* SPDX-License-Identifier: MIT */
/*
 * acl_mdl.h - stands where programs include the model interface, which the
 * runtime does not have.  Captured models, aclmdlRI*, are in acl_rt.h.
 *
 * Follows the public ACL runtime interface, version 1.17.
 */
#ifndef ACL_ACL_MDL_H
#define ACL_ACL_MDL_H

#include "acl_base.h"
#include "acl_rt.h"

#endif
