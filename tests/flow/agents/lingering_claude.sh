#!/bin/sh
# Says it is finished, then never goes away; a child keeps standard output open too.
printf '%s\n' '{"type":"system","subtype":"init","session_id":"s-1"}'
printf '%s\n' '{"type":"assistant","message":{"content":[{"type":"text","text":"done"}]}}'
printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.42,"num_turns":3,"session_id":"s-1"}'
sleep 100000 &
sleep 100000
