/*
 * test_plan.c - what plan.json may not say, and the space of tunables.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../stages/lib/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SPEC[] =
	"{\"schema\":\"touchstone/spec/1\",\"name\":\"t\",\"axes\":{\"N\":{\"type\":\"var\"},\"H\":{\"type\":\"const\","
	"\"value\":64}},\"inputs\":{\"x\":{\"shape\":[\"N\",\"H\"],\"dtype\":\"float32\"},\"eps\":{\"shape\":null,"
	"\"dtype\":\"float32\",\"fill\":{\"kind\":\"constant\",\"value\":0.5}}},\"outputs\":{\"y\":{\"shape\":[\"N\",\"H\"],"
	"\"dtype\":\"float32\"}},\"compute\":{\"operand\":\"float32\",\"accumulator\":\"float32\"},\"reference\":"
	"{\"source\":\"reference.cu\",\"plan\":\"reference.json\"},\"workloads\":{\"public\":[{\"axes\":{\"N\":1000}}],"
	"\"tiny\":[{\"N\":3}]},\"limits\":{\"launches\":100,\"workspace_bytes\":1000000}}";

static struct spec *spec;
static struct facts facts;

static int make_spec(void **state)
{
	(void)state;
	struct err e;
	if (spec_parse(SPEC, strlen(SPEC), "spec.json", &spec, &e) || facts_find("sim", &facts, &e)) {
		print_error("%s\n", e.text);
		return -1;
	}
	return 0;
}

static int drop_spec(void **state)
{
	(void)state;
	spec_free(spec);
	return 0;
}

/* A whole plan from the parts that matter; NULL takes the usual. ' stands for ". */
static char *text_of(const char *top, const char *launch, const char *args)
{
	char *s = xasprintf("{'schema':'touchstone/plan/1','entries':['k'],%s'launches':[{'entry':'k',%s,'args':"
			    "[%s]}]}", top ? top : "", launch ? launch : "'grid':[1],'block':[32]",
			    args ? args : "{'out':'y'}");
	for (char *c = s; *c; c++)
		if (*c == '\'')
			*c = '"';
	return s;
}

/* Parse, check, resolve at N = 1000; the error, or "" . */
static const char *try_text(const char *text, size_t len)
{
	static struct err e;
	struct plan *p;
	struct launches l;
	e.text[0] = '\0';
	if (plan_parse(text, len, "plan.json", &p, &e))
		return e.text;
	if (!plan_check(p, spec, &e) && !plan_resolve(p, spec, &spec->public[0].gpu, &facts, 0, &l, &e))
		launches_free(&l);
	plan_free(p);
	return e.text;
}

static const char *try_parts(const char *top, const char *launch, const char *args)
{
	char *text = text_of(top, launch, args);
	const char *why = try_text(text, strlen(text));
	free(text);
	return why;
}

struct bad {
	const char *top, *launch, *args, *why;
};

static void all_bad(const struct bad *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char want[400];
		snprintf(want, sizeof want, "plan.json: %s", b[i].why);
		const char *got = try_parts(b[i].top, b[i].launch, b[i].args);
		if (strcmp(got, want))
			fail_msg("case %zu: got  '%s'\n             want '%s'", i, got, want);
	}
}

#define ALL(list) all_bad(list, sizeof list / sizeof list[0])
#define L(extra) "'grid':[1],'block':[32]," extra

static void test_good(void **state)
{
	(void)state;
	assert_string_equal(try_parts(NULL, NULL, NULL), "");
	assert_string_equal(try_parts("'tunables':{'B':{'values':[1,2],'value':2}},'constraints':['B*H <= max_shared'],",
				      L("'shared_bytes':'B*4','when':'N > 10'"),
				      "{'in':'x'},{'out':'y'},{'scalar':'eps'},{'axis':'N','type':'i32'},{'const':-1,"
				      "'type':'i8'},{'const':0.1,'type':'bf16'},{'expr':'N*H','type':'f32'}"), "");
}

