/* SPDX-License-Identifier: MIT */
/*
 * What test_hccl_ranktable.c expects of spoiled rank tables: a piece of a good one is
 * replaced, and the refusal has exactly this code and these words ("T" is the file).
 */
#ifndef NPUEMU_TESTS_HCCL_TABLES_H
#define NPUEMU_TESTS_HCCL_TABLES_H

static const char v10[] =
	"{\n"
	" \"status\": \"completed\", \"version\": \"1.0\", \"server_count\": \"2\",\n"
	" \"server_list\": [\n"
	"  { \"server_id\": \"east\", \"host_ip\": \"10.0.0.1\", \"device\": [\n"
	"    { \"device_id\": \"0\", \"device_ip\": \"192.168.1.8\", \"rank_id\": \"0\" },\n"
	"    { \"device_id\": \"1\", \"device_port\": \"16667\", \"rank_id\": \"2\" } ] },\n"
	"  { \"server_id\": \"west\", \"device\": [\n"
	"    { \"device_id\": \"7\", \"rank_id\": \"1\" } ] } ]\n"
	"}\n";

static const char v12[] =
	"{ \"status\": \"completed\", \"version\": \"1.2\", \"server_list\": ["
	"{ \"server_id\": \"a\", \"device\": ["
	"{ \"device_id\": \"0\", \"super_device_id\": \"4\", \"rank_id\": \"0\" }, "
	"{ \"device_id\": \"1\", \"super_device_id\": \"5\", \"rank_id\": \"1\" }] }, "
	"{ \"server_id\": \"b\", \"device\": ["
	"{ \"device_id\": \"0\", \"super_device_id\": \"4\", \"rank_id\": \"2\", "
	"\"backup_device_ip\": \"fe80::1\", \"backup_device_port\": \"1\" }] }], "
	"\"super_pod_list\": ["
	"{ \"super_pod_id\": \"p0\", \"server_list\": [{ \"server_id\": \"a\" }] }, "
	"{ \"super_pod_id\": \"p1\", \"server_list\": [{ \"server_id\": \"b\" }] }] }";

static const char v20[] =
	"{ \"version\": \"2.0\", \"rank_count\": 3, \"status\": \"completed\", \"rank_list\": ["
	"{ \"rank_id\": 0, \"local_id\": 8, \"device_id\": 3, \"device_port\": 16666, \"level_list\": ["
	"{ \"net_layer\": 0, \"net_instance_id\": \"rack0\", \"net_type\": \"TOPO_FILE_DESC\", "
	"\"net_attr\": \"\", \"rank_addr_list\": [{ \"addr_type\": \"IPV4\", \"addr\": \"223.0.0.10\", "
	"\"ports\": [\"0/0\", \"1/12\"] }] }, "
	"{ \"net_layer\": 1, \"net_instance_id\": \"pod0\", \"net_type\": \"CLOS\", \"rank_addr_list\": ["
	"{ \"addr_type\": \"EID\", \"addr\": \"000000000000002000100000dfdf0001\", \"plane_id\": \"1\", "
	"\"ports\": [\"0/1\"] }] }] }, "
	"{ \"rank_id\": 2, \"local_id\": 64, \"replaced_local_id\": 9, \"device_id\": 3, \"level_list\": ["
	"{ \"net_layer\": 0, \"net_instance_id\": \"rack0\", \"rank_addr_list\": [] }] }, "
	"{ \"rank_id\": \"1\", \"local_id\": \"8\", \"device_id\": \"4\", \"level_list\": ["
	"{ \"net_layer\": 0, \"net_instance_id\": \"rack1\", \"rank_addr_list\": [] }, "
	"{ \"net_layer\": 2, \"net_instance_id\": \"site\", \"rank_addr_list\": [] }] }] }";

struct spoiled {
	const char *table;
	const char *from, *to;	/* the first @from becomes @to */
	int ret;
	const char *what;	/* behind "EI00..: rank table T" */
};

