#!/bin/sh
# t1-client.sh - the client role against a scripted server: retries, broken bodies, keys, resume.
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/../.." || exit 1
. tests/propose/lib.sh
build_server || { echo "Bail out! no test server"; exit 1; }

KEY=sk-test-0123456789abcdef
# A folder with a request; members of the request may be replaced by a jq program.
request() { # NAME [JQ]
	R=$T/$1; rm -rf "$R"; mkdir -p "$R"
	printf '{"model":"m","messages":[{"role":"user","content":"hi"}]}' >"$R/request.body"
	jq -n --arg base "http://127.0.0.1:$PORT/v1" --arg sha "$(sha256sum <"$R/request.body" | cut -d' ' -f1)" \
		'{schema:"touchstone/request/1", identity:"x", kind:"chat", method:"POST", base_url:$base,
		  path:"v1/chat/completions", headers:["Content-Type: application/json","Idempotency-Key: abc"],
		  auth:{header:"Authorization",scheme:"Bearer",env:"TEST_KEY",file:null,required:true},
		  body:"request.body", body_sha256:$sha,
		  limits:{connect_ms:2000,idle_ms:2000,total_ms:8000,backoff_ms:10,retries:3,max_bytes:1000000}} | '"${2:-.}" \
		>"$R/request.json"
}
client() { # sets CODE
	env -i PATH="$PATH" HOME="$T" TEST_KEY="$KEY" "$BIN/client" "$R/request.json" >"$T/out" 2>&1
	CODE=$?
}
text() { jq -r '.choices[0].message.content' "$R/reply.json"; }
OKR='{"text":"hello"}'

serve "{\"replies\":[$OKR]}"
request plain; client
same "a reply is stored" "0 hello" "$CODE $(text)"
same "one call" 1 "$(calls)"
same "address, method" "POST /v1/chat/completions HTTP/1.1" "$(jq -r .request "$T/calls")"
same "the key goes into the header" "Bearer $KEY" "$(jq -r .auth "$T/calls")"
same "usage and finish_reason are recorded" "stop 150" "$(jq -r '"\(.finish_reason) \(.usage.total_tokens)"' "$R/client.json")"
check "the key is in no file" sh -c "! grep -r $KEY $R"
check "the key is not printed" sh -c "! grep $KEY $T/out"
client
same "a durable reply is not asked for again" "0 1" "$CODE $(calls)"

serve "{\"replies\":[{\"status\":429,\"headers\":{\"Retry-After\":\"1\"}},{\"status\":503,\"body\":\"busy\"},{\"drop\":true},$OKR]}"
request retry; t0=$(date +%s%N); client; t1=$(date +%s%N)
same "429, 503 and a dropped connection are retried" "0 4" "$CODE $(calls)"
check "Retry-After is honoured" test $(((t1 - t0) / 1000000)) -ge 950
same "the same bytes and the same idempotency key each time" 1 \
	"$(jq -c '[.body_sha256,.idempotency]' "$T/calls" | sort -u | wc -l | tr -d ' ')"
same "every attempt is in the log" 4 "$(jq '.log|length' "$R/client.json")"

for s in 408 409 425 500; do
	serve "{\"replies\":[{\"status\":$s},$OKR]}"; request r$s; client
	same "$s is retried" "0 2" "$CODE $(calls)"
done
for s in 400 401 403 404 302; do
	serve "{\"replies\":[{\"status\":$s,\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"no $s, $KEY\\\"}}\"},$OKR]}"
	request n$s; client
	same "$s is not retried, exit 4" "4 1" "$CODE $(calls)"
	check "its message is told, the key in it blanked" sh -c "grep -q 'no $s' $T/out && ! grep -r $KEY $T/out $R"
done
serve '{"replies":[{"status":503}]}'
request bound; client
same "retries are bounded, exit 75" "75 4" "$CODE $(calls)"
check "nothing is stored" test ! -e "$R/reply.json"
request deadline '.limits.retries=50|.limits.backoff_ms=400|.limits.total_ms=1200'; t0=$(date +%s%N); client; t1=$(date +%s%N)
check "total_ms bounds all attempts together" test "$CODE" = 75 -a $(((t1 - t0) / 1000000)) -le 2500
serve '{"replies":[{"status":429,"headers":{"Retry-After":"600"}}]}'
request far; client
same "a Retry-After beyond the deadline ends it at once" "75 1 600" "$CODE $(calls) $(field "$R/client.json" .retry_after_s)"

serve "{\"replies\":[{\"body\":\"<html>502 Bad Gateway</html>\",\"headers\":{\"Content-Type\":\"text/html\"}},$OKR]}"
request html; client
same "an HTML page under 200 is retried" "0 2" "$CODE $(calls)"
serve "{\"replies\":[{\"text\":\"hello\",\"cut\":60},{\"text\":\"hello\",\"cut\":60,\"no_length\":true},{\"text\":\"hello\",\"chunked\":true,\"cut\":60},$OKR]}"
request cut; client
same "a body cut in any way is retried" "0 4" "$CODE $(calls)"
serve "{\"replies\":[{\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"upstream\\\",\\\"code\\\":503}}\"},$OKR]}"
request err200; client
same "an error under status 200 is retried" "0 2" "$CODE $(calls)"
serve "{\"replies\":[{\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"bad model\\\",\\\"code\\\":400}}\"},$OKR]}"
request err400; client
same "a lasting one is not" "4 1" "$CODE $(calls)"
serve "{\"replies\":[{\"reset\":true},$OKR]}"
request reset; client
same "a reset connection is retried" "0 2" "$CODE $(calls)"
serve '{"replies":[{"content":null}]}'
request null; client
same "null content is a reply" "0 null" "$CODE $(text)"
serve '{"replies":[{"text":"half a ker","finish_reason":"length"}]}'
request length; client
same "finish_reason length is a reply and says so" "0 length" "$CODE $(field "$R/client.json" .finish_reason)"
serve '{"replies":[{"text":"x","usage":null}]}'
request nousage; client
same "missing usage is null, not 0" "0 null" "$CODE $(field "$R/client.json" .usage.total_tokens)"
serve '{"replies":[{"hex":"7b2263686f69636573223a5b7b226d657373616765223a7b22636f6e74656e74223a22ff41227d7d5d7d"}]}'
request utf8; client
same "invalid UTF-8 is stored as it came" "0 7b22" "$CODE $(head -c 2 "$R/reply.json" | od -An -tx1 | tr -d ' ')"
serve '{"replies":[{"text":"0123456789012345678901234567890123456789"}]}'
request big '.limits.max_bytes=100|.limits.retries=0'; client
same "a reply beyond the cap is refused" 75 "$CODE"