static void test_top_level(void **state)
{
	(void)state;
	static const struct bad bad[] = {
		{"'surprise':1,", NULL, NULL, "(top): unknown key 'surprise'"},
		{"'tunables':[],", NULL, NULL, "tunables: an object is expected"},
		{"'tunables':{'B':{'values':[1,1],'value':1}},", NULL, NULL, "tunables.B.values[1]: 1 is there twice"},
		{"'tunables':{'B':{'values':[1],'value':2}},", NULL, NULL, "tunables.B.value: 2 is not one of the values"},
		{"'tunables':{'B':{'values':[1.5],'value':1}},", NULL, NULL, "tunables.B.values[0]: an integer is expected"},
		{"'tunables':{'B':{'values':[],'value':1}},", NULL, NULL, "tunables.B.values: at least 1 entry"},
		{"'tunables':{'B':{'values':[1e10],'value':1}},", NULL, NULL,
		 "tunables.B.values[0]: 10000000000 is outside -2147483648..2147483647"},
		{"'tunables':{'int':{'values':[1],'value':1}},", NULL, NULL, "tunables.int: the name 'int' is reserved"},
		{"'tunables':{'EMU_X':{'values':[1],'value':1}},", NULL, NULL, "tunables.EMU_X: the name 'EMU_X' is reserved"},
		{"'tunables':{'sm_count':{'values':[1],'value':1}},", NULL, NULL,
		 "tunables.sm_count: the name 'sm_count' is reserved"},
		{"'tunables':{'k':{'values':[1],'value':1}},", NULL, NULL, "tunables.k: 'k' is an entry"},
		{"'tunables':{'N':{'values':[1],'value':1}},", NULL, NULL, "tunables: an axis is also named 'N'"},
		{"'tunables':{'B C':{'values':[1],'value':1}},", NULL, NULL,
		 "tunables.B C: 'B C' is not a name ([A-Za-z_][A-Za-z0-9_]*, at most 64 characters)"},
		{"'tunables':{'B':{'values':[1],'value':1,'choose':[{'when':'B > 1','value':1}]}},", NULL, NULL,
		 "tunables.B.choose[0].when: unknown name 'B'"},
		{"'constraints':['N <'],", NULL, NULL, "constraints[0]: column 4: the expression ends too early"},
		{"'constraints':['Q > 1'],", NULL, NULL, "constraints[0]: unknown name 'Q'"},
		{"'constraints':['occupancy(k) > 1'],", NULL, NULL, "constraints[0]: occupancy() may not be used here"},
		{"'compile':{'fast_math':1},", NULL, NULL, "compile.fast_math: true or false is expected"},
		{"'compile':{'flags':'-O9'},", NULL, NULL, "compile: unknown key 'flags'"},
		{"'compile':{'max_registers':8},", NULL, NULL, "compile.max_registers: 8 is outside 16..255"},
		{"'compile':{'std':'c++98'},", NULL, NULL,
		 "compile.std: 'c++98' is not one of: c++11, c++14, c++17, c++20"},
		{"'compile':{'arch':'sm_90b'},", NULL, NULL,
		 "compile.arch: 'sm_90b' is not one of: sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100, sm_100a, "
		 "sm_103, sm_103a, sm_110, sm_110a, sm_120, sm_120a, sm_121, sm_121a"},
		{"'tunables':{'max_clusters':{'values':[1],'value':1}},", NULL, NULL,
		 "tunables.max_clusters: the name 'max_clusters' is reserved"},
		{"'tunables':{'A':{'values':[1,2],'value':1,'choose':[{'when':'N<1','value':2}]},"
		 "'B':{'values':[1,2],'value':1,'choose':[{'when':'N<2','value':2}]},"
		 "'C':{'values':[1,2],'value':1,'choose':[{'when':'N<3','value':2}]}},", NULL, NULL,
		 "tunables: choose can lead to more than 4 configurations, each a compile of its own (give several "
		 "tunables the same `when`)"},
		{"'workspaces':[{'name':'w','bytes':4,'when':'w'}],", NULL, NULL, "workspaces[0].when: unknown name 'w'"},
		{"'workspaces':[{'name':'w','bytes':-1}],", NULL, NULL,
		 "workspaces[0].bytes: is -1: outside 0..1000000 (limits.workspace_bytes, all workspaces together)"},
		{"'workspaces':[{'name':'w','bytes':'4*N*H*4'}],", NULL, NULL,
		 "workspaces[0].bytes: is 1024000: outside 0..1000000 (limits.workspace_bytes, all workspaces together)"},
		{"'workspaces':[{'name':'w','bytes':4,'init':'ones'}],", NULL, NULL,
		 "workspaces[0].init: 'ones' is not one of: raw, zero"},
		{"'workspaces':[{'name':'w','bytes':4},{'name':'w','bytes':4}],", NULL, NULL,
		 "workspaces[1].name: the name 'w' is used twice"},
		{"'workspaces':[{'name':'y','bytes':4}],", NULL, NULL,
		 "workspaces: an input or output is also named 'y'"},
	};
	ALL(bad);
}

