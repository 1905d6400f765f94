#!/usr/bin/env python3
# A claude that prints a very long line. argv[1] = long: one 5 MiB line of three-byte characters, then a result. argv[1] = endless: 1 GiB without a newline.
import json, sys
out = sys.stdout.buffer
if sys.argv[1] == "long":
    msg = {"type": "user", "message": {"content": [{"type": "tool_result", "content": "\u20ac" * (5 * 1024 * 1024 // 3)}]}}
    out.write(json.dumps(msg, ensure_ascii=False).encode() + b"\n")
    out.write(b'{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.01}\n')
else:
    for _ in range(1024): out.write(b"x" * (1 << 20))
out.flush()
