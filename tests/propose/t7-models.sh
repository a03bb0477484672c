#!/bin/sh
# t7-models.sh - make models against the scripted server: rows, exit codes, structured output and its fall back, and
# that no key is told.
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/../.." || exit 1
. tests/propose/lib.sh
build_server || { echo "Bail out! no test server"; exit 1; }
[ -x "$BIN/models" ] || { echo "1..0 # SKIP $BIN/models is not built"; exit 0; }
KEY=sk-live-$$-abcdefgh
unset NVIDIA_API_KEY NEBIUS_API_KEY BASETEN_API_KEY VLLM_API_KEY LLAMA_API_KEY OLLAMA_API_KEY
HOME=$T TMPDIR=$T/tmp; export HOME TMPDIR; mkdir "$TMPDIR"
mkdir -p "$W"; cp -r prompts "$W/prompts"
for p in vllm llamacpp ollama; do # nothing of this machine is asked
	jq '.base_url="http://127.0.0.1:9/v1"' "prompts/profiles/$p.json" >"$W/prompts/profiles/$p.json"
done
point() { # PROFILE...: at the test server
	for p in "$@"; do jq --arg u "http://127.0.0.1:$PORT/v1" '.base_url=$u|.prices={in:1,cached_in:null,out:2}' \
		"$ROOT/prompts/profiles/$p.json" >"$W/prompts/profiles/$p.json"; done
}
models() { (cd "$W" && "$BIN/models" "$@") >"$T/out" 2>&1; CODE=$?; }
row() { grep "^$1 " "$T/out" | tr -s ' ' | sed 's/ $//'; }
LIST='{"body":"{\"object\":\"list\",\"data\":[{\"id\":\"other/a\"},{\"id\":\"vendor/m\"},{\"object\":\"model\"}]}"}'
OK='{"text":"{\"ok\": true}","usage":{"prompt_tokens":21,"completion_tokens":6,"total_tokens":27}}'
NO='{"status":400,"body":"{\"error\":{\"message\":\"response_format json_schema is not supported\"}}"}'

models
same "nothing set up: exit 4" 4 "$CODE"
check "it says which key is missing" grep -q 'set NEBIUS_API_KEY or write ~/.config/touchstone/nebius.key' "$T/out"
same "a server that does not run is no failure" "vllm no - ? - - -" "$(row vllm)"

export NEBIUS_API_KEY=$KEY
serve "{\"replies\":[$LIST,$OK]}"; point nebius
models --PROVIDER=nebius --MODEL=vendor/m
same "all is well: exit 0" 0 "$CODE"
same "the row" "nebius yes vendor/m yes yes 21 + 6 (\$0.000033)" "$(row nebius | sed 's/ [0-9.]*$//')"
same "two requests" "GET /v1/models POST /v1/chat/completions" "$(jq -r .request "$T/calls" | sed 's/ HTTP.*//' | paste -sd' ')"
same "the schema was sent" json_schema "$(jq -r .response_format.type "$T/sent/2.json")"
same "the call is tiny" "1 1024" "$(jq -r '"\(.messages|length) \(.max_tokens)"' "$T/sent/2.json")"
check "the key went to the server" grep -q "Bearer $KEY" "$T/calls"
check "and is told nowhere" sh -c "! grep -q '$KEY' '$T/out'"
same "nothing is left behind" "" "$(ls "$TMPDIR")"

serve "{\"replies\":[$LIST,$NO,$OK]}"; point nebius
models --PROVIDER=nebius --MODEL=vendor/m
same "refused with a word of the schema: asked again without" "0 falls back 3" "$CODE $(row nebius | grep -o 'falls back') $(calls)"
same "the second call has none" null "$(jq -r .response_format "$T/sent/3.json")"
check "the reason is shown" grep -q 'response_format json_schema is not supported' "$T/out"

serve "{\"replies\":[$LIST,{\"status\":400,\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"no such model\\\"}}\"}]}"; point nebius
models --PROVIDER=nebius --MODEL=vendor/none
same "another refusal is none of the schema" "4 2" "$CODE $(calls)"
same "the model is not in the list" "nebius yes vendor/none no - - -" "$(row nebius | sed 's/ [0-9.]*$/ -/')"

serve "{\"replies\":[{\"status\":404,\"body\":\"nope\"},{\"text\":\"Sure! true\",\"usage\":null}]}"; point nebius
models --PROVIDER=nebius --MODEL=vendor/m
same "no list, a schema that is ignored, no usage" "0 nebius yes vendor/m ? ignored ?" "$CODE $(row nebius | sed 's/ [0-9.]*$//')"

serve "{\"replies\":[{\"status\":401,\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"bad key $KEY\\\"}}\"}]}"; point nebius
models --PROVIDER=nebius --MODEL=vendor/m
same "a key that is refused" "4 1" "$CODE $(calls)"
check "said so" grep -q '^nebius *key refused' "$T/out"
check "without the key that the server repeats" sh -c "! grep -q '$KEY' '$T/out'"

serve "{\"replies\":[$LIST]}"; point nebius
models --PROVIDER=nebius
same "no model named: the call is not made" "4 1" "$CODE $(calls)"
check "and one is offered" grep -q 'no model is named: MODEL=, for instance other/a' "$T/out"

# all that have a key, one of them bad
serve "{\"replies\":[$LIST,$OK,{\"status\":403,\"body\":\"no\"}]}"; point nebius openai
jq '.model="vendor/m"' "$W/prompts/profiles/nebius.json" >"$T/p" && cp "$T/p" "$W/prompts/profiles/nebius.json"
export OPENAI_API_KEY=$KEY OPENAI_MODEL=m
models
same "one of two fails: exit 4" "4 nebius yes vendor/m yes yes openai key refused m" \
	"$CODE $(row nebius | cut -d' ' -f1-5) $(row openai | cut -d' ' -f1-4)"
same "those without a key are rows, too" "baseten no key" "$(row baseten | cut -d' ' -f1-3)"
stop_server
models --PROVIDER=vllm --MODEL=m
same "named, a server that does not run is a failure" 4 "$CODE"
models --PROVIDER=nosuch
same "no such profile" 4 "$CODE"
models --MODEL=m
same "a model of no provider" 2 "$CODE"
models --x
same "no option" 2 "$CODE"
done_testing