static void test_launch(void **state)
{
	(void)state;
	static const struct bad bad[] = {
		{NULL, "'block':[32]", NULL, "launches[0]: key 'grid' is missing"},
		{NULL, "'grid':[],'block':[32]", NULL, "launches[0].grid: at least 1 entry"},
		{NULL, "'grid':[1,1,1,1],'block':[32]", NULL, "launches[0].grid: at most 3 entries"},
		{NULL, "'grid':[1.5],'block':[32]", NULL,
		 "launches[0].grid[0]: an integer or an expression in a string is expected"},
		{NULL, "'grid':[null],'block':[32]", NULL,
		 "launches[0].grid[0]: an integer or an expression in a string is expected"},
		{NULL, "'grid':[0],'block':[32]", NULL, "launches[0].grid[0] is 0: outside 1..2147483647"},
		{NULL, "'grid':['N - 1001'],'block':[32]", NULL, "launches[0].grid[0] is -1: outside 1..2147483647"},
		{NULL, "'grid':[1,65536],'block':[32]", NULL, "launches[0].grid[1] is 65536: outside 1..65535"},
		{NULL, "'grid':[1e9],'block':[1025]", NULL, "launches[0].block[0] is 1025: outside 1..1024"},
		{NULL, "'grid':[1],'block':[1024,2]", NULL,
		 "launches[0].block is 2048: more threads than a block of this device may have"},
		{NULL, "'grid':[1],'block':['occupancy(k)']", NULL, "launches[0].block[0]: occupancy() is "
		 "computed from block, cluster and shared_bytes: used in one of them it makes a cycle"},
		{NULL, L("'cluster':['max_clusters(k)']"), NULL, "launches[0].cluster[0]: max_clusters() is "
		 "computed from block, cluster and shared_bytes: used in one of them it makes a cycle"},
		{NULL, L("'shared_bytes':'occupancy(k)'"), NULL, "launches[0].shared_bytes: occupancy() is "
		 "computed from block, cluster and shared_bytes: used in one of them it makes a cycle"},
		{NULL, "'grid':['max_clusters(j)'],'block':[32]", NULL,
		 "launches[0].grid[0]: max_clusters(): no entry is named 'j'"},
		{NULL, "'grid':['sizeof(k)'],'block':[32]", NULL,
		 "launches[0].grid[0]: sizeof(): no input or output is named 'k'"},
		{NULL, "'grid':['sizeof(y) - 4'],'block':[32]", NULL, "launches[0].grid[0] is 0: outside 1..2147483647"},
		{NULL, "'grid':['occupancy(j)'],'block':[32]", NULL, "launches[0].grid[0]: occupancy(): no entry is named 'j'"},
		{NULL, "'grid':['q'],'block':[32]", NULL, "launches[0].grid[0]: unknown name 'q'"},
		{NULL, "'grid':['N/0'],'block':[32]", NULL, "launches[0].grid[0]: column 2: division by zero"},
		{NULL, L("'shared_bytes':232449"), NULL,
		 "launches[0].shared_bytes is 232449: more than a block of this device may have, or negative"},
		{NULL, L("'shared_bytes':'-N'"), NULL,
		 "launches[0].shared_bytes is -1000: more than a block of this device may have, or negative"},
		{NULL, "'grid':[3],'block':[32],'cluster':[2]", NULL, "launches[0].grid is 3: not a multiple of the cluster"},
		{NULL, "'grid':[20,1],'block':[32],'cluster':[5,4]", NULL,
		 "launches[0].cluster is 20: more blocks than a cluster of this device may have"},
		{NULL, "'grid':[100000],'block':[1024],'cooperative':true", NULL,
		 "launches[0].grid is 100000: a cooperative grid may have 264 blocks here"},
		{NULL, L("'pdl':'yes'"), NULL, "launches[0].pdl: true or false is expected"},
		{NULL, L("'stream':1"), NULL, "launches[0]: unknown key 'stream'"},
		{NULL, L("'when':'N < 10'"), NULL, "launches: no launch that runs at this size takes the output 'y'"},
		{NULL, L("'repeat':{'var':'p','count':101}"), NULL,
		 "launches[0].repeat.count is 101: negative or more than limits.launches"},
		{NULL, L("'repeat':{'var':'p'}"), NULL, "launches[0].repeat: key 'count' is missing"},
		{NULL, L("'repeat':{'count':2}"), NULL, "launches[0].repeat: either var and count, or join"},
		{NULL, L("'repeat':{'join':'p'}"), NULL,
		 "launches[0].repeat.join: the launch before is not in a loop over 'p'"},
		{NULL, L("'repeat':{'var':'H','count':2}"), NULL, "launches: an axis is also named 'H'"},
		{NULL, L("'repeat':{'var':'p','count':'p'}"), NULL, "launches[0].repeat.count: unknown name 'p'"},
	};
	ALL(bad);
}

