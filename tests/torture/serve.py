"""One request to `hbmsim serve` while a call of it fails: serve.py FAIL.SO PROGRAM OPTIONS...

Whatever the server answers, or ends with; then it is told to stop. Exits with its status (200 and
more: by that signal less 200), so that only what is neither done nor a message is a fault."""
import http.client
import os
import subprocess
import sys

SMALL = """{"model": {"preset": "gpt2"}, "batch": {"global": 8, "seq": 128},
            "hardware": {"device": "tpu-v5p", "count": 1}}"""
server = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "LD_PRELOAD": sys.argv[1]})
address = server.stdout.readline().strip()
if address:
    where, token = address[len("http://"):].rstrip("/").split("/")
    try:
        for body in ['{"batch": {"global": 0}}', SMALL]:
            client = http.client.HTTPConnection(where, timeout=20)
            client.request("POST", f"/{token}/do/simulate", body)
            client.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass
    server.terminate()
status = server.wait(20)
sys.exit(status if status >= 0 else 200 - status)
