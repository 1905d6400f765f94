#!/bin/sh
# Reads its standard input to the end before anything else.
cat >/dev/null
printf '%s\n' '{"type":"thread.started","thread_id":"t-1"}' '{"type":"turn.started"}'
printf '%s\n' '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"read"}}'
printf '%s\n' '{"type":"turn.completed","usage":{"input_tokens":11,"cached_input_tokens":0,"output_tokens":7}}'