static void test_args(void **state)
{
	(void)state;
	static const char W[] = "'workspaces':[{'name':'w','bytes':64}],";
	static const struct bad bad[] = {
		{NULL, NULL, "{'in':'x'}", "launches: no launch takes the output 'y'"},
		{NULL, NULL, "{'in':'y'}", "launches[0].args[0]: an output may only be 'out' or 'inout': 'y'"},
		{NULL, NULL, "{'out':'x'}", "launches[0].args[0]: an input may only be 'in': 'x'"},
		{NULL, NULL, "{'inout':'x'}", "launches[0].args[0]: an input may only be 'in': 'x'"},
		{NULL, NULL, "{'in':'z'}", "launches[0].args[0]: no input is named 'z'"},
		{NULL, NULL, "{'in':'eps'}", "launches[0].args[0]: a scalar input is passed as 'scalar': 'eps'"},
		{NULL, NULL, "{'scalar':'x'}", "launches[0].args[0]: not a scalar (it has a shape): 'x'"},
		{NULL, NULL, "{'axis':'Q','type':'i32'}", "launches[0].args[0]: no axis is named 'Q'"},
		{NULL, NULL, "{'axis':'N'}", "launches[0].args[0]: key 'type' is missing"},
		{NULL, NULL, "{'axis':'N','type':'int'}",
		 "launches[0].args[0].type: 'int' is not one of: i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64"},
		{NULL, NULL, "{'axis':'N','type':'i8'},{'out':'y'}", "launches[0].args[0] is 1000: does not fit its type"},
		{NULL, NULL, "{'expr':'-1','type':'u64'},{'out':'y'}", "launches[0].args[0] is -1: does not fit its type"},
		{NULL, NULL, "{'const':300,'type':'u8'}", "launches[0].args[0].const: 300 is outside 0..255"},
		{NULL, NULL, "{'const':-129,'type':'i8'}", "launches[0].args[0].const: -129 is outside -128..127"},
		{NULL, NULL, "{'const':0.5,'type':'i32'}", "launches[0].args[0].const: an integer is expected"},
		{NULL, NULL, "{'const':'1','type':'f32'}", "launches[0].args[0].const: a number is expected"},
		{NULL, NULL, "{'out':'y','in':'x'}", "launches[0].args[0]: unknown key 'out'"},
		{NULL, NULL, "{'pointer':'y'}", "launches[0].args[0]: one of in, out, inout, workspace, workspace_select, axis, "
		 "scalar, const, expr, tensor_map is expected"},
		{NULL, NULL, "7", "launches[0].args[0]: an object is expected"},
		{NULL, NULL, "{'workspace':'w'}", "launches[0].args[0]: no workspace is named 'w'"},
		{W, NULL, "{'workspace':'w','offset':65},{'out':'y'}",
		 "launches[0].args[0].offset is 65: outside the workspace"},
		{W, NULL, "{'workspace':'w','offset':-8},{'out':'y'}",
		 "launches[0].args[0].offset is -8: outside the workspace"},
		{W, NULL, "{'workspace_select':['w'],'index':1},{'out':'y'}",
		 "launches[0].args[0].index is 1: outside the list of workspaces"},
		{W, NULL, "{'workspace_select':['w','v'],'index':0}", "launches[0].args[0]: no workspace is named 'v'"},
		{W, NULL, "{'workspace_select':['w']}", "launches[0].args[0]: key 'index' is missing"},
		{NULL, NULL, "{'out':'../y'}",
		 "launches[0].args[0].out: '../y' is not a name ([A-Za-z_][A-Za-z0-9_]*, at most 64 characters)"},
	};
	ALL(bad);
}