serve '{"replies":[{"text":"streamed words","stream":true,"keepalive":true,"chunk_delay_ms":20,"reasoning":"hm"}]}'
request sse; client
same "a stream is stored as reply.sse" "0 stop true" "$CODE $(field "$R/client.json" .finish_reason) $([ -s "$R/reply.sse" ] && echo true)"
serve '{"replies":[{"text":"streamed words","stream":true,"usage_chunk":false,"chunked":true}]}'
request sse2; client
same "a stream without usage" "0 null" "$CODE $(field "$R/client.json" .usage.total_tokens)"
serve '{"replies":[{"text":"streamed words","stream":true,"done":false},{"text":"streamed words","stream":true}]}'
request sse3; client
same "a stream without its end is retried" "0 2" "$CODE $(calls)"
serve "{\"replies\":[{\"delay_ms\":4000,\"text\":\"x\"},$OKR]}"
request idle '.limits.idle_ms=1000'; client
same "silence is cut off and retried" "0 2" "$CODE $(calls)"

serve "{\"replies\":[$OKR]}"
umask 022
printf '%s\n' sk-from-file >"$T/key"; chmod 644 "$T/key"
request keyfile ".auth.file=\"$T/key\""; client
same "a key file that others can read is refused" "4 0" "$CODE $(calls)"
check "and says chmod 600" grep -q 'chmod 600' "$T/out"
chmod 600 "$T/key"; client
same "a private one is used, before the variable" "0 Bearer sk-from-file" "$CODE $(jq -r .auth "$T/calls")"
request home '.auth.file="~/key"'; client
same "~ is the home folder" "0 Bearer sk-from-file" "$CODE $(jq -r .auth "$T/calls" | tail -1)"
mkdir -p "$BUILD"; printf 'x\n' >"$BUILD/test-key"; chmod 600 "$BUILD/test-key"
request inrepo ".auth.file=\"$BUILD/test-key\""; client; rm -f "$BUILD/test-key"
same "a key inside the repository is refused" 4 "$CODE"
request nokey '.auth.env="NO_SUCH_VARIABLE"'; client
same "no key, exit 4" 4 "$CODE"
request noneed '.auth.env="NO_SUCH_VARIABLE"|.auth.required=false'; client
same "no key needed: no header" "0 " "$CODE $(jq -r .auth "$T/calls" | tail -1)"
request apikey '.auth.scheme="Api-Key"'; client
same "another scheme" "Api-Key $KEY" "$(jq -r .auth "$T/calls" | tail -1)"
request forged '.body_sha256="0"'; client
same "another body than the one named is refused" 3 "$CODE"
request file '.base_url="file:///etc"'; client
same "only http and https" 4 "$CODE"

# The caller dies while the reply is under way: it is stored all the same.
serve '{"replies":[{"delay_ms":700,"text":"late"}]}'
request orphan
env -i PATH="$PATH" TEST_KEY="$KEY" sh -c '"$0" "$1" & echo $! >"$2"; exec sleep 30' "$BIN/client" "$R/request.json" "$T/pid" >/dev/null 2>&1 &
parent=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ "$(calls)" = 1 ] && break; sleep 0.05; done
check "while it works, argv has no key" sh -c "! tr '\\0' ' ' <'/proc/$(cat "$T/pid")/cmdline' | grep $KEY"
kill -9 $parent; wait $parent 2>/dev/null
client # waits for the orphan, then finds its reply
same "an orphan finishes, and nobody asks again" "0 late 1" "$CODE $(text) $(calls)"
# A caller that dies during a pause gets no further attempt.
serve '{"replies":[{"status":503}]}'
request pause '.limits.backoff_ms=1500'
env -i PATH="$PATH" TEST_KEY="$KEY" sh -c '"$0" "$1" & exec sleep 30' "$BIN/client" "$R/request.json" >/dev/null 2>&1 &
parent=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ "$(calls)" = 1 ] && break; sleep 0.05; done
sleep 0.2; kill -9 $parent; wait $parent 2>/dev/null; sleep 2
same "no further attempt for a caller that is gone" 1 "$(calls)"
others=$(for p in "$BIN"/*; do readelf -d "$p" 2>/dev/null | grep -q libcurl && basename "$p"; done | paste -sd' ')
same "the client alone is linked with libcurl" client "$others"
same "-h prints a page" 0 "$("$BIN/client" -h >/dev/null; echo $?)"
same "no argument, exit 2" 2 "$("$BIN/client" >/dev/null 2>&1; echo $?)"
done_testing