#define NAME65 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm"
#define STRING64 "expected a string of 1 to 64 characters"
#define PLAIN64 STRING64 ", none of them a control character"
#define PORT "expected a number from 1 to 65535"
#define ADDRESS "expected an IPv4 or IPv6 address"
#define OBJECT "expected an object"

static const struct spoiled spoiled_all[] = {
	/* no JSON */
	{ v10, "{\n", "[\n", 1, "EI0004| is no JSON: line 2, column 10: array value separator ',' expected" },
	{ v10, "\"status\"", "status", 1, "EI0004| is no JSON: line 2, column 2: quoted object property name expected" },
	{ v10, " ]\n}\n", " ]\n", 1, "EI0004| is no JSON: line 9, column 1: it ends too early" },
	{ v10, " ]\n}\n", " ]\n} x", 1, "EI0004| is no JSON: line 9, column 3: unexpected character" },
	{ v10, v10, "", 1, "EI0004| is no JSON: line 1, column 1: it ends too early" },
	{ v10, v10, "[1]", 1, "EI0004| is JSON, but not an object {...}" },
	{ v10, v10, "{\"a\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}", 1,
	  "EI0004| is no JSON: line 1, column 21: nesting too deep" },
	{ v10, v10, "{}", 1, "EI0017|: version is missing; expected a string of 1 to 7 characters" },
	/* the head */
	{ v10, "\"1.0\"", "\"1.1\"", 1, "EI0014|: version is \"1.1\"; expected \"1.0\", \"1.2\" or \"2.0\"" },
	{ v10, "\"1.0\"", "1.0", 1, "EI0014|: version is 1.0; expected a string of 1 to 7 characters" },
	{ v10, "completed", "initializing", 1, "EI0014|: status is \"initializing\"; expected \"completed\"" },
	{ v20, "completed", "x", 1, "EI0014|: status is \"x\"; expected \"completed\"" },
	{ v10, "\"status\"", "\"statu\"", 1, "EI0017|: status is missing; " STRING64 },
	/* 1.0: servers */
	{ v10, "\"server_count\": \"2\"", "\"server_count\": \"3\"", 1,
	  "EI0014|: server_count is \"3\"; expected 2, as many as server_list has" },
	{ v10, "\"server_count\": \"2\"", "\"server_count\": 2", 1,
	  "EI0014|: server_count is 2; expected a number from 1 to 4096, in quotes" },
	{ v10, "\"server_count\": \"2\"", "\"server_count\": \"-2\"", 1,
	  "EI0014|: server_count is \"-2\"; expected a number from 1 to 4096, in quotes" },
	{ v10, "\"server_list\"", "\"servers\"", 1, "EI0017|: server_list is missing; expected a list of 1 to 4096" },
	{ v10, "\"server_list\": [", "\"server_list\": \"\", \"x\": [", 1,
	  "EI0014|: server_list is \"\"; expected a list of 1 to 4096" },
	{ v10, "\"server_list\": [", "\"server_list\": [], \"x\": [", 1,
	  "EI0014|: server_list is a list of 0; expected a list of 1 to 4096" },
	{ v10, "\"server_list\": [", "\"server_list\": [null], \"x\": [", 1,
	  "EI0014|: server_count is \"2\"; expected 1, as many as server_list has" },
	{ v10, "[\n  {", "[\n7, {", 1, "EI0014|: server_count is \"2\"; expected 3, as many as server_list has" },
	{ v10, "\"2\",\n \"server_list\": [\n  {", "\"3\", \"server_list\": [7, {", 1,
	  "EI0014|: server_list[0] is 7; " OBJECT },
	{ v10, "\"server_id\": \"east\"", "\"id\": \"east\"", 1, "EI0017|: server_list[0].server_id is missing; " STRING64 },
	{ v10, "east", "", 1, "EI0014|: server_list[0].server_id is \"\"; " PLAIN64 },
	{ v10, "east", NAME65, 1, "EI0014|: server_list[0].server_id is \"abcdefghijklmnopqrstuvwxyz"
	  "abcdefghijklmnopqrstuvwxyzabcdefg...; " PLAIN64 },
	{ v10, "east", "ea\\nst", 1, "EI0014|: server_list[0].server_id is \"ea\\nst\"; " PLAIN64 },
	{ v10, "west", "east", 1,
	  "EI0014|: server_list[1].server_id is \"east\"; expected another name than that of server_list[0]" },
	{ v10, "10.0.0.1", "10.0.0", 1, "EI0014|: server_list[0].host_ip is \"10.0.0\"; " ADDRESS },
	/* 1.0: devices */
	{ v10, "\"device\"", "\"devices\"", 1, "EI0017|: server_list[0].device is missing; expected a list of 1 to 64" },
	{ v10, "\"device\": [", "\"device\": {}, \"x\": [", 1,
	  "EI0014|: server_list[0].device is an object; expected a list of 1 to 64" },
	{ v10, "\"device\": [\n    {", "\"device\": [\n \"d\", {", 1, "EI0014|: server_list[0].device[0] is \"d\"; " OBJECT },
	{ v10, "\"device_id\": \"7\", ", "", 1,
	  "EI0017|: server_list[1].device[0].device_id is missing; expected a number from 0 to 63, in quotes" },
	{ v10, "\"7\"", "\"64\"", 1,
	  "EI0014|: server_list[1].device[0].device_id is \"64\"; expected a number from 0 to 63, in quotes" },
	{ v10, "\"7\"", "\"\"", 1,
	  "EI0014|: server_list[1].device[0].device_id is \"\"; expected a number from 0 to 63, in quotes" },
	{ v10, "\"7\"", "\"0x7\"", 1,
	  "EI0014|: server_list[1].device[0].device_id is \"0x7\"; expected a number from 0 to 63, in quotes" },
	{ v10, "\"7\"", "7", 1,
	  "EI0014|: server_list[1].device[0].device_id is 7; expected a number from 0 to 63, in quotes" },
	{ v10, "\"7\"", "\"18446744073709551623\"", 1,
	  "EI0014|: server_list[1].device[0].device_id is \"18446744073709551623\"; expected a number from 0 to 63, in quotes" },
	{ v10, ", \"rank_id\": \"1\"", "", 1,
	  "EI0017|: server_list[1].device[0].rank_id is missing; expected a number from 0 to 4095, in quotes" },
	{ v10, "\"rank_id\": \"1\"", "\"rank_id\": \"3\"", 1,
	  "EI0014|: server_list[1].device[0].rank_id is 3; expected 0 to 2: it has 3 ranks, and they count from 0 without a gap" },
	{ v10, "\"rank_id\": \"1\"", "\"rank_id\": \"2\"", 1,
	  "EI0014|: server_list[1].device[0]: rank_id 2 is that of server_list[0].device[1], too; expected one of its own" },
	{ v10, "\"rank_id\": \"1\"", "\"rank_id\": \"4096\"", 1,
	  "EI0014|: server_list[1].device[0].rank_id is \"4096\"; expected a number from 0 to 4095, in quotes" },
	{ v10, "\"device_id\": \"1\"", "\"device_id\": \"0\"", 1,
	  "EI0014|: server_list[0].device[1]: device_id 0 of server \"east\" is that of server_list[0].device[0], too; expected one of its own" },
	{ v10, "192.168.1.8", "192.168.1.256", 1,
	  "EI0014|: server_list[0].device[0].device_ip is \"192.168.1.256\"; " ADDRESS },
	{ v10, "192.168.1.8", "192.168.1.8,", 1, "EI0014|: server_list[0].device[0].device_ip is \"192.168.1.8,\"; " ADDRESS },
	{ v10, "\"192.168.1.8\"", "8", 1, "EI0014|: server_list[0].device[0].device_ip is 8; " ADDRESS },
	{ v10, "16667", "0", 1, "EI0014|: server_list[0].device[1].device_port is \"0\"; " PORT ", in quotes" },
	{ v10, "16667", "65536", 1, "EI0014|: server_list[0].device[1].device_port is \"65536\"; " PORT ", in quotes" },
	{ v10, "device_port", "host_port\": \"x\", \"y", 1,
	  "EI0014|: server_list[0].device[1].host_port is \"x\"; " PORT ", in quotes" },
	/* 1.2 */
	{ v12, "\"super_device_id\": \"5\", ", "", 1,
	  "EI0017|: server_list[0].device[1].super_device_id is missing; expected a number from 0 to 4294967294, in quotes" },
	{ v12, "\"5\"", "\"4294967295\"", 1,
	  "EI0014|: server_list[0].device[1].super_device_id is \"4294967295\"; expected a number from 0 to 4294967294, in quotes" },
	{ v12, "fe80::1", "fe80::g", 1, "EI0014|: server_list[1].device[0].backup_device_ip is \"fe80::g\"; " ADDRESS },
	{ v12, "\"backup_device_port\": \"1\"", "\"backup_device_port\": \"-1\"", 1,
	  "EI0014|: server_list[1].device[0].backup_device_port is \"-1\"; " PORT ", in quotes" },
	{ v12, "super_pod_list", "superpods", 1, "EI0017|: super_pod_list is missing; expected a list of 1 to 4096" },
	{ v12, "\"super_pod_list\": [", "\"super_pod_list\": [1, ", 1, "EI0014|: super_pod_list[0] is 1; " OBJECT },
	{ v12, "\"super_pod_id\": \"p1\", ", "", 1,
	  "EI0017|: super_pod_list[1].super_pod_id is missing; expected a string of 1 to 128 characters" },
	{ v12, "p1", "p0", 1,
	  "EI0014|: super_pod_list[1].super_pod_id is \"p0\"; expected another name than that of super_pod_list[0]" },
	{ v12, "\"p1\", \"server_list\"", "\"p1\", \"x\"", 1,
	  "EI0017|: super_pod_list[1].server_list is missing; expected a list of 1 to 4096" },
	{ v12, "{ \"server_id\": \"b\" }", "true", 1, "EI0014|: super_pod_list[1].server_list[0] is true; " OBJECT },
	{ v12, "{ \"server_id\": \"b\" }", "{}", 1,
	  "EI0017|: super_pod_list[1].server_list[0].server_id is missing; " STRING64 },
	{ v12, "{ \"server_id\": \"b\" }", "{ \"server_id\": \"c\" }", 1,
	  "EI0014|: super_pod_list[1].server_list[0].server_id is \"c\"; expected the server_id of an entry of server_list" },
	{ v12, "{ \"server_id\": \"b\" }", "{ \"server_id\": \"a\" }", 1,
	  "EI0014|: super_pod_list[1].server_list[0].server_id is \"a\"; expected a server that is not in super_pod_list[0].server_list[0] already" },
	{ v12, ", { \"super_pod_id\": \"p1\", \"server_list\": [{ \"server_id\": \"b\" }] }", "", 1,
	  "EI0017|: server_list[1].server_id \"b\" is in none of the 1 entries of super_pod_list; expected in one" },
	/* 2.0: ranks */
	{ v20, "\"rank_count\": 3, ", "", 1, "EI0017|: rank_count is missing; expected a number from 1 to 4096" },
	{ v20, "\"rank_count\": 3", "\"rank_count\": 0", 1, "EI0014|: rank_count is 0; expected a number from 1 to 4096" },
	{ v20, "\"rank_count\": 3", "\"rank_count\": 4097", 1,
	  "EI0014|: rank_count is 4097; expected a number from 1 to 4096" },
	{ v20, "\"rank_count\": 3", "\"rank_count\": -3", 1, "EI0014|: rank_count is -3; expected a number from 1 to 4096" },
	{ v20, "\"rank_count\": 3", "\"rank_count\": 3.0", 1,
	  "EI0014|: rank_count is 3.0; expected a number from 1 to 4096" },
	{ v20, "\"rank_count\": 3", "\"rank_count\": 4294967299", 1,
	  "EI0014|: rank_count is 4294967299; expected a number from 1 to 4096" },
	{ v20, "\"rank_count\": 3", "\"rank_count\": 4", 1, "EI0014|: rank_count is 4; expected 3, as many as rank_list has" },
	{ v20, "\"rank_list\"", "\"ranks\"", 1, "EI0017|: rank_list is missing; expected a list of 1 to 4096" },
	{ v20, "3, \"status\": \"completed\", \"rank_list\": [", "4, \"rank_list\": [[], ", 1,
	  "EI0014|: rank_list[0] is a list of 0; " OBJECT },
	{ v20, "\"rank_id\": 2, ", "", 1, "EI0017|: rank_list[1].rank_id is missing; expected a number from 0 to 4095" },
	{ v20, "\"rank_id\": 2", "\"rank_id\": 3", 1,
	  "EI0014|: rank_list[1].rank_id is 3; expected 0 to 2: it has 3 ranks, and they count from 0 without a gap" },
	{ v20, "\"rank_id\": 2", "\"rank_id\": 0", 1,
	  "EI0014|: rank_list[1]: rank_id 0 is that of rank_list[0], too; expected one of its own" },
	{ v20, "\"local_id\": 8", "\"local_id\": 65", 1, "EI0014|: rank_list[0].local_id is 65; expected a number from 0 to 64" },
	{ v20, "\"local_id\": 8, ", "", 1, "EI0017|: rank_list[0].local_id is missing; expected a number from 0 to 64" },
	{ v20, "\"replaced_local_id\": 9, ", "", 1,
	  "EI0017|: rank_list[1].replaced_local_id is missing; expected a number from 0 to 63" },
	{ v20, "\"replaced_local_id\": 9", "\"replaced_local_id\": 64", 1,
	  "EI0014|: rank_list[1].replaced_local_id is 64; expected a number from 0 to 63" },
	{ v20, "\"replaced_local_id\": 9", "\"replaced_local_id\": 8", 1,
	  "EI0014|: rank_list[1]: local_id 8 of server \"rack0\" is that of rank_list[0], too; expected one of its own" },
	{ v20, "\"device_id\": 3, ", "", 1, "EI0017|: rank_list[0].device_id is missing; expected a number from 0 to 64" },
	{ v20, "\"device_id\": 3", "\"device_id\": 65", 1, "EI0014|: rank_list[0].device_id is 65; expected a number from 0 to 64" },
	{ v20, "16666", "65536", 1, "EI0014|: rank_list[0].device_port is 65536; " PORT },
	{ v20, "device_port", "host_port\": 0, \"x", 1, "EI0014|: rank_list[0].host_port is 0; " PORT },
	/* 2.0: layers */
	{ v20, "\"level_list\"", "\"levels\"", 1, "EI0017|: rank_list[0].level_list is missing; expected a list of 1 to 8" },
	{ v20, "\"level_list\": [", "\"level_list\": [], \"x\": [", 1,
	  "EI0014|: rank_list[0].level_list is a list of 0; expected a list of 1 to 8" },
	{ v20, "\"level_list\": [", "\"level_list\": [1,1,1,1,1,1,1,1,1], \"x\": [", 1,
	  "EI0014|: rank_list[0].level_list is a list of 9; expected a list of 1 to 8" },
	{ v20, "\"level_list\": [", "\"level_list\": [9, ", 1, "EI0014|: rank_list[0].level_list[0] is 9; " OBJECT },
	{ v20, "\"net_layer\": 0, ", "", 1,
	  "EI0017|: rank_list[0].level_list[0].net_layer is missing; expected a number from 0 to 7" },
	{ v20, "\"net_layer\": 0", "\"net_layer\": 8", 1,
	  "EI0014|: rank_list[0].level_list[0].net_layer is 8; expected a number from 0 to 7" },
	{ v20, "\"net_layer\": 1", "\"net_layer\": 0", 1,
	  "EI0014|: rank_list[0].level_list[1].net_layer is 0; expected a number from 1 to 7" },
	{ v20, "\"net_layer\": 0, \"net_instance_id\": \"rack1\"", "\"net_layer\": 1, \"net_instance_id\": \"rack1\"", 1,
	  "EI0017|: rank_list[2].level_list has no net_layer 0; expected one: it names the rank's server" },
	{ v20, "\"net_instance_id\": \"rack0\", ", "", 1,
	  "EI0017|: rank_list[0].level_list[0].net_instance_id is missing; expected a string of 1 to 1024 characters" },
	{ v20, "TOPO_FILE_DESC", "TORUS", 1,
	  "EI0014|: rank_list[0].level_list[0].net_type is \"TORUS\"; expected \"TOPO_FILE_DESC\" or \"CLOS\"" },
	{ v20, "\"rank_addr_list\"", "\"addrs\"", 1,
	  "EI0017|: rank_list[0].level_list[0].rank_addr_list is missing; expected a list of 0 to 24" },
	/* 2.0: addresses */
	{ v20, "\"rank_addr_list\": [", "\"rank_addr_list\": [null, ", 1,
	  "EI0014|: rank_list[0].level_list[0].rank_addr_list[0] is null; " OBJECT },
	{ v20, "\"IPV4\"", "\"ipv4\"", 1,
	  "EI0014|: rank_list[0].level_list[0].rank_addr_list[0].addr_type is \"ipv4\"; expected \"EID\", \"IPV4\" or \"IPV6\"" },
	{ v20, "\"addr_type\": \"IPV4\", ", "", 1,
	  "EI0017|: rank_list[0].level_list[0].rank_addr_list[0].addr_type is missing; expected a string of 1 to 16 characters" },
	{ v20, "\"IPV4\"", "\"IPV6\"", 1,
	  "EI0014|: rank_list[0].level_list[0].rank_addr_list[0].addr is \"223.0.0.10\"; expected an IPv6 address, as its addr_type says" },
	{ v20, "223.0.0.10", "223.0.0.", 1,
	  "EI0014|: rank_list[0].level_list[0].rank_addr_list[0].addr is \"223.0.0.\"; expected an IPv4 address, as its addr_type says" },
	{ v20, "\"addr\": \"223.0.0.10\", ", "", 1,
	  "EI0017|: rank_list[0].level_list[0].rank_addr_list[0].addr is missing; " STRING64 },
	{ v20, "000000000000002000100000dfdf0001", "00000000000000200010", 1,
	  "EI0014|: rank_list[0].level_list[1].rank_addr_list[0].addr is \"00000000000000200010\"; expected an EID, as its addr_type says: 32 hexadecimal digits" },
	{ v20, "\"plane_id\": \"1\"", "\"plane_id\": 1", 1,
	  "EI0014|: rank_list[0].level_list[1].rank_addr_list[0].plane_id is 1; expected a string of 1 to 1024 characters" },
	{ v20, "\"ports\"", "\"port\"", 1,
	  "EI0017|: rank_list[0].level_list[0].rank_addr_list[0].ports is missing; expected a list of 1 to 16" },
	{ v20, "\"1/12\"", "\"1/\"", 1,
	  "EI0014|: rank_list[0].level_list[0].rank_addr_list[0].ports[1] is \"1/\"; expected \"DIE/PORT\", two numbers" },
	{ v20, "\"0/0\"", "0", 1,
	  "EI0014|: rank_list[0].level_list[0].rank_addr_list[0].ports[0] is 0; expected \"DIE/PORT\", two numbers" },
};

#endif