#define MAP(rest) "{'out':'y'},{'tensor_map':{'buffer':'x','dtype':'float32'," rest "}}"
#define D2 "'dims':['H','N'],'byte_strides':['4*H'],"

static void test_tensor_maps(void **state)
{
	(void)state;
	static const struct bad bad[] = {
		{NULL, NULL, MAP(D2 "'box':[32]"), "launches[0].args[1].tensor_map.box: 2 entries expected, one per dimension"},
		{NULL, NULL, MAP("'dims':['H','N'],'byte_strides':[],'box':[32,8]"),
		 "launches[0].args[1].tensor_map.byte_strides: 1 entries expected, one per dimension but the first"},
		{NULL, NULL, MAP("'dims':[1,1,1,1,1,1],'byte_strides':[],'box':[32,8]"),
		 "launches[0].args[1].tensor_map.dims: at most 5 entries"},
		{NULL, NULL, MAP(D2 "'box':[32,257]"),
		 "launches[0].args[1]: tensor_map.box[1] is 257: outside 1..256"},
		{NULL, NULL, MAP(D2 "'box':[3,8]"),
		 "launches[0].args[1]: tensor_map.box[0] is 3: its bytes are not a multiple of 16"},
		{NULL, NULL, MAP(D2 "'box':[64,8],'swizzle':'128B'"),
		 "launches[0].args[1]: tensor_map.box[0] is 64: its bytes are more than the swizzle span"},
		{NULL, NULL, MAP(D2 "'box':[32,8],'swizzle':'256B'"),
		 "launches[0].args[1].tensor_map.swizzle: '256B' is not one of: none, 32B, 64B, 128B"},
		{NULL, NULL, MAP("'dims':['H','N'],'byte_strides':[260],'box':[32,8]"),
		 "launches[0].args[1]: tensor_map.byte_strides[0] is 260: not a multiple of 16"},
		{NULL, NULL, MAP("'dims':['H','N+1'],'byte_strides':['4*H'],'box':[32,8]"),
		 "launches[0].args[1]: tensor_map reaches byte 256256 of 256000"},
		{NULL, NULL, MAP("'dims':[0],'box':[32]"),
		 "launches[0].args[1]: tensor_map.dims[0] is 0: outside 1..4294967296"},
		{NULL, NULL, MAP(D2 "'box':[256,256]"),
		 "launches[0].args[1]: tensor_map.box[0] is 256: the box is larger than shared memory"},
		{NULL, NULL, MAP(D2 "'box':[32,8],'offset':8"),
		 "launches[0].args[1]: tensor_map.offset[0] is 8: outside the buffer or not a multiple of 16"},
		{NULL, NULL, MAP(D2 "'box':[32,8],'interleave':'16B'"),
		 "launches[0].args[1]: tensor_map.interleave[0] is 16: interleave needs rank 3 or more"},
		{NULL, NULL, MAP(D2 "'box':[32,8],'element_strides':[1,9]"),
		 "launches[0].args[1]: tensor_map.element_strides[1] is 9: outside 1..8"},
		{NULL, NULL, "{'out':'y'},{'tensor_map':{'buffer':'eps','dtype':'float32','dims':[4],'box':[4]}}",
		 "launches[0].args[1]: a tensor map cannot describe the scalar 'eps'"},
		{"'workspaces':[{'name':'w','bytes':64}],", NULL, "{'out':'y'},{'tensor_map':{'buffer':'w','dtype':'float32',"
		 "'dims':[4],'box':[4]}}",
		 "launches[0].args[1]: a tensor map over a workspace says \"workspace\", not \"buffer\": 'w'"},
		{"'workspaces':[{'name':'w','bytes':64}],", NULL, "{'out':'y'},{'tensor_map':{'workspace':'w','dims':[4],"
		 "'box':[4]}}", "launches[0].args[1].tensor_map: key 'dtype' is missing"},
		{"'workspaces':[{'name':'w','bytes':64}],", NULL, "{'out':'y'},{'tensor_map':{'workspace':'w','dtype':'int32',"
		 "'dims':[16],'box':[4],'offset':16}}", "launches[0].args[1]: tensor_map reaches byte 64 of 48"},
		{"'workspaces':[{'name':'w','bytes':64,'when':'N < 5'}],", NULL, "{'out':'y'},{'tensor_map':{'workspace':'w',"
		 "'dtype':'int32','dims':[16],'box':[4]}}", "launches[0].args[1]: tensor_map reaches byte 64 of 0"},
		{NULL, NULL, "{'out':'y'},{'tensor_map':{'workspace':'x','dtype':'float32','dims':[4],'box':[4]}}",
		 "launches[0].args[1]: no workspace is named 'x'"},
		{NULL, NULL, "{'out':'y'},{'tensor_map':{'buffer':'x','workspace':'x','dims':[4],'box':[4]}}",
		 "launches[0].args[1].tensor_map: either buffer (an input or output) or workspace"},
		{NULL, NULL, "{'out':'y'},{'tensor_map':{'buffer':'x','dtype':'bfloat16','dims':[8],'box':[8]}}",
		 "launches[0].args[1]: tensor_map.dtype has another element size than 'x'"},
		{NULL, NULL, "{'tensor_map':{'buffer':'y','dtype':'uint8','dims':[16],'box':[16]}}",
		 "launches[0].args[0]: tensor_map.dtype is uint8: an element of 'y' has 4 bytes"},
		{NULL, NULL, "{'tensor_map':{'buffer':'q','dtype':'float32','dims':[4],'box':[4]}}",
		 "launches[0].args[0]: no buffer is named 'q'"},
	};
	ALL(bad);
	assert_string_equal(try_parts(NULL, NULL, MAP(D2 "'box':[32,8],'swizzle':'128B'")), "");
	assert_string_equal(try_parts(NULL, NULL, MAP("'dims':['H*N'],'box':[256]")), "");
	assert_string_equal(try_parts(NULL, NULL, MAP("'dims':['H*N'],'byte_strides':[],'box':[256]")), "");
	assert_string_equal(try_parts(NULL, NULL, "{'tensor_map':{'buffer':'y','dtype':'int32','dims':[4],'box':[4]}}"), "");
	assert_string_equal(try_parts("'workspaces':[{'name':'w','bytes':64}],", NULL, "{'out':'y'},{'tensor_map':{"
				      "'workspace':'w','dtype':'int32','dims':[12],'box':[4],'offset':16}}"), "");
}

