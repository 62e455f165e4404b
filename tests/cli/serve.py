"""Speaks to `hbmsim serve`: serve.py PROGRAM FOLDER. Prints `ok NAME` or `not_ok NAME` a line."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

program, folder = sys.argv[1:3]
model = "examples/quickstart/model.yaml"
config = {"model": {"preset": "llama3-8b"}, "hardware": {"device": "nvidia-h100"},
          "mesh": {"fsdp": 8}, "batch": {"global": 16, "seq": 4096}}
sanitized = "/san/" in program


def say(name, good, detail=""):
    print("ok" if good else "not_ok", name, flush=True)
    if not good:
        print(f"{name}: {detail}"[:600], file=sys.stderr)


class Server:
    def __init__(self, *words):
        self.process = subprocess.Popen([program, "serve", *words], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        where, self.token = self.address[len("http://"):].rstrip("/").split("/")
        self.host, port = where.split(":")
        self.port = int(port)

    def ask(self, method, path, body=None, headers=None, token=None):
        c = http.client.HTTPConnection(self.host, self.port, timeout=60)
        c.request(method, f"/{token or self.token}/{path}", body, headers or {})
        answer = c.getresponse()
        data = answer.read()
        c.close()
        return answer, data

    def work(self, name, body):
        answer, data = self.ask("POST", f"do/{name}", json.dumps(body) if not isinstance(body, bytes) else body)
        return answer.status, *frames(data)

    def status(self, key):
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
        return 0

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return file.read().split()

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return int(words[11]) + int(words[12])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


def frames(data):
    out, err, status, at = b"", b"", None, 0
    while at < len(data):
        end = data.find(b"\n", at)
        if end < 0:
            break
        kind, length = data[at:end].split()
        at = end + 1 + int(length)
        part = data[end + 1:at]
        if kind == b"out":
            out += part
        elif kind == b"err":
            err += part
        elif kind == b"end":
            status = part.decode()
    return out, err.decode(), status


def raw(server, text, wait=2):
    s = socket.create_connection((server.host, server.port), timeout=wait)
    s.sendall(text)
    data = b""
    try:
        while part := s.recv(65536):
            data += part
    except TimeoutError:
        pass
    s.close()
    return data


def until(what, seconds=20):
    end = time.time() + seconds
    while time.time() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def try_senders(s):
    answer, page = s.ask("GET", "")
    say("the page comes", answer.status == 200 and b"<title>hbmsim" in page)
    policy = answer.headers["Content-Security-Policy"]
    say("it has a strict policy", "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy, policy)
    say("it names no other site", b"//" not in page.replace(b"<!doctype", b""), page)
    say("a wrong token finds nothing", s.ask("GET", "", token="0" * 32)[0].status == 404)
    say("half a token finds nothing", s.ask("GET", "", token=s.token[:16])[0].status == 404)
    say("another Host is refused", s.ask("GET", "", headers={"Host": "evil.example"})[0].status == 403)
    say("localhost is this machine", s.ask("GET", "", headers={"Host": f"localhost:{s.port}"})[0].status == 200)
    say("another Origin is refused", s.ask("POST", "do/simulate", "{}", {"Origin": "http://evil.example"})[0].status == 403)
    say("another site's request is refused", s.ask("POST", "do/simulate", "{}", {"Sec-Fetch-Site": "cross-site"})[0].status == 403)
    say("its own Origin is not", s.ask("POST", "do/simulate", json.dumps(config), {"Origin": f"http://{s.host}:{s.port}"})[0].status == 200)
    say("another method is refused", s.ask("DELETE", "")[0].status == 405)
    say("no file of the disk is served", s.ask("GET", "../../etc/passwd")[0].status == 404)
    say("no such work", s.ask("POST", "do/shell", "{}")[0].status == 404)
    with open("/proc/net/tcp") as file:
        rows = [line.split()[1] for line in file if line.split()[1].endswith(f":{s.port:04X}")]
    say("it listens on loopback alone", all(row.startswith("0100007F") for row in rows) and rows, rows)


def try_bodies(s):
    head = f"POST /{s.token}/do/simulate HTTP/1.1\r\nHost: {s.host}:{s.port}\r\n".encode()
    answer = raw(s, head + b"Content-Length: 9999999999\r\n\r\n")
    say("a huge body is refused before it is sent", b" 413 " in answer[:40], answer[:200])
    s2 = socket.create_connection((s.host, s.port), timeout=20)
    s2.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
    closed = False
    try:
        for _ in range(80):
            s2.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        closed = s2.recv(100) == b""
    except OSError:
        closed = True
    s2.close()
    say("a huge body without a length is cut off", closed)
    for name, body in (("garbage", b"\x00\xff{{{"), ("nothing", b""), ("a list", b"[1, 2]"),
                       ("depth", b"[" * 5000), ("a number", b"7")):
        status, out, err, end = s.work("simulate", body)
        say(f"{name} as a configuration is an error", status == 200 and end == "2" and err and not out, (status, err, end))
    answer = raw(s, b"\x16\x03\x01 garbage\r\n\r\n")
    say("what is no HTTP is answered or closed", answer == b"" or b"400" in answer[:40], answer[:100])
    slow = socket.create_connection((s.host, s.port), timeout=20)
    slow.sendall(head[:20])
    status, out, _, end = s.work("simulate", config)
    say("a slow client holds up nobody", end == "0" and json.loads(out)["result"]["fits"])
    slow.close()
    for name, tree in (("include", {"include": "/etc/passwd"}), ("model.import", {"model": {"import": "/etc/passwd"}}),
                       ("a device's file", {**config, "hardware": {"device": "/etc/passwd"}}),
                       ("a device's file here", {**config, "hardware": {"device": "x.yaml"}})):
        _, out, err, end = s.work("simulate", tree)
        say(f"{name} is not read", end == "2" and "reads no files" in err and not out, err)
    for axis in ("model.import=/etc/passwd", "model[import]=a", "hardware.device=x.yaml", "model={import: a}"):
        answer, data = s.ask("POST", "do/sweep?x=" + axis.replace("{", "%7B").replace("}", "%7D").replace(" ", "%20") + "&y=batch.seq%3D1", json.dumps(config))
        _, err, end = frames(data)
        say(f"nor by an axis {axis}", end == "2" and "page reads no files" in err or "KEY=RANGE" in err, err)


def keep(kind, result):
    """For serve.sh, which holds it against its JSON Schema."""
    with open(os.path.join(folder, "kept"), "a") as kept:
        path = os.path.join(folder, f"kept{kept.tell()}.json")
        kept.write(f"result {kind} {path}\n")
    with open(path, "w") as file:
        json.dump(result, file)


def try_works(s):
    _, out, _, end = s.work("simulate", config)
    mine = json.loads(out)
    keep("simulate", mine["result"])
    path = os.path.join(folder, "served.json")
    with open(path, "w") as file:
        json.dump(config, file)
    theirs = json.loads(subprocess.run([program, "simulate", path, "--json", "--full"], stdout=subprocess.PIPE, check=True).stdout)
    say("a change says what simulate says", mine["result"] == theirs)
    say("each sample has its op, each buffer its reason", len(mine["positions"]) == len(theirs["timeline"]["seconds"]) and
        len(mine["notes"]) == len(theirs["heap"]["buffers"]) and max(mine["positions"]) < len(mine["ops"]))
    answer, data = s.ask("POST", "do/sweep?x=batch.global%3D8..64*2&y=batch.seq%3D2048,4096", json.dumps(config))
    out, _, end = frames(data)
    lines = [json.loads(line) for line in out.splitlines()]
    keep("sweep", lines[-1])
    say("a fit map comes cell by cell", [c.get("cell") for c in lines[:8]] == list(range(8)) and "best" in lines[8], out[:300])
    _, out, err, end = s.work("advise", config)
    keep("advise", json.loads(out))
    say("levers come", end == "0" and json.loads(out)["levers"], err)
    _, out, err, end = s.work("compare", {"a": config, "b": {**config, "batch": {"global": 8, "seq": 4096}}})
    keep("compare", json.loads(out))
    say("two are compared", end == "0" and json.loads(out)["keys"][0]["key"] == "batch.global", err)
    _, out, err, end = s.work("emit?what=maxtext", config)
    say("settings come", end == "0" and b"ici_fsdp_parallelism" in out, err)
    _, out, err, end = s.work("emit?what=shell", config)
    say("of a known program only", end == "2" and "shell" in err)
    _, out, err, end = s.work("picture?kind=timeline&format=svg", theirs)
    say("a picture comes", end == "0" and out.startswith(b"<?xml") or b"<svg" in out[:200], err)
    _, out, err, end = s.work("report?seconds=0", config)
    say("a report comes", end == "0" and b"</html>" in out[-200:], err)
    for name, kind in (("examples/import/config.json", b"config import"), ("examples/quickstart/model.yaml", b"config file"),
                       ("tests/golden/logs/tpu-hbm.log", b"text explain"),
                       ("tests/golden/hlo/cpu_cond.hlo.gz", b"text hlo"),
                       ("tests/golden/snapshots/step.pickle", b"text explain")):
        with open(name, "rb") as file:
            _, out, err, end = s.work("read", file.read())
        say(f"{name} is read where it is dropped", end == "0" and out.startswith(kind), (end, err, out[:100]))


def try_ends(s):
    hard = {"model": {"preset": "deepseek-v3"}, "hardware": {"device": "tpu-v5p", "count": 2048}, "mesh": {"fsdp": 2048},
            "batch": {"global": 4096, "seq": 4096}}
    c = http.client.HTTPConnection(s.host, s.port, timeout=60)
    c.request("POST", f"/{s.token}/do/plan?seconds=500", json.dumps(hard))
    answer = c.getresponse()
    answer.read(8)
    say("a search runs in a process of its own", until(lambda: len(s.children()) == 1))
    status, out, _, end = s.work("simulate", config)
    say("beside it others are served", end == "0")
    answer.close()
    c.close()
    c.sock and c.sock.close()
    say("who goes away ends it", until(lambda: not s.children(), 5), s.children())
    c = http.client.HTTPConnection(s.host, s.port, timeout=120)
    c.request("POST", f"/{s.token}/do/plan?seconds=500", json.dumps(hard))
    answer = c.getresponse()
    first = answer.read(8)
    number = first.split(b"\n")[1][:1].decode()
    while not number.isdigit():
        number = answer.read(1).decode()
    rest = b""
    while (digit := answer.read(1)) and digit.isdigit():
        number += digit.decode()
    rest = digit
    time.sleep(3)
    s.ask("POST", f"stop?job={number}")
    out, err, end = frames(rest + answer.read())
    keep("plan", json.loads(out))
    say("a search that is stopped tells what it has", end in ("0", "1") and json.loads(out)["status"] in ("limit", "best", "optimal"), (end, err, out[:200]))
    c.close()


def try_many(s):
    body = json.dumps(config)
    seconds = 4 if sanitized else float(os.environ.get("HB_SERVE_SECONDS", "8"))
    for _ in range(30):
        s.work("simulate", config)
    memory, files = s.status("VmRSS"), s.descriptors()
    times, lock = [], threading.Lock()
    begun = time.time()

    def client():
        while time.time() < begun + seconds:
            at = time.time()
            answer, _ = s.ask("POST", "do/simulate", body)
            with lock:
                times.append((time.time() - at, answer.status))
    threads = [threading.Thread(target=client) for _ in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    times_only = sorted(t for t, _ in times)
    print(f"{len(times) / seconds:.0f} requests/s, median {1000 * times_only[len(times) // 2]:.1f} ms, "
          f"RSS {memory} to {s.status('VmRSS')} KiB, descriptors {files} to {s.descriptors()}", file=sys.stderr)
    say("many requests are all answered", all(status == 200 for _, status in times) and len(times) > 10)
    if not sanitized:
        say("they take no memory that stays", s.status("VmRSS") <= memory + 1024, (memory, s.status("VmRSS")))
    say("nor descriptors, nor processes", until(lambda: s.descriptors() <= files) and not s.children(), s.descriptors())
    time.sleep(1)
    before = s.cpu()
    time.sleep(2)
    say("idle it costs nothing", s.cpu() == before)


def main():
    s = Server(model)
    say("the address is on the first line", s.address.startswith("http://127.0.0.1:") and len(s.token) == 32, s.address)
    for step in (try_senders, try_bodies, try_works, try_ends, try_many):
        step(s)
    other = Server("--set", "batch.global=8")
    say("two servers have two tokens", other.token != s.token)
    start = json.loads(other.ask("GET", "start.json")[1])
    say("--set goes into what the page begins with", start["configuration"]["batch"]["global"] == 8)
    taken = subprocess.run([program, "serve", "--port", str(s.port)], stderr=subprocess.PIPE, text=True)
    say("a port that is taken is an error", taken.returncode == 2 and "cannot be had" in taken.stderr, taken.stderr)
    say("SIGTERM ends it in order", other.end() == 0)
    say("and again", s.end() == 0)


main()
