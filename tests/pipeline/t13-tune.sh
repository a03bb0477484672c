#!/bin/sh
# tune: of several configurations the right and fast one goes on, with artefacts that are its own; a
# configuration that is wrong is dropped, and a candidate whose configurations are all wrong ends here.
. "$(dirname "$0")/../lib.sh"
real_tree

reply() { # reply KERNEL-TAIL
	cat >"$work/kernel.cu" <<-END
	extern "C" __global__ void k(const float *x, const float *y, float *out, int n)
	{
		for (int r = 0; r < WORK; r++)
			for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
				out[i] = $1;
	}
	END
	cat >"$work/plan.json" <<-'END'
	{"schema":"touchstone/plan/1","entries":["k"],
	 "tunables":{"BLOCK":{"values":[64,128],"value":64},"WORK":{"values":[1,40],"value":40},
	  "MODE":{"values":[0,1],"value":1}},
	 "constraints":["MODE == 1 || WORK == 1"],
	 "launches":[{"entry":"k","grid":["ceil_div(N, BLOCK)"],"block":["BLOCK"],"args":[{"in":"x"},{"in":"y"},
	 {"out":"out"},{"axis":"N","type":"i32"}]}]}
	END
	{
		echo '{"hypothesis": "several configurations", "files": ["kernel.cu", "plan.json"]}'
		printf '\n### kernel.cu\n```cuda\n'
		cat "$work/kernel.cu"
		printf '```\n\n### plan.json\n```json\n'
		cat "$work/plan.json"
		printf '```\n'
	} >"$work/reply.txt"
}
go() { "$bin/iterate" --DEVICE=emu --PROPOSER=replay --REPLY="$work/reply.txt" --N=1 --NEW=1; }
of() { jq -r "$2" "trials/$1/tune.json"; }

reply 'x[i] + (MODE ? y[i] : 0.0f)'
ok "a run of one reply" go
ok "the search passes" same ok "$(of 0001 .reason.code)"
ok "wrong configurations were dropped" same element \
	"$(of 0001 '[.data.configurations[] | select(.values.MODE == 0) | .dropped] | unique | join(" ")')"
ok "no slow one was chosen" same 1 "$(of 0001 '.data.configurations[] | select(.chosen) | .values.WORK')"
ok "the plan says so" same 1 "$(jq .tunables.WORK.value trials/0001/candidate/plan.json)"
ok "the artefact is its own" not cmp trials/0001/artefact/emu-fast trials/0001/a0/artefact/emu-fast
ok "the judge passed it" same pass "$(jq -r .verdict trials/0001/judge.json)"

reply 'x[i]'
sed -i 's/out\[i\] = x\[i\]/out[i] = n < 5000 ? x[i] + y[i] : x[i]/' "$work/reply.txt"
ok "another" go
ok "all wrong" same tune.none_correct "$(of 0002 .reason.code)"
finish