/* What does not run is not evaluated; what depends on nothing that is refused is allowed. */
static void test_lazy(void **state)
{
	(void)state;
	static const char OFF[] =
		"{'out':'y'}]},{'entry':'k','when':'N > 2000','grid':['1/(N-1000)'],'block':['0'],'repeat':{'var':'p',"
		"'count':'N/(N-1000)'},'args':[{'expr':'1/0','type':'i32'}";
	assert_string_equal(try_parts(NULL, NULL, OFF), "");
	assert_string_equal(try_parts("'workspaces':[{'name':'w','bytes':'1/0','when':'N < 5'},{'name':'v','bytes':0,"
				      "'init':'zero'}],", NULL, "{'out':'y'},{'workspace':'v'},{'workspace':'w'}"), "");
	assert_string_equal(try_parts(NULL, "'grid':[16,4],'block':[32],'cluster':[4,4]", NULL), "");
	assert_string_equal(try_parts(NULL, "'grid':['16*max_clusters(k)/16'],'block':[32],'cluster':[12],'when':"
				      "'occupancy(k) > 1'", NULL), "plan.json: launches[0].grid is 352: not a multiple of the cluster");
	/* occupancy of an entry whose first launch does not run: of the second */
	assert_string_equal(try_parts("'workspaces':[{'name':'w','bytes':'occupancy(k)*1000000'}],",
				      "'when':'N < 5','grid':[1],'block':['1/0']", "{'out':'y'}]},{'entry':'k','grid':[1],"
				      "'block':[512],'args':[{'out':'y'}"),
			    "plan.json: workspaces[0].bytes: is 4000000: outside 0..1000000 (limits.workspace_bytes, all "
			    "workspaces together)");
	/* one ordered list of conditions, shared: few configurations however many there are */
	assert_string_equal(try_parts("'tunables':{'A':{'values':[1,2,3],'value':1,'choose':[{'when':'N<1','value':2},"
				      "{'when':'N<2','value':3},{'when':'N<3','value':2}]},'B':{'values':[1,2],'value':1,"
				      "'choose':[{'when':'N<1','value':2}]}},", NULL, NULL), "");
}

static void test_strict_json(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"", "{", "[]", "null", "{\"schema\":\"touchstone/plan/1\",\"schema\":\"touchstone/plan/1\"}",
		"{\"schema\":\"touchstone/plan/2\"}", "{} trailing", "{\"schema\":1}",
		"{\"schema\":\"touchstone/plan/1\",\"entries\":[],\"launches\":[]}",
		"{\"schema\":\"touchstone/plan/1\",\"entries\":[\"k\",\"k\"],\"launches\":[]}",
		"{\"schema\":\"touchstone/plan/1\",\"entries\":[\"k\\u0000\"],\"launches\":[]}",
		"{\"schema\":\"touchstone/plan/1\",\"entries\":[\"main\"],\"launches\":[]}",
		"[[[[[[[[[[[[]]]]]]]]]]]]", "{\"schema\":NaN}", "{\"schema\":1e400}",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		const char *why = try_text(bad[i], strlen(bad[i]));
		if (!*why || strncmp(why, "plan.json", 9))
			fail_msg("%s: '%s'", bad[i], why);
	}
	char *big = xmalloc(70000);
	memset(big, ' ', 70000);
	assert_true(*try_text(big, 70000));
	free(big);
	const char *twice = try_parts(NULL, "'grid':[1],'grid':[1],'block':[32]", NULL);
	assert_non_null(strstr(twice, "grid"));
	assert_non_null(strstr(try_parts("'entries':['k'],", NULL, NULL), "entries"));
}

static void test_unused_entry(void **state)
{
	(void)state;
	char text[] = "{\"schema\":\"touchstone/plan/1\",\"entries\":[\"k\",\"j\"],\"launches\":[{\"entry\":\"k\",\"grid\":[1],"
		      "\"block\":[1],\"args\":[{\"out\":\"y\"}]}]}";
	assert_string_equal(try_text(text, strlen(text)), "plan.json: launches: entry 'j' is never launched");
}

static void test_parameter_bytes(void **state)
{
	(void)state;
	struct buf args = BUF_INIT;
	buf_adds(&args, "{'out':'y'}");
	for (int i = 0; i < 33; i++)
		buf_adds(&args, "," "{'tensor_map':{'buffer':'x','dtype':'float32','dims':[64],'box':[64]}}");
	assert_string_equal(try_parts(NULL, NULL, buf_str(&args)),
			    "plan.json: launches[0].args is 4288: more parameter bytes than 4096");
	buf_free(&args);
}

static void test_loops(void **state)
{
	(void)state;
	struct err e;
	struct plan *p;
	struct launches l;
	char text[] =
		"{'schema':'touchstone/plan/1','entries':['a','b','c'],'launches':["
		"{'entry':'a','repeat':{'var':'p','count':3},'grid':['p+1'],'block':[1],'pdl':true,'args':[{'out':'y'}]},"
		"{'entry':'b','repeat':{'join':'p'},'when':'p != 1','grid':[1],'block':[1],'args':[{'expr':'p','type':'i32'}]},"
		"{'entry':'c','repeat':{'var':'p','count':2},'grid':[1],'block':[1],'args':[]}]}";
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	assert_int_equal(plan_parse(text, strlen(text), "plan.json", &p, &e), 0);
	assert_int_equal(plan_check(p, spec, &e), 0);
	assert_int_equal(plan_resolve(p, spec, &spec->public[0].gpu, &facts, 0, &l, &e), 0);
	static const char want[] = "abaabcc";
	assert_int_equal(l.n, 7);
	for (int i = 0; i < l.n; i++)
		assert_int_equal(l.launch[i].entry[0], want[i]);
	assert_int_equal(l.launch[3].grid[0], 3);
	assert_false(l.launch[0].pdl); /* nothing before it */
	assert_true(l.launch[2].pdl);
	launches_free(&l);
	plan_free(p);
}

static void test_space(void **state)
{
	(void)state;
	struct err e;
	struct plan *p;
	struct plan_config c, d;
	int64_t size;
	int legal;
	char *text = text_of("'tunables':{'A':{'values':[1,2,4],'value':2},'B':{'values':[32,64],'value':64,'choose':["
			     "{'when':'N < 10','value':32}]}},'constraints':['A*B <= 128','N > 2'],", NULL, NULL);
	assert_int_equal(plan_parse(text, strlen(text), "plan.json", &p, &e), 0);
	free(text);
	assert_int_equal(plan_space(p, &size, &e), 0);
	assert_int_equal(size, 6);
	for (int64_t i = 0; i < size; i++) {
		plan_config_at(p, i, &c);
		assert_int_equal(plan_config_index(p, &c), i);
		assert_int_equal(plan_config_legal(p, spec, NULL, &facts, &c, &legal, &e), 0);
		assert_int_equal(legal, c.v[0] * c.v[1] <= 128);
	}
	struct axes small = spec->public[0].gpu;
	small.v[spec_axis_find(spec, "N")] = 2;
	plan_config_at(p, 0, &c);
	assert_int_equal(plan_config_legal(p, spec, &small, &facts, &c, &legal, &e), 0);
	assert_false(legal);
	assert_int_equal(plan_config_for(p, spec, &small, &facts, &d, &e), 0);
	assert_int_equal(d.v[1], 32);
	assert_int_equal(plan_choose_add(p, "A", "N >= 10", 4, &e), 0);
	assert_int_equal(plan_choose_add(p, "A", "N >=", 4, &e), -1);
	assert_string_equal(e.text, "plan.json: tunables.A.choose[1].when: column 5: the expression ends too early");
	assert_int_equal(plan_choose_add(p, "A", "1", 3, &e), -1);
	assert_int_equal(plan_config_for(p, spec, &spec->public[0].gpu, &facts, &d, &e), 0);
	assert_int_equal(d.v[0], 4);
	assert_int_equal(plan_config_set(p, &c, &e), 0);
	assert_int_equal(plan_config_for(p, spec, &spec->public[0].gpu, &facts, &d, &e), 0);
	assert_true(plan_config_equal(&c, &d));
	c.v[0] = 3;
	assert_int_equal(plan_config_index(p, &c), -1);
	assert_int_equal(plan_config_set(p, &c, &e), -1);
	assert_string_equal(e.text, "plan.json: tunables.A: 3 is not one of the values");
	plan_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	     cmocka_unit_test(test_top_level),
		cmocka_unit_test(test_launch),	     cmocka_unit_test(test_args),
		cmocka_unit_test(test_tensor_maps),  cmocka_unit_test(test_strict_json),
		cmocka_unit_test(test_lazy),
		cmocka_unit_test(test_unused_entry), cmocka_unit_test(test_parameter_bytes),
		cmocka_unit_test(test_loops),	     cmocka_unit_test(test_space),
	};
	return cmocka_run_group_tests(tests, make_spec, drop_spec);
}
